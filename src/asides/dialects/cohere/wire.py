"""Private structs for the fields that are read from v2 chat responses; also usage, stop reasons and errors.

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

SAMPLING = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logprobs": "logprobs",
    "seed": "seed",
}
"""Our sampling settings and their names in a request."""


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


class Message(msgspec.Struct):
    """A whole message. Of an item of an unknown type, the document has the other fields."""

    content: list[Content] | str | None = None
    tool_plan: str | None = None
    tool_calls: list[Call] | None = None
    citations: list[msgspec.Raw] | None = None


class Document(msgspec.Struct):
    """One JSON document of a body: an event of a stream, a whole response, or an error."""

    type: str | None = None
    id: str | None = None
    index: int = 0
    delta: Delta | None = None
    message: Message | str | None = None
    """The whole message; in an error, a sentence."""
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


class Citation(msgspec.Struct):
    """The position of a citation."""

    content_index: int | None = None


DOCUMENTS = msgspec.json.Decoder(Document)
CITATIONS = msgspec.json.Decoder(Citation)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


def read_usage(usage: WireUsage) -> Usage:
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
