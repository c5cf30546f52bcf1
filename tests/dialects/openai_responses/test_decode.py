"""Decode Responses: the same items whole, streamed or only in the last event; what each failure is.

The requirements on replies, by id, are in tests/dialects/openai_responses/test_required_replies.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.openai_responses.decode import FIELD_BLOCK, ResponsesDecoder
from asides.providers.provider import Quirks
from asides.values.errors import AsidesError, ConnectionLost, ProtocolError, RateLimited
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.reply import Reply
from asides.values.usage import Usage
from tests.decoding import sse
from tests.responses import both_ways, call, events, message, read, reasoning, response, stream, target, whole


def decode(body: bytes, **more: Any) -> tuple[list[Event], ResponsesDecoder]:
    decoder = ResponsesDecoder(target(**more))
    found = decoder.feed(body)
    return [*found, *decoder.finish()], decoder


USAGE = UsageReported(Usage(62, 23, None, None, 85))


def test_a_whole_body_is_a_stream_in_which_every_item_comes_whole() -> None:
    found, decoder = decode(whole(reasoning("plan", encrypted="e"), message("42"), call()))
    seals = [event for event in found if isinstance(event, ThoughtSealed)]
    assert [event for event in found if not isinstance(event, ThoughtSealed)] == [
        ReplyStarted("made-up", "resp_1", target().origin),
        ThinkingDelta("plan", 1000, "summary", "responses_summary", "summary"),
        TextDelta("42", 2000),
        ToolCallDelta(3000, "call_abc", "get_weather"),
        ToolCallDelta(3000, arguments='{"location":"SF"}'),
        USAGE,
        ReplyEnded(StopReason("tool_calls", "completed")),
    ]
    assert [(event.block, event.seal.kind, event.seal.value) for event in seals] == [
        (1000, "encrypted", "e"),
        (2000, "item", ""),
        (3000, "item", ""),
    ]
    assert (decoder.failure, decoder.streamed, decoder.done) == (None, False, True)


@pytest.mark.parametrize(
    "dropped",
    [
        (),
        (".delta",),
        (".added",),
        ("response.output_item.done",),
        (".delta", ".added", ".done"),
    ],
    ids=str,
)
def test_any_part_of_the_stream_may_be_missing(dropped: tuple[str, ...]) -> None:
    items = (reasoning("plan", "more", encrypted="e"), message("one", "two"), call())
    kept = [event for event in events(*items) if not event["type"].endswith(dropped or ("never",))]
    assert read(sse(*kept, done=False)) == both_ways(*items)


@pytest.mark.parametrize(
    ("items", "fields", "quirks", "stop", "truncated"),
    [
        ([message("a")], {"status": "completed"}, None, StopReason("stop", "completed"), False),
        (
            [reasoning("plan")],
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            None,
            StopReason("length", "max_output_tokens"),
            True,
        ),
        (
            [reasoning("plan"), message("a")],
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            None,
            StopReason("length", "max_output_tokens"),
            False,
        ),
        ([reasoning("plan")], {"status": "completed"}, None, StopReason("stop", "completed"), False),
        (
            [reasoning("plan")],
            {"status": "completed"},
            Quirks(hides_truncation=True),
            StopReason("length", "completed"),
            True,
        ),
    ],
)
def test_the_end_says_why_and_whether_a_thought_was_cut(
    items: list[dict[str, Any]], fields: dict[str, Any], quirks: Quirks | None, stop: StopReason, truncated: bool
) -> None:
    found, _ = decode(whole(*items, **fields), quirks=quirks)
    assert found[-1] == ReplyEnded(stop, truncated)


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"", ConnectionLost, "sent no event"),
        (b"<html>", ProtocolError, ""),
        (b"{", ProtocolError, ""),
        (b'{"object":"chat.completion"}', ProtocolError, "'chat.completion', not a response"),
        (b'{"error":{"code":"rate_limit_exceeded","message":"Slow down"}}', RateLimited, "Slow down"),
        (b'{"message":"Rate limit reached"}', RateLimited, "Rate limit reached"),
        (stream(message("a"))[:-40], AsidesError, ""),
        (b"data: [DONE]\n\n", AsidesError, ""),
        (
            sse({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"}, done=False),
            RateLimited,
            "Slow",
        ),
    ],
)
def test_a_failure_is_set_and_never_raised(body: bytes, kind: type[AsidesError], says: str) -> None:
    _, decoder = decode(body)
    assert isinstance(decoder.failure, kind)
    assert says in str(decoder.failure)


def test_what_came_before_a_failure_is_kept() -> None:
    begun = events(message("Hello"))[:5]
    found, decoder = decode(sse(*begun, {"type": "error", "message": "Oops"}, done=False))
    assert decoder.failure is not None
    assert [event for event in found if isinstance(event, TextDelta)] == [TextDelta("Hel", 1000), TextDelta("lo", 1000)]


@pytest.mark.parametrize(
    ("event", "codes"),
    [
        ({"type": "response.hologram.delta"}, ["unknown_event"]),
        ({"type": "response.web_search_call.searching", "output_index": 9}, []),
        ({"type": "keepalive"}, []),
        ({"type": "response.content_part.done", "part": 3}, []),
        ({"type": "response.output_text.delta", "output_index": "0", "delta": 3}, ["malformed_field"] * 2),
    ],
)
def test_an_event_that_is_not_understood_is_noticed_and_nothing_is_lost(
    event: dict[str, Any], codes: list[str]
) -> None:
    first, *rest = events(message("Hello"))
    reply: Reply = read(sse(first, event, *rest, done=False))
    assert (reply.text, [notice.code for notice in reply.warnings]) == ("Hello", codes)


def test_thinking_and_text_beside_the_items_are_read() -> None:
    body = json.dumps(response(reasoning="so", output_text="42")).encode()
    found, _ = decode(body)
    assert found[1:3] == [
        ThinkingDelta("so", FIELD_BLOCK, "raw", "field", "reasoning"),
        TextDelta("42", 1000),
    ]
    assert read(whole(message("43"), output_text="42")).text == "43"


def test_thinking_in_tags_leaves_the_text_outside_items_too() -> None:
    tagged = read(whole(output_text="<think>plan</think>42"), target(quirks=Quirks(tags=("think",))))
    assert tagged.text == "42"
    assert tagged.thinking
    assert tagged.thinking.text == "plan"
    cut = read(whole(output_text="<think>plan"), target(quirks=Quirks(tags=("think",))))
    assert (cut.text, cut.outcome) == ("", "unterminated")


NOTHING_IN_IT: list[tuple[dict[str, Any], str]] = [
    ({"object": "response", "id": "r"}, "no output or status"),
    ({"object": "response", "id": "r", "status": "completed"}, "no output"),
    ({"object": "response", "id": "r", "status": "completed", "output": None}, "no output"),
    ({"object": "response", "id": "r", "output": []}, "no status"),
    ({"id": "r", "model": "m"}, "no output or status"),
]


@pytest.mark.parametrize(("body", "lacks"), NOTHING_IN_IT, ids=json.dumps)
def test_a_response_without_output_or_status_is_no_empty_reply(body: dict[str, Any], lacks: str) -> None:
    for sent in (json.dumps(body).encode(), sse(body)):
        with pytest.raises(ProtocolError) as raised:
            read(sent)
        assert f"example: the response has {lacks}; try again" in str(raised.value)


def test_a_completed_stream_without_any_item_is_no_empty_reply() -> None:
    for last in ({"object": "response", "id": "r"}, None, {}):
        with pytest.raises(ProtocolError, match="the response has no output"):
            read(sse({"type": "response.completed", "response": last}))


@pytest.mark.parametrize("body", [{}, {"object": "list", "data": []}, {"object": "chat.completion", "id": "r"}])
def test_something_that_is_no_response_is_told_as_such(body: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="not a response; check that the address"):
        read(json.dumps(body).encode())


def test_a_response_with_items_needs_no_status() -> None:
    body = response(message("42"))
    del body["status"]
    assert read(json.dumps(body).encode()).text == "42"
