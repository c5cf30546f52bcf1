"""Replies of other providers against the types of the official clients: each required field is in each event."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import CallerTool, ReplyWriter
from asides.values.events import (
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import Message, Prompt
from asides.values.parts import Text
from asides.values.thinking import Seal
from asides.values.usage import Usage
from asides.wire.sse import SseReader

CALL = "call_9hQvL2mXbT7sYwKdPz31RfGc"
TOOLS = {
    "patch": CallerTool("patch", custom=True),
    "agents__spawn": CallerTool("spawn", "agents"),
}
STOPS: list[StopKind] = ["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unknown"]
SEALS = {"anthropic": "signature", "openai_responses": "encrypted", "openai_chat": "thought_signature"}


def make_events(name: str, stop: StopKind) -> list[Event]:
    return [
        ReplyStarted("upstream", "one-id"),
        ThinkingDelta("think", 0, "summary", "block"),
        ThoughtSealed(Seal(SEALS[name], "asd1.k.value"), 0),
        ThinkingDelta("raw", 1, "raw", "field"),
        TextDelta("answer", 2),
        ToolCallDelta(3, CALL, "look", '{"n":1}'),
        ToolCallDelta(4, f"{CALL}2", "agents__spawn", "{}"),
        *([RefusalDelta("no", 5)] if stop == "refusal" else []),
        TextDelta("more", 6),
        UsageReported(Usage(output=3)),
        ReplyEnded(StopReason(stop)),
    ]


def write(name: str, events: list[Event], *, stream: bool) -> list[Any]:
    served = ServedRequest(Prompt((Message("user", (Text("hi"),)),)), "m", stream)
    writer = find_dialect(name).writer(model="m", stream=stream)
    assert isinstance(writer, ReplyWriter)
    writer.serve(served, TOOLS, foreign=True)
    data = b"".join([*(writer.write([event]) + writer.write_ping() for event in events)])
    if not stream:
        return [json.loads(data)]
    reader = SseReader()
    documents = [*reader.feed(data), *reader.finish()]
    return [json.loads(document) for document in documents if document != b"[DONE]"]


@pytest.mark.parametrize("stop", STOPS)
def test_chat_fits_the_types_of_its_client(stop: StopKind) -> None:
    openai = pytest.importorskip("openai")
    chat = openai.types.chat
    for document in write("openai_chat", make_events("openai_chat", stop), stream=True):
        chat.ChatCompletionChunk.model_validate(document)
    (document,) = write("openai_chat", make_events("openai_chat", stop), stream=False)
    whole = chat.ChatCompletion.model_validate(document)
    assert whole.usage.completion_tokens == 3
    assert whole.choices[0].message.tool_calls[1].function.name == "spawn"


@pytest.mark.parametrize("stop", STOPS)
def test_responses_fit_the_types_of_their_client(stop: StopKind) -> None:
    openai = pytest.importorskip("openai")
    stream_event = pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent)
    for document in write("openai_responses", make_events("openai_responses", stop), stream=True):
        stream_event.validate_python(document)
    (document,) = write("openai_responses", make_events("openai_responses", stop), stream=False)
    whole = openai.types.responses.Response.model_validate(document)
    assert whole.usage.input_tokens == 0
    assert {item.type for item in whole.output} == {"reasoning", "message", "function_call"}


def test_a_response_with_free_text_and_one_that_fails_fit_too() -> None:
    openai = pytest.importorskip("openai")
    stream_event = pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent)
    events: list[Event] = [ToolCallDelta(0, CALL, "patch", '{"input":"a"}'), ReplyEnded(StopReason("error"))]
    documents = write("openai_responses", events, stream=True)
    for document in documents:
        stream_event.validate_python(document)
    assert documents[-1]["type"] == "response.failed"


@pytest.mark.parametrize("stop", STOPS)
def test_messages_fit_the_types_of_their_client(stop: StopKind) -> None:
    anthropic = pytest.importorskip("anthropic")
    stream_event = pydantic.TypeAdapter(anthropic.types.RawMessageStreamEvent)
    documents = write("anthropic", make_events("anthropic", stop), stream=True)
    for document in documents:
        if document["type"] != "ping":
            stream_event.validate_python(document)
    (document,) = write("anthropic", make_events("anthropic", stop), stream=False)
    whole = anthropic.types.Message.model_validate(document)
    assert whole.stop_reason is not None
    assert [block.type for block in whole.content][:3] == ["thinking", "thinking", "text"]
