"""Private structs for the fields that are read from Responses replies; also usage, stop reasons and errors.

The structs are lenient, minimal and made for the hot path. Items stay raw until they are complete, since they go back
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from asides.dialects.openai_chat.wire import build_error, read_reported_cost
from asides.dialects.openai_chat.wire import decode_error as decode_chat_error
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.events import Event, StopKind, StopReason, Warned
from asides.values.notices import Notice
from asides.values.usage import Usage, normalise_usage
from asides.wire.lenient import read_thought_text, to_json_text

NOTHING = msgspec.Raw(b"null")

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "top_logprobs": "top_logprobs"}
"""Our sampling settings and their names in a request."""

# Events whose content comes again with the items.
IGNORED_EVENTS = frozenset({
    "response.created", "response.in_progress", "response.queued", "response.content_part.added",
    "response.reasoning_summary_part.added", "response.output_text.annotation.added", "response.reasoning_part.added",
    "response.reasoning_part.done", "keepalive", "ping", "response.metadata", "response.heartbeat",
})  # fmt: skip
TERMINAL_EVENTS = frozenset({
    "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done",
})  # fmt: skip


class StreamEvent(msgspec.Struct, gc=False):
    """One event of a stream. One struct for all types, since the type is known only after reading."""

    # In the order of the wire, which makes decoding faster.
    type: str | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    delta: str | None = None
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
    """A part of a message, of a summary, or of raw reasoning, that comes alone; proxies may change its type."""

    type: str | None = None
    text: Any = None
    refusal: Any = None


class Item(msgspec.Struct):
    """The fields that are read from an output item of any type."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    status: str | None = None
    arguments: Any = None
    input: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: str | None = None


class Entry:
    """An item as it came: its JSON and all of its fields."""

    __slots__ = ("fields", "raw")

    def __init__(self, raw: bytes, fields: dict[str, Any]) -> None:
        self.raw = raw
        self.fields = fields

    @property
    def text(self) -> str:
        """The item as JSON text, byte for byte."""
        return self.raw.decode()


class TokenDetails(msgspec.Struct):
    """The only details that are read."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class WebSearchUse(msgspec.Struct):
    """The searches of a response."""

    num_requests: int | None = None


class ToolUse(msgspec.Struct):
    """What tools that the provider ran took, beside the tokens."""

    web_search: WebSearchUse | None = None


class WireUsage(msgspec.Struct):
    """Counts, also under their names in chat, which some servers use."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: Any = None
    estimated_cost: Any = None
    cost_in_usd_ticks: Any = None
    is_byok: Any = None
    cost_details: Any = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class Incomplete(msgspec.Struct):
    """The reason why a response is incomplete."""

    reason: str | None = None


class Response(msgspec.Struct):
    """The response object: a whole body, or a field of the first and the last event of a stream."""

    id: str | None = None
    model: str | None = None
    object: Any = None
    status: str | None = None
    store: Any = None
    tools: Any = None
    """The tools of the request, which many servers repeat."""
    output: list[msgspec.Raw] | None = None
    usage: WireUsage | None = None
    tool_usage: ToolUse | None = None
    service_tier: Any = None
    incomplete_details: Incomplete | None = None
    error: Any = None
    reasoning: Any = None
    """The request's setting, as an object; one server puts the thinking here, as text."""
    output_text: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None
    input_transformations: Any = None


EVENTS = msgspec.json.Decoder(StreamEvent)
ITEMS = msgspec.json.Decoder(Item)
ANY = msgspec.json.Decoder(Any)
PARTS = msgspec.json.Decoder(Part)
RESPONSES = msgspec.json.Decoder(Response)


def read_usage(usage: WireUsage, excludes_thinking: bool, response: Response | None = None) -> Usage:
    """Normalise the counts, and what else the response says about its price."""
    searches = None if response is None or response.tool_usage is None else response.tool_usage.web_search
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return normalise_usage(
        input=usage.prompt_tokens if usage.input_tokens is None else usage.input_tokens,
        output=usage.completion_tokens if usage.output_tokens is None else usage.output_tokens,
        thinking=None if outputs is None else outputs.reasoning_tokens,
        cached=None if inputs is None else inputs.cached_tokens,
        total=usage.total_tokens,
        excludes_thinking=excludes_thinking,
        # The types require the field, so servers without cache writes send 0 too.
        cache_written=None if inputs is None else inputs.cache_write_tokens or None,
        cost=read_reported_cost(usage),
        tool_requests=None if searches is None else searches.num_requests,
        tiers=() if response is None else (response.service_tier,),
    )


def read_reasoning(item: Item) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the summary and the raw text of a reasoning item, as (position, text) of each part.

    All of such an item is thinking, whatever the types of its parts. Content that is not marked as raw is a summary.
    """
    summary = _find_thoughts(item.summary, lambda _: True)
    if item.content is None:
        return summary, []
    raw = _find_thoughts(item.content, lambda kind: kind in _RAW_TYPES)
    if not summary:
        summary = _find_thoughts(item.content, lambda kind: kind not in _RAW_TYPES)
    return summary, raw


_RAW_TYPES = (None, "reasoning_text", "text")


def _find_thoughts(value: Any, is_wanted: Callable[[str | None], bool]) -> list[tuple[int, str]]:
    parts = value if isinstance(value, list) else [value]
    found: list[tuple[int, str]] = []
    for place, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if is_wanted(kind if isinstance(kind, str) else None) and (text := read_thought_text(part)):
            found.append((place, text))
    return found


def read_message(item: Item, events: list[Event]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the texts and the refusals of a message, as (position, text) of each part; warn about other parts."""
    texts: list[tuple[int, str]] = []
    refusals: list[tuple[int, str]] = []
    for place, part in enumerate(item.content if isinstance(item.content, list) else [item.content]):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if kind == "refusal":
            refusal = part.get("refusal") if isinstance(part, dict) else None
            refusals.append((place, refusal if isinstance(refusal, str) else ""))
        elif kind not in ("output_text", "text", None):
            _warn(events, "unknown_content_part", f"a content part of type {kind!r} is only in metadata['raw']")
        elif isinstance(text, str):
            texts.append((place, text))
        elif text is not None or not isinstance(part, (dict, type(None))):
            odd = part if text is None else text
            _warn(events, "malformed_field", f"a text of a message is {type(odd).__name__} and was left out")
    return texts, refusals


def _warn(events: list[Event], code: str, detail: str) -> None:
    events.append(Warned(Notice(code, detail)))


def read_whole_text(kind: str, item: Item) -> str:
    """Return all text of a finished item: of a message, of reasoning, or the arguments of a call."""
    match kind:
        case "message":
            texts, refusals = read_message(item, [])
            return "".join(text for _, text in texts or refusals)
        case "reasoning":
            summary, raw = read_reasoning(item)
            return "".join(text for _, text in summary or raw)
        case "function_call":
            return to_json_text(item.arguments)
        case "custom_tool_call":
            return to_json_text(item.input)
        case _:
            return ""


# --- stop reasons and errors ------------------------------------------------------------------------------------------

_INCOMPLETE: dict[str, StopKind] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "max_prompt_tokens": "length",
    # openai 3.51, 2026-11-18. After steering, the server makes another response.
    "max_messages": "length",
    "steered": "pause",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
}
FAILED = ("failed", "cancelled", "expired")


def read_stop(response: Response, *, has_calls: bool) -> StopReason:
    """Return the stop reason. This wire has none for tool calls: the calls themselves decide."""
    match response.status:
        case "completed" | None:
            return StopReason("tool_calls" if has_calls else "stop", response.status)
        case "incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details is not None else None
            return StopReason(_INCOMPLETE.get(reason or "", "unknown"), reason or "incomplete")
        case other:
            return StopReason("unknown", other)


def find_lack(response: Response, kind: str | None) -> str | None:
    """Return what a response lacks that says nothing of an error or of more to come, and holds nothing at all; else
    None. `kind` is the type of its event.
    """
    # A schema may leave both out: a response that was counted, or has thinking, is one.
    if response.status is None and (response.usage is not None or isinstance(response.reasoning, str)):
        return None
    if response.output_text or response.error or response.status not in (None, "completed"):
        return None
    if response.output is None or (response.status is None and kind is None and not response.output):
        return "output" if response.status is not None else "status" if response.output == [] else "output or status"
    return None


def find_failure(response: Response, payload: bytes, target: Target) -> ProviderError | None:
    """Return the error of a response object; None when it has not failed."""
    if response.error:
        return build_inner_error(response.error, payload, target)
    if response.status in FAILED:
        error = {"message": f"the response ended as {response.status}", "code": response.status}
        return build_inner_error(error, payload, target)
    return None


def build_inner_error(error: Any, payload: bytes, target: Target) -> ProviderError:
    """Build an error from the fields of an event or a response object, or from the object inside them."""
    if isinstance(error, Mapping):
        inner = error.get("error")
        error = inner or error
    if isinstance(error, Mapping) and error.get("type") == "error" and error.get("code") is None:
        error = {name: value for name, value in error.items() if name != "type"}
    return build_error(200, {}, error, payload, target)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status: its body is as in chat, or a failed response object."""
    try:
        response = msgspec.json.decode(body, type=Response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        response = None
    if response is not None and response.object == "response" and isinstance(response.error, Mapping):
        return build_error(status, headers, response.error, body, target)
    return decode_chat_error(status, headers, body, target)
