"""The parts of a reply: when they begin and end, what may be seen of them, and which call a result belongs to."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
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
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import ServerTool, ToolCall, ToolResult, UnknownPart
from asides.values.result import RunEnded, StepStarted, ToolFinished, ToolStarted
from asides.values.thinking import Seal
from asides.values.usage import Usage
from tests.integrations.front_ends import (
    AgUiThread,
    VercelMessage,
    make_run,
    read_vercel_message,
    take_step,
    write_vercel,
)


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
    chunks = write_vercel(
        ThinkingDelta("raw", 0, "raw"), ThinkingDelta("summary", 1, "summary"), TextDelta("x", 2), **options
    )
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "reasoning-delta"] == shown
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["x"]


def test_seals_notices_and_unknown_parts_stay_here() -> None:
    chunks = write_vercel(
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
    assert take_step(write_vercel(ThinkingDelta("\n", 0), ThinkingDelta(" ", 0), TextDelta("", 1))) == []
    found = take_step(write_vercel(ThinkingDelta("\n", 0), ThinkingDelta(" a", 0)))
    assert [chunk["delta"] for chunk in found if "delta" in chunk] == ["\n a"]


def test_calls_end_with_their_reply_even_if_their_arguments_alternate() -> None:
    chunks = take_step(
        write_vercel(
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
    chunks = take_step(write_vercel(ToolCallDelta(0, None, "f", '{"x":1}'), ToolCallDelta(0, "late")))
    assert chunks == [
        {"type": "tool-input-start", "toolCallId": "late", "toolName": "f"},
        {"type": "tool-input-delta", "toolCallId": "late", "inputTextDelta": '{"x":1}'},
        {"type": "tool-input-available", "toolCallId": "late", "toolName": "f", "input": {"x": 1}},
    ]
    made = take_step(write_vercel(ToolCallDelta(0, None, None, "{}")))
    assert made[0]["toolCallId"]
    assert made[0]["toolName"] == "unnamed"


def test_results_find_their_calls_though_the_run_has_renamed_them() -> None:
    """Some servers count the ids of calls from the start with every reply; a run makes them differ."""

    def step(number: int, first: ToolCall, second: ToolCall) -> tuple[list[Event], list[Any]]:
        deltas: list[Event] = [ToolCallDelta(0, "call_1", "f", "{}"), ToolCallDelta(1, "call_1", "f", "{}")]
        started = [ToolStarted(first, number), ToolStarted(second, number)]
        done = [ToolFinished(call, ToolResult(call.id, f"{call.id}!", "f"), number) for call in (second, first)]
        return deltas, [*started, *done]

    events = make_run(
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


def test_results_find_their_calls_by_what_is_left_of_their_ids() -> None:
    """A program may have filtered the starts of tools out of the events."""
    deltas: list[Event] = [ToolCallDelta(0, "call_1", "f", "{}"), ToolCallDelta(1, "call_2", "f", "{}")]
    second = ToolFinished(ToolCall("call_2_7", "f"), ToolResult("call_2_7", "two", "f"), 1)
    first = ToolFinished(ToolCall("call_1_7", "f"), ToolResult("call_1_7", "one", "f"), 1)
    message = read_vercel_message(asides.ui.vercel_chunks(make_run((deltas, [second, first]))))
    found = [(part["toolCallId"], part["output"]) for part in message["parts"] if "output" in part]
    assert found == [("call_1", "one"), ("call_2", "two")]


def test_a_result_whose_call_was_not_among_the_events_brings_it() -> None:
    call = ToolCall("c9", "f", {"x": 1})
    events: list[Any] = [ToolFinished(call, ToolResult("c9", "done", "f"), 1), RunEnded("answered", 1, Usage())]
    message = read_vercel_message(asides.ui.vercel_chunks(events))
    (part,) = [part for part in message["parts"] if part["type"] == "tool-f"]
    assert (part["input"], part["output"], part["state"]) == ({"x": 1}, "done", "output-available")


def test_a_call_that_carried_the_answer_is_nobodys_to_run() -> None:
    """An agent with an output type may get its answer as a call."""
    wrong: list[Event] = [ToolCallDelta(0, "c1", "final_answer", "{}")]
    right: list[Event] = [ToolCallDelta(0, "c2", "final_answer", '{"total":5}')]
    events = make_run((wrong, []), (right, []))
    message = read_vercel_message(asides.ui.vercel_chunks(events))
    tools = [part for part in message["parts"] if part["type"] == "tool-final_answer"]
    assert [(part["state"], part.get("output")) for part in tools] == [
        ("output-error", None),
        ("output-available", "ok"),
    ]
    thread = AgUiThread().feed(asides.ui.ag_ui_events(events))
    assert [message["content"] for message in thread.messages if message["role"] == "tool"][1] == "ok"
    handed_over = make_run((right, []), outcome="tool_calls")
    message = read_vercel_message(asides.ui.vercel_chunks(handed_over))
    assert [part["state"] for part in message["parts"] if "toolCallId" in part] == ["input-available"]


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
