"""How a reply ends: finish reasons in one vocabulary, and errors in the shapes that the server tells them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

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


def unified_stop(raw: str) -> StopKind:
    """Our word for a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    return error_of(status, headers, document, body, target)


def error_of(status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target) -> ProviderError:
    """The error in what a server told: an object with a message, or a plain sentence."""
    message: Any = told
    code: str | None = None
    if isinstance(told, dict):
        message = told.get("message") or told.get("error") or told.get("detail")
        code = next((str(told[name]) for name in ("error_type", "code") if told.get(name)), None)
        if isinstance(message, dict):
            return error_of(status, headers, message, body, target)
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=code,
        request_id=headers.get("x-debug-trace-id") or headers.get("x-request-id"),
        body=body,
    )
