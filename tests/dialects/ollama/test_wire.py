"""What fields of a line mean: arguments, reasons and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.ollama.wire import LINES, decode_error, map_stop_reason
from asides.values.errors import AuthError, NotFound, Overloaded, ProviderError
from asides.values.events import StopKind
from tests.decoding import target


@pytest.mark.parametrize(
    ("raw", "calls", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("LENGTH", True, "length"),
        ("load", False, "stop"),
        ("unload", False, "stop"),
        ("novel", True, "unknown"),
    ],
)
def test_reasons(raw: str, calls: bool, reason: StopKind) -> None:
    assert map_stop_reason(raw, has_calls=calls) == reason


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (404, {"error": "model 'x' not found"}, NotFound, "answered 404: model 'x' not found."),
        (401, {"error": {"message": "Wrong key", "code": "c"}}, AuthError, "answered 401 (c): Wrong key."),
        (500, {"other": 1}, Overloaded, "answered 500. "),
        (502, "<html>", Overloaded, "answered 502. "),
    ],
)
def test_an_error_is_a_sentence_or_the_object_of_a_proxy(
    status: int, body: Any, kind: type[ProviderError], says: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = decode_error(status, {"cf-ray": "q1"}, raw, target())
    assert type(error) is kind
    assert says in str(error)
    assert (error.status, error.request_id, error.body) == (status, "q1", raw)


def test_a_line_is_read_leniently() -> None:
    line = LINES.decode(b'{"model":"m","done":true,"done_reason":"stop","eval_count":3,"novel":{}}')
    assert (line.model, line.done, line.done_reason, line.eval_count) == ("m", True, "stop", 3)
