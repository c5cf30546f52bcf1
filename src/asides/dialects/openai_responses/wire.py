"""The parts of a Responses reply that are read, as private structs: lenient, minimal, made for the hot path.

Items stay raw until they are whole, since they have to go back as they came. Not here: what the fields mean.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")

# Events that say nothing that the items do not say again.
IGNORED_EVENTS = frozenset({
    "response.created", "response.in_progress", "response.queued", "response.content_part.added",
    "response.reasoning_summary_part.added", "response.output_text.annotation.added", "response.reasoning_part.added",
    "response.reasoning_part.done", "keepalive", "ping", "response.metadata", "response.heartbeat",
})  # fmt: skip
TERMINAL_EVENTS = frozenset({
    "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done",
})  # fmt: skip


class StreamEvent(msgspec.Struct, gc=False):
    """One event of a stream. One struct for all kinds, since every event is read by it before its kind is known."""

    type: str | None = None
    delta: str | None = None
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: Any = None
    input: Any = None
    item: msgspec.Raw = NOTHING
    part: msgspec.Raw = NOTHING
    response: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING
    object: Any = None
    output: msgspec.Raw = NOTHING


class Part(msgspec.Struct):
    """A part of a message, of a summary, or of raw reasoning; the text may be of any type in a proxy's hands."""

    type: str | None = None
    text: Any = None
    refusal: Any = None


class Item(msgspec.Struct):
    """What is read of an output item, whatever its type."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    status: str | None = None
    arguments: Any = None
    input: Any = None
    content: list[Part | str | None] | str | None = None
    summary: list[Part | str | None] | str | None = None
    encrypted_content: str | None = None


class TokenDetails(msgspec.Struct):
    """The two details that are read."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Counts, also under the names that chat has for them, which some clones keep."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class Incomplete(msgspec.Struct):
    """Why a response is not complete."""

    reason: str | None = None


class Response(msgspec.Struct):
    """The response object: a whole body, or what the first and the last event of a stream carry."""

    id: str | None = None
    model: str | None = None
    object: Any = None
    status: str | None = None
    store: Any = None
    output: list[msgspec.Raw] | None = None
    usage: WireUsage | None = None
    incomplete_details: Incomplete | None = None
    error: Any = None
    reasoning: Any = None
    """What was asked, as an object; one clone puts the thinking here, as text."""
    output_text: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None


EVENTS = msgspec.json.Decoder(StreamEvent)
ITEMS = msgspec.json.Decoder(Item)
PARTS = msgspec.json.Decoder(Part)
RESPONSES = msgspec.json.Decoder(Response)


def usage_of(usage: WireUsage, excludes_thinking: bool) -> Usage:
    """The counts in our one meaning of them."""
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return normalise_usage(
        input=usage.prompt_tokens if usage.input_tokens is None else usage.input_tokens,
        output=usage.completion_tokens if usage.output_tokens is None else usage.output_tokens,
        thinking=None if outputs is None else outputs.reasoning_tokens,
        cached=None if inputs is None else inputs.cached_tokens,
        total=usage.total_tokens,
        excludes_thinking=excludes_thinking,
    )


def texts_of(parts: list[Part | str | None] | str | None, *kinds: str) -> list[tuple[int, str]]:
    """The texts of the parts of these types, each with its place; a part without a type counts, as does a string."""
    if isinstance(parts, str):
        return [(0, parts)]
    found: list[tuple[int, str]] = []
    for place, part in enumerate(parts or ()):
        if isinstance(part, str):
            found.append((place, part))
        elif part is not None and (part.type is None or part.type in kinds) and isinstance(part.text, str):
            found.append((place, part.text))
    return found


def as_json_text(value: Any) -> str:
    """Arguments as the text that they are on this wire; a proxy may have parsed them."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
