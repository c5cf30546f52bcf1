"""The fold of events, and a whole reply as events again."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.fold import Fold, simulate
from asides.values.notices import Notice
from asides.values.parts import Image, Text
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage

# One event of each kind, and what it adds to a reply.
SAMPLES: dict[type, tuple[Any, str]] = {
    ReplyStarted: (ReplyStarted("made-up", "reply_1"), "model"),
    ThinkingDelta: (ThinkingDelta("plan"), "thinking"),
    ThoughtSealed: (ThoughtSealed(Seal("signature", "sig")), "parts"),
    TextDelta: (TextDelta("42"), "text"),
    TextReclassified: (TextReclassified("plan", 0), "thinking"),
    CommentaryDelta: (CommentaryDelta("I look it up."), "commentary"),
    RefusalDelta: (RefusalDelta("no"), "refusal"),
    ToolCallDelta: (ToolCallDelta(0, "call_1", "add", "{}"), "tool_calls"),
    PartArrived: (PartArrived(Image(data=b"x", media_type="image/png"), 0), "parts"),
    UsageReported: (UsageReported(Usage(1, 2)), "usage"),
    Warned: (Warned(Notice("odd")), "warnings"),
    ReplyEnded: (ReplyEnded(StopReason("stop")), "stop"),
}
NEW_EVENT = """no sample for the event {name}. A new kind of event must be handled wherever events are used:
 - values/events.py (OutputEvent, if it is content) and values/fold.py (what it adds to a reply)
 - dialects/<dialect>/decode.py (who emits it)
 - dialects/server_half.py (what server halves do that cannot write it) and server/write_reply.py of those that can
 - cli/render.py and integrations/ui_writer.py (how it is shown), and asides/__init__.py (its public name)
Then add a sample here."""


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_changes_the_reply(kind: type) -> None:
    assert kind in SAMPLES, NEW_EVENT.format(name=kind.__name__)
    event, field = SAMPLES[kind]
    empty, reply = Fold().reply(), asides.fold([event])
    assert getattr(reply, field) != getattr(empty, field)


DELTAS = st.one_of(
    st.builds(TextDelta, st.sampled_from(["", " ", "a", "bc"]), st.integers(0, 2)),
    st.builds(TextReclassified, st.sampled_from(["", " ", "a", "bc"]), st.integers(0, 2)),
    st.builds(ThinkingDelta, st.sampled_from(["", " ", "a", "bc"]), st.integers(0, 2)),
    st.builds(CommentaryDelta, st.sampled_from(["", " ", "a", "bc"]), st.integers(0, 2)),
    st.builds(ThoughtSealed, st.just(Seal("signature", "sig")), st.integers(0, 2)),
    st.builds(ToolCallDelta, st.just(3), st.just("call_1"), st.just("add"), st.sampled_from(["", "{", "}"])),
)


@given(st.lists(st.one_of(DELTAS, st.none()), max_size=40))
def test_joining_pieces_on_the_way_changes_nothing(deltas: list[Event | None]) -> None:
    """None: join now."""
    joining, plain = Fold(), Fold()
    for delta in deltas:
        if delta is None:
            joining.join_pieces()
        else:
            joining.feed([delta])
            plain.feed([delta])
        assert joining.reply() == plain.reply()
        assert joining.has_thinking == plain.has_thinking


def test_joined_pieces_are_few() -> None:
    folding = Fold()
    for _ in range(100):
        folding.feed([TextDelta("a")] * 8)
        folding.join_pieces()
    assert [len(block.pieces) for block in folding._blocks.values()] == [100]


def test_a_reply_with_every_kind_of_event_is_the_fold_of_its_simulation() -> None:
    # Each in a separate block; the part, the call and the refusal are no thought that a seal could close.
    middle: list[Event] = [
        ThinkingDelta("plan", 0),
        ThoughtSealed(Seal("signature", "sig"), 0),
        TextDelta("42", 1),
        RefusalDelta("no", 2),
        ToolCallDelta(3, "call_1", "add", '{"a":1}'),
        PartArrived(Image(data=b"x", media_type="image/png"), 4),
        CommentaryDelta("I look it up.", 5),
        TextDelta("more", 6),
        TextReclassified("more", 6),
        UsageReported(Usage(1, 2)),
        Warned(Notice("odd")),
    ]
    events: list[Event] = [ReplyStarted("made-up", "reply_1"), *middle, ReplyEnded(StopReason("stop"))]
    assert {type(event) for event in events} == set(get_args(Event))
    reply = asides.fold(events)
    assert {type(event) for event in simulate(reply)} == {*get_args(Event)} - {TextReclassified}
    for size in (1, 3, 100):
        assert asides.fold(simulate(reply, size)) == reply


@pytest.mark.parametrize("block", [-1, 0, -(10**30), 10**30])
def test_any_number_names_a_block(block: int) -> None:
    assert asides.fold([asides.TextDelta("a", block), asides.TextDelta("b", block)]).text == "ab"


def test_a_server_that_counts_blocks_below_zero_costs_no_reply() -> None:
    body = (
        b'data: {"type":"message_start","message":{"id":"m"}}\n\n'
        b'data: {"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"42"}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    )
    assert asides.decode("anthropic", body).text == "42"


def completeness(*events: Event) -> list[bool]:
    """Which thoughts of a reply that broke off are complete."""
    reply: Reply = asides.fold([ReplyStarted(), *events])
    return [part.complete for part in reply.parts if isinstance(part, asides.Thought)]


def test_a_thought_of_a_broken_reply_is_complete_if_something_followed_it_or_a_seal_closed_it() -> None:
    assert completeness(ThinkingDelta("a", 0)) == [False]
    assert completeness(ThinkingDelta("a", 0), TextDelta("b", 1)) == [True]
    assert completeness(ThinkingDelta("a", 0), ThoughtSealed(Seal("signature", "s"), 0)) == [True]
    assert completeness(ThinkingDelta("a", 0), ThoughtSealed(Seal("signature", "s"), 0), ThinkingDelta("more", 0)) == [
        False
    ]
    assert completeness(ThinkingDelta("a", 0), TextDelta("b", 1), ThinkingDelta("more", 0)) == [False]


def test_calls_without_a_name_or_with_broken_arguments_give_notices() -> None:
    reply = asides.fold([ToolCallDelta(0, arguments="{"), ToolCallDelta(1, "c", "add", "{}")])
    assert [notice.code for notice in reply.warnings] == ["tool_call_unnamed", "tool_arguments_invalid"]
    assert [call.raw_arguments for call in reply.tool_calls] == ["{", None]


def test_a_call_without_an_id_gets_the_same_one_however_it_came() -> None:
    whole = asides.fold([ToolCallDelta(0, name="add", arguments='{"a":1}')])
    pieces = asides.fold([ToolCallDelta(0, name="add"), *(ToolCallDelta(0, arguments=char) for char in '{"a":1}')])
    assert whole.tool_calls[0].id == pieces.tool_calls[0].id != ""


# --- simulate ---------------------------------------------------------------------------------------------------------


def test_texts_come_in_pieces_of_the_size() -> None:
    reply = Reply((Thought("plan it"), Text("The answer")), complete=True)
    events = [event for event in simulate(reply, 4) if isinstance(event, (ThinkingDelta, TextDelta))]
    assert [event.text for event in events] == ["plan", " it", "The ", "answ", "er"]
    assert [event.block for event in events] == [0, 0, 1, 1, 1]


def test_an_empty_text_with_a_seal_stays_a_part() -> None:
    reply = Reply((Text("", (Seal("thought_signature", "s"),)),), complete=True)
    assert asides.fold(simulate(reply)) == reply


def test_a_piece_has_at_least_one_character() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        simulate(Reply(), 0)


def test_a_broken_reply_of_many_blocks_is_folded_in_linear_time() -> None:
    folding = Fold()
    for number in range(20_000):
        folding.feed([ThinkingDelta("a", number, "raw", "field")])
    thoughts = [part for part in folding.reply().parts if isinstance(part, Thought)]
    assert [thought.complete for thought in thoughts] == [True] * 19_999 + [False]
