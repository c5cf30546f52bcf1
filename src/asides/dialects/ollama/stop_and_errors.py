"""How a reply ends: the reasons in one vocabulary, and errors in the shapes that servers tell them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

# "load" and "unload" are what a request without messages does.
_STOPS: dict[str, StopKind] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}


def unified_stop(raw: str, *, calls: bool) -> StopKind:
    """Our word for a reason. This dialect has none for calls of tools: it stops there as anywhere."""
    reason = _STOPS.get(raw.lower(), "unknown")
    return "tool_calls" if calls and reason == "stop" else reason


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    told = document.get("error") if isinstance(document, dict) else None
    return error_of(status, headers, told, body, target)


def error_of(status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target) -> ProviderError:
    """The error in what a server told: a sentence, or an object from a proxy in front of it."""
    code: str | None = None
    if isinstance(told, dict):
        code = next((str(told[name]) for name in ("code", "type") if told.get(name)), None)
        told = told.get("message")
    return from_status(
        status,
        provider=target.provider.name,
        message=told if isinstance(told, str) else "",
        code=code,
        request_id=headers.get("x-request-id") or headers.get("cf-ray"),
        body=body,
    )
