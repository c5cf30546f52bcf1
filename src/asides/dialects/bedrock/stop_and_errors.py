"""How a reply ends: stop reasons in one vocabulary, and errors in the shapes that the cloud tells them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

_STOPS: dict[str, StopKind] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
    "refusal": "refusal",
    "pause_turn": "pause",
}

# What an exception told inside a stream would have been as a status.
_STATUSES = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "throttlingexception": 429,
    "servicequotaexceededexception": 429,
    "modelnotreadyexception": 503,
    "modelerrorexception": 500,
    "modelstreamerrorexception": 500,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}


def unified_stop(raw: str) -> StopKind:
    """Our word for a stop reason."""
    return _STOPS.get(raw.lower(), "unknown")


def is_exception(name: str) -> bool:
    """Whether an event of this name tells an error."""
    return name.lower() in _STATUSES


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is. Which one it is stands in a header."""
    try:
        told: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = None
    kind = headers.get("x-amzn-errortype", "").partition(":")[0] or None
    return error_of(status, headers, told, body, target, kind)


def error_of(
    status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target, code: str | None = None
) -> ProviderError:
    """The error in what the cloud told: an object with a message, or a plain sentence."""
    message: Any = told
    if isinstance(told, dict):
        message = told.get("message") or told.get("Message") or told.get("originalMessage")
        named = next((told[name] for name in ("code", "__type", "type") if told.get(name)), None)
        code = code or (None if named is None else str(named).rpartition("#")[2])
        if status < 400 and isinstance(told.get("originalStatusCode"), int):
            status = told["originalStatusCode"]
    if status < 400 and code is not None:
        status = _STATUSES.get(code.lower(), status)
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=code,
        request_id=headers.get("x-amzn-requestid"),
        body=body,
    )
