"""Stop reasons and errors of chat lines, converted from every form that servers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

# A request without messages stops with "load" or "unload".
_STOPS: dict[str, StopKind] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}


def map_stop_reason(raw: str, *, calls: bool) -> StopKind:
    """Convert a reason. This dialect has no reason for tool calls: it gives "stop" there too."""
    reason = _STOPS.get(raw.lower(), "unknown")
    return "tool_calls" if calls and reason == "stop" else reason


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status."""
    document = parse_or_none(body)
    error = document.get("error") if isinstance(document, dict) else None
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from a sentence, or from the object of a proxy before the server."""
    code: str | None = None
    if isinstance(error, dict):
        code = next((str(error[name]) for name in ("code", "type") if error.get(name)), None)
        error = error.get("message")
    return from_status(
        status,
        provider=target.provider.name,
        message=error if isinstance(error, str) else "",
        code=code,
        request_id=headers.get("x-request-id") or headers.get("cf-ray"),
        body=body,
    )
