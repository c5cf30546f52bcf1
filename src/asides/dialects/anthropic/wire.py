"""The parts of a message and of its events that are read, as private structs: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode, blocks), and how they are written (spell_messages, serve).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class OutputDetails(msgspec.Struct):
    """The one detail that is read."""

    thinking_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Counts of a message. In a stream each report is of the whole message so far, and may leave fields out."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class StopDetails(msgspec.Struct):
    """More about why it stopped."""

    explanation: str | None = None


class Delta(msgspec.Struct, gc=False):
    """More of a block, or (in `message_delta`) how the message ended."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: msgspec.Raw = NOTHING
    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class Message(msgspec.Struct):
    """A message: all of it, or its beginning in `message_start`."""

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
    """A content block of a kind that is understood; the others are kept whole."""

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
    """Whether a field was there, and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def compact(raw: msgspec.Raw) -> bytes:
    """JSON without the white space that a server happened to write, so that streamed and whole agree."""
    return msgspec.json.encode(msgspec.json.decode(raw))


class UsageSoFar:
    """The counts of one message, each as it was last told."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told = WireUsage()

    def take(self, later: WireUsage) -> Usage:
        """Lay a later report over the earlier ones; the counts in our one meaning of them.

        What was read from the cache or written to it is left out of `input_tokens` on this wire.
        """
        told = self._told
        for name in WireUsage.__struct_fields__:
            value = getattr(later, name)
            if value is not None:
                setattr(told, name, value)
        total_input = told.input_tokens
        if total_input is not None:
            total_input += (told.cache_read_input_tokens or 0) + (told.cache_creation_input_tokens or 0)
        details = told.output_tokens_details
        return normalise_usage(
            input=total_input,
            output=told.output_tokens,
            thinking=None if details is None else details.thinking_tokens,
            cached=told.cache_read_input_tokens,
        )
