"""Private structs for the fields that are read from generateContent responses; also usage, stop reasons and errors.

The structs are lenient, minimal and made for the hot path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from asides.providers.error_bodies import drop_reply_events
from asides.providers.provider import Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ProviderError
from asides.values.events import StopKind
from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")

SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
    "seed": "seed",
}
"""Our sampling settings and their names in a request."""


class PartialArg(msgspec.Struct, rename="camel", gc=False):
    """A piece of one argument of an open call."""

    json_path: str = "$"
    string_value: str | None = None
    number_value: float | int | None = None
    bool_value: bool | None = None
    null_value: Any = msgspec.UNSET
    will_continue: bool | None = None


class FunctionCall(msgspec.Struct, rename="camel", gc=False):
    """A call, or a piece of one."""

    name: str | None = None
    id: str | None = None
    args: Any = None
    partial_args: list[PartialArg] | None = None
    will_continue: bool | None = None


class Blob(msgspec.Struct, rename="camel", gc=False):
    """Data inside a response."""

    mime_type: str = ""
    data: str = ""


class FileData(msgspec.Struct, rename="camel", gc=False):
    """Data at an address."""

    mime_type: str = ""
    file_uri: str = ""


class Part(msgspec.Struct, rename="camel", gc=False):
    """One part of the content. A part without these fields is read again from its raw JSON."""

    text: str | None = None
    thought: Any = None
    """Whether the part is thinking; proxies write other values than booleans."""
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None


class Content(msgspec.Struct, gc=False):
    """The parts of the message, or of one chunk."""

    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel", gc=False):
    """One of possibly several answers."""

    index: int | None = 0
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    continuation_token: str | None = None
    grounding_metadata: msgspec.Raw = NOTHING
    url_context_metadata: msgspec.Raw = NOTHING
    citation_metadata: msgspec.Raw = NOTHING


class WireUsage(msgspec.Struct, rename="camel", gc=False):
    """The counts; each chunk of a stream has those known so far."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    total_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    """The results of tools that the provider ran, which the model read besides the prompt."""
    traffic_type: Any = None
    service_tier: Any = None


class PromptFeedback(msgspec.Struct, rename="camel", gc=False):
    """The reason why a prompt was blocked."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Chunk(msgspec.Struct, rename="camel", gc=False):
    """A whole response, or one event of a stream: both have the same form."""

    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: WireUsage | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


CHUNKS = msgspec.json.Decoder(Chunk)


def is_empty_call(call: FunctionCall) -> bool:
    """Whether a call has no fields: it only ends the previous one."""
    return (
        call.name is None
        and call.id is None
        and call.args is None
        and call.partial_args is None
        and call.will_continue is None
    )


class _RawContent(msgspec.Struct):
    parts: list[msgspec.Raw] = []


class _RawCandidate(msgspec.Struct):
    content: _RawContent | None = None


class _RawChunk(msgspec.Struct):
    candidates: list[_RawCandidate] = []


_RAW_CHUNKS = msgspec.json.Decoder(_RawChunk)


def compact(raw: bytes) -> str:
    """Remove white space from JSON: whole bodies have it, streams do not."""
    return msgspec.json.format(raw, indent=-1).decode()


def find_whole_items(payload: bytes) -> list[bytes]:
    """Return the complete items of a JSON list that was cut off."""
    text = payload.decode("utf-8", "ignore")
    decoder = json.JSONDecoder()
    items: list[bytes] = []
    start = 1
    while (start := text.find("{", start)) >= 0:
        try:
            _, end = decoder.raw_decode(text, start)
        except ValueError:
            break
        items.append(text[start:end].encode())
        start = end
    return items


class RawParts:
    """Finds the raw JSON of parts. A document is split once, however many of its parts are asked for."""

    __slots__ = ("_candidates", "_clean", "_payload")

    def __init__(self, clean: Callable[[bytes], bytes]) -> None:
        self._clean = clean
        self._payload = b""
        self._candidates: list[_RawCandidate] = []

    def find(self, payload: bytes, candidate: int, place: int) -> str:
        """Return the compact raw JSON of a part; "{}" if it is not found."""
        if payload is not self._payload:
            self._payload = payload
            try:
                self._candidates = _RAW_CHUNKS.decode(self._clean(payload)).candidates
            except msgspec.ValidationError:
                self._candidates = []
        try:
            content = self._candidates[candidate].content
            return compact(bytes(content.parts[place])) if content is not None else "{}"
        except IndexError:
            return "{}"


def read_usage(usage: WireUsage) -> Usage:
    """Normalise the counts: the output of this dialect excludes thinking, and its prompt the results of tools."""
    prompt, tools = usage.prompt_token_count, usage.tool_use_prompt_token_count
    return normalise_usage(
        input=(prompt or 0) + tools if tools else prompt,
        output=usage.candidates_token_count,
        thinking=usage.thoughts_token_count,
        cached=usage.cached_content_token_count,
        total=usage.total_token_count,
        excludes_thinking=True,
        tiers=(usage.traffic_type, usage.service_tier),
    )


# --- stop reasons and errors ------------------------------------------------------------------------------------------

# Our stop reasons by theirs, as documented up to 2026-08; the last four before OTHER from google-genai 3.3, 2026-11-18.
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
    "ESCALATION": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
    # The limit of one request: the next one continues the reply, which the flow asks for.
    "CONTINUATION": "length",
    "OTHER": "unknown",
    "FINISH_REASON_UNSPECIFIED": "unknown",
}
FINISH_REASONS = frozenset(_STOPS)

_REQUEST_IDS = ("x-request-id", "x-cloud-trace-context")


def map_stop_reason(raw: str) -> StopKind | None:
    """Return our name for a finish reason; None for an unknown one."""
    return _STOPS.get(raw)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status. In a stream it comes inside a list."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        is_text = len(body) < 500 and not body.lstrip().startswith(b"<")
        document = drop_reply_events(body.decode("utf-8", "replace")) if is_text else None
    if isinstance(document, list) and document:
        document = document[0]
    error = document.get("error", document) if isinstance(document, dict) else document
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from `{"code": 429, "message": …, "status": "UNAVAILABLE", "details": […]}` or from a sentence."""
    error = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else ""}
    code, word, message = error.get("code"), error.get("status"), error.get("message")
    if isinstance(code, int) and 400 <= code < 600:
        status = code  # it repeats the status, or is the only one for an error inside a successful response
    found = error.get("details")
    details = [detail for detail in found if isinstance(detail, dict)] if isinstance(found, list) else []
    reason = next((detail["reason"] for detail in details if isinstance(detail.get("reason"), str)), None)
    # An invalid key is reported as a bad request; only the reason identifies the key.
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
    message = "the content filter blocked the prompt"
    if feedback.block_reason_message:
        message += f" ({feedback.block_reason_message.rstrip('.')})"
    return from_status(200, provider=target.provider.name, message=message, code=feedback.block_reason, body=payload)
