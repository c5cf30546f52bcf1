"""The parts of Converse's answers and events that are read, as private structs: lenient, minimal, for the hot path.

Not here: what the fields mean (decode, blocks), and how they are written (spell_messages, serve).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class WireUsage(msgspec.Struct, rename="camel"):
    """Counts; the two spellings of the cache's are Converse's and InvokeModel's."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_read_input_token_count: int | None = None
    cache_write_input_token_count: int | None = None


class ReasoningDelta(msgspec.Struct, rename="camel", gc=False):
    """More of a thought: its text, its signature, or a piece of what only the provider can read."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class ToolUseDelta(msgspec.Struct, gc=False):
    """More of a call's arguments."""

    input: str | None = None


class Delta(msgspec.Struct, rename="camel", gc=False):
    """More of a block. What is none of these is kept as it came."""

    text: str | None = None
    reasoning_content: ReasoningDelta | None = None
    tool_use: ToolUseDelta | None = None
    citation: msgspec.Raw = NOTHING


class BlockDelta(msgspec.Struct, rename="camel", gc=False):
    """The event `contentBlockDelta`."""

    delta: Delta | None = None
    content_block_index: int = 0


class BlockStart(msgspec.Struct, rename="camel"):
    """The event `contentBlockStart`; only some kinds of block have one."""

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
    """What holds the message."""

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
    """A call; `type` tells the ones that the provider runs itself."""

    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    type: str | None = None


class ReasoningText(msgspec.Struct):
    """A thought that can be read."""

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
    """A text and what it cites."""

    content: list[CitedText] | None = None
    citations: list[msgspec.Raw] | None = None


class Block(msgspec.Struct, rename="camel"):
    """A block of a whole message, of a kind that is understood; the others are kept as they came."""

    text: str | None = None
    reasoning_content: Reasoning | None = None
    tool_use: ToolUse | None = None
    citations_content: Cited | None = None


DOCUMENTS = msgspec.json.Decoder(Document)
BLOCKS = msgspec.json.Decoder(Block)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field was there, and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def usage_of(told: WireUsage) -> Usage:
    """The counts in our one meaning of them: what the cache read and wrote is input too.

    Converse leaves both out of `inputTokens`; its own sum says so where it does not.
    """
    read = told.cache_read_input_tokens
    read = told.cache_read_input_token_count if read is None else read
    written = told.cache_write_input_tokens
    written = told.cache_write_input_token_count if written is None else written
    cached = (read or 0) + (written or 0)
    total_input = told.input_tokens
    if total_input is not None and cached and told.total_tokens != total_input + (told.output_tokens or 0):
        total_input += cached
    return normalise_usage(input=total_input, output=told.output_tokens, cached=read, total=told.total_tokens)
