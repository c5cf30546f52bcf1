"""Stop reasons and errors of responses, from their status and from the errors in their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.openai_chat.stop_and_errors import build_error
from asides.dialects.openai_chat.stop_and_errors import decode_error as decode_chat_error
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


def read_stop(response: Response, *, calls: bool) -> StopReason:
    """Return the stop reason. This wire has none for tool calls: the calls themselves decide."""
    match response.status:
        case "completed" | None:
            return StopReason("tool_calls" if calls else "stop", response.status)
        case "incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details is not None else None
            return StopReason(_INCOMPLETE.get(reason or "", "unknown"), reason or "incomplete")
        case other:
            return StopReason("unknown", other)


def find_failure(response: Response, payload: bytes, target: Target) -> ProviderError | None:
    """Return the error of a response object; None when it has not failed."""
    if response.error:
        return build_inner_error(response.error, payload, target)
    if response.status in FAILED:
        error = {"message": f"the response ended as {response.status}", "code": response.status}
        return build_inner_error(error, payload, target)
    return None


def build_inner_error(error: Any, payload: bytes, target: Target) -> ProviderError:
    """Build an error from the fields of an event or a response object, or from the object inside them."""
    if isinstance(error, Mapping):
        inner = error.get("error")
        error = inner or error
    if isinstance(error, Mapping) and error.get("type") == "error" and error.get("code") is None:
        error = {name: value for name, value in error.items() if name != "type"}
    return build_error(200, {}, error, payload, target)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status: its body is as in chat, or a failed response object."""
    try:
        response = msgspec.json.decode(body, type=Response)
    except (msgspec.DecodeError, UnicodeDecodeError):
        response = None
    if response is not None and response.object == "response" and isinstance(response.error, Mapping):
        return build_error(status, headers, response.error, body, target)
    return decode_chat_error(status, headers, body, target)
