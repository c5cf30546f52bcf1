"""How a message ends: stop reasons in one vocabulary, and errors in all the shapes that servers tell them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

# Ours by theirs, as documented up to 2026-11; compaction is a beta that stops to be asked again.
_STOPS: dict[str, StopKind] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}

# What an error told inside a stream would have been as a status.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # One cloud wraps the stream in frames of its own and tells errors as exceptions.
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "modelstreamerrorexception": 500,
    "serviceunavailableexception": 503,
    "modeltimeoutexception": 504,
}

_REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "x-goog-request-id", "cf-ray")


def unified_stop(raw: str) -> StopKind:
    """Our word for a stop reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is, whatever its body looks like."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if isinstance(document, list) and document:
        document = document[0]
    told: Any = document
    request_id: str | None = None
    if isinstance(document, dict):
        told = document.get("error") or document.get("Message") or document
        request_id = _word(document.get("request_id"))
    return error_of(status, headers, told, body, target, request_id)


def error_of(
    status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target, request_id: str | None = None
) -> ProviderError:
    """The error in what a server told: an object, or a plain sentence. A status of 200 is an error inside a stream."""
    message, code = _message_and_code(told)
    if status < 400 and code is not None:
        status = STATUSES.get(code.lower(), status)
    return from_status(
        status,
        provider=target.provider.name,
        message=message,
        code=code,
        request_id=request_id or next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        body=body,
    )


def _message_and_code(told: Any) -> tuple[str, str | None]:
    if not isinstance(told, dict):
        return (told if isinstance(told, str) else "", None)
    message = told.get("message") or told.get("detail") or told.get("error") or ""
    if isinstance(message, dict):
        return _message_and_code(message)
    code = next((told[name] for name in ("type", "code", "status") if told.get(name) not in (None, "")), None)
    return message if isinstance(message, str) else msgspec.json.encode(message).decode(), _word(code)


def _word(value: object) -> str | None:
    return None if value is None else str(value)
