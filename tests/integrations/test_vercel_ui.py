"""Events as the UI message stream of Vercel's AI SDK: the chunks, their order, and what stays here."""

from __future__ import annotations

import asides
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.parts import File, Image, ServerTool, ToolCall, ToolResult
from asides.values.result import ToolFinished
from asides.values.usage import Usage
from tests.integrations.front_ends import (
    make_run,
    read_sse,
    read_vercel_message,
    take_step,
    write_vercel,
)

PNG = b"\x89PNG\r\n\x1a\n"


def test_thinking_and_answer_are_parts_of_their_own_in_their_order() -> None:
    chunks = write_vercel(
        ThinkingDelta("Let me ", 0, "summary"),
        ThinkingDelta("see.", 0, "summary"),
        TextDelta("First.", 1),
        ThinkingDelta("And?", 2, "summary"),
        TextDelta("Second.", 3),
        UsageReported(Usage(10, 20, 7, 4, 30, cache_written=2)),
        metadata={"model": "ours"},
        message_id="msg-7",
    )
    kind = {"asides": {"kind": "summary"}}
    assert chunks == [
        {"type": "start", "messageId": "msg-7", "messageMetadata": {"model": "ours"}},
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "1-1", "providerMetadata": kind},
        {"type": "reasoning-delta", "id": "1-1", "delta": "Let me "},
        {"type": "reasoning-delta", "id": "1-1", "delta": "see."},
        {"type": "reasoning-end", "id": "1-1"},
        {"type": "text-start", "id": "1-2"},
        {"type": "text-delta", "id": "1-2", "delta": "First."},
        {"type": "text-end", "id": "1-2"},
        {"type": "reasoning-start", "id": "1-3", "providerMetadata": kind},
        {"type": "reasoning-delta", "id": "1-3", "delta": "And?"},
        {"type": "reasoning-end", "id": "1-3"},
        {"type": "text-start", "id": "1-4"},
        {"type": "text-delta", "id": "1-4", "delta": "Second."},
        {"type": "text-end", "id": "1-4"},
        {"type": "finish-step"},
        {
            "type": "finish",
            "finishReason": "stop",
            "messageMetadata": {
                "usage": {
                    "inputTokens": 10,
                    "outputTokens": 20,
                    "totalTokens": 30,
                    "reasoningTokens": 7,
                    "cachedInputTokens": 4,
                }
            },
        },
    ]


def test_bytes_are_server_sent_events_with_an_end() -> None:
    events: list[Event] = [ReplyStarted(), TextDelta('Grüße\n\n"data: x"'), ReplyEnded(StopReason("length"))]
    body = list(asides.ui.vercel(events))
    chunks = read_sse(b"".join(body))
    assert chunks[0] == {"type": "start"}  # an id of ours would make a page begin a new message where it goes on
    assert chunks[-1] == "[DONE]"
    assert chunks[:-1] == list(asides.ui.vercel_chunks(events))
    assert chunks[3]["delta"] == 'Grüße\n\n"data: x"'
    assert chunks[-2]["finishReason"] == "length"
    assert asides.ui.VERCEL_HEADERS["x-vercel-ai-ui-message-stream"] == "v1"
    assert asides.ui.VERCEL_HEADERS["content-type"] == "text/event-stream"


def test_half_a_character_does_not_end_the_stream() -> None:
    body = b"".join(asides.ui.vercel([TextDelta("a\ud83d"), ReplyEnded()]))
    assert read_sse(body)[3]["delta"] == "a\ud83d"


def test_arguments_that_are_no_json_object_are_an_error_of_the_call() -> None:
    last = take_step(write_vercel(ToolCallDelta(0, "a", "f", '{"x"')))[-1]
    assert (last["type"], last["input"]) == ("tool-input-error", '{"x"')
    assert "JSON" in last["errorText"]


def test_a_tool_that_takes_free_text() -> None:
    chunks = take_step(write_vercel(ToolCallDelta(0, "a", "patch", "*** Begin", custom=True)))
    assert chunks[0]["inputEncoding"] == "text"
    assert chunks[-1]["input"] == "*** Begin"


def test_failed_tools_are_told_as_errors() -> None:
    failed = ToolResult("c", "ValueError: no such place", "f", is_error=True)
    events = make_run(([ToolCallDelta(0, "c", "f", "{}")], [ToolFinished(ToolCall("c", "f"), failed, 1)]))
    chunks = list(asides.ui.vercel_chunks(events))
    error = {"type": "tool-output-error", "toolCallId": "c", "errorText": "ValueError: no such place"}
    assert error in chunks


def test_tools_of_the_provider_pictures_and_refusals() -> None:
    message = read_vercel_message(
        write_vercel(
            PartArrived(ServerTool("web_search", "srv_1", "in_progress"), 0),
            PartArrived(ServerTool("web_search", "srv_1", "completed"), 0),
            PartArrived(Image(data=PNG), 1),
            PartArrived(File(id="file-of-the-provider"), 2),
            RefusalDelta("I will not.", 3),
        )
    )
    tool, picture, refusal = message["parts"][1:]
    assert (tool["type"], tool["state"], tool["output"]) == (
        *("tool-web_search", "output-available"),
        {"status": "completed"},
    )
    assert tool["providerExecuted"] is True
    assert (picture["mediaType"], picture["url"]) == ("image/png", "data:image/png;base64,iVBORw0KGgo=")
    assert (refusal["type"], refusal["text"]) == ("text", "I will not.")
    read = asides.ui.read_vercel([message])[0].parts
    assert [type(part).__name__ for part in read] == ["Image", "Refusal"]
