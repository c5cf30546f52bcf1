"""Write replies and errors as a server of Messages does."""

from __future__ import annotations

import json

import pytest

from asides.dialects import find_dialect
from asides.dialects.anthropic.server.write_reply import write_error_headers
from asides.values.events import (
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

DIALECT = find_dialect("anthropic")


def test_a_stream_has_the_documented_events() -> None:
    writer = DIALECT.writer(model="claude-opus-4-6", stream=True)
    events: list[Event] = [
        ReplyStarted(None, "msg_1"),
        ThinkingDelta("plan", 7),
        TextDelta("I ", 9),
        TextDelta("look.", 9),
        ToolCallDelta(12, "t1", "look_up"),
        ReplyEnded(StopReason("tool_calls", "tool_calls")),
    ]
    lines = b"".join(writer.write([event]) for event in events).decode().split("\n\n")
    documents = [(line.partition("\n")[0], json.loads(line.partition("data: ")[2])) for line in lines if line]
    assert [name.removeprefix("event: ") for name, _ in documents] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]
    assert all(name == f"event: {document['type']}" for name, document in documents)
    assert [document["index"] for _, document in documents if "index" in document] == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert documents[0][1]["message"]["role"] == "assistant"
    assert documents[-2][1]["delta"]["stop_reason"] == "tool_use"


def test_a_refusal_of_another_dialect_is_in_the_details() -> None:
    writer = DIALECT.writer(model="m", stream=False)
    document = json.loads(writer.write([ReplyStarted(), RefusalDelta("No."), ReplyEnded(StopReason("stop", "stop"))]))
    assert (document["stop_reason"], document["stop_details"]["explanation"], document["content"]) == (
        "refusal",
        "No.",
        [],
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (529, "overloaded_error"),
        (502, "api_error"),
    ],
)
def test_an_error_body_has_the_type_of_its_status(status: int, kind: str) -> None:
    assert json.loads(DIALECT.write_error(status, "no")) == {"type": "error", "error": {"type": kind, "message": "no"}}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
def test_an_error_that_lasts_says_so(status: int) -> None:
    lasts = status < 429
    assert write_error_headers(status) == ({"x-should-retry": "false"} if lasts else {})
