"""How a reply ends: finish reasons in one vocabulary, prompts that were blocked, and errors in their one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.gemini.wire import PromptFeedback
from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind

# Ours by theirs, as in the documents of the API up to 2026-08.
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


def unified_stop(raw: str) -> StopKind | None:
    """Our word for a finish reason; None for one that nobody knew."""
    return _STOPS.get(raw)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """The error that a response with this status is. A stream tells it inside a list."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = body.decode("utf-8", "replace") if len(body) < 500 and not body.lstrip().startswith(b"<") else None
    if isinstance(document, list) and document:
        document = document[0]
    told = document.get("error", document) if isinstance(document, dict) else document
    return error_of(status, headers, told, body, target)


def error_of(status: int, headers: Mapping[str, str], told: Any, body: bytes, target: Target) -> ProviderError:
    """The error in `{"code": 429, "message": …, "status": "RESOURCE_EXHAUSTED", "details": […]}`, or in a sentence."""
    told = told if isinstance(told, dict) else {"message": told if isinstance(told, str) else ""}
    code, word, message = told.get("code"), told.get("status"), told.get("message")
    if isinstance(code, int) and 400 <= code < 600:
        status = code  # the same number, and the only one where the error came inside a good response
    details = [detail for detail in told.get("details") or () if isinstance(detail, dict)]
    reason = next((detail["reason"] for detail in details if isinstance(detail.get("reason"), str)), None)
    # A wrong key is told as a bad request; only the reason says what was bad about it.
    word = reason if status == 400 and reason else word if word is not None else code
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=None if word is None else str(word),
        request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        retry_after=_wait(details),
        body=body,
    )


def _wait(details: list[dict[str, Any]]) -> float | None:
    """The seconds to wait, as `{"@type": "…RetryInfo", "retryDelay": "48s"}` has them."""
    delay = next((detail["retryDelay"] for detail in details if isinstance(detail.get("retryDelay"), str)), "")
    try:
        return float(delay.removesuffix("s"))
    except ValueError:
        return None


def blocked_prompt(feedback: PromptFeedback, payload: bytes, target: Target) -> ProviderError:
    """The error that a prompt is which their filter did not let through."""
    message = "the prompt was stopped by the content filter"
    if feedback.block_reason_message:
        message += f" ({feedback.block_reason_message.rstrip('.')})"
    return from_status(200, provider=target.provider.name, message=message, code=feedback.block_reason, body=payload)
