"""Stop reasons and errors of Converse, converted from every form that the service uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

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

# The status that an exception inside a stream would have had.
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


def map_stop_reason(raw: str) -> StopKind:
    """Convert a stop reason."""
    return _STOPS.get(raw.lower(), "unknown")


def is_exception(name: str) -> bool:
    """Whether an event of this name is an error."""
    return name.lower() in _STATUSES


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status. A header names its type."""
    error = parse_or_none(body)
    kind = headers.get("x-amzn-errortype", "").partition(":")[0] or None
    return build_error(status, headers, error, body, target, kind)


def build_error(
    status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target, code: str | None = None
) -> ProviderError:
    """Build an error from an object with a message, or from a sentence."""
    message: Any = error
    if isinstance(error, dict):
        message = error.get("message") or error.get("Message") or error.get("originalMessage")
        named = next((error[name] for name in ("code", "__type", "type") if error.get(name)), None)
        code = code or (None if named is None else str(named).rpartition("#")[2])
        if status < 400 and isinstance(error.get("originalStatusCode"), int):
            status = error["originalStatusCode"]
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
