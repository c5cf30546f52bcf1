"""Stop reasons and errors of messages, converted from every form that servers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

# Our stop reasons by theirs, as documented up to 2026-11; compaction is a beta that stops in order to be called again.
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

# The status that an error inside a stream would have had.
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
    # One cloud wraps the stream in its own frames and sends errors as exceptions.
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "modelstreamerrorexception": 500,
    "serviceunavailableexception": 503,
    "modeltimeoutexception": 504,
}

_REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "x-goog-request-id", "cf-ray")


def map_stop_reason(raw: str) -> StopKind:
    """Convert a stop reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status, whatever its body looks like."""
    document = parse_or_none(body)
    if isinstance(document, list) and document:
        document = document[0]
    error: Any = document
    request_id: str | None = None
    if isinstance(document, dict):
        error = document.get("error") or document.get("Message") or document
        request_id = _to_text(document.get("request_id"))
    return build_error(status, headers, error, body, target, request_id)


def build_error(
    status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target, request_id: str | None = None
) -> ProviderError:
    """Build an error from the server's error object or sentence. Status 200 means an error inside a stream."""
    message, code = _read_message_and_code(error)
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


def _read_message_and_code(error: Any) -> tuple[str, str | None]:
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else "", None)
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    if isinstance(message, dict):
        return _read_message_and_code(message)
    code = next((error[name] for name in ("type", "code", "status") if error.get(name) not in (None, "")), None)
    return message if isinstance(message, str) else msgspec.json.encode(message).decode(), _to_text(code)


def _to_text(value: object) -> str | None:
    return None if value is None else str(value)
