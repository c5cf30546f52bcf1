"""The parts of a chat completion that are read, as private structs: lenient, minimal, made for the hot path.

A delta is made to measure: it names every field known on it and refuses others, so that an unknown one is noticed at no
cost to the streams that have none (`unknown_field`), and learnt. Not here: what the fields mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from asides.providers.provider import THINKING_FIELDS
from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")

# Fields of a message that say nothing about the answer, or are read elsewhere. As seen on the wire up to 2026-11.
IGNORED_FIELDS = frozenset({
    "role", "name", "annotations", "audio", "obfuscation", "channel", "token_id", "logprobs", "padding", "citations",
    "provider_metadata", "provider_specific_fields", "reasoning_encrypted", "reasoning_logprobs", "tool_call_id",
    "graph_data", "llm_data", "image_data", "translation_data", "web_search_data", "object", "prefix", "stop_reason",
})  # fmt: skip


class Function(msgspec.Struct):
    """The call itself; arguments are JSON text, or an object where a server spares itself the quotes."""

    name: str | None = None
    arguments: Any = None
    input: Any = None


class ToolCallPart(msgspec.Struct):
    """A call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    custom: Function | None = None
    extra_content: msgspec.Raw = NOTHING


class TokenDetails(msgspec.Struct):
    """The two details that are read."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Every spelling of a count that was seen."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    num_cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class UsageHolder(msgspec.Struct):
    """Where one host hides its usage."""

    usage: WireUsage | None = None


class BaseResponse(msgspec.Struct):
    """One host's way to tell an error in a good response."""

    status_code: int = 0
    status_msg: str = ""


def usage_of(usage: WireUsage, excludes_thinking: bool) -> Usage:
    """The counts in our one meaning of them."""
    inputs, outputs = usage.prompt_tokens_details, usage.completion_tokens_details
    thinking = usage.reasoning_tokens
    if outputs is not None and outputs.reasoning_tokens is not None:
        thinking = outputs.reasoning_tokens
    cached = inputs.cached_tokens if inputs is not None else None
    if cached is None:
        told = (
            usage.cached_tokens,
            usage.prompt_cache_hit_tokens,
            usage.num_cached_tokens,
            usage.cache_read_input_tokens,
        )
        cached = next((count for count in told if count is not None), None)
    return normalise_usage(
        input=usage.input_tokens if usage.prompt_tokens is None else usage.prompt_tokens,
        output=usage.output_tokens if usage.completion_tokens is None else usage.completion_tokens,
        thinking=thinking,
        cached=cached,
        total=usage.total_tokens,
        excludes_thinking=excludes_thinking,
    )


# --- a type made to measure ------------------------------------------------------------------------------------------

_THINKING_NAME = re.compile(r"reason|think|thought|(?:^|_)cot(?:$|_)", re.IGNORECASE)


# Named after thinking, and yet something else: a seal, which must never be shown, a mark or a figure.
_NO_TEXT_NAME = re.compile(
    r"opaque|signature|encrypt|redact|(?:^|_)(?:is|has)_"
    r"|(?:^|_)(?:ids?|type|effort|tokens?|time|duration|seconds|ms|format|status|mode|level|budget|count|index|enabled)$",
    re.IGNORECASE,
)


class ResponseReader:
    """How messages with these thinking fields are read: a decoder, and the fields' values of a message as a tuple."""

    __slots__ = ("decode", "heuristics", "ignored", "no_thoughts", "thinking_fields", "thoughts")

    def __init__(self, thinking_fields: tuple[str, ...], ignored: frozenset[str], heuristics: bool) -> None:
        self.thinking_fields = thinking_fields
        self.ignored = ignored
        self.heuristics = heuristics
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(_chunk_type(thinking_fields, ignored)).decode
        names = [f"thought_{place}" for place in range(len(thinking_fields))]
        get = attrgetter(*names)
        self.thoughts: Callable[[Any], tuple[Any, ...]] = get if len(names) > 1 else lambda delta: (get(delta),)
        self.no_thoughts = (None,) * len(names)

    def learnt(self, name: str) -> tuple[ResponseReader, bool]:
        """The reading that knows one field more, and whether that field is taken for thinking."""
        if self.heuristics and _THINKING_NAME.search(name) and not _NO_TEXT_NAME.search(name):
            return _reading((*self.thinking_fields, name), self.ignored, True), True
        return _reading(self.thinking_fields, self.ignored | {name}, self.heuristics), False


@cache
def reading_for(thinking_fields: tuple[str, ...], heuristics: bool) -> ResponseReader:
    """The reading that a provider's row asks for. A field that a person named is the only one read."""
    usual = thinking_fields == THINKING_FIELDS
    return _reading(thinking_fields, frozenset(THINKING_FIELDS) - frozenset(thinking_fields), heuristics and usual)


# Bounded, since field names come from the wire.
_reading = lru_cache(maxsize=256)(ResponseReader)


def _chunk_type(thinking_fields: tuple[str, ...], ignored: frozenset[str]) -> type:
    read: list[tuple[str, Any, Any]] = [
        ("content", Any, None),
        ("tool_calls", list[ToolCallPart] | None, None),
        ("refusal", Any, None),
        ("reasoning_details", list[Any] | None, None),
        ("function_call", Function | None, None),
        ("extra_content", msgspec.Raw, NOTHING),
        ("thought_signature", Any, None),
        ("reasoning_opaque", Any, None),
    ]
    names = {f"thought_{place}": name for place, name in enumerate(thinking_fields)}
    fields: list[tuple[str, Any, Any]] = [(name, Any, None) for name in names]
    fields += [field for field in read if field[0] not in thinking_fields]
    known = {field[0] for field in read} | set(thinking_fields)
    for place, name in enumerate(sorted((IGNORED_FIELDS | ignored) - known)):
        names[f"skipped_{place}"] = name
        fields.append((f"skipped_{place}", msgspec.Raw, NOTHING))
    delta = msgspec.defstruct("Delta", fields, rename=names, forbid_unknown_fields=True, gc=False)
    choice = msgspec.defstruct(
        "Choice",
        [
            ("index", int | None, None),
            ("delta", delta | None, None),
            ("message", delta | None, None),
            ("finish_reason", str | None, None),
            ("usage", WireUsage | None, None),
            ("error", Any, None),
        ],
    )
    chunk_fields: list[tuple[str, Any, Any]] = [
        ("id", Any, None),
        ("model", Any, None),
        ("choices", list[choice] | None, None),  # type: ignore[valid-type]
        ("usage", WireUsage | None, None),
        ("x_groq", UsageHolder | None, None),
        ("error", Any, None),
        ("base_resp", BaseResponse | None, None),
        ("message", Any, None),
        ("detail", Any, None),
        ("code", Any, None),
        ("type", Any, None),
        ("object", Any, None),
    ]
    return msgspec.defstruct("Chunk", chunk_fields)


_UNKNOWN = re.compile(r"Object contains unknown field `(.+)` - at `\$\.choices\[(?:\d+|\.\.\.)\]\.(?:delta|message)`")


def unknown_field(problem: msgspec.ValidationError) -> str | None:
    """The field of a message that made decoding fail because nobody knew it."""
    found = _UNKNOWN.fullmatch(str(problem))
    return found.group(1) if found else None


def is_nothing(raw: msgspec.Raw) -> bool:
    """Whether a raw field was absent, null or empty."""
    return raw is NOTHING or bytes(raw) in (b"null", b"", b"{}")


class _Signed(msgspec.Struct):
    google: dict[str, Any] = {}


def read_signature(extra_content: bytes) -> str | None:
    """The thought signature inside an `extra_content` object."""
    try:
        value = msgspec.json.decode(extra_content, type=_Signed).google.get("thought_signature")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) else None
