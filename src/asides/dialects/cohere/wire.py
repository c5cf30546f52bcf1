"""Private structs for the fields that are read from v2 chat responses; also usage, stop reasons and errors.

The structs are lenient, minimal and made for the hot path. Not here: events from the fields (decode), and how fields
are written (encode, server).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.providers.provider import Target
from asides.values.errors import ProviderError, from_status
from asides.values.events import StopKind
from asides.values.usage import Usage, normalise_usage
from asides.wire.lenient import compact_json, parse_or_none

NOTHING = msgspec.Raw(b"null")


class Counts(msgspec.Struct):
    """One set of counts."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    reasoning_tokens: float | None = None


class WireUsage(msgspec.Struct):
    """The tokens as counted and as billed; v1 has both under `meta`."""

    tokens: Counts | None = None
    billed_units: Counts | None = None
    cached_tokens: float | None = None


class Content(msgspec.Struct, gc=False):
    """An item of the content, or a piece of one."""

    type: str | None = None
    text: Any = None
    thinking: Any = None


class Function(msgspec.Struct):
    """The called function; arguments are JSON text."""

    name: str | None = None
    arguments: str | None = None


class Call(msgspec.Struct):
    """A call, or a piece of one; `name` and `parameters` are the form of v1."""

    id: str | None = None
    function: Function | None = None
    name: str | None = None
    parameters: msgspec.Raw = NOTHING


class Piece(msgspec.Struct, gc=False):
    """The addition of an event to the message. Content and calls may be empty lists."""

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
    """The whole response of v1, repeated by the last event of a stream."""

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
    # Fields of v1: of a whole response, or of an event of the type `event_type`.
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
    """The position of a citation."""

    content_index: int | None = None


# Plain documents: additions of text or thinking, and whole responses with nothing else. Their structs have the
# attributes of those above; they know all of their fields, and no field has an unknown structure.


class PlainContent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An item of the content, or a piece of one."""

    text: str | None = None
    thinking: str | None = None
    type: str | None = None


class PlainPiece(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An addition to the message that is nothing but a piece of an item."""

    content: PlainContent


class PlainDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The payload of an event with such an addition."""

    message: PlainPiece


class PlainMessage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A whole message without calls and citations."""

    content: list[PlainContent]
    role: str | None = None
    tool_plan: None = None
    tool_calls: None = None
    citations: None = None


class PlainCounts(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One set of counts."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    reasoning_tokens: float | None = None
    search_units: float | None = None
    classifications: float | None = None


class PlainUsage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The tokens as counted and as billed."""

    tokens: PlainCounts | None = None
    billed_units: PlainCounts | None = None
    cached_tokens: float | None = None


class PlainDocument(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An event that adds a piece of an item, or a whole response."""

    type: Literal["content-delta"] | None = None
    delta: PlainDelta | None = None
    index: int = 0
    logprobs: None = None
    id: str | None = None
    message: PlainMessage | None = None
    finish_reason: str | None = None
    usage: PlainUsage | None = None


PLAIN_DOCUMENTS = msgspec.json.Decoder(PlainDocument)
DOCUMENTS = msgspec.json.Decoder(Document)
MESSAGES = msgspec.json.Decoder(Message)
CONTENTS = msgspec.json.Decoder(Content)
CITATIONS = msgspec.json.Decoder(Citation)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def compact(raw: msgspec.Raw | bytes) -> bytes:
    """Remove white space from JSON, so that streamed and whole replies are equal."""
    return compact_json(raw)


def read_usage(usage: WireUsage | PlainUsage) -> Usage:
    """Normalise the counts: the counted tokens, or the billed ones if there are no others."""
    counts = usage.tokens or usage.billed_units or Counts()
    return normalise_usage(
        input=_to_int(counts.input_tokens),
        output=_to_int(counts.output_tokens),
        thinking=_to_int(counts.reasoning_tokens),
        cached=_to_int(usage.cached_tokens),
    )


def _to_int(count: float | None) -> int | None:
    return None if count is None else int(count)


# --- stop reasons and errors ------------------------------------------------------------------------------------------

_STOPS: dict[str, StopKind] = {
    "complete": "stop",
    "stop_sequence": "stop",
    "user_cancel": "stop",
    "max_tokens": "length",
    "error_limit": "length",
    "tool_call": "tool_calls",
    "error_toxic": "content_filter",
    "error": "error",
    "timeout": "error",
}


def map_stop_reason(raw: str) -> StopKind:
    """Return our name for a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status."""
    return build_error(status, headers, parse_or_none(body), body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from an object with a message, or from a sentence."""
    message: Any = error
    code: str | None = None
    if isinstance(error, dict):
        message = error.get("message") or error.get("error") or error.get("detail")
        code = next((str(error[name]) for name in ("error_type", "code") if error.get(name)), None)
        if isinstance(message, dict):
            return build_error(status, headers, message, body, target)
    return from_status(
        status,
        provider=target.provider.name,
        message=message if isinstance(message, str) else "",
        code=code,
        request_id=headers.get("x-debug-trace-id") or headers.get("x-request-id"),
        body=body,
    )
