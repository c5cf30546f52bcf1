"""Text that was delivered as the answer and is thinking: every consumer of events moves it, or is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.agents.react.translator import Translator
from asides.dialects import DIALECTS, find_dialect
from asides.dialects.server_half import ReplyWriter
from asides.providers.provider import Target
from asides.providers.table import plain_row
from asides.relay.translate.visible_events import JsonOnly, NoThinking, hide_thinking
from asides.values.events import (
    CommentaryDelta,
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    move_reclassified,
)
from asides.values.fold import Fold, fold
from asides.values.reply import Reply
from asides.values.usage import ReplyTimer
from asides.values.visibility import Visibility
from asides_gateway.page_events import EventWriter
from asides_stage.conformance.response_bodies import decode_pieces
from tests.cli.test_terminal import play

SECRET = "hidden-plan"

EVENTS: list[Event] = [
    ReplyStarted("m"),
    TextDelta("hidden", 0),
    TextDelta("-plan", 0),
    TextReclassified(SECRET, 0),
    TextDelta("answer", 1),
    ReplyEnded(StopReason("stop")),
]
WHOLE: list[Event] = [EVENTS[0], ThinkingDelta(SECRET, 0, "raw", "tags"), *EVENTS[4:]]


def test_the_fold_gives_what_the_whole_reply_gives() -> None:
    assert fold(EVENTS) == fold(WHOLE) == fold(move_reclassified(EVENTS))
    assert move_reclassified(WHOLE) == WHOLE
    reply = fold(EVENTS)
    assert (reply.text, reply.thinking.text if reply.thinking else None) == ("answer", SECRET)


MOVED = TextReclassified("I look.", 0, channel="commentary")
LATE: list[Event] = [ReplyStarted("m"), TextDelta("I ", 0), TextDelta("look.", 0), MOVED, *EVENTS[4:]]


def test_commentary_that_is_named_late_is_commentary_everywhere() -> None:
    told: list[Event] = [LATE[0], CommentaryDelta("I look.", 0), *EVENTS[4:]]
    assert fold(LATE) == fold(told) == fold(move_reclassified(LATE))
    assert move_reclassified(LATE) == told
    assert hide_thinking(LATE, Visibility(gateway=()), "gateway") == LATE, "it is no thinking"
    assert NoThinking().hide(LATE) == LATE
    translator = Translator()
    reply: Reply[Any] = fold([out for event in LATE for out in translator.feed([event])])
    assert (reply.text, reply.commentary, bool(reply.thinking)) == ("answer", "I look.", False)
    writer = EventWriter(Visibility(), lambda: 0.0)
    assert b'"commentary":true' in b"".join([writer.write(LATE), writer.finish()]).replace(b" ", b"")
    folding = Fold()
    folding.timer = ReplyTimer(0.0)
    for now, event in enumerate(LATE, 1):
        folding.feed([event])
        folding.stamp(float(now))
    timing = folding.reply().timing
    assert timing is not None
    assert (timing.first_thought, timing.first_word) == (None, 5.0)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_stream_of_late_commentary_has_a_notice(name: str) -> None:
    streaming = find_dialect(name).writer(model="m", stream=True)
    assert isinstance(streaming, ReplyWriter)
    b"".join(streaming.write([event]) for event in LATE)
    assert [notice.detail.split()[3] for notice in streaming.notices] == ["commentary"]


def test_front_ends_get_late_commentary_as_such() -> None:
    chunks = list(asides.ui.vercel_chunks(LATE))
    assert [chunk["type"] for chunk in chunks if chunk.get("providerMetadata") == {"asides": {"moved": True}}] == [
        "text-end"
    ]
    assert not any(chunk["type"].startswith("reasoning") for chunk in chunks)
    assert "I look." in json.dumps(chunks[4:])


def test_the_rest_of_a_block_comes_again_and_a_foreign_block_stays() -> None:
    events: list[Event] = [TextDelta("a</think>b", 0), TextReclassified("a", 0), TextDelta("b", 1), ReplyEnded()]
    assert fold(events).text == "b"
    assert fold([TextDelta("a", 0), TextReclassified("x", 5), ReplyEnded()]).text == "a"


def test_the_event_shows_its_thinking_only_when_asked() -> None:
    event = TextReclassified(SECRET, 0)
    assert SECRET not in repr(event)
    assert SECRET not in json.dumps(event.to_dict())
    assert event.to_dict(thinking=True)["text"] == SECRET


def test_the_first_word_of_the_answer_is_the_one_after_the_move() -> None:
    folding = Fold()
    folding.timer = ReplyTimer(0.0)
    for now, event in enumerate(EVENTS, 1):
        folding.feed([event])
        folding.stamp(float(now))
    timing = folding.reply().timing
    assert timing is not None
    assert (timing.first_thought, timing.first_word) == (2.0, 5.0)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_whole_response_has_it_as_thinking_and_a_stream_has_a_notice(name: str) -> None:
    dialect, target = find_dialect(name), Target(plain_row(name), "m", "http://127.0.0.1:1/v1")
    writer = dialect.writer(model="m", stream=False)
    assert isinstance(writer, ReplyWriter)
    body = b"".join(writer.write([event]) for event in EVENTS)
    reply = decode_pieces([body], target, dialect).reply
    assert (reply.text, reply.thinking.text if reply.thinking else None) == ("answer", SECRET)
    assert not writer.notices
    streaming = dialect.writer(model="m", stream=True)
    assert isinstance(streaming, ReplyWriter)
    sent = b"".join(streaming.write([event]) for event in EVENTS)
    assert decode_pieces([sent], target, dialect).reply.text.replace("\n", "") == f"{SECRET}answer"
    assert [notice.code for notice in streaming.notices] == ["text_not_moved"]


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_client_that_may_not_see_thinking_gets_none_of_it_whole(name: str) -> None:
    shown = hide_thinking(EVENTS, Visibility(gateway=()), "gateway")
    written = find_dialect(name).writer(model="m", stream=False).write(shown)
    assert b"hidden" not in written
    assert b"answer" in written


def test_json_before_the_close_is_not_the_answer() -> None:
    events: list[Event] = [
        TextDelta('try {"a": 1', 0),
        TextReclassified('try {"a": 1', 0),
        TextDelta('so {"b": 2}!', 1),
        ReplyEnded(),
    ]
    assert fold(JsonOnly().fit(events)).text == '{"b": 2}'


def test_an_answer_in_a_typed_stream_begins_after_it() -> None:
    events: list[Event] = [TextDelta("Final Answer: no", 0), TextReclassified("Final Answer: no", 0)]
    events += [TextDelta("Final Answer: 42", 1), ReplyEnded(StopReason("stop"))]
    translator = Translator()
    reply: Reply[Any] = fold([out for event in events for out in translator.feed([event])])
    assert (reply.text, "no" in (reply.thinking.text if reply.thinking else "")) == ("42", True)


def test_a_front_end_of_vercel_is_told_and_sends_no_copy_back() -> None:
    chunks = list(asides.ui.vercel_chunks(EVENTS, visibility={"user": ["raw"]}))
    marked = [chunk for chunk in chunks if chunk.get("providerMetadata") == {"asides": {"moved": True}}]
    assert [chunk["type"] for chunk in marked] == ["text-end"]
    assert "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "reasoning-delta") == SECRET
    parts = [
        {"type": "text", "text": SECRET, "providerMetadata": {"asides": {"moved": True}}},
        {"type": "reasoning", "text": SECRET, "providerMetadata": {"asides": {"kind": "raw"}}},
        {"type": "text", "text": "answer"},
    ]
    (turn,) = asides.ui.read_vercel([{"role": "assistant", "parts": parts}])
    assert [type(part).__name__ for part in turn.parts] == ["Thought", "Text"]


def test_a_front_end_of_ag_ui_is_told_which_message_it_is() -> None:
    events = list(asides.ui.ag_ui_events(EVENTS, visibility={"user": ["raw"]}))
    moved = next(event for event in events if event["type"] == "CUSTOM")
    texts = [event for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert moved["name"] == "asides.text_moved"
    assert [event["delta"] for event in texts if event["messageId"] == moved["value"]["messageId"]] == [
        "hidden",
        "-plan",
    ]
    assert [event["delta"] for event in texts if event["messageId"] != moved["value"]["messageId"]] == ["answer"]
    assert any(event["type"] == "REASONING_MESSAGE_CONTENT" and event["delta"] == SECRET for event in events)


@pytest.mark.parametrize(("policy", "shown"), [((), ""), (("raw",), SECRET)])
def test_the_page_moves_it(policy: tuple[Any, ...], shown: str) -> None:
    writer = EventWriter(Visibility(gateway=policy), lambda: 0.0)
    written = b"".join([*(writer.write([event]) for event in EVENTS), writer.finish()]).decode()
    names = [line.removeprefix("event: ") for line in written.split("\n") if line.startswith("event: ")]
    assert names == ["text", "text", "text_moved", "thought", "thought_end", "text"]
    thought = next(block for block in written.split("\n\n") if block.startswith("event: thought\n"))
    assert json.loads(thought.split("data: ")[1])["text"] == shown


def test_a_terminal_begins_the_answer_on_a_line_of_its_own() -> None:
    out, _, _ = play(EVENTS, out=False, err=False)
    assert out == f"{SECRET}\n\nanswer\n"
