"""Private structs for the fields that are read from messages and their events: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode, blocks), and how they are written (encode_messages, server).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class OutputDetails(msgspec.Struct):
    """The only detail that is read."""

    thinking_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Counts of a message. In a stream each report covers the whole message so far and may omit fields."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class StopDetails(msgspec.Struct):
    """Details of the stop reason."""

    explanation: str | None = None


class Delta(msgspec.Struct, gc=False):
    """A delta of a block, or (in `message_delta`) the end of the message."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: msgspec.Raw = NOTHING
    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class Message(msgspec.Struct):
    """A whole message, or its beginning in `message_start`."""

    id: str | None = None
    model: str | None = None
    content: msgspec.Raw = NOTHING
    usage: WireUsage | None = None
    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class Document(Message):
    """One JSON document of a body: an event of a stream, a whole message, or an error."""

    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: msgspec.Raw = NOTHING
    message: msgspec.Raw = NOTHING
    error: Any = None


class Block(msgspec.Struct):
    """A content block of a known type; others stay raw."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    caller: msgspec.Raw = NOTHING
    citations: list[msgspec.Raw] | None = None


DOCUMENTS = msgspec.json.Decoder(Document)
MESSAGES = msgspec.json.Decoder(Message)
BLOCKS = msgspec.json.Decoder(Block)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def compact(raw: msgspec.Raw) -> bytes:
    """Remove white space from JSON, so that streamed and whole replies are equal."""
    return msgspec.json.encode(msgspec.json.decode(raw))


class UsageSoFar:
    """The counts of one message, merged from its reports."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts = WireUsage()

    def merge(self, later: WireUsage) -> Usage:
        """Merge a later report; return the normalised counts.

        On this wire `input_tokens` does not include tokens read from the cache or written to it.
        """
        counts = self._counts
        for name in WireUsage.__struct_fields__:
            value = getattr(later, name)
            if value is not None:
                setattr(counts, name, value)
        total_input = counts.input_tokens
        if total_input is not None:
            total_input += (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
        details = counts.output_tokens_details
        return normalise_usage(
            input=total_input,
            output=counts.output_tokens,
            thinking=None if details is None else details.thinking_tokens,
            cached=counts.cache_read_input_tokens,
        )
