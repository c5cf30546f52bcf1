"""What fields of a Responses reply mean: counts, texts, stop reasons and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_responses.wire import (
    EVENTS,
    IGNORED_EVENTS,
    TERMINAL_EVENTS,
    Incomplete,
    Item,
    Response,
    WireUsage,
    build_inner_error,
    decode_error,
    find_failure,
    read_message,
    read_stop,
    read_usage,
)
from asides.values.errors import AuthError, BadRequest, ContextTooLong, Overloaded, ProviderError, RateLimited
from asides.values.events import StopReason
from asides.values.usage import Usage
from tests.responses import target


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, Usage(3, 4, None, None, 7)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(3, 4, None, None, 7)),
        (
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "total_tokens": 7,
                "input_tokens_details": {"cached_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(3, 4, 1, 2, 7),
        ),
        ({"input_tokens": 0, "prompt_tokens": 9, "output_tokens": 1, "total_tokens": 1}, Usage(0, 1, None, None, 1)),
    ],
)
def test_counts_under_either_name(counts: dict[str, Any], usage: Usage) -> None:
    assert read_usage(msgspec.convert(counts, WireUsage), excludes_thinking=False) == usage


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        (None, []),
        ("bare", [(0, "bare")]),
        (
            [{"type": "text", "text": "a"}, {"type": "other", "text": "b"}, {"text": "c"}, "d", None],
            [(0, "a"), (2, "c"), (3, "d")],
        ),
        ([{"type": "text", "text": 3}, {"type": "text"}], []),
    ],
)
def test_texts_of_parts_keep_their_positions(parts: Any, texts: list[tuple[int, str]]) -> None:
    assert read_message(Item(content=parts), []) == (texts, [])


@pytest.mark.parametrize(
    ("response", "calls", "stop"),
    [
        (Response(status="completed"), False, StopReason("stop", "completed")),
        (Response(status="completed"), True, StopReason("tool_calls", "completed")),
        (Response(), False, StopReason("stop")),
        (
            Response(status="incomplete", incomplete_details=Incomplete("max_output_tokens")),
            True,
            StopReason("length", "max_output_tokens"),
        ),
        (
            Response(status="incomplete", incomplete_details=Incomplete("content_filter")),
            False,
            StopReason("content_filter", "content_filter"),
        ),
        (Response(status="incomplete", incomplete_details=Incomplete("odd")), False, StopReason("unknown", "odd")),
        (Response(status="incomplete"), False, StopReason("unknown", "incomplete")),
        (Response(status="queued"), False, StopReason("unknown", "queued")),
    ],
)
def test_the_status_says_why_a_reply_ended(response: Response, calls: bool, stop: StopReason) -> None:
    assert read_stop(response, has_calls=calls) == stop


@pytest.mark.parametrize(
    ("response", "kind", "says"),
    [
        (Response(status="completed"), None, ""),
        (Response(status="failed"), ProviderError, "the response ended as failed"),
        (Response(status="cancelled"), ProviderError, "the response ended as cancelled"),
        (Response(error={"code": "rate_limit_exceeded", "message": "Slow down"}), RateLimited, "Slow down"),
        (Response(status="failed", error={"code": "server_error", "message": "Oops"}), Overloaded, "Oops"),
    ],
)
def test_a_response_object_may_have_failed(response: Response, kind: type[ProviderError] | None, says: str) -> None:
    failure = find_failure(response, b"{}", target())
    assert (None if failure is None else type(failure)) is kind
    assert failure is None or says in str(failure)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow down"}},
        {"code": "rate_limit_exceeded", "message": "Slow down"},
    ],
)
def test_an_error_event_has_its_fields_beside_or_inside(error: dict[str, Any]) -> None:
    failure = build_inner_error(error, b"body", target())
    assert type(failure) is RateLimited
    assert (failure.code, failure.body) == ("rate_limit_exceeded", b"body")
    assert "Slow down" in str(failure)


def test_the_type_of_an_error_event_is_no_code() -> None:
    assert build_inner_error({"type": "error", "message": "no"}, b"", target()).code is None


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, {"error": {"message": "Wrong key", "code": "invalid_api_key"}}, AuthError, "Wrong key"),
        (
            400,
            {"object": "response", "status": "failed", "error": {"code": "context_length_exceeded", "message": "Long"}},
            ContextTooLong,
            "Long",
        ),
        (400, {"object": "response", "error": None}, BadRequest, "answered 400"),
        (500, "<html>", Overloaded, "answered 500"),
    ],
)
def test_a_bad_status_is_an_error_of_chat_or_a_failed_response(
    status: int, body: Any, kind: type[ProviderError], says: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    failure = decode_error(status, {"x-request-id": "r1"}, raw, target())
    assert type(failure) is kind
    assert (failure.status, failure.request_id) == (status, "r1")
    assert says in str(failure)


def test_structs_are_lenient_and_no_event_is_both_ignored_and_an_end() -> None:
    assert bytes(EVENTS.decode(b'{"type":"x","novel":{"a":1},"item":{"b":2}}').item) == b'{"b":2}'
    assert msgspec.convert({"content": "bare", "novel": 1}, Item).content == "bare"
    assert not IGNORED_EVENTS & TERMINAL_EVENTS
