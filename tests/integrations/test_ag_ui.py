"""Events as those of AG-UI: their order, the messages that a client makes of them, and what stays here."""

from __future__ import annotations

import json
from typing import Any

import asides
from asides.values.events import (
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
)
from asides.values.parts import Image, ServerTool, Text, ToolCall, ToolResult
from asides.values.result import RunEnded, StepEnded, StepStarted, ToolFinished, ToolStarted
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from tests.integrations.front_ends import AgUiThread, Json, read_sse

RUN = {"threadId": "thread-1", "runId": "run-1", "messages": []}
PNG = b"\x89PNG\r\n\x1a\n"


def write(*events: Any, stop: Any = "stop", **options: Any) -> list[Json]:
    given = [ReplyStarted("model"), *events, ReplyEnded(StopReason(stop))]
    return list(asides.ui.ag_ui_events(given, run=RUN, **options))


def test_thinking_and_answer_are_messages_of_their_own() -> None:
    found = write(ThinkingDelta("Let me see.", 0), TextDelta("It is 42.", 1), UsageReported(Usage(1, 2, 1, total=3)))
    assert found == [
        {"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0"},
        {"type": "STEP_STARTED", "stepName": "step 1"},
        {"type": "REASONING_START", "messageId": "run-1:1-2"},
        {
            "type": "REASONING_MESSAGE_START",
            "messageId": "run-1:1-2",
            "role": "reasoning",
            "metadata": {"asides": {"kind": "raw"}},
        },
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "run-1:1-2", "delta": "Let me see."},
        {"type": "REASONING_MESSAGE_END", "messageId": "run-1:1-2"},
        {"type": "REASONING_END", "messageId": "run-1:1-2"},
        {"type": "TEXT_MESSAGE_START", "messageId": "run-1:1-4", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "run-1:1-4", "delta": "It is 42."},
        {"type": "TEXT_MESSAGE_END", "messageId": "run-1:1-4"},
        {"type": "STEP_FINISHED", "stepName": "step 1"},
        {
            "type": "RUN_FINISHED",
            "threadId": "thread-1",
            "runId": "run-1",
            "outcome": {"type": "success"},
            "usage": [{"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "reasoningTokens": 1}],
        },
    ]
    body = b"".join(asides.ui.ag_ui([ReplyStarted(), TextDelta("a"), ReplyEnded()], thread_id="t", run_id="r"))
    assert read_sse(body)[0] == {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
    assert read_sse(body)[-1]["type"] == "RUN_FINISHED"


def test_text_and_calls_are_one_message_and_thinking_between_them_keeps_its_place() -> None:
    found = write(
        ThinkingDelta("A", 0),
        TextDelta("I look.", 1),
        ToolCallDelta(2, "c1", "f", "{}"),
        ThinkingDelta("B", 3),
        ToolCallDelta(4, "c2", "f", "{}"),
        stop="tool_calls",
    )
    thread = AgUiThread().feed(found)
    assert [
        (message["role"], message.get("content"), len(message.get("toolCalls", ()))) for message in thread.messages
    ] == [
        ("reasoning", "A", 0),
        ("assistant", "I look.", 1),
        ("reasoning", "B", 0),
        ("assistant", None, 1),
    ]
    assert thread.ending is not None
    assert thread.ending["outcome"] == {"type": "success", "pendingToolCallIds": ["c1", "c2"]}
    (turn,) = asides.ui.read_ag_ui(thread.messages)
    assert [type(part) for part in turn.parts] == [Thought, Text, ToolCall, Thought, ToolCall]


def test_results_that_a_client_puts_between_the_messages_of_a_step_follow_the_turn() -> None:
    first, second = ToolCall("c1", "f"), ToolCall("c2", "f")
    events: list[Any] = [
        *(StepStarted(1), ReplyStarted(), ThinkingDelta("A", 0), ToolCallDelta(1, "c1", "f", "{}")),
        *(ThinkingDelta("B", 2), ToolCallDelta(3, "c2", "f", "{}"), ReplyEnded(StopReason("tool_calls"))),
        *(ToolStarted(first, 1), ToolStarted(second, 1)),
        ToolFinished(second, ToolResult("c2", "two", "f"), 1),
        ToolFinished(first, ToolResult("c1", "ValueError", "f", is_error=True), 1),
        StepEnded(1, "tool_calls", Usage()),
        *(StepStarted(2), ReplyStarted(), TextDelta("Done."), ReplyEnded(StopReason("stop"))),
        *(StepEnded(2, "answered", Usage()), RunEnded("answered", 2, Usage(1, 1, total=2))),
    ]
    thread = AgUiThread().feed(asides.ui.ag_ui_events(events, run=RUN))
    assert [message["role"] for message in thread.messages] == [
        *("reasoning", "assistant", "tool", "reasoning", "assistant", "tool", "assistant")
    ]
    turn, one, two, last = asides.ui.read_ag_ui(thread.messages)
    assert [type(part) for part in turn.parts] == [Thought, ToolCall, Thought, ToolCall]
    assert one.parts == (ToolResult("c1", "ValueError", "f", is_error=True),)
    assert two.parts == (ToolResult("c2", "two", "f"),)
    assert last.text == "Done."


def test_encrypted_values_are_not_sent_without_a_carrier() -> None:
    events = (
        ThinkingDelta("Hm.", 0),
        ThoughtSealed(Seal("signature", "CANARY"), 0),
        ThoughtSealed(Seal("redacted", "CANARY"), 1),
        PartArrived(ServerTool("web_search", "srv", "completed", '{"x":"CANARY"}'), 2),
        ToolCallDelta(3, "c", "f", "{}"),
        ThoughtSealed(Seal("thought_signature", "CANARY"), 3),
    )
    plain = json.dumps(write(*events))
    assert "CANARY" not in plain
    assert "REASONING_ENCRYPTED_VALUE" not in plain
    carried = write(*events, carry=asides.ui.StateKeys("0f" * 32))
    assert "CANARY" not in json.dumps(carried)
    found = [event for event in carried if event["type"] == "REASONING_ENCRYPTED_VALUE"]
    assert [event["subtype"] for event in found] == ["message", "message", "message", "tool-call"]
    none = {"visibility": {"app": ["raw", "summary"]}}
    hidden = write(*events, carry=asides.ui.StateKeys("0f" * 32), **none)
    assert "REASONING_ENCRYPTED_VALUE" not in json.dumps(hidden)


def test_calls_get_ids_that_no_call_of_the_thread_has() -> None:
    """A client takes a second call with an id that it knows for the first one."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    run = {**RUN, "messages": [{"id": "a", "role": "assistant", "toolCalls": [call]}, "odd", {"toolCalls": "odd"}]}
    events: list[Any] = [ReplyStarted(), ToolCallDelta(0, "call_1", "f", "{}"), ReplyEnded()]
    found = list(asides.ui.ag_ui_events(events, run=run))
    assert [event["toolCallId"] for event in found if "toolCallId" in event] == ["call_1_2"] * 3


def test_tools_of_the_provider_and_pictures_are_activities() -> None:
    found = write(
        PartArrived(ServerTool("web_search", "srv", "in_progress"), 0),
        PartArrived(ServerTool("web_search", "srv", "completed"), 0),
        PartArrived(Image(data=PNG), 1),
        RefusalDelta("No.", 2),
        TextDelta("But.", 3),
    )
    activities = [event for event in found if event["type"] == "ACTIVITY_SNAPSHOT"]
    assert [event["content"].get("status") for event in activities] == ["in_progress", "completed", None]
    assert activities[0]["messageId"] == activities[1]["messageId"]
    thread = AgUiThread().feed(found)
    read = asides.ui.read_ag_ui(thread.messages)[0].parts
    assert [type(part).__name__ for part in read] == ["Image", "Refusal", "Text"]


def test_a_run_that_is_closed_early_is_cancelled_with_everything_ended() -> None:
    events: list[Any] = [ReplyStarted(), ThinkingDelta("A", 0), ToolCallDelta(1, "c1", "f", '{"x"')]
    thread = AgUiThread().feed(asides.ui.ag_ui_events(events, run=RUN))
    assert thread.ending is not None
    assert (thread.ending["type"], thread.ending["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})
    (turn,) = asides.ui.read_ag_ui(thread.messages)
    assert turn.tool_calls[0].raw_arguments == '{"x"'


def test_results_with_pictures_and_tools_that_take_free_text() -> None:
    result = ToolResult("c1", [Text("see"), Image(data=PNG)], "f")
    events: list[Any] = [
        *(StepStarted(1), ReplyStarted(), ToolCallDelta(0, "c1", "f", "*** Begin", custom=True), ReplyEnded()),
        *(ToolFinished(ToolCall("c1", "f"), result, 1), RunEnded("answered", 1, Usage())),
    ]
    thread = AgUiThread().feed(asides.ui.ag_ui_events(events, run=RUN))
    turn, answer = asides.ui.read_ag_ui(json.loads(json.dumps(thread.messages)))
    assert turn.parts == (ToolCall("c1", "f", {}, "*** Begin", custom=True),)
    assert answer.parts == (result,)
