"""Finish reasons, blocked prompts and errors of generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.gemini.wire import PromptFeedback
from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

# Our stop reasons by theirs, as documented up to 2026-08.
_STOPS: dict[str, StopKind] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "MALFORMED_RESPONSE": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "OTHER": "unknown",
    "FINISH_REASON_UNSPECIFIED": "unknown",
}
FINISH_REASONS = frozenset(_STOPS)

_REQUEST_IDS = ("x-request-id", "x-cloud-trace-context")


def map_stop_reason(raw: str) -> StopKind | None:
    """Convert a finish reason; None for an unknown one."""
    return _STOPS.get(raw)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status. In a stream it comes inside a list."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = body.decode("utf-8", "replace") if len(body) < 500 and not body.lstrip().startswith(b"<") else None
    if isinstance(document, list) and document:
        document = document[0]
    error = document.get("error", document) if isinstance(document, dict) else document
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from `{"code": 429, "message": …, "status": "UNAVAILABLE", "details": […]}` or from a sentence."""
    error = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else ""}
    code, word, message = error.get("code"), error.get("status"), error.get("message")
    if isinstance(code, int) and 400 <= code < 600:
        status = code  # the same number; the only one for an error inside a successful response
    details = [detail for detail in error.get("details") or () if isinstance(detail, dict)]
    reason = next((detail["reason"] for detail in details if isinstance(detail.get("reason"), str)), None)
    # A wrong key comes as a bad request; only the reason shows that it was the key.
    word = reason if status == 400 and reason else word if word is not None else code
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=None if word is None else str(word),
        request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        retry_after=_read_retry_delay(details),
        body=body,
    )


def _read_retry_delay(details: list[dict[str, Any]]) -> float | None:
    """Return the seconds to wait from `{"@type": "…RetryInfo", "retryDelay": "48s"}`."""
    delay = next((detail["retryDelay"] for detail in details if isinstance(detail.get("retryDelay"), str)), "")
    try:
        return float(delay.removesuffix("s"))
    except ValueError:
        return None


def build_blocked_prompt(feedback: PromptFeedback, payload: bytes, target: Target) -> ProviderError:
    """Build the error for a prompt that the content filter blocked."""
    message = "the prompt was stopped by the content filter"
    if feedback.block_reason_message:
        message += f" ({feedback.block_reason_message.rstrip('.')})"
    return from_status(200, provider=target.provider.name, message=message, code=feedback.block_reason, body=payload)
