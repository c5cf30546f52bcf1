"""What fields of Converse mean: counts with and without the cache, stop reasons, exceptions."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.bedrock.wire import (
    WireUsage,
    build_error,
    decode_error,
    is_exception,
    map_stop_reason,
    read_usage,
)
from asides.values.errors import AuthError, BadRequest, Overloaded, ProviderError, RateLimited
from asides.values.events import StopKind
from asides.values.usage import Usage
from tests.decoding import target


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("guardrail_intervened", "content_filter"),
        ("malformed_tool_use", "error"),
        ("novel", "unknown"),
    ],
)
def test_stop_reasons(raw: str, reason: StopKind) -> None:
    assert map_stop_reason(raw) == reason


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, Usage(3, 4, None, None, 7)),
        # The total shows whether the cache is inside of the input.
        (
            {"inputTokens": 3, "outputTokens": 4, "totalTokens": 12, "cacheReadInputTokens": 5},
            Usage(8, 4, None, 5, 12),
        ),
        ({"inputTokens": 8, "outputTokens": 4, "totalTokens": 12, "cacheReadInputTokens": 5}, Usage(8, 4, None, 5, 12)),
        (
            {"inputTokens": 3, "outputTokens": 4, "totalTokens": 9, "cacheWriteInputTokenCount": 2},
            Usage(5, 4, None, None, 9, cache_written=2),
        ),
        (
            {
                "inputTokens": 3,
                "outputTokens": 4,
                "totalTokens": 16,
                "cacheWriteInputTokens": 9,
                "cacheDetails": [{"ttl": "1h", "inputTokens": 7}, {"ttl": "5m", "inputTokens": 2}, {}],
            },
            Usage(12, 4, None, None, 16, cache_written=9, cache_written_hour=7),
        ),
    ],
)
def test_what_the_cache_read_and_wrote_is_input(counts: dict[str, Any], usage: Usage) -> None:
    assert read_usage(msgspec.convert(counts, WireUsage)) == usage


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "code"),
    [
        (
            429,
            {"x-amzn-errortype": "ThrottlingException:http://x"},
            {"message": "Slow"},
            RateLimited,
            "ThrottlingException",
        ),
        (403, {}, {"Message": "No", "__type": "com.amazon#AccessDeniedException"}, AuthError, "AccessDeniedException"),
        (400, {}, {"message": "Bad"}, BadRequest, None),
        (503, {}, None, Overloaded, None),
    ],
)
def test_an_error_is_named_by_its_header_or_its_body(
    status: int, headers: dict[str, str], body: Any, kind: type[ProviderError], code: str | None
) -> None:
    raw = b"" if body is None else json.dumps(body).encode()
    error = decode_error(status, {"x-amzn-requestid": "q1", **headers}, raw, target())
    assert type(error) is kind
    assert (error.status, error.code, error.request_id, error.body) == (status, code, "q1", raw)


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        ({"message": "m"}, "throttlingException", 429),
        ({"originalMessage": "m", "originalStatusCode": 424}, "modelStreamErrorException", 424),
        ("m", "novelException", 200),
    ],
)
def test_an_exception_inside_of_a_stream_has_the_status_that_it_would_have_had(
    error: Any, code: str, status: int
) -> None:
    assert build_error(200, {}, error, b"", target(), code).status == status


def test_the_names_of_exceptions() -> None:
    names = ("throttlingException", "ValidationException", "messageStart", "novelException")
    assert [is_exception(name) for name in names] == [True, True, False, False]
