"""The parts of a v2 chat that are read, as private structs: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode), and how they are written (spell_messages, serve).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class Counts(msgspec.Struct):
    """One way of counting."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    reasoning_tokens: float | None = None


class WireUsage(msgspec.Struct):
    """What was counted, and what is paid for; v1 has the same two under `meta`."""

    tokens: Counts | None = None
    billed_units: Counts | None = None
    cached_tokens: float | None = None


class Content(msgspec.Struct, gc=False):
    """An item of the content, or a piece of one."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None


class Function(msgspec.Struct):
    """The call itself; arguments are JSON text."""

    name: str | None = None
    arguments: str | None = None


class Call(msgspec.Struct):
    """A call, or a piece of one; `name` and `parameters` are how v1 wrote it."""

    id: str | None = None
    function: Function | None = None
    name: str | None = None
    parameters: msgspec.Raw = NOTHING


class Piece(msgspec.Struct, gc=False):
    """What an event adds to the message. Where nothing is added yet, content and calls are empty lists."""

    content: Content | list[Any] | None = None
    tool_plan: str | None = None
    tool_calls: Call | list[Any] | None = None
    citations: msgspec.Raw = NOTHING


class Delta(msgspec.Struct, gc=False):
    """The payload of an event."""

    message: Piece | None = None
    finish_reason: str | None = None
    usage: WireUsage | None = None
    error: Any = None


class FirstVersion(msgspec.Struct):
    """The whole response of v1, as the last event of a stream repeats it."""

    meta: WireUsage | None = None
    finish_reason: str | None = None


class Document(msgspec.Struct):
    """One JSON document of a body: an event of a stream, a whole response, or an error."""

    type: str | None = None
    id: str | None = None
    index: int = 0
    delta: Delta | None = None
    message: msgspec.Raw = NOTHING
    finish_reason: str | None = None
    usage: WireUsage | None = None
    error: Any = None
    # What follows is of v1: a whole response has it at the top, an event of a stream by its `event_type`.
    event_type: str | None = None
    text: str | None = None
    generation_id: str | None = None
    meta: WireUsage | None = None
    tool_calls: list[Call] | None = None
    citations: list[msgspec.Raw] | None = None
    response: FirstVersion | None = None


class Message(msgspec.Struct):
    """A whole message."""

    content: list[msgspec.Raw] | str | None = None
    tool_plan: str | None = None
    tool_calls: list[Call] | None = None
    citations: list[msgspec.Raw] | None = None


class Citation(msgspec.Struct):
    """Where a citation belongs."""

    content_index: int | None = None


DOCUMENTS = msgspec.json.Decoder(Document)
MESSAGES = msgspec.json.Decoder(Message)
CONTENTS = msgspec.json.Decoder(Content)
CITATIONS = msgspec.json.Decoder(Citation)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field was there, and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def compact(raw: msgspec.Raw | bytes) -> bytes:
    """JSON without the white space that a server happened to write, so that streamed and whole agree."""
    return msgspec.json.encode(msgspec.json.decode(raw))


def usage_of(usage: WireUsage) -> Usage:
    """The counts in our one meaning of them: what was counted, and what was billed only where nothing else is told."""
    counts = usage.tokens or usage.billed_units or Counts()
    return normalise_usage(
        input=_whole(counts.input_tokens),
        output=_whole(counts.output_tokens),
        thinking=_whole(counts.reasoning_tokens),
        cached=_whole(usage.cached_tokens),
    )


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)
