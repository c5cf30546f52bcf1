"""Private structs for the fields that are read from chat completions; also usage, stop reasons and errors.

The structs are lenient, minimal and made for the hot path. The struct of a delta is built for each set of fields: it
names every known field and refuses others. So an unknown field is noticed (`find_unknown_field`) and learned, at no
cost to other streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from asides.providers.provider import THINKING_FIELDS, Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ProviderError
from asides.values.events import StopKind
from asides.values.usage import Usage, normalise_usage, read_cost
from asides.wire.lenient import parse_or_none

NOTHING = msgspec.Raw(b"null")

ANALYSIS = "analysis"
"""The `channel` (gpt-oss) of a message whose content is thinking."""
COMMENTARY = "commentary"
"""The `channel` (gpt-oss) or `phase` of a message whose content is commentary; and the field in which our server half
writes it."""

# Fields of a message that do not affect the answer, or are read elsewhere. As seen on the wire up to 2026-11.
IGNORED_FIELDS = frozenset({
    "role", "name", "annotations", "audio", "obfuscation", "token_id", "logprobs", "padding", "citations",
    "provider_metadata", "provider_specific_fields", "reasoning_encrypted", "reasoning_logprobs", "tool_call_id",
    "index", "metadata",
    "graph_data", "llm_data", "image_data", "translation_data", "web_search_data", "object", "prefix", "stop_reason",
})  # fmt: skip


class Function(msgspec.Struct):
    """The called function; arguments are JSON text, or an object from some servers."""

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
    """The only details that are read."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_creation_tokens: int | None = None


class ServerToolUse(msgspec.Struct):
    """Requests of tools that one router ran, by its names for them."""

    web_search_requests: int | None = None


class WireUsage(msgspec.Struct):
    """Every known name of each count."""

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
    cache_creation_input_tokens: int | None = None
    cost: Any = None
    estimated_cost: Any = None
    cost_in_usd_ticks: Any = None
    is_byok: Any = None
    cost_details: Any = None
    num_server_side_tools_used: int | None = None
    num_search_queries: int | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: Any = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class UsageHolder(msgspec.Struct):
    """The object in which one host puts its usage."""

    usage: WireUsage | None = None


class BaseResponse(msgspec.Struct):
    """The object in which one host reports errors inside successful responses."""

    status_code: int = 0
    status_msg: str = ""


Delta = TypeVar("Delta")


class Choice(msgspec.Struct, Generic[Delta]):
    """One of possibly several answers: a message, or a piece of one."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    messages: Any = None
    finish_reason: str | None = None
    usage: WireUsage | None = None
    error: Any = None


class Chunk(msgspec.Struct, Generic[Delta]):
    """A whole response, or one chunk of a stream: both have the same form."""

    id: Any = None
    model: Any = None
    choices: list[Choice[Delta]] | None = None
    usage: WireUsage | None = None
    service_tier: Any = None
    x_groq: UsageHolder | None = None
    error: Any = None
    base_resp: BaseResponse | None = None
    message: Any = None
    detail: Any = None
    code: Any = None
    type: Any = None
    object: Any = None


def read_usage(usage: WireUsage, excludes_thinking: bool, tier: Any = None) -> Usage:
    """Normalise the counts. `tier`: the tier of the service, which is beside them."""
    inputs, outputs = usage.prompt_tokens_details or _NO_DETAILS, usage.completion_tokens_details or _NO_DETAILS
    cached = (inputs.cached_tokens, usage.cached_tokens, usage.prompt_cache_hit_tokens, usage.num_cached_tokens)
    return normalise_usage(
        input=usage.input_tokens if usage.prompt_tokens is None else usage.prompt_tokens,
        output=usage.output_tokens if usage.completion_tokens is None else usage.completion_tokens,
        thinking=_find_first(outputs.reasoning_tokens, usage.reasoning_tokens),
        cached=_find_first(*cached, usage.cache_read_input_tokens),
        total=usage.total_tokens,
        excludes_thinking=excludes_thinking,
        cache_written=_find_first(
            inputs.cache_write_tokens, inputs.cache_creation_tokens, usage.cache_creation_input_tokens
        ),
        cost=read_reported_cost(usage),
        tool_requests=_find_first(
            usage.num_server_side_tools_used,
            usage.num_search_queries,
            None if usage.server_tool_use is None else usage.server_tool_use.web_search_requests,
        ),
        tiers=(tier, usage.service_tier),
    )


_NO_DETAILS = TokenDetails()


def _find_first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def read_reported_cost(usage: Any) -> Decimal | None:
    """Read the cost that the host reports beside the counts, here and in Responses."""
    cost = usage.estimated_cost if usage.cost is None else usage.cost
    if cost is None and usage.cost_in_usd_ticks is None:
        return None
    upstream = usage.cost_details.get("upstream_inference_cost") if isinstance(usage.cost_details, dict) else None
    return read_cost(cost, ticks=usage.cost_in_usd_ticks, upstream=upstream if usage.is_byok is True else None)


# --- a struct for each set of fields ----------------------------------------------------------------------------------

_THINKING_NAME = re.compile(r"reason|think|thought|(?:^|_)cot(?:$|_)", re.IGNORECASE)
# Names that mention thinking but hold no text: a seal, which must never be shown, a flag or a number.
_NO_TEXT_NAME = re.compile(
    r"opaque|signature|encrypt|redact|(?:^|_)(?:is|has)_"
    r"|(?:^|_)(?:ids?|type|effort|tokens?|time|duration|seconds|ms|format|status|mode|level|budget|count|index|enabled)$",
    re.IGNORECASE,
)


# Names that a struct cannot have, and the most that a reader learns: a server may make up a name for every chunk.
_ODD_NAME = re.compile(r'[\\"\x00-\x1f]|^$')
_MAX_IGNORED = 64
_EVERYTHING = "*"
"""Among the ignored fields: every unknown field is ignored."""


class ChunkReader:
    """Reads messages with these thinking fields: `decode` for a chunk, `thinking_values` for a message's values."""

    __slots__ = ("decode", "heuristics", "ignored", "no_thinking", "thinking_fields", "thinking_values")

    def __init__(self, thinking_fields: tuple[str, ...], ignored: frozenset[str], heuristics: bool) -> None:
        self.thinking_fields = thinking_fields
        self.ignored = ignored
        self.heuristics = heuristics
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(_build_chunk_type(thinking_fields, ignored)).decode
        names = [f"thought_{place}" for place in range(len(thinking_fields))]
        get = attrgetter(*names)
        self.thinking_values: Callable[[Any], tuple[Any, ...]] = get if len(names) > 1 else lambda delta: (get(delta),)
        self.no_thinking = (None,) * len(names)

    def learn(self, name: str) -> tuple[ChunkReader, bool]:
        """Return a reader that knows one more field, and whether it reads that field as thinking."""
        if len(self.ignored) > _MAX_IGNORED or len(self.thinking_fields) > _MAX_IGNORED or _ODD_NAME.search(name):
            name = _EVERYTHING
        elif self.heuristics and _THINKING_NAME.search(name) and not _NO_TEXT_NAME.search(name):
            return _make_reader((*self.thinking_fields, name), self.ignored, True), True
        return _make_reader(self.thinking_fields, self.ignored | {name}, self.heuristics), False


# Limited, since callers of a relay may name fields.
@lru_cache(maxsize=64)
def find_reader(thinking_fields: tuple[str, ...], heuristics: bool) -> ChunkReader:
    """Return the reader for a provider's row. If a user named thinking fields, only those are read."""
    is_default = thinking_fields == THINKING_FIELDS
    return _make_reader(
        thinking_fields, frozenset(THINKING_FIELDS) - frozenset(thinking_fields), heuristics and is_default
    )


# Limited, since field names come from the wire.
_make_reader = lru_cache(maxsize=256)(ChunkReader)


def _build_chunk_type(thinking_fields: tuple[str, ...], ignored: frozenset[str]) -> Any:
    """Build the type of a chunk. The struct of its deltas is made at run time: rows and servers name the fields."""
    read: list[tuple[str, Any, Any]] = [
        ("content", Any, None),
        ("tool_calls", list[ToolCallPart] | None, None),
        ("refusal", Any, None),
        ("reasoning_details", Any, None),
        ("function_call", Function | None, None),
        ("extra_content", msgspec.Raw, NOTHING),
        ("thought_signature", Any, None),
        ("reasoning_opaque", Any, None),
        (COMMENTARY, Any, None),
        ("phase", Any, None),
        ("channel", Any, None),
    ]
    names = {f"thought_{place}": name for place, name in enumerate(thinking_fields)}
    fields: list[tuple[str, Any, Any]] = [(name, Any, None) for name in names]
    fields += [field for field in read if field[0] not in thinking_fields]
    known = {field[0] for field in read} | set(thinking_fields)
    for place, name in enumerate(sorted((IGNORED_FIELDS | ignored) - known)):
        names[f"skipped_{place}"] = name
        fields.append((f"skipped_{place}", msgspec.Raw, NOTHING))
    knows_all = _EVERYTHING not in ignored
    delta: Any = msgspec.defstruct("Delta", fields, rename=names, forbid_unknown_fields=knows_all, gc=False)
    return Chunk[delta]


# A name may be empty, or hold a line end.
_UNKNOWN = re.compile(
    r"Object contains unknown field `(.*)` - at `\$\.choices\[(?:\d+|\.\.\.)\]\.(?:delta|message)`", re.DOTALL
)


def find_unknown_field(problem: msgspec.ValidationError) -> str | None:
    """Return the unknown field of a message that made decoding fail; None when another problem did."""
    found = _UNKNOWN.fullmatch(str(problem))
    return found.group(1) if found else None


def is_nothing(raw: msgspec.Raw) -> bool:
    """Whether a raw field is absent, null or empty."""
    return raw is NOTHING or bytes(raw) in (b"null", b"", b"{}")


# --- seals ------------------------------------------------------------------------------------------------------------


class Signed(msgspec.Struct):
    """`extra_content`, as the only host that signs calls of this dialect writes it."""

    google: dict[str, Any] = {}


def read_signature(extra_content: bytes) -> str | None:
    """Return the thought signature inside an `extra_content` object; None when it has none."""
    try:
        value = msgspec.json.decode(extra_content, type=Signed).google.get("thought_signature")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) else None


# --- stop reasons and errors ------------------------------------------------------------------------------------------

# Our stop reasons by theirs, as seen on the wire and documented by the hosts up to 2026-11.
_STOPS: dict[str, StopKind] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
}


_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")


def map_stop_reason(raw: str) -> StopKind:
    """Return our name for a finish reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status, whatever its body looks like."""
    document = parse_or_none(body)
    if isinstance(document, list) and document:
        document = document[0]
    error: Any = document
    if isinstance(document, dict):
        error = document.get("error") or document.get("errors") or document
        if isinstance(error, str):
            error = {"message": error, "code": document.get("code")}
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from an error object in any of its forms, or from a sentence."""
    message, code = _read_message_and_code(error)
    if status < 400 and isinstance(error, dict):
        inner = next(
            (error.get(name) for name in ("status", "status_code", "code") if isinstance(error.get(name), int)), None
        )
        status = inner if inner is not None and 400 <= inner < 600 else status
    return from_status(
        status,
        provider=target.provider.name,
        message=message,
        code=code,
        request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        body=body,
    )


def _read_message_and_code(error: Any) -> tuple[str, str | None]:
    if isinstance(error, list) and error:
        return _read_message_and_code(error[0])
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else "", None)
    message = next(
        (error[name] for name in ("message", "detail", "error", "msg", "status_msg", "title") if error.get(name)), ""
    )
    if isinstance(message, list):
        message = "; ".join(str(item.get("msg", item)) if isinstance(item, dict) else str(item) for item in message)
    elif isinstance(message, dict):
        return _read_message_and_code(message)
    code = next((error[name] for name in ("code", "type", "status") if error.get(name) not in (None, "")), None)
    if isinstance(blocked := error.get("misalignment"), dict):
        # The provider's explanation of the block, and how to continue (openai 3.51, 2026-11-18).
        steer = blocked.get("steer")
        more = (blocked.get("detailed_explanation"), steer.get("message") if isinstance(steer, dict) else None)
        message = " ".join([str(message), *(text for text in more if isinstance(text, str) and text)])
    return str(message), None if code is None else str(code)
