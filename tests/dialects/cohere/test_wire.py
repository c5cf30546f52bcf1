"""What fields of v2 chat mean: counts, finish reasons and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.cohere.wire import WireUsage, decode_error, map_stop_reason, read_usage
from asides.values.errors import AuthError, BadRequest, NotFound, Overloaded, ProviderError
from asides.values.events import StopKind
from asides.values.usage import Usage
from tests.decoding import target


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("COMPLETE", "stop"),
        ("STOP_SEQUENCE", "stop"),
        ("MAX_TOKENS", "length"),
        ("TOOL_CALL", "tool_calls"),
        ("ERROR_TOXIC", "content_filter"),
        ("TIMEOUT", "error"),
        ("NOVEL", "unknown"),
    ],
)
def test_finish_reasons(raw: str, reason: StopKind) -> None:
    assert map_stop_reason(raw) == reason


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        (
            {"tokens": {"input_tokens": 3.0, "output_tokens": 4.0}, "billed_units": {"input_tokens": 1.0}},
            Usage(3, 4, None, None, 7, "derived"),
        ),
        ({"billed_units": {"input_tokens": 1.0, "output_tokens": 2.0}}, Usage(1, 2, None, None, 3, "derived")),
        (
            {"tokens": {"input_tokens": 3.0, "output_tokens": 4.0, "reasoning_tokens": 2.0}, "cached_tokens": 1.0},
            Usage(3, 4, 2, 1, 7, "derived"),
        ),
    ],
)
def test_counts_are_the_counted_tokens_or_the_billed_ones(counts: dict[str, Any], usage: Usage) -> None:
    assert read_usage(msgspec.convert(counts, WireUsage)) == usage


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, {"message": "no api key supplied"}, AuthError, "no api key supplied"),
        (404, {"message": "model not found", "error_type": "not_found"}, NotFound, "answered 404 (not_found): model"),
        (400, {"error": {"message": "inner", "code": "c"}}, BadRequest, "answered 400 (c): inner"),
        (422, {"detail": "odd"}, BadRequest, "answered 422: odd"),
        (500, "<html>", Overloaded, "answered 500"),
    ],
)
def test_an_error_body_of_any_shape(status: int, body: Any, kind: type[ProviderError], says: str) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = decode_error(status, {"x-debug-trace-id": "q1"}, raw, target())
    assert type(error) is kind
    assert says in str(error)
    assert (error.status, error.request_id, error.body) == (status, "q1", raw)
