"""What fields of Messages mean: counts from several reports, stop reasons, and errors of every shape."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.anthropic.wire import (
    STATUSES,
    Block,
    UsageSoFar,
    WireUsage,
    build_error,
    decode_error,
    is_given,
    map_stop_reason,
)
from asides.values.errors import AuthError, BadRequest, NotFound, Overloaded, ProviderError, RateLimited
from asides.values.events import StopKind
from asides.values.usage import Usage
from tests.dialects.anthropic.messages import claude


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause"),
        ("steered", "pause"),
        ("max_messages", "length"),
        ("refusal", "refusal"),
        ("GUARDRAIL_INTERVENED", "content_filter"),
        ("novel", "unknown"),
    ],
)
def test_stop_reasons(raw: str, reason: StopKind) -> None:
    assert map_stop_reason(raw) == reason


def test_reports_are_merged_and_the_cache_is_input() -> None:
    counts = UsageSoFar()
    first = WireUsage(input_tokens=10, cache_read_input_tokens=3, cache_creation_input_tokens=2, output_tokens=1)
    assert counts.merge(first) == Usage(15, 1, None, 3, 16, "derived", 2)
    later = msgspec.convert({"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}}, WireUsage)
    assert counts.merge(later) == Usage(15, 20, 5, 3, 35, "derived", 2)
    assert UsageSoFar().merge(WireUsage()) == Usage()


@pytest.mark.parametrize(
    ("status", "body", "kind", "says", "request_id"),
    [
        (
            429,
            {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}, "request_id": "q1"},
            RateLimited,
            "answered 429 (rate_limit_error): Slow.",
            "q1",
        ),
        (403, {"Message": "Not yours"}, AuthError, "answered 403: Not yours.", "h1"),
        (404, [{"error": {"code": 404, "message": "No such", "status": "NOT_FOUND"}}], NotFound, "No such", "h1"),
        (400, {"detail": "odd"}, BadRequest, "answered 400: odd.", "h1"),
        (400, {"error": {"message": {"message": "inner", "type": "t"}}}, BadRequest, "answered 400 (t): inner.", "h1"),
        (500, "<html>Bad</html>", Overloaded, "answered 500", "h1"),
        (500, "", Overloaded, "answered 500", "h1"),
    ],
)
def test_an_error_body_of_any_shape(
    status: int, body: Any, kind: type[ProviderError], says: str, request_id: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = decode_error(status, {"request-id": "h1"}, raw, claude())
    assert type(error) is kind
    assert says in str(error)
    assert (error.status, error.request_id, error.body) == (status, request_id, raw)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("overloaded_error", Overloaded),
        ("authentication_error", AuthError),
        ("invalid_request_error", BadRequest),
        ("throttlingException", RateLimited),
    ],
)
def test_an_error_inside_of_a_stream_has_the_status_that_it_would_have_had(
    code: str, kind: type[ProviderError]
) -> None:
    error = build_error(200, {}, {"type": code, "message": "m"}, b"", claude())
    assert type(error) is kind
    assert (error.status, error.code) == (STATUSES[code.lower()], code)


def test_raw_fields_are_given_or_not() -> None:
    absent, null, given = (
        msgspec.json.decode(raw, type=Block).input
        for raw in (b'{"type":"a"}', b'{"input":null}', b'{"input":{"a": 1}}')
    )
    assert [is_given(raw) for raw in (absent, null, given)] == [False, False, True]


def iteration(kind: str, read: int, written: int, **more: int) -> dict[str, object]:
    return {"type": kind, "input_tokens": read, "output_tokens": written, **more}


ANSWER = {"input_tokens": 612, "output_tokens": 20}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"iterations": [iteration("compaction", 60_385, 139), iteration("message", 612, 20)]}, (60_997, 159, None)),
        ({"iterations": [iteration("message", 600, 15), iteration("message", 12, 5)]}, (612, 20, None)),
        ({"iterations": [iteration("message", 612, 20), iteration("advisor_message", 2529, 38)]}, (612, 20, None)),
        ({"iterations": []}, (612, 20, None)),
        ({"iterations": None}, (612, 20, None)),
        (
            {
                "cache_read_input_tokens": 8,
                "iterations": [
                    iteration("compaction", 100, 1, cache_read_input_tokens=30, cache_creation_input_tokens=5),
                    iteration("message", 612, 20, cache_read_input_tokens=8),
                    iteration("compaction", 200, 2),
                ],
            },
            (612 + 8 + 135 + 200, 23, 38),
        ),
    ],
)
def test_what_compaction_read_and_wrote_counts_once(
    counts: dict[str, object], usage: tuple[int, int, int | None]
) -> None:
    so_far = UsageSoFar()
    report = msgspec.convert({**ANSWER, **counts}, WireUsage)
    so_far.merge(report)
    found = so_far.merge(report)
    assert (found.input, found.output, found.cached) == usage


def test_what_a_cache_keeps_for_an_hour_is_counted_apart() -> None:
    so_far = UsageSoFar()
    split = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70}
    compaction = {**iteration("compaction", 1, 1, cache_creation_input_tokens=5), "cache_creation": {**split}}
    counts = {**ANSWER, "cache_creation_input_tokens": 100, "cache_creation": split, "iterations": [compaction]}
    so_far.merge(msgspec.convert(counts, WireUsage))
    found = so_far.merge(WireUsage(output_tokens=30))
    assert (found.cache_written, found.cache_written_hour) == (105, 140)
    minutes = {**ANSWER, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0}}
    assert UsageSoFar().merge(msgspec.convert(minutes, WireUsage)).cache_written_hour is None


def test_two_zeros_and_nothing_else_are_no_report() -> None:
    counts = UsageSoFar()
    assert counts.merge(WireUsage(input_tokens=0, output_tokens=0)) == Usage()
    assert counts.merge(WireUsage(input_tokens=9, output_tokens=0)) == Usage(9, 0, None, None, 9, "derived")
