"""Write replies and errors as a server of Converse does."""

from __future__ import annotations

import json

import pytest

from asides.dialects import find_dialect
from asides.values.events import (
    Event,
    PartArrived,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.messages import (
    UnknownPart,
)
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
    assert names[:3] == ["messageStart", "contentBlockDelta", "contentBlockDelta"]
    assert names[-2:] == ["messageStop", "metadata"]
    assert names.count("contentBlockStart") == 2
    usage = json.loads(frames[-1].payload)["usage"]
    assert usage == {"inputTokens": 10, "outputTokens": 5, "totalTokens": 35, "cacheReadInputTokens": 20}


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


def test_an_error_is_a_message() -> None:
    assert json.loads(DIALECT.write_error(400, "bad")) == {"message": "bad"}
    assert json.loads(DIALECT.write_error(400, "bad", "ValidationException"))["__type"] == "ValidationException"
