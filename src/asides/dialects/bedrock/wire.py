"""Private structs for the fields that are read from Converse responses; also usage, stop reasons and errors.

The structs are lenient, minimal and made for the hot path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ProviderError
from asides.values.events import StopKind
from asides.values.usage import Usage, normalise_usage
from asides.wire.lenient import parse_or_none

NOTHING = msgspec.Raw(b"null")

SAMPLING = {"temperature": "temperature", "top_p": "topP"}
"""Our sampling settings and their names in `inferenceConfig`."""


class CacheDetail(msgspec.Struct, rename="camel", gc=False):
    """What was written to the cache for one lifetime."""

    ttl: str | None = None
    input_tokens: int | None = None


class WireUsage(msgspec.Struct, rename="camel", gc=False):
    """Counts. Those of the cache have one name in Converse and another in InvokeModel."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_read_input_token_count: int | None = None
    cache_write_input_token_count: int | None = None
    cache_details: list[CacheDetail] | None = None


class ReasoningDelta(msgspec.Struct, rename="camel", gc=False):
    """A thought or a delta of one: text, signature, or redacted data. Whole ones have `reasoning_text`."""

    text: Any = None
    signature: str | None = None
    redacted_content: str | None = None
    reasoning_text: Any = None
    """The field of a whole thought, from servers that send deltas in that form."""


class ToolUseDelta(msgspec.Struct, gc=False):
    """A delta of a call's arguments."""

    input: str | None = None


class Delta(msgspec.Struct, rename="camel", gc=False):
    """A delta of a block. Unknown fields stay raw."""

    text: str | None = None
    reasoning_content: ReasoningDelta | str | list[Any] | None = None
    tool_use: ToolUseDelta | None = None
    citation: msgspec.Raw = NOTHING


class BlockDelta(msgspec.Struct, rename="camel", gc=False):
    """The event `contentBlockDelta`."""

    delta: Delta | None = None
    content_block_index: int = 0


class BlockStop(msgspec.Struct, rename="camel", gc=False):
    """The event `contentBlockStop`."""

    content_block_index: int = 0


class MessageStop(msgspec.Struct, rename="camel", gc=False):
    """The event `messageStop`."""

    stop_reason: str | None = None
    additional_model_response_fields: Any = None


class ServiceTier(msgspec.Struct):
    """The tier that served a reply."""

    type: str | None = None


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """The event `metadata`, the last one."""

    usage: WireUsage | None = None
    service_tier: ServiceTier | None = None


class ToolUse(msgspec.Struct, rename="camel", gc=False):
    """A call; `type` marks those that the provider runs itself."""

    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    type: str | None = None


class CitedText(msgspec.Struct, gc=False):
    """A piece of a text with citations."""

    text: str | None = None


class Cited(msgspec.Struct, gc=False):
    """A text and its citations."""

    content: list[CitedText] | None = None
    citations: list[msgspec.Raw] | None = None


class Block(msgspec.Struct, rename="camel", gc=False):
    """A block of a whole message, or its beginning. Of a block of an unknown type, the document has the fields."""

    text: str | None = None
    reasoning_content: ReasoningDelta | str | list[Any] | None = None
    tool_use: ToolUse | None = None
    citations_content: Cited | None = None


class BlockStart(msgspec.Struct, rename="camel", gc=False):
    """The event `contentBlockStart`; only some types of block have one."""

    start: Block | None = None
    content_block_index: int = 0


class Message(msgspec.Struct, gc=False):
    """A whole message."""

    content: list[Block] | None = None


class Output(msgspec.Struct, gc=False):
    """The object around the message."""

    message: Message | None = None


class Document(msgspec.Struct, rename="camel", gc=False):
    """One JSON document of a body: an event of a stream under its name, a whole response, or an error."""

    content_block_delta: BlockDelta | None = None
    content_block_start: BlockStart | None = None
    content_block_stop: BlockStop | None = None
    message_start: Any = None
    message_stop: MessageStop | None = None
    metadata: Metadata | None = None
    output: Output | None = None
    stop_reason: str | None = None
    additional_model_response_fields: Any = None
    usage: WireUsage | None = None
    service_tier: ServiceTier | None = None
    error: Any = None


DOCUMENTS = msgspec.json.Decoder(Document)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def read_usage(usage: WireUsage, tier: ServiceTier | None = None) -> Usage:
    """Normalise the counts: tokens that the cache read and wrote are input too.

    Converse leaves both out of `inputTokens`, except where its own total shows otherwise.
    """
    read = usage.cache_read_input_tokens
    read = usage.cache_read_input_token_count if read is None else read
    written = usage.cache_write_input_tokens
    written = usage.cache_write_input_token_count if written is None else written
    cached = (read or 0) + (written or 0)
    total_input = usage.input_tokens
    if total_input is not None and cached and usage.total_tokens != total_input + (usage.output_tokens or 0):
        total_input += cached
    return normalise_usage(
        input=total_input,
        output=usage.output_tokens,
        cached=read,
        total=usage.total_tokens,
        cache_written=written,
        cache_written_hour=sum(each.input_tokens or 0 for each in usage.cache_details or () if each.ttl == "1h")
        or None,
        tiers=() if tier is None else (tier.type,),
    )


# --- stop reasons and errors ------------------------------------------------------------------------------------------

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
    "compaction": "pause",
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
    """Return our name for a stop reason."""
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
