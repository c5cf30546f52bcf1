"""Events as the UI message stream of Vercel's AI SDK: the chunks, their order, and what stays here."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.result import RunEnded, StepEnded, StepStarted, ToolFinished, ToolStarted
from asides.values.thinking import Seal
from asides.values.usage import Usage
from tests.integrations.front_ends import Json, VercelMessage, read_sse, read_vercel_message

PNG = b"\x89PNG\r\n\x1a\n"


def write(*events: Any, **options: Any) -> list[Json]:
    return list(asides.ui.vercel_chunks([ReplyStarted("model"), *events, ReplyEnded(StopReason("stop"))], **options))


def inside(chunks: list[Json]) -> list[Json]:
    """The chunks of the only step."""
    assert [chunks[0]["type"], chunks[1]["type"]] == ["start", "start-step"]
    assert [chunks[-2]["type"], chunks[-1]["type"]] == ["finish-step", "finish"]
    return chunks[2:-2]


def test_thinking_and_answer_are_parts_of_their_own_in_their_order() -> None:
    chunks = write(
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
    assert chunks[-1] == "[DONE]"
    assert chunks[:-1] == list(asides.ui.vercel_chunks(events))
    assert chunks[3]["delta"] == 'Grüße\n\n"data: x"'
    assert chunks[-2]["finishReason"] == "length"
    assert asides.ui.VERCEL_HEADERS["x-vercel-ai-ui-message-stream"] == "v1"
    assert asides.ui.VERCEL_HEADERS["content-type"] == "text/event-stream"


def test_half_a_character_does_not_end_the_stream() -> None:
    body = b"".join(asides.ui.vercel([TextDelta("a\ud83d"), ReplyEnded()]))
    assert read_sse(body)[3]["delta"] == "a\ud83d"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["raw", "summary"]),
        ({"thinking": False}, []),
        ({"visibility": {"user": ["summary"]}}, ["summary"]),
        ({"visibility": asides.Visibility(user=())}, []),
        ({"visibility": {"user": ["raw"]}, "thinking": True}, ["raw"]),
    ],
)
def test_a_page_sees_no_more_thinking_than_it_may(options: dict[str, Any], shown: list[str]) -> None:
    chunks = write(ThinkingDelta("raw", 0, "raw"), ThinkingDelta("summary", 1, "summary"), TextDelta("x", 2), **options)
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "reasoning-delta"] == shown
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["x"]


def test_seals_notices_and_unknown_parts_stay_here() -> None:
    chunks = write(
        ThinkingDelta("Hm.", 0),
        ThoughtSealed(Seal("signature", "CANARY"), 0),
        ThoughtSealed(Seal("redacted", "CANARY"), 1),
        PartArrived(UnknownPart('{"x":"CANARY"}'), 2),
        PartArrived(ServerTool("web_search", "srv_1", "completed", '{"result":"CANARY"}'), 3),
        TextDelta("x", 4),
        ThoughtSealed(Seal("thought_signature", "CANARY"), 4),
        ToolCallDelta(5, "c1", "f", "{}"),
        ThoughtSealed(Seal("thought_signature", "CANARY"), 5),
        Warned(Notice("some_code", "CANARY")),
    )
    assert "CANARY" not in json.dumps(chunks)
    assert [chunk["type"] for chunk in chunks].count("reasoning-start") == 1


def test_blank_thinking_is_no_part() -> None:
    assert inside(write(ThinkingDelta("\n", 0), ThinkingDelta(" ", 0), TextDelta("", 1))) == []
    found = inside(write(ThinkingDelta("\n", 0), ThinkingDelta(" a", 0)))
    assert [chunk["delta"] for chunk in found if "delta" in chunk] == ["\n a"]


def test_calls_end_with_their_reply_even_if_their_arguments_alternate() -> None:
    chunks = inside(
        write(
            ToolCallDelta(0, "a", "f", '{"x"'),
            ToolCallDelta(1, "b", "g"),
            ToolCallDelta(0, arguments=":1}"),
            ToolCallDelta(1, arguments="{}"),
        )
    )
    assert [(chunk["type"], chunk["toolCallId"]) for chunk in chunks] == [
        ("tool-input-start", "a"),
        ("tool-input-delta", "a"),
        ("tool-input-start", "b"),
        ("tool-input-delta", "a"),
        ("tool-input-delta", "b"),
        ("tool-input-available", "a"),
        ("tool-input-available", "b"),
    ]
    assert [chunk["input"] for chunk in chunks if "input" in chunk] == [{"x": 1}, {}]


def test_a_call_begins_when_its_id_is_known() -> None:
    chunks = inside(write(ToolCallDelta(0, None, "f", '{"x":1}'), ToolCallDelta(0, "late")))
    assert chunks == [
        {"type": "tool-input-start", "toolCallId": "late", "toolName": "f"},
        {"type": "tool-input-delta", "toolCallId": "late", "inputTextDelta": '{"x":1}'},
        {"type": "tool-input-available", "toolCallId": "late", "toolName": "f", "input": {"x": 1}},
    ]
    made = inside(write(ToolCallDelta(0, None, None, "{}")))
    assert made[0]["toolCallId"]
    assert made[0]["toolName"] == "unnamed"


def test_arguments_that_are_no_json_object_are_an_error_of_the_call() -> None:
    last = inside(write(ToolCallDelta(0, "a", "f", '{"x"')))[-1]
    assert (last["type"], last["input"]) == ("tool-input-error", '{"x"')
    assert "JSON" in last["errorText"]


def test_a_tool_that_takes_free_text() -> None:
    chunks = inside(write(ToolCallDelta(0, "a", "patch", "*** Begin", custom=True)))
    assert chunks[0]["inputEncoding"] == "text"
    assert chunks[-1]["input"] == "*** Begin"


def run(*steps: tuple[list[Event], list[Any]], outcome: Any = "answered") -> list[Any]:
    events: list[Any] = []
    for number, (reply, tools) in enumerate(steps, 1):
        events += [StepStarted(number), ReplyStarted(), *reply, ReplyEnded(StopReason("stop"))]
        events += [*tools, StepEnded(number, "answered", Usage())]
    return [*events, RunEnded(outcome, len(steps), Usage(1, 2, total=3))]


def test_results_find_their_calls_though_the_run_has_renamed_them() -> None:
    """Some servers count the ids of calls from the start with every reply; a run makes them differ."""

    def step(number: int, first: ToolCall, second: ToolCall) -> tuple[list[Event], list[Any]]:
        deltas: list[Event] = [ToolCallDelta(0, "call_1", "f", "{}"), ToolCallDelta(1, "call_1", "f", "{}")]
        started = [ToolStarted(first, number), ToolStarted(second, number)]
        done = [ToolFinished(call, ToolResult(call.id, f"{call.id}!", "f"), number) for call in (second, first)]
        return deltas, [*started, *done]

    events = run(
        step(1, ToolCall("call_1", "f"), ToolCall("call_1_2", "f")),
        # In an earlier turn of the conversation there were two more.
        step(2, ToolCall("call_1_5", "f"), ToolCall("call_1_6", "f")),
    )
    message = read_vercel_message(asides.ui.vercel_chunks(events))
    found = [(part["toolCallId"], part["output"]) for part in message["parts"] if "output" in part]
    assert found == [
        ("call_1", "call_1!"),
        ("call_1_2", "call_1_2!"),
        ("call_1_3", "call_1_5!"),
        ("call_1_4", "call_1_6!"),
    ]


def test_a_result_whose_call_was_not_among_the_events_brings_it() -> None:
    call = ToolCall("c9", "f", {"x": 1})
    events: list[Any] = [ToolFinished(call, ToolResult("c9", "done", "f"), 1), RunEnded("answered", 1, Usage())]
    message = read_vercel_message(asides.ui.vercel_chunks(events))
    (part,) = [part for part in message["parts"] if part["type"] == "tool-f"]
    assert (part["input"], part["output"], part["state"]) == ({"x": 1}, "done", "output-available")


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ('{"sum":3}', {"sum": 3}),
        ("[1,2]", [1, 2]),
        ('{"sum": 3}', '{"sum": 3}'),  # its text could not be written again
        ('{"id":12345678901234567}', '{"id":12345678901234567}'),  # a browser would round it
        ("{broken", "{broken"),
        ("plain", "plain"),
        ("21", "21"),
        ([Text("see"), Image(data=PNG)], None),
    ],
)
def test_results_are_values_where_they_come_back_unchanged(content: Any, output: Any) -> None:
    call = ToolCall("c", "f")
    events = run(([ToolCallDelta(0, "c", "f", "{}")], [ToolFinished(call, ToolResult("c", content, "f"), 1)]))
    message = json.loads(json.dumps(read_vercel_message(asides.ui.vercel_chunks(events))))
    (part,) = [part for part in message["parts"] if "output" in part]
    if output is not None:
        assert part["output"] == output
    (result,) = asides.ui.read_vercel([message])[-1].parts
    assert isinstance(result, ToolResult)
    assert result == ToolResult("c", content, "f")


def test_failed_tools_are_told_as_errors() -> None:
    failed = ToolResult("c", "ValueError: no such place", "f", is_error=True)
    events = run(([ToolCallDelta(0, "c", "f", "{}")], [ToolFinished(ToolCall("c", "f"), failed, 1)]))
    chunks = list(asides.ui.vercel_chunks(events))
    error = {"type": "tool-output-error", "toolCallId": "c", "errorText": "ValueError: no such place"}
    assert error in chunks


def test_tools_of_the_provider_pictures_and_refusals() -> None:
    message = read_vercel_message(
        write(
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


def test_several_replies_are_several_steps() -> None:
    reply: list[Event] = [
        ReplyStarted(),
        TextDelta("a"),
        UsageReported(Usage(1, 1, total=2)),
        ReplyEnded(StopReason("stop")),
    ]
    chunks = list(asides.ui.vercel_chunks([*reply, *reply]))
    assert [chunk["type"] for chunk in chunks].count("start-step") == 2
    assert chunks[-1]["messageMetadata"]["usage"]["totalTokens"] == 4
    assert [chunk["type"] for chunk in asides.ui.vercel_chunks([])] == ["start", "finish"]


def test_events_of_which_the_first_was_taken() -> None:
    """As a handler does that waits for the first event, to answer with a status."""
    chunks = list(asides.ui.vercel_chunks([TextDelta("a"), ReplyEnded(StopReason("tool_calls"))]))
    assert [chunk["type"] for chunk in chunks] == [
        *("start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish")
    ]
    assert chunks[-1]["finishReason"] == "tool-calls"


def test_a_reply_that_breaks_off_is_aborted() -> None:
    seen = VercelMessage().feed(
        asides.ui.vercel_chunks([ReplyStarted(), TextDelta("a"), ToolCallDelta(1, "c", "f", "{")])
    )
    assert seen.ending == "abort"
    assert [part.get("state") for part in seen.message["parts"]] == [None, "done", "input-streaming"]
    assert VercelMessage().feed(asides.ui.vercel_chunks([StepStarted(1)])).ending == "abort"
