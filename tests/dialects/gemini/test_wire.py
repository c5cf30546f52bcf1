"""What fields of generateContent mean: counts, finish reasons, errors with their reasons and waits."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.gemini.wire import (
    FINISH_REASONS,
    PromptFeedback,
    RawParts,
    WireUsage,
    build_blocked_prompt,
    decode_error,
    map_stop_reason,
    read_usage,
)
from asides.values.errors import AuthError, BadRequest, Overloaded, ProviderError, RateLimited
from asides.values.events import StopKind
from asides.values.usage import Usage
from asides.wire.lenient import replace_invalid_text
from tests.decoding import target


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("OTHER", "unknown"),
        ("NOVEL", None),
    ],
)
def test_finish_reasons(raw: str, reason: StopKind | None) -> None:
    assert map_stop_reason(raw) == reason
    assert (raw in FINISH_REASONS) is (reason is not None)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        (
            {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 5, "totalTokenCount": 12},
            Usage(3, 9, 5, None, 12, "derived"),
        ),
        (
            {"promptTokenCount": 3, "candidatesTokenCount": 4, "cachedContentTokenCount": 2, "totalTokenCount": 7},
            Usage(3, 4, None, 2, 7),
        ),
    ],
)
def test_the_output_of_this_wire_excludes_thinking(counts: dict[str, int], usage: Usage) -> None:
    assert read_usage(msgspec.convert(counts, WireUsage)) == usage


def error_body(**fields: Any) -> dict[str, Any]:
    return {"error": {"code": 429, "message": "Slow", "status": "RESOURCE_EXHAUSTED", **fields}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "wait"),
    [
        (429, error_body(), RateLimited, "RESOURCE_EXHAUSTED", None),
        (429, [error_body(details=[{"retryDelay": "48.5s"}])], RateLimited, "RESOURCE_EXHAUSTED", 48.5),
        (429, error_body(details=[{"retryDelay": "soon"}, 3]), RateLimited, "RESOURCE_EXHAUSTED", None),
        # The only number of an error inside a successful response; and only the reason shows that it was the key.
        (200, error_body(code=503, status="UNAVAILABLE"), Overloaded, "UNAVAILABLE", None),
        (
            400,
            error_body(code=400, message="API key not valid", details=[{"reason": "API_KEY_INVALID"}]),
            AuthError,
            "API_KEY_INVALID",
            None,
        ),
        (400, {"error": {"code": 400, "message": "odd"}}, BadRequest, "400", None),
        (404, "<html>", ProviderError, None, None),
        (500, "sorry", Overloaded, None, None),
    ],
)
def test_an_error_body_of_any_shape(
    status: int, body: Any, kind: type[ProviderError], code: str | None, wait: float | None
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = decode_error(status, {"x-request-id": "q1"}, raw, target())
    assert isinstance(error, kind)
    assert (error.code, error.retry_after, error.request_id, error.body) == (code, wait, "q1", raw)
    assert "<html>" not in str(error)


def test_a_blocked_prompt_says_why() -> None:
    feedback = PromptFeedback(block_reason="SAFETY", block_reason_message="Not this.")
    error = build_blocked_prompt(feedback, b"{}", target())
    assert "the content filter blocked the prompt (Not this)." in str(error)
    assert (error.status, error.code) == (200, "SAFETY")


@pytest.mark.parametrize(
    ("candidate", "place", "raw"), [(0, 1, '{"new":{"a":1}}'), (0, 9, "{}"), (1, 0, "{}"), (2, 0, "{}")]
)
def test_the_raw_json_of_a_part_is_compact(candidate: int, place: int, raw: str) -> None:
    payload = b'{"candidates": [{"content": {"parts": [{"text": "a"}, {"new": {"a": 1}}]}}, {}]}'
    parts = RawParts(replace_invalid_text)
    assert [parts.find(payload, candidate, place) for _ in range(2)] == [raw, raw]
    assert parts.find(b"[]", candidate, place) == "{}"
    assert parts.find(payload, candidate, place) == raw
