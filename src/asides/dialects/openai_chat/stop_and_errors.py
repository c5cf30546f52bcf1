"""Finish reasons and errors of chat completions, converted from every form that servers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

# Our stop reasons by theirs, as seen on the wire and documented by the hosts up to 2026-11.
_STOPS: dict[str, StopKind] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
}


def map_stop_reason(raw: str) -> StopKind:
    """Convert a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status, whatever its body looks like."""
    document = parse_or_none(body)
    if isinstance(document, list) and document:
        document = document[0]
    error: Any = document
    if isinstance(document, dict):
        error = document.get("error") or document.get("errors") or document
        if isinstance(error, str):
            error = {"message": error, "code": document.get("code")}
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from an error object in any of its forms, or from a sentence."""
    message, code = _read_message_and_code(error)
    if status < 400 and isinstance(error, dict):
        inner = next(
            (error.get(name) for name in ("status", "status_code", "code") if isinstance(error.get(name), int)), None
        )
        status = inner if inner is not None and 400 <= inner < 600 else status
    return from_status(
        status,
        provider=target.provider.name,
        message=message,
        code=code,
        request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        body=body,
    )


_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")


def _read_message_and_code(error: Any) -> tuple[str, str | None]:
    if isinstance(error, list) and error:
        return _read_message_and_code(error[0])
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else "", None)
    message = next(
        (error[name] for name in ("message", "detail", "error", "msg", "status_msg", "title") if error.get(name)), ""
    )
    if isinstance(message, list):
        message = "; ".join(str(item.get("msg", item)) if isinstance(item, dict) else str(item) for item in message)
    elif isinstance(message, dict):
        return _read_message_and_code(message)
    code = next((error[name] for name in ("code", "type", "status") if error.get(name) not in (None, "")), None)
    return str(message), None if code is None else str(code)
