"""Replies as a server of Interactions writes them, and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from asides.dialects.dialect import ServedRequest
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
from asides.values.messages import Prompt, ProviderState, user
from asides.values.parts import Image, ServerTool
from asides.values.thinking import Seal
from asides.values.usage import normalise_usage
from tests.decoding import decoded
from tests.dialects.gemini_interactions.interactions import DIALECT, target
from tests.laws.replies import chat_events

EVENTS: list[Event] = [
    ReplyStarted("gemini-3-flash-preview", "v1_1", stored=True),
    ThinkingDelta("h", 0, "summary", "block"),
    ThinkingDelta("m", 0, "summary", "block"),
    ThoughtSealed(Seal("step_signature", "c2ln"), 0),
    TextDelta("4", 1),
    TextDelta("2", 1),
    PartArrived(ServerTool("google_search_call", "s1", json='{"type":"google_search_call","id":"s1"}'), 2),
    ToolCallDelta(3, "c1", "look"),
    ToolCallDelta(3, arguments='{"at":'),
    ToolCallDelta(3, arguments='"sea"}'),
    UsageReported(normalise_usage(input=10, output=9, thinking=5, cached=1, total=19)),
    ReplyEnded(StopReason("tool_calls")),
]


def write(events: list[Event], *, stream: bool) -> bytes:
    return DIALECT.writer(model="m", stream=stream).write(events)


def test_a_whole_interaction() -> None:
    body = json.loads(write(EVENTS, stream=False))
    assert body["steps"] == [
        {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "42"}]},
        {"type": "google_search_call", "id": "s1"},
        {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "sea"}},
    ]
    assert (body["id"], body["object"], body["status"]) == ("v1_1", "interaction", "requires_action")
    assert body["usage"] == {
        "total_tokens": 19,
        "total_input_tokens": 10,
        "total_cached_tokens": 1,
        "total_output_tokens": 4,
        "total_thought_tokens": 5,
    }


def test_a_stream_has_the_events_of_a_real_one() -> None:
    events = [json.loads(line[6:]) for line in write(EVENTS, stream=True).split(b"\n") if line.startswith(b"data: {")]
    kinds = [event["event_type"] for event in events]
    assert kinds[:4] == ["interaction.created", "interaction.status_update", "step.start", "step.delta"]
    assert kinds[-1] == "interaction.completed"
    assert kinds.count("step.start") == kinds.count("step.stop") == 4
    assert write(EVENTS, stream=True).endswith(b"event: done\ndata: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
def test_what_is_written_reads_back(stream: bool) -> None:
    reply, again = fold(EVENTS), decoded(write(EVENTS, stream=stream), target(), "gemini_interactions")
    assert (again.text, again.stop.reason, again.id) == (reply.text, "tool_calls", "v1_1")
    assert msgspec.structs.replace(again.usage, origin="reported") == reply.usage
    assert again.thinking is not None
    assert (again.thinking.text, [seal.value for seal in again.seals]) == ("hm", ["c2ln"])
    assert again.tool_calls[0].arguments == {"at": "sea"}


@settings(max_examples=60, deadline=None)
@given(chat_events())
def test_law_whole_and_streamed_say_the_same(events: list[Event]) -> None:
    whole, streamed = (
        decoded(write(events, stream=stream), target(), "gemini_interactions") for stream in (False, True)
    )
    assert whole == streamed
    reply = fold(events)
    assert (whole.thinking.text if whole.thinking else "") == (reply.thinking.text if reply.thinking else "")
    assert [(call.name, call.arguments) for call in whole.tool_calls] == [
        (call.name, call.arguments) for call in reply.tool_calls
    ]


def test_a_block_that_is_left_continues_in_a_step_of_its_own() -> None:
    events = [EVENTS[0], TextDelta("a", 0), ThinkingDelta("b", 1), TextDelta("c", 0), ReplyEnded(StopReason("stop"))]
    for stream in (True, False):
        reply = decoded(write(events, stream=stream), target(), "gemini_interactions")
        assert (reply.text, reply.thinking and reply.thinking.text) == ("ac", "b")


def test_annotations_and_pictures_are_written() -> None:
    notes = '[{"type":"url_citation","url":"https://a.example"}]'
    events: list[Event] = [
        EVENTS[0],
        TextDelta("a", 0),
        ThoughtSealed(Seal("citations", "", None, notes), 0),
        PartArrived(Image(data=b"\x89PNG", media_type="image/png"), 1),
        ReplyEnded(StopReason("stop")),
    ]
    body = json.loads(write(events, stream=False))
    assert body["steps"][0]["content"][0]["annotations"] == json.loads(notes)
    assert body["steps"][1]["content"][0]["type"] == "image"
    whole, streamed = (
        decoded(write(events, stream=stream), target(), "gemini_interactions") for stream in (False, True)
    )
    assert whole == streamed


def test_what_is_not_stored_has_no_id() -> None:
    prompt = Prompt((user("go"),), state=ProviderState(store=False))
    for stream in (True, False):
        writer: Any = DIALECT.writer(model="m", stream=stream)
        writer.serve(ServedRequest(prompt, "m", stream), {}, foreign=False)
        reply = decoded(writer.write(EVENTS), target(), "gemini_interactions")
        assert (reply.id, reply.stored) == (None, False)


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (StopReason("stop"), "completed"),
        (StopReason("length"), "incomplete"),
        (StopReason("length", "budget_exceeded"), "budget_exceeded"),
        (StopReason("content_filter"), "incomplete"),
    ],
)
def test_the_status_of_a_stop(stop: StopReason, status: str) -> None:
    body = json.loads(write([EVENTS[0], TextDelta("a", 0), ReplyEnded(stop)], stream=False))
    assert body["status"] == status


def test_errors_have_a_code_and_a_message() -> None:
    assert msgspec.json.decode(DIALECT.write_error(400, "no")) == {
        "error": {"message": "no", "code": "invalid_request"}
    }
    assert msgspec.json.decode(DIALECT.write_error(429, "slow", "mine"))["error"]["code"] == "mine"
    writer: Any = DIALECT.writer(model="m", stream=True)
    written = writer.write(EVENTS[:2]) + writer.write_error(503, "later")
    assert b'"event_type":"error","error":{"message":"later","code":"unavailable"}' in written


@pytest.mark.parametrize("stored", [True, False])
def test_a_reply_of_another_provider_has_an_id_of_its_own_where_it_is_stored(stored: bool) -> None:
    writer: Any = DIALECT.writer(model="m", stream=False)
    writer.serve(ServedRequest(Prompt((user("go"),), state=ProviderState(store=True)), "m", False), {}, foreign=True)
    events = [ReplyStarted("claude", "msg_1", stored=stored), *EVENTS[1:]]
    found = json.loads(writer.write(events))["id"]
    assert found.startswith("v1_") if stored else found == ""
