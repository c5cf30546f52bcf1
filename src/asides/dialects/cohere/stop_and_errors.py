"""Finish reasons and errors of v2 chat, converted from every form that servers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

_STOPS: dict[str, StopKind] = {
    "complete": "stop",
    "stop_sequence": "stop",
    "user_cancel": "stop",
    "max_tokens": "length",
    "error_limit": "length",
    "tool_call": "tool_calls",
    "error_toxic": "content_filter",
    "error": "error",
    "timeout": "error",
}


def map_stop_reason(raw: str) -> StopKind:
    """Convert a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status."""
    document = parse_or_none(body)
    return build_error(status, headers, document, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from an object with a message, or from a sentence."""
    message: Any = error
    code: str | None = None
    if isinstance(error, dict):
        message = error.get("message") or error.get("error") or error.get("detail")
        code = next((str(error[name]) for name in ("error_type", "code") if error.get(name)), None)
        if isinstance(message, dict):
            return build_error(status, headers, message, body, target)
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=code,
        request_id=headers.get("x-debug-trace-id") or headers.get("x-request-id"),
        body=body,
    )
