"""Write replies and errors as a server of Cohere's v2 chat does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.fold import fold
from asides.values.notices import Notice
from asides.values.parts import UnknownPart
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from asides.wire.sse import SseReader
from tests.decoding import reply_of, target

DIALECT = find_dialect("cohere")
EVENTS: list[Event] = [
    ReplyStarted("m", "r1"),
    Warned(Notice("noted")),
    ThinkingDelta("plan", 0, "raw", "block", "content"),
    TextDelta("42", 5),
    RefusalDelta("!", 6),
    PartArrived(UnknownPart('{"type":"sound"}'), 7),
    PartArrived(UnknownPart('{"type":"sound","again":true}'), 7),
    ThoughtSealed(Seal("signature", "of another dialect"), 0),
    ThoughtSealed(Seal("citations", "", None, '[{"start":0,"content_index":9}]'), 5),
    ToolCallDelta(8, None, "look", '{"n":'),
    ToolCallDelta(8, arguments="1}"),
    ThoughtSealed(Seal("tool_plan", "", None, '"I will."'), 8),
    UsageReported(Usage(1, 2, None, 0)),
    UsageReported(Usage(None, 3)),
    ReplyEnded(StopReason("tool_calls", "tool_use")),
]


def written(*, stream: bool, include_usage: bool = True) -> bytes:
    writer = DIALECT.writer(model="m", stream=stream, include_usage=include_usage)
    assert writer.content_type == ("text/event-stream" if stream else "application/json")
    body = b"".join(writer.write([event]) for event in EVENTS)
    assert writer.write([TextDelta("late")]) == b""
    return body


def documents(body: bytes) -> list[Any]:
    reader = SseReader()
    return [json.loads(payload) for payload in reader.feed(body) + reader.finish()]


def test_events_have_their_types_and_items_their_indexes() -> None:
    events = documents(written(stream=True))
    assert [document["type"] for document in events if not document["type"].startswith("content")] == [
        "message-start",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "citation-start",
        "citation-end",
        "message-end",
    ]
    starts = [
        (event["index"], event["delta"]["message"]["content"]["type"])
        for event in events
        if event["type"] == "content-start"
    ]
    assert starts == [(0, "thinking"), (1, "text"), (2, "text"), (3, "sound")]
    citation = next(event for event in events if event["type"] == "citation-start")
    assert citation["delta"]["message"]["citations"] == {"start": 0, "content_index": 1}
    assert events[-1]["delta"] == {
        "finish_reason": "TOOL_CALL",
        "usage": {
            "billed_units": {"input_tokens": 1, "output_tokens": 3},
            "tokens": {"input_tokens": 1, "output_tokens": 3},
            "cached_tokens": 0,
        },
    }


def read_order(body: bytes) -> list[str]:
    """The events of items, with their indexes. Fails if an item begins before the last one has ended."""
    order: list[str] = []
    current, is_open = -1, False
    for document in documents(body):
        if not document["type"].startswith("content"):
            assert not is_open
            continue
        match document["type"]:
            case "content-start":
                assert (is_open, document["index"]) == (False, current + 1)
                current, is_open = current + 1, True
            case "content-end":
                assert is_open
                is_open = False
            case _:
                assert is_open
        assert document["index"] == current
        order.append(f"{document['type'].removeprefix('content-')} {current}")
    return order


def test_an_item_ends_before_the_next_one_begins() -> None:
    order = ", ".join(read_order(written(stream=True)))
    assert order == ("start 0, delta 0, end 0, start 1, delta 1, end 1, start 2, delta 2, end 2, start 3, end 3")


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab", max_size=3))))
def test_items_in_any_order_become_one_item_after_another(pieces: list[tuple[int, str]]) -> None:
    # Even blocks are text, odd ones thinking.
    events: list[Event] = [
        ThinkingDelta(text, block, "raw", "block", "content") if block % 2 else TextDelta(text, block)
        for block, text in pieces
    ]
    writer = DIALECT.writer(model="m", stream=True)
    body = b"".join(writer.write([event]) for event in [ReplyStarted("m"), *events, ReplyEnded(StopReason("stop"))])
    read_order(body)
    reply = reply_of([body], target(), "cohere")[0]
    assert reply.text == "".join(text for block, text in pieces if not block % 2)
    thoughts = [part.text for part in reply.parts if isinstance(part, Thought)]
    assert "".join(thoughts) == "".join(text for block, text in pieces if block % 2)


def test_whole_and_streamed_are_the_same_reply() -> None:
    streamed, whole = (reply_of([written(stream=stream)], target(), "cohere")[0] for stream in (True, False))
    assert streamed == whole
    assert (whole.text, whole.id) == ("42!", "r1")
    assert whole.tool_calls[0].id == fold(EVENTS).tool_calls[0].id
    assert json.loads(written(stream=False))["message"]["tool_plan"] == "I will."


def test_usage_is_left_out_where_the_client_did_not_ask_for_it() -> None:
    assert "usage" not in documents(written(stream=True, include_usage=False))[-1]["delta"]


def test_a_reply_without_a_stop_reason_has_none() -> None:
    writer = DIALECT.writer(model="m", stream=False)
    document = json.loads(writer.write([ReplyStarted(), ReplyEnded()]))
    assert document == {"id": document["id"], "message": {"role": "assistant"}}


@pytest.mark.parametrize("stream", [True, False])
def test_every_reply_has_an_id_of_its_own(stream: bool) -> None:
    bodies = [DIALECT.writer(model="m", stream=stream).write([ReplyStarted(), ReplyEnded()]) for _ in range(3)]
    first = [documents(body)[0]["id"] if stream else json.loads(body)["id"] for body in bodies]
    assert len({*first, ""}) == 4
