"""Write replies and errors as a server of Converse does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.dialects.bedrock.server.write_reply import write_error_headers
from asides.values.events import (
    Event,
    PartArrived,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.parts import ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from asides.wire.aws_frames import FrameReader
from tests.decoding import reply_of, target

DIALECT = find_dialect("bedrock")
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


EVENTS: list[Event] = [
    ReplyStarted(MODEL),
    ThinkingDelta("plan", 0, "raw", "block", "reasoningContent"),
    TextDelta("42", 2),
    ToolCallDelta(3, None, "look", '{"n":'),
    ToolCallDelta(3, arguments="1}"),
    ToolCallDelta(4, "t2", "look"),
    ToolCallDelta(4, arguments="{"),
    UsageReported(Usage(30, 5, None, 20, 35)),
    ReplyEnded(StopReason("tool_calls")),
]


def test_frames_have_the_names_of_their_events() -> None:
    writer = DIALECT.writer(model=MODEL, stream=True)
    body = b"".join(writer.write([event]) for event in EVENTS)
    assert writer.content_type == "application/vnd.amazon.eventstream"
    assert writer.write([TextDelta("late")]) == b""
    frames = FrameReader().feed(body)
    names = [frame.headers[":event-type"] for frame in frames]
    assert names[:4] == ["messageStart", "contentBlockDelta", "contentBlockStop", "contentBlockDelta"]
    assert names[-2:] == ["messageStop", "metadata"]
    assert names.count("contentBlockStart") == 2
    usage = json.loads(frames[-1].payload)["usage"]
    assert usage == {"inputTokens": 10, "outputTokens": 5, "totalTokens": 35, "cacheReadInputTokens": 20}


def read_order(body: bytes) -> list[str]:
    """The names of the events of blocks, with their indexes. Fails if a block begins before the last one has ended."""
    order: list[str] = []
    current, is_open = -1, False
    for frame in FrameReader().feed(body):
        name, payload = frame.headers[":event-type"], json.loads(frame.payload)
        if not name.startswith("contentBlock"):
            continue
        index = payload["contentBlockIndex"]
        if name == "contentBlockStop":
            assert (is_open, index) == (True, current)
            is_open = False
        elif name == "contentBlockStart" or not is_open:
            assert (is_open, index) == (False, current + 1)
            current, is_open = index, True
        assert index == current
        order.append(f"{name.removeprefix('contentBlock')} {index}")
    assert not is_open
    return order


def test_a_block_ends_before_the_next_one_begins() -> None:
    writer = DIALECT.writer(model=MODEL, stream=True)
    body = writer.write(
        [
            ThinkingDelta("plan", 0),
            ThoughtSealed(Seal("signature", "c2ln"), 0),
            TextDelta("so", 1),
            ToolCallDelta(2, "a", "look", '{"n":1}'),
            ToolCallDelta(3, "b", "look", "{}"),
            TextDelta("then", 4),
            ReplyEnded(StopReason("tool_calls")),
        ]
    )
    expected = "Delta 0, Delta 0, Stop 0, Delta 1, Stop 1, Start 2, Delta 2, Stop 2, Start 3, Delta 3, Stop 3"
    assert ", ".join(read_order(body)) == f"{expected}, Delta 4, Stop 4"


# Blocks 0 to 2 are texts, 3 to 5 thoughts and 6 to 8 calls with two pieces of arguments.
def make_event(block: int, number: int) -> Event:
    if block < 3:
        return TextDelta(f"t{block}.{number} ", block)
    if block < 6:
        return ThinkingDelta(f"h{block}.{number} ", block)
    pieces = [("{" if block != 7 else ""), f'"n": {block}' + "}" * (block != 7), " "]
    return ToolCallDelta(block, f"c{block}" if not number else None, "look" if not number else None, pieces[number])


@given(st.lists(st.integers(0, 8), max_size=30))
def test_blocks_in_any_order_become_one_block_after_another(blocks: list[int]) -> None:
    counts = dict.fromkeys(range(9), 0)
    events: list[Event] = [ReplyStarted(MODEL)]
    for block in blocks:
        if counts[block] < 3:
            events.append(make_event(block, counts[block]))
            counts[block] += 1
    events.append(ReplyEnded(StopReason("stop")))
    writer = DIALECT.writer(model=MODEL, stream=True)
    body = b"".join(writer.write([event]) for event in events)
    read_order(body)
    reply, expected = reply_of([body], target(), "bedrock")[0], fold(events)
    assert sorted(reply.text.split()) == sorted(expected.text.split())
    assert sorted(_read_thinking(reply).split()) == sorted(_read_thinking(expected).split())
    calls, expected_calls = ({call.id: _read_call(call) for call in one.tool_calls} for one in (reply, expected))
    assert calls == expected_calls


def _read_thinking(reply: Reply) -> str:
    return " ".join(part.text for part in reply.parts if isinstance(part, Thought))


def _read_call(call: ToolCall) -> tuple[str, Any, str | None]:
    return call.name, call.arguments, call.raw_arguments and call.raw_arguments.strip()


@pytest.mark.parametrize(
    "event",
    [
        ToolCallDelta(0, "t1", "look", "{}"),
        PartArrived(UnknownPart('{"madeUp":{"input":1}}'), 0),
    ],
    ids=["call", "part"],
)
def test_a_reply_begins_with_its_message_whatever_its_first_block_is(event: Event) -> None:
    body = DIALECT.writer(model=MODEL, stream=True).write([ReplyStarted(MODEL), event])
    names = [frame.headers[":event-type"] for frame in FrameReader().feed(body)]
    assert names == ["messageStart", "contentBlockStart", "contentBlockDelta"]


def test_whole_and_streamed_are_the_same_reply() -> None:
    replies = []
    for stream in (True, False):
        writer = DIALECT.writer(model=MODEL, stream=stream)
        replies.append(reply_of([writer.write(EVENTS)], target(), "bedrock")[0])
    streamed, whole = replies
    assert (streamed.text, streamed.usage, streamed.stop) == (whole.text, whole.usage, whole.stop)
    called, broken = sorted(whole.tool_calls, key=lambda call: call.id == "t2")
    assert called.id == fold(EVENTS).tool_calls[0].id
    assert broken.raw_arguments == "{"
    assert streamed.stop == StopReason("tool_calls", "tool_use")


def test_usage_is_left_out_where_the_client_did_not_ask_for_it() -> None:
    writer = DIALECT.writer(model=MODEL, stream=True, include_usage=False)
    assert b"inputTokens" not in writer.write(EVENTS)


@pytest.mark.parametrize(
    ("status", "kind", "name"),
    [
        (400, None, "ValidationException"),
        (405, None, "ValidationException"),
        (429, None, "ThrottlingException"),
        (429, "ServiceQuotaExceededException", "ServiceQuotaExceededException"),
        (500, None, "InternalServerException"),
        (599, None, "InternalServerException"),
    ],
)
def test_an_error_is_named_in_a_header(status: int, kind: str | None, name: str) -> None:
    headers = write_error_headers(status, kind)
    assert headers == {"x-amzn-errortype": name}
    error = DIALECT.error(status, headers, DIALECT.write_error(status, "bad", kind), target())
    assert error.code == name


def test_an_error_is_a_message() -> None:
    assert json.loads(DIALECT.write_error(400, "bad")) == {"message": "bad"}
    assert json.loads(DIALECT.write_error(400, "bad", "ValidationException"))["__type"] == "ValidationException"
