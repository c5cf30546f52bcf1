"""Write replies as a server of Responses does: the events of each item in a stream, and the same items in one body."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_responses.server.write_reply import ResponsesWriter, echo_settings
from asides.values.events import (
    Event,
    PartArrived,
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
from asides.values.messages import Prompt
from asides.values.parts import File, ServerTool, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import Usage

START = ReplyStarted("made-up", "resp_7")
END = ReplyEnded(StopReason("stop"))


def streamed(*events: Event) -> list[dict[str, Any]]:
    writer = ResponsesWriter(model="m", stream=True)
    lines = b"".join(writer.write([event]) for event in (START, *events)).decode().split("\n\n")
    documents: list[dict[str, Any]] = []
    for line in filter(None, lines):
        name, _, data = line.partition("\ndata: ")
        documents.append(json.loads(data))
        assert name == f"event: {documents[-1]['type']}"
    assert [document.pop("sequence_number") for document in documents] == list(range(len(documents)))
    return documents


def whole(*events: Event, **options: Any) -> dict[str, Any]:
    writer = ResponsesWriter(model="m", stream=False, **options)
    body = [writer.write([event]) for event in (START, *events)]
    assert not any(body[:-1])
    document = json.loads(body[-1])
    assert isinstance(document, dict)
    return document


def test_the_stream_of_a_message() -> None:
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"type": "message", "id": "msg_7_0", "role": "assistant", "status": "completed"}
    done = {**item, "content": [{**part, "text": "Hello"}]}
    place = {"item_id": "msg_7_0", "output_index": 0}
    created, in_progress, *rest, completed = streamed(TextDelta("Hel"), TextDelta(""), TextDelta("lo"), END)
    assert rest == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "content_index": 0, "part": part},
        {"type": "response.output_text.delta", **place, "content_index": 0, "delta": "Hel", "logprobs": []},
        {"type": "response.output_text.delta", **place, "content_index": 0, "delta": "lo", "logprobs": []},
        {"type": "response.output_text.done", **place, "content_index": 0, "text": "Hello", "logprobs": []},
        {"type": "response.content_part.done", **place, "content_index": 0, "part": {**part, "text": "Hello"}},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
    ]
    response = {
        "id": "resp_7",
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": "made-up",
        **json.loads(msgspec.json.encode(echo_settings(Prompt(())))),
        "output": [],
        "store": False,
        "usage": None,
    }
    assert created == {"type": "response.created", "response": response}
    assert in_progress == {"type": "response.in_progress", "response": response}
    assert completed == {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": [done]},
    }


THOUGHT_ENTRY = {"type": "reasoning", "id": "rs_own", "summary": [], "encrypted_content": "e"}


@pytest.mark.parametrize(
    ("events", "names", "item"),
    [
        pytest.param(
            [ThinkingDelta("so", kind="summary")],
            [
                "reasoning_summary_part.added",
                "reasoning_summary_text.delta",
                "reasoning_summary_text.done",
                "reasoning_summary_part.done",
            ],
            {"type": "reasoning", "id": "rs_7_0", "summary": [{"type": "summary_text", "text": "so"}]},
            id="a summary",
        ),
        pytest.param(
            [ThinkingDelta("so"), ThoughtSealed(Seal("encrypted", "e"))],
            ["reasoning_text.delta", "reasoning_text.done"],
            {
                "type": "reasoning",
                "id": "rs_7_0",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "so"}],
                "encrypted_content": "e",
            },
            id="raw reasoning with its seal",
        ),
        pytest.param(
            [ThoughtSealed(Seal("encrypted", "e", None, json.dumps(THOUGHT_ENTRY)))],
            [],
            THOUGHT_ENTRY,
            id="a thought that came from this dialect",
        ),
        pytest.param(
            [RefusalDelta("No")],
            ["content_part.added", "refusal.delta", "refusal.done", "content_part.done"],
            {
                "type": "message",
                "id": "msg_7_0",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "refusal", "refusal": "No"}],
            },
            id="a refusal",
        ),
        pytest.param(
            [ToolCallDelta(0, "c1", "f"), ToolCallDelta(0, arguments='{"a"'), ToolCallDelta(0, arguments=":1}")],
            ["function_call_arguments.delta", "function_call_arguments.delta", "function_call_arguments.done"],
            {
                "type": "function_call",
                "id": "fc_7_0",
                "call_id": "c1",
                "name": "f",
                "arguments": '{"a":1}',
                "status": "completed",
            },
            id="a call",
        ),
        pytest.param(
            [ToolCallDelta(0, None, "f", "text", custom=True)],
            ["custom_tool_call_input.delta", "custom_tool_call_input.done"],
            {
                "type": "custom_tool_call",
                "id": "ctc_7_0",
                "call_id": "ctc_7_0",
                "name": "f",
                "input": "text",
                "status": "completed",
            },
            id="a custom call without an id",
        ),
        pytest.param(
            [
                PartArrived(ServerTool("web_search_call", "ws_1", "in_progress", '{"action":{}}'), 0),
                PartArrived(ServerTool("web_search_call", "ws_1", "completed", '{"action":{}}'), 0),
            ],
            ["web_search_call.in_progress", "web_search_call.completed"],
            {"action": {}, "type": "web_search_call", "id": "ws_1", "status": "completed"},
            id="a tool of the provider",
        ),
        pytest.param(
            [PartArrived(UnknownPart('{"type":"hologram","id":"h1"}'), 0)],
            [],
            {"type": "hologram", "id": "h1"},
            id="something unknown",
        ),
    ],
)
def test_each_kind_of_item_is_written_in_its_own_events_and_alike_in_one_body(
    events: list[Event], names: list[str], item: dict[str, Any]
) -> None:
    documents = streamed(*events, END)
    kinds = [document["type"].removeprefix("response.") for document in documents[2:-1]]
    assert kinds == ["output_item.added", *names, "output_item.done"]
    assert documents[-2]["item"] == item
    assert documents[-1]["response"]["output"] == [item] == whole(*events, END)["output"]


def test_items_follow_one_another_and_text_that_returns_begins_another() -> None:
    events = (TextDelta("a", 5), ToolCallDelta(9, "c1", "f", "{}"), TextDelta("late", 5), END)
    documents = streamed(*events)
    assert [document["output_index"] for document in documents if document["type"].endswith("item.done")] == [0, 1, 2]
    output = documents[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "message"]
    assert [item["content"][0]["text"] for item in (output[0], output[2])] == ["a", "late"]
    assert [item["content"][0]["text"] for item in whole(*events)["output"] if "content" in item] == ["alate"]


def test_what_is_not_on_this_wire_is_left_out() -> None:
    left_out: list[Event] = [PartArrived(File(data=b"x"), 0), ThoughtSealed(Seal("signature", "s"), 1)]
    assert whole(*left_out, TextDelta("a", 2), END)["output"] == whole(TextDelta("a", 2), END)["output"]


def test_the_entry_of_a_message_gives_its_id_and_phase() -> None:
    entry = json.dumps({"type": "message", "id": "msg_own", "phase": "commentary", "role": "user"})
    (item,) = whole(TextDelta("a"), ThoughtSealed(Seal("item", "", None, entry)), END)["output"]
    assert (item["id"], item["phase"], item["role"]) == ("msg_own", "commentary", "assistant")
    other = json.dumps({"type": "function_call", "id": "fc_own"})
    assert whole(TextDelta("a"), ThoughtSealed(Seal("item", "", None, other)), END)["output"][0]["id"] == "msg_7_0"


@pytest.mark.parametrize(
    ("stop", "status", "details"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_the_status_tells_how_a_reply_ended(stop: StopKind, status: str, details: dict[str, str] | None) -> None:
    end = ReplyEnded(StopReason(stop))
    response = whole(TextDelta("a"), end)
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert streamed(TextDelta("a"), end)[-1]["type"] == f"response.{status}"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (Usage(), None),
        (Usage(1), (1, 0, 0, 0, 1)),
        (Usage(1, 2, total=3), (1, 0, 2, 0, 3)),
        (Usage(7, 9, 5, 4, 16), (7, 4, 9, 5, 16)),
    ],
)
def test_a_reply_has_every_count_or_none(usage: Usage, counts: tuple[int, ...] | None) -> None:
    expected = counts and {
        "input_tokens": counts[0],
        "input_tokens_details": {"cached_tokens": counts[1], "cache_write_tokens": 0},
        "output_tokens": counts[2],
        "output_tokens_details": {"reasoning_tokens": counts[3]},
        "total_tokens": counts[4],
    }
    assert whole(UsageReported(usage), END)["usage"] == expected
    assert whole(UsageReported(usage), END, include_usage=False)["usage"] is None


def test_a_reply_without_anything_is_a_response_all_the_same() -> None:
    kinds = [document["type"] for document in streamed(END)]
    assert kinds == ["response.created", "response.in_progress", "response.completed"]
    assert whole(END)["output"] == []
