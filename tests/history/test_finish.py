"""The message of a reply: complete and incomplete thoughts, no cut calls, nothing that a provider refuses."""

from __future__ import annotations

import pytest

from asides.history.finish import finish_turn
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.fold import Fold, fold
from asides.values.messages import Message, StoredResponse
from asides.values.notices import Notice
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thought

SIGNED = ThoughtSealed(Seal("signature", "s"), 0, "summary", "block")


def wholeness(*events: Event) -> list[bool]:
    """For each thought of a reply that broke off after these events: whether it is complete."""
    folding = Fold()
    folding.feed(events)
    reply = folding.reply()
    assert reply.complete is any(isinstance(event, ReplyEnded) for event in events)
    return [part.complete for part in reply.parts if isinstance(part, Thought)]


# --- whole thoughts -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("pain C3")
@pytest.mark.parametrize(
    "follower",
    [
        TextDelta("a", 1),
        ThinkingDelta("b", 1),
        ToolCallDelta(1, "c", "f"),
        RefusalDelta("no", 1),
        PartArrived(UnknownPart("{}"), 1),
    ],
)
def test_pain_C3_a_thought_that_something_followed_is_whole(follower: Event) -> None:
    assert wholeness(ThinkingDelta("a", 0)) == [False]
    assert wholeness(ThinkingDelta("a", 0), follower)[0] is True
    assert wholeness(ReplyStarted(), ThinkingDelta("a", 0), follower, ReplyEnded())[0] is True


@pytest.mark.parametrize("kind", ["signature", "redacted", "encrypted", "item"])
def test_a_thought_is_whole_with_the_seal_that_closes_it(kind: str) -> None:
    seal = ThoughtSealed(Seal(kind, "s"), 0)
    assert wholeness(ThinkingDelta("a", 0), seal) == [True]
    assert wholeness(seal, ThinkingDelta("a", 0)) == [False]
    assert wholeness(ThinkingDelta("a", 0), seal, ThinkingDelta("b", 0)) == [False]
    assert wholeness(seal) == [True]


@pytest.mark.parametrize("kind", ["reasoning_details", "thought_signature", "reasoning_opaque"])
def test_a_seal_that_grows_or_stands_beside_it_closes_no_thought(kind: str) -> None:
    seal = ThoughtSealed(Seal(kind, "s"), 0)
    assert wholeness(ThinkingDelta("a", 0), seal) == [False]
    # Some come at the very end, though the thought was over long before.
    assert wholeness(ThinkingDelta("a", 0), TextDelta("b", 1), seal) == [True]
    assert wholeness(TextDelta("b", 1), seal) == [True]
    assert wholeness(TextDelta("b", 0), ThoughtSealed(Seal(kind, "s"), 1)) == [False]


def test_a_thought_that_is_gone_on_with_behind_others_is_open_again() -> None:
    first, text = ThinkingDelta("a", 0), TextDelta("b", 1)
    assert wholeness(first, text, ThinkingDelta("c", 0)) == [False]
    assert wholeness(first, ToolCallDelta(1, "c", "f"), ThinkingDelta("c", 0)) == [False]
    assert wholeness(first, text, ThinkingDelta("c", 0), text) == [True]
    assert wholeness(first, SIGNED, ThinkingDelta("b", 1)) == [True, False]
    # More of an earlier block does not end a later thought.
    assert wholeness(TextDelta("b", 0), ThinkingDelta("a", 1), TextDelta("c", 0)) == [False]


def test_the_pieces_of_a_block_stay_together_whatever_comes_between() -> None:
    events: list[Event] = [
        TextDelta("a", 0),
        ToolCallDelta(1, "c", "f"),
        TextDelta("b", 0),
        SIGNED,
        ThinkingDelta("t", 2),
    ]
    reply = fold([*events, TextDelta("c", 0), ThinkingDelta("u", 2), ReplyEnded()])
    assert (reply.text, [part.text for part in reply.parts if isinstance(part, Thought)]) == ("abc", ["tu"])


# --- the message that is left ---------------------------------------------------------------------------------------


def broken(*parts: Part, stored: bool = False) -> Message | None:
    return finish_turn(Reply(parts, complete=False, id="r_1", stored=stored))


def test_a_whole_reply_stays_as_it_is() -> None:
    parts = (Thought("t"), Text(" "), ToolCall("c", "f", {}, "{broken"))
    assert finish_turn(Reply(parts, id="r_1", stored=True)) == Message("assistant", parts, stored=StoredResponse("r_1"))


def test_what_is_nothing_leaves_nothing() -> None:
    assert finish_turn(None) is None
    assert finish_turn(Reply()) is None
    assert finish_turn(Reply(warnings=(Notice("no_choices"),))) is None
    assert broken() is None
    assert broken(Text(" \n"), ToolCall("c", "f", {}, '{"a')) is None


def test_of_a_broken_reply_calls_that_were_cut_and_blank_text_go() -> None:
    whole = ToolCall("c1", "f", {"a": 1})
    signed = Text("", (Seal("thought_signature", "s"),))
    assert broken(Text("a"), Text("\n"), signed, Refusal(" "), whole, ToolCall("c2", "f", {}, '{"a": ')) == Message(
        "assistant", (Text("a"), signed, whole)
    )


def test_a_call_without_arguments_may_be_one_that_has_none_yet() -> None:
    bare = ToolCall("c1", "f")
    ended = ToolCall("c1", "f", seals=(Seal("item", "", None, "{}"),))
    assert broken(Text("a"), bare) == Message("assistant", (Text("a"),))
    assert broken(Text("a"), bare, ToolCall("c2", "f", {"a": 1})) == broken(Text("a"), ToolCall("c2", "f", {"a": 1}))
    assert broken(bare, Text("a")) == Message("assistant", (bare, Text("a")))
    assert broken(ended) == Message("assistant", (ended,))
    custom = ToolCall("c1", "f", {}, "half a te", custom=True)
    assert broken(custom) is None
    assert broken(custom, Text("a")) == Message("assistant", (custom, Text("a")))


def test_tools_of_the_provider_that_were_still_running_go() -> None:
    asked = ServerTool("server_tool_use", "s1")
    found = ServerTool("web_search_tool_result", "s1")
    running = ServerTool("web_search_call", "w1", "searching")
    assert broken(asked, found, Text("a")) == Message("assistant", (asked, found, Text("a")))
    assert broken(Text("a"), asked) == Message("assistant", (Text("a"),))
    assert broken(asked, Text("a")) == Message("assistant", (Text("a"),))
    assert broken(running, Text("a")) == Message("assistant", (Text("a"),))
    assert broken(Text("a"), UnknownPart("{}")) == Message("assistant", (Text("a"),))


def test_a_thought_whose_follower_is_gone_can_be_shown_and_not_be_sent() -> None:
    turn = broken(Thought("a"), Text("b"), Thought("c"), ToolCall("c1", "f", {}, '{"a'))
    assert turn is not None
    assert turn.parts == (Thought("a"), Text("b"), Thought("c", replayable=False))
    assert broken(Thought("a")) == Message("assistant", (Thought("a", replayable=False),))


def test_a_thought_that_the_reply_broke_off_inside_is_incomplete_and_nothing_else() -> None:
    cut = Thought("a", complete=False)
    assert broken(cut) == Message("assistant", (cut,))
    assert (cut.replayable, cut.can_replay) == (True, False)


def test_a_broken_reply_is_stored_nowhere() -> None:
    turn = broken(Text("a"), stored=True)
    assert turn is not None
    assert turn.stored is None


def test_a_thought_whose_host_wants_all_its_details_back_waits_for_the_end() -> None:
    seal = Seal("reasoning_details", "x", None, '{"type":"reasoning.encrypted","data":"x"}')
    for provider, whole in (("openrouter", False), ("deepseek", True), ("nobody-knows", True)):
        turn = broken(Thought("a", origin=Origin(provider, "", "m"), seals=(seal,)), Text("b"))
        assert turn is not None
        [thought, _] = turn.parts
        assert isinstance(thought, Thought)
        assert (thought.complete, thought.can_replay) == (True, whole), provider
