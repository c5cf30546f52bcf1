"""Private structs for the fields that are read from Converse responses: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode, blocks), and how they are written (encode_messages, server).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class WireUsage(msgspec.Struct, rename="camel"):
    """Counts; those of the cache have one name in Converse and another in InvokeModel."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_read_input_token_count: int | None = None
    cache_write_input_token_count: int | None = None


class ReasoningDelta(msgspec.Struct, rename="camel", gc=False):
    """A delta of a thought: text, signature, or redacted data."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class ToolUseDelta(msgspec.Struct, gc=False):
    """A delta of a call's arguments."""

    input: str | None = None


class Delta(msgspec.Struct, rename="camel", gc=False):
    """A delta of a block. Unknown fields stay raw."""

    text: str | None = None
    reasoning_content: ReasoningDelta | None = None
    tool_use: ToolUseDelta | None = None
    citation: msgspec.Raw = NOTHING


class BlockDelta(msgspec.Struct, rename="camel", gc=False):
    """The event `contentBlockDelta`."""

    delta: Delta | None = None
    content_block_index: int = 0


class BlockStart(msgspec.Struct, rename="camel"):
    """The event `contentBlockStart`; only some types of block have one."""

    start: msgspec.Raw = NOTHING
    content_block_index: int = 0


class BlockStop(msgspec.Struct, rename="camel"):
    """The event `contentBlockStop`."""

    content_block_index: int = 0


class MessageStop(msgspec.Struct, rename="camel"):
    """The event `messageStop`."""

    stop_reason: str | None = None


class Metadata(msgspec.Struct):
    """The event `metadata`, the last one."""

    usage: WireUsage | None = None


class Message(msgspec.Struct):
    """A whole message."""

    content: list[msgspec.Raw] | None = None


class Output(msgspec.Struct):
    """The holder of the message."""

    message: Message | None = None


class Document(msgspec.Struct, rename="camel"):
    """One JSON document of a body: an event of a stream under its name, a whole response, or an error."""

    content_block_delta: BlockDelta | None = None
    content_block_start: BlockStart | None = None
    content_block_stop: BlockStop | None = None
    message_start: Any = None
    message_stop: MessageStop | None = None
    metadata: Metadata | None = None
    output: Output | None = None
    stop_reason: str | None = None
    usage: WireUsage | None = None
    error: Any = None


class ToolUse(msgspec.Struct, rename="camel"):
    """A call; `type` marks those that the provider runs itself."""

    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    type: str | None = None


class ReasoningText(msgspec.Struct):
    """A readable thought."""

    text: str | None = None
    signature: str | None = None


class Reasoning(msgspec.Struct, rename="camel"):
    """A thought, readable or not."""

    reasoning_text: ReasoningText | None = None
    redacted_content: str | None = None


class CitedText(msgspec.Struct):
    """A piece of a text with citations."""

    text: str | None = None


class Cited(msgspec.Struct):
    """A text and its citations."""

    content: list[CitedText] | None = None
    citations: list[msgspec.Raw] | None = None


class Block(msgspec.Struct, rename="camel"):
    """A block of a whole message, of a known type; others stay raw."""

    text: str | None = None
    reasoning_content: Reasoning | None = None
    tool_use: ToolUse | None = None
    citations_content: Cited | None = None


DOCUMENTS = msgspec.json.Decoder(Document)
BLOCKS = msgspec.json.Decoder(Block)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def read_usage(usage: WireUsage) -> Usage:
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
    return normalise_usage(input=total_input, output=usage.output_tokens, cached=read, total=usage.total_tokens)
