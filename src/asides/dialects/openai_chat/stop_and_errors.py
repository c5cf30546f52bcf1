"""How a reply ends: finish reasons in one vocabulary, and errors in all the shapes that servers tell them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

# Ours by theirs, as seen on the wire and in the documents of the hosts up to 2026-11.
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


def unified_stop(raw: str) -> StopKind:
    """Our word for a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is, whatever its body looks like."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if isinstance(document, list) and document:
        document = document[0]
    told: Any = document
    if isinstance(document, dict):
        told = document.get("error") or document.get("errors") or document
        if isinstance(told, str):
            told = {"message": told, "code": document.get("code")}
    return error_of(status, headers, told, body, target)


def error_of(status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target) -> ProviderError:
    """The error in what a server told: an object in one of its shapes, or a plain sentence."""
    message, code = _message_and_code(told)
    if status < 400 and isinstance(told, dict):
        inner = next(
            (told.get(name) for name in ("status", "status_code", "code") if isinstance(told.get(name), int)), None
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


def _message_and_code(told: Any) -> tuple[str, str | None]:
    if isinstance(told, list) and told:
        return _message_and_code(told[0])
    if not isinstance(told, dict):
        return (told if isinstance(told, str) else "", None)
    message = next(
        (told[name] for name in ("message", "detail", "error", "msg", "status_msg", "title") if told.get(name)), ""
    )
    if isinstance(message, list):
        message = "; ".join(str(item.get("msg", item)) if isinstance(item, dict) else str(item) for item in message)
    elif isinstance(message, dict):
        return _message_and_code(message)
    code = next((told[name] for name in ("code", "type", "status") if told.get(name) not in (None, "")), None)
    return str(message), None if code is None else str(code)
