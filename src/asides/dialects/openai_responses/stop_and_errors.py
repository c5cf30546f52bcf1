"""How a response ends: its status in our one vocabulary, and the errors that it tells in its own body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.openai_chat.stop_and_errors import chat_error, error_of
from asides.dialects.openai_responses.wire import Response
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.events import StopKind, StopReason

_INCOMPLETE: dict[str, StopKind] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "max_prompt_tokens": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
}
FAILED = ("failed", "cancelled", "expired")


def stop_of(response: Response, *, calls: bool) -> StopReason:
    """Why it ended. There is no word for "it calls tools" on this wire: the calls themselves say so."""
    match response.status:
        case "completed" | None:
            return StopReason("tool_calls" if calls else "stop", response.status)
        case "incomplete":
            told = response.incomplete_details.reason if response.incomplete_details is not None else None
            return StopReason(_INCOMPLETE.get(told or "", "unknown"), told or "incomplete")
        case other:
            return StopReason("unknown", other)


def failure_of(response: Response, payload: bytes, target: Target) -> ProviderError | None:
    """The error in a response object, where it has failed."""
    if response.error:
        return told_error(response.error, payload, target)
    if response.status in FAILED:
        told = {"message": f"the response ended as {response.status}", "code": response.status}
        return told_error(told, payload, target)
    return None


def told_error(told: Any, payload: bytes, target: Target) -> ProviderError:
    """The error that an event or a response object tells: flat, or in an object of its own."""
    if isinstance(told, Mapping):
        inner = told.get("error")
        told = inner or told
    if isinstance(told, Mapping) and told.get("type") == "error" and told.get("code") is None:
        told = {name: value for name, value in told.items() if name != "type"}
    return error_of(200, {}, told, payload, target)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is: its body is shaped as chat's, or is a failed response object."""
    try:
        response = msgspec.json.decode(body, type=Response)
    except (msgspec.DecodeError, UnicodeDecodeError):
        response = None
    if response is not None and response.object == "response" and isinstance(response.error, Mapping):
        return error_of(status, headers, response.error, body, target)
    return chat_error(status, headers, body, target)
