"""Write replies (`MessagesWriter`) and errors (`write_error`) as a server of Messages does.

A whole response is built from the same blocks as a stream.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, CONTAINER, REDACTED, SIGNATURE, TOOLSET
from asides.dialects.anthropic.wire import STATUSES
from asides.dialects.server_half import ContentEvent, ReplyWriter, has_all_arguments, name_stop
from asides.values.events import (
    PartArrived,
    RefusalDelta,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.parts import ServerTool, UnknownPart
from asides.values.usage import Usage
from asides.wire.lenient import read_part_json

Wire: TypeAlias = dict[str, Any]
BlockEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | ThoughtSealed | PartArrived

_ERROR_TYPES = {status: kind for kind, status in STATUSES.items() if kind.endswith(("_error", "_large"))}
# The same request would get these again.
_FINAL = frozenset({400, 401, 403, 404, 413})
_KNOWN_STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
        "compaction",
    }
)
_STOP_REASONS: dict[StopKind, str] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "pause": "pause_turn",
}
# Every client may count on these two, at the beginning of a stream too.
_REQUIRED_COUNTS: Wire = {"input_tokens": 0, "output_tokens": 0}
_EMPTY_TEXT: Wire = {"type": "text", "text": ""}
_EMPTY_THINKING: Wire = {"type": "thinking", "thinking": "", "signature": ""}


def write_error_headers(status: int, kind: str | None = None) -> dict[str, str]:  # noqa: ARG001 - the status decides
    """Return the headers of an error: Anthropic's own agent retries refusals unless a header forbids it."""
    return {"x-should-retry": "false"} if status in _FINAL else {}


def write_error(status: int, message: str, kind: str | None = None, *, details: Wire | None = None) -> bytes:
    """Write an error body; clients match on `kind`, and on the error code in `details`."""
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    error: Wire = {"type": kind or _ERROR_TYPES.get(status, fallback), "message": message}
    if details is not None:
        error["details"] = details
    return msgspec.json.encode({"type": "error", "error": error})


class MessagesWriter(ReplyWriter):
    """Events of one reply in, a message out, as a stream of events or whole.

    A block of the reply is a block of the message. A block of a stream ends before the next one begins: text that
    returns to an earlier block begins another, and while the arguments of a call are not complete, other blocks wait.
    Images and files of the model, and seals of other dialects, are not written.
    """

    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    id_prefix = "msg_"

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage, stream=stream)
        self._blocks = _Blocks(stream=stream)
        self._output: _Stream | _Whole = (_Stream if stream else _Whole)()
        self._refusal: list[str] = []
        self._held: list[ContentEvent] = []
        """The events that wait for the arguments of a call."""
        self._container: Wire | None = None
        self._has_calls = False
        self._begun = False

    def _write_event(self, event: ContentEvent) -> bytes:
        if isinstance(event, ThoughtSealed) and event.seal.kind == CONTAINER and event.seal.entry:
            self._container = {"id": msgspec.json.decode(event.seal.entry)}
            return b""
        if isinstance(event, RefusalDelta):
            self._refusal.append(event.text)
            return b""
        blocks = self._blocks
        if not blocks.is_call(event.block) and (self._held or blocks.has_unfinished_call()):
            self._held.append(event)
            return b""
        return self._write_now(event)

    def _write_now(self, event: BlockEvent) -> bytes:
        self._has_calls = self._has_calls or isinstance(event, ToolCallDelta)
        return b"".join([*self._begin(), *map(self._output.add, self._blocks.write(event))])

    def _write_end(self, stop: StopReason) -> bytes:
        written = self._begin()
        # Block by block: a call whose pieces were held is complete now.
        for event in sorted(self._held, key=lambda event: event.block):
            if not isinstance(event, RefusalDelta):
                written.append(self._write_now(event))
        written += map(self._output.add, self._blocks.close())
        return b"".join([*written, self._output.end(self._encode_stop(stop), self._encode_usage())])

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        body = write_error(status, message, kind)
        return b"event: error\ndata: %b\n\n" % body if self._stream else body

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        self._blocks.reply_id = self._find_id("msg_")
        started = msgspec.structs.replace(self._started, id=self._blocks.reply_id)
        return [self._output.begin(started, self._encode_usage())]

    def _encode_usage(self) -> Wire:
        usage = self._shown_usage
        return _REQUIRED_COUNTS if usage is None else _encode_usage(usage)

    def _encode_stop(self, stop: StopReason) -> Wire:
        """Return the end of the message: the original stop reason if this dialect has it, else the nearest; the text of
        a refusal; and the container of the tools that the provider ran.
        """
        refusal = "".join(self._refusal)
        reason: str | None = stop.raw
        if reason not in _KNOWN_STOP_REASONS:
            fallback = "refusal" if refusal else "tool_use" if self._has_calls else "end_turn"
            reason = name_stop(stop, (), _STOP_REASONS, fallback)
            if stop == StopReason() and not refusal and self.request is None:
                reason = None
        end: Wire = {"stop_reason": reason, "stop_sequence": None}
        if refusal:
            end["stop_details"] = {"type": "refusal", "category": None, "explanation": refusal}
        if self._container is not None:
            end["container"] = self._container
        return end


class _Blocks:
    """Converts our events to wire events. One block is open at a time."""

    def __init__(self, *, stream: bool) -> None:
        self.reply_id = ""
        self._stream = stream
        self._indexes: dict[int, int] = {}
        """The index of each block; of one that was begun twice, the last."""
        self._count = 0
        self._open: int | None = None
        self._held: tuple[int, Wire] | None = None
        """A block that is not written yet: a call whose caller may follow, or a whole part that a later one may
        replace.
        """
        self._call: int | None = None
        """The call that is open, or held."""
        self._arguments: list[str] = []
        """Its arguments so far."""

    def is_call(self, block: int) -> bool:
        """Whether this block is the call that is open."""
        return block == self._call

    def has_unfinished_call(self) -> bool:
        """Whether the open call of a stream lacks arguments: no other block can begin before they arrive."""
        return self._stream and self._call is not None and not has_all_arguments(self._arguments)

    def write(self, event: BlockEvent) -> list[Wire]:
        match event:
            case TextDelta():
                delta = {"type": "text_delta", "text": event.text}
                return self._write_delta(event.block, _EMPTY_TEXT, delta) if event.text else []
            case ThinkingDelta():
                delta = {"type": "thinking_delta", "thinking": event.text}
                return self._write_delta(event.block, _EMPTY_THINKING, delta) if event.text else []
            case ToolCallDelta():
                return self._write_call(event)
            case ThoughtSealed():
                return self._write_seal(event)
            case PartArrived():
                return self._write_part(event)

    def close(self) -> list[Wire]:
        """End the open block."""
        written = self._write_held()
        if self._open is None:
            return written
        stop = {"type": "content_block_stop", "index": self._open}
        self._open = self._call = None
        return [*written, stop]

    def _begin(self, block: int, content: Wire) -> list[Wire]:
        """Begin a block and end the one before it."""
        closed = self.close()
        self._indexes[block] = self._open = self._count
        self._count += 1
        if content.get("type") == "tool_use":
            self._call = block
        return [*closed, {"type": "content_block_start", "index": self._open, "content_block": content}]

    def _write_held(self) -> list[Wire]:
        if self._held is None:
            return []
        block, content = self._held
        self._held = None
        return self._begin(block, content)

    def _write_delta(self, block: int, content: Wire, delta: Wire) -> list[Wire]:
        written = self._write_held()
        is_open = block in self._indexes and (not self._stream or self._indexes[block] == self._open)
        if not is_open and not content:
            return written  # the call has ended with complete arguments, and only white space can follow them
        if not is_open:
            written += self._begin(block, content)
        return [*written, {"type": "content_block_delta", "index": self._indexes[block], "delta": delta}]

    def _write_call(self, event: ToolCallDelta) -> list[Wire]:
        written: list[Wire] = []
        if event.block not in self._indexes and (self._held is None or self._held[0] != event.block):
            written = self._write_held()
            call_id = event.id or f"call_{self.reply_id}_{event.block}"
            content = {"type": "tool_use", "id": call_id, "name": event.name or "", "input": {}}
            self._held = (event.block, content)
            self._call, self._arguments = event.block, []
        if not event.arguments:
            return written
        delta = {"type": "input_json_delta", "partial_json": event.arguments}
        written += self._write_delta(event.block, {}, delta)
        if event.block == self._call:
            self._arguments.append(event.arguments)
        return written

    def _write_part(self, event: PartArrived) -> list[Wire]:
        if not isinstance(event.part, (ServerTool, UnknownPart)):
            return []  # a message has no block for images and files of the model
        written = [] if self._held is not None and self._held[0] == event.block else self._write_held()
        self._held = (event.block, read_part_json(event.part.json))
        return written

    def _write_seal(self, event: ThoughtSealed) -> list[Wire]:
        seal = event.seal
        if seal.kind == SIGNATURE:
            delta = {"type": "signature_delta", "signature": seal.value}
            return self._write_delta(event.block, _EMPTY_THINKING, delta)
        if seal.kind == REDACTED:
            return [*self._write_held(), *self._begin(event.block, {"type": "redacted_thinking", "data": seal.value})]
        if seal.entry is None:
            return []
        entry = msgspec.json.decode(seal.entry)
        if seal.kind == CITATIONS:
            deltas = [{"type": "citations_delta", "citation": citation} for citation in entry]
            return [wire for delta in deltas for wire in self._write_delta(event.block, _EMPTY_TEXT, delta)]
        name = {CALLER: "caller", TOOLSET: "toolset_name"}.get(seal.kind)
        if name is not None and self._held is not None and self._held[0] == event.block:
            self._held[1][name] = entry
        return []


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Any other than the required two is absent if it was not reported."""
    counts = dict(_REQUIRED_COUNTS)
    if usage.input is not None:
        counts["input_tokens"] = max(usage.input - (usage.cached or 0) - (usage.cache_written or 0), 0)
    if usage.cached is not None:
        counts["cache_read_input_tokens"] = usage.cached
    if usage.cache_written is not None:
        counts["cache_creation_input_tokens"] = usage.cache_written
    if usage.output is not None:
        counts["output_tokens"] = usage.output
    if usage.thinking is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.thinking}
    if usage.cache_written_hour is not None:
        minutes = max((usage.cache_written or 0) - usage.cache_written_hour, 0)
        hour = usage.cache_written_hour
        counts["cache_creation"] = {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": minutes}
    if usage.tool_requests is not None:
        # Clients require both counts. Only searches have a price.
        counts["server_tool_use"] = {"web_search_requests": usage.tool_requests, "web_fetch_requests": 0}
    if usage.tier is not None:
        counts["speed" if usage.tier == "fast" else "service_tier"] = usage.tier
    return counts


def _encode_message(started: ReplyStarted, usage: Wire) -> Wire:
    return {
        "id": started.id,
        "type": "message",
        "role": "assistant",
        "model": started.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


class _Stream:
    """Wire events as server-sent events."""

    def begin(self, started: ReplyStarted, usage: Wire) -> bytes:
        return self.add({"type": "message_start", "message": _encode_message(started, usage)})

    def add(self, event: Wire) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))

    def end(self, delta: Wire, usage: Wire) -> bytes:
        return self.add({"type": "message_delta", "delta": delta, "usage": usage}) + self.add({"type": "message_stop"})


class _Whole:
    """Wire events joined into one document."""

    def __init__(self) -> None:
        self._started = ReplyStarted()
        self._content: list[Wire] = []
        self._pieces: list[dict[str, list[str]]] = []

    def begin(self, started: ReplyStarted, usage: Wire) -> bytes:  # noqa: ARG002 - as the stream's
        self._started = started
        return b""

    def add(self, event: Wire) -> bytes:
        match event["type"]:
            case "content_block_start":
                self._content.append(dict(event["content_block"]))
                self._pieces.append({})
            case "content_block_delta":
                delta = event["delta"]
                pieces, content = self._pieces[event["index"]], self._content[event["index"]]
                if delta["type"] == "citations_delta":
                    content.setdefault("citations", []).append(delta["citation"])
                else:
                    name, value = next((name, value) for name, value in delta.items() if name != "type")
                    pieces.setdefault(name, []).append(value)
            case _:
                pass
        return b""

    def end(self, delta: Wire, usage: Wire) -> bytes:
        for content, pieces in zip(self._content, self._pieces, strict=True):
            for name, values in pieces.items():
                if name == "partial_json":
                    content["input"] = _parse_arguments("".join(values))
                else:
                    content[name] = "".join(values)
        document = {**_encode_message(self._started, usage), "content": self._content, **delta}
        return msgspec.json.encode(document)


def _parse_arguments(text: str) -> Any:
    """Parse the arguments of a call; return the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
