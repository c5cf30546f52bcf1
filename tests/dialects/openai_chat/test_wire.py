"""What fields of chat completions mean: counts under many names, readers that learn fields, stop reasons, errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_chat.wire import (
    WireUsage,
    build_error,
    decode_error,
    find_reader,
    find_unknown_field,
    is_nothing,
    map_stop_reason,
    read_signature,
    read_usage,
)
from asides.providers.quirks import THINKING_FIELDS
from asides.values.errors import AuthError, BadRequest, Overloaded, ProviderError, RateLimited
from asides.values.events import StopKind
from asides.values.usage import Usage
from tests.decoding import target


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("EOS", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("insufficient_system_resource", "error"),
        ("novel", "unknown"),
    ],
)
def test_finish_reasons(raw: str, reason: StopKind) -> None:
    assert map_stop_reason(raw) == reason


ALL = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        (ALL, Usage(3, 4, None, None, 7)),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, Usage(3, 4, None, None, 7)),
        ({**ALL, "completion_tokens_details": {"reasoning_tokens": 2}, "reasoning_tokens": 1}, Usage(3, 4, 2, None, 7)),
        ({**ALL, "reasoning_tokens": 1}, Usage(3, 4, 1, None, 7)),
        ({**ALL, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 2}, Usage(3, 4, None, 0, 7)),
        ({**ALL, "prompt_cache_hit_tokens": 2}, Usage(3, 4, None, 2, 7)),
        ({**ALL, "num_cached_tokens": 2}, Usage(3, 4, None, 2, 7)),
    ],
)
def test_counts_under_any_of_their_names(counts: dict[str, Any], usage: Usage) -> None:
    assert read_usage(msgspec.convert(counts, WireUsage), excludes_thinking=False) == usage


def chunk(**delta: Any) -> bytes:
    return json.dumps({"choices": [{"delta": delta}]}).encode()


def test_a_reader_gives_the_thinking_fields_in_their_order() -> None:
    reader = find_reader(THINKING_FIELDS, True)
    delta = reader.decode(chunk(thinking="c", reasoning_content="a", content="x")).choices[0].delta
    assert (delta.content, reader.thinking_values(delta)) == ("x", ("a", None, "c"))
    assert find_reader(THINKING_FIELDS, True) is reader
    alone = find_reader(("musing",), True)
    delta = alone.decode(chunk(musing="m", reasoning="r")).choices[0].delta
    assert (alone.thinking_values(delta), alone.heuristics) == (("m",), False)


@pytest.mark.parametrize(
    ("name", "heuristics", "thinks"),
    [
        ("inner_thoughts", True, True),
        ("my_reasoning", True, True),
        ("cot", True, True),
        ("inner_thoughts", False, False),
        ("weather", True, False),
        ("cotton", True, False),
        ("thinking_tokens", True, False),
        ("thought_id", True, False),
        ("encrypted_thinking", True, False),
        ("is_thinking", True, False),
        ("", True, False),
        ("two\nlines", True, False),
        ("a` - at `$.choices[0].delta", True, False),
    ],
)
def test_a_reader_learns_an_unknown_field(name: str, heuristics: bool, thinks: bool) -> None:
    reader = find_reader(THINKING_FIELDS, heuristics)
    with pytest.raises(msgspec.ValidationError) as caught:
        reader.decode(chunk(**{name: "so"}))
    assert find_unknown_field(caught.value) == name
    learnt, is_thinking = reader.learn(name)
    assert is_thinking is thinks
    values = learnt.thinking_values(learnt.decode(chunk(**{name: "so"})).choices[0].delta)
    assert ("so" in values) is thinks


def test_another_problem_is_no_unknown_field() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        find_reader(THINKING_FIELDS, True).decode(b'{"choices":3}')
    assert find_unknown_field(caught.value) is None


@pytest.mark.parametrize(
    ("extra", "signature"),
    [
        (b'{"google":{"thought_signature":"s"}}', "s"),
        (b'{"google":{}}', None),
        (b'{"google":{"thought_signature":3}}', None),
        (b"{}", None),
        (b"[]", None),
        (b"\xff", None),
    ],
)
def test_the_signature_inside_of_extra_content(extra: bytes, signature: str | None) -> None:
    assert read_signature(extra) == signature


@pytest.mark.parametrize(("raw", "nothing"), [(b"null", True), (b"{}", True), (b"", True), (b'{"a":1}', False)])
def test_a_raw_field_may_hold_nothing(raw: bytes, nothing: bool) -> None:
    assert is_nothing(msgspec.Raw(raw)) is nothing


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (
            401,
            {"error": {"message": "Wrong key", "code": "invalid_api_key"}},
            AuthError,
            "(invalid_api_key): Wrong key.",
        ),
        (400, {"error": "odd", "code": "c"}, BadRequest, "answered 400 (c): odd."),
        (422, {"detail": [{"msg": "too short"}, {"msg": "too odd"}]}, BadRequest, "too short; too odd."),
        (400, [{"error": {"message": "listed", "code": 400}}], BadRequest, "answered 400: listed."),
        (400, {"errors": [{"message": "first"}]}, BadRequest, "answered 400: first."),
        (400, {"error": {"message": {"message": "inner"}}}, BadRequest, "answered 400: inner."),
        (500, "<html>", Overloaded, "answered 500. "),
        (500, {}, Overloaded, "answered 500. "),
    ],
)
def test_an_error_body_of_any_shape(status: int, body: Any, kind: type[ProviderError], says: str) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = decode_error(status, {"x-request-id": "q1"}, raw, target())
    assert type(error) is kind
    assert says in str(error)
    assert (error.status, error.request_id, error.body) == (status, "q1", raw)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 429, "message": "Slow"}, RateLimited, 429),
        ({"status": 503, "message": "Busy"}, Overloaded, 503),
        ({"code": 7, "message": "odd"}, ProviderError, 200),
        ("odd", ProviderError, 200),
    ],
)
def test_an_error_inside_of_a_reply_may_name_its_status(error: Any, kind: type[ProviderError], status: int) -> None:
    built = build_error(200, {}, error, b"", target())
    assert (type(built), built.status) == (kind, status)


def test_only_so_many_readers_are_kept() -> None:
    for number in range(300):  # Callers of a relay may name fields.
        find_reader((f"field_{number}",), True)
    kept = find_reader.cache_info()
    assert kept.currsize < 300
