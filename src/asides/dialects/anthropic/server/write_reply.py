"""The server half, out: replies (`MessagesWriter`) and errors (`write_error`).

Not here: sockets and status lines, which are the stage's and the gateway's, and requests (read_request). A whole
response is a stream that was put together: both are made of the same events.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE
from asides.dialects.anthropic.stop_and_errors import STATUSES
from asides.dialects.server_half import ReplyWriter
from asides.values.events import (
    Event,
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
from asides.values.messages import ServerTool, UnknownPart
from asides.values.usage import Usage

__all__ = ["MessagesWriter", "write_error"]

Wire: TypeAlias = dict[str, Any]

_ERROR_TYPES = {status: kind for kind, status in STATUSES.items() if kind.endswith(("_error", "_large"))}
_STOP_REASONS = frozenset(
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
_SPOKEN: dict[StopKind, str] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
}
_NAMELESS = "msg_0"


def write_error(status: int, message: str, kind: str | None = None) -> bytes:
    """An error body; `kind` is what clients match on."""
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    error = {"type": kind or _ERROR_TYPES.get(status, fallback), "message": message}
    return msgspec.json.encode({"type": "error", "error": error})


class MessagesWriter(ReplyWriter):
    """Events of one reply in, a message out, as a stream of events or whole.

    A block of the reply is a block of the message. Warnings are not on this wire, nor are seals of other dialects.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        super().__init__(model, "text/event-stream" if stream else "application/json", shows_usage=include_usage)
        self._blocks = _Blocks()
        self._out: _Stream | _Whole = (_Stream if stream else _Whole)()
        self._refusal: list[str] = []
        self._calls = False
        self._begun = False

    def _write_event(self, event: Event) -> bytes:
        if isinstance(event, RefusalDelta):
            self._refusal.append(event.text)
            return b""
        self._calls = self._calls or isinstance(event, ToolCallDelta)
        return b"".join([*self._begin(), *map(self._out.add, self._blocks.of(event))])

    def _write_end(self, stop: StopReason) -> bytes:
        written = [*self._begin(), *map(self._out.add, self._blocks.close())]
        return b"".join([*written, self._out.end(*self._ending(stop), self._counts())])

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [self._out.begin(self._started, self._counts())]

    def _counts(self) -> Wire:
        usage = self._shown_usage
        return {} if usage is None else _usage(usage)

    def _ending(self, stop: StopReason) -> tuple[str | None, Wire | None]:
        """The provider's own word where this dialect has it, else ours in its words; and the words of a refusal."""
        refusal = "".join(self._refusal)
        details: Wire | None = None
        if refusal:
            details = {"type": "refusal", "category": None, "explanation": refusal}
        if stop.raw in _STOP_REASONS:
            return stop.raw, details
        if stop == StopReason() and details is None:
            return None, None
        fallback = "refusal" if details else "tool_use" if self._calls else "end_turn"
        return _SPOKEN.get(stop.reason, fallback), details


class _Blocks:
    """What each event is on the wire, as events about blocks; one block is open at a time, in the order they begin."""

    def __init__(self) -> None:
        self._indexes: dict[int, int] = {}
        self._open: int | None = None
        self._held: tuple[int, Wire] | None = None
        """A block that is not begun yet: a call whose caller may follow, or a whole part that a later one replaces."""

    def of(self, event: Event) -> list[Wire]:
        match event:
            case TextDelta() if event.text:
                return self._delta(event.block, _TEXT, {"type": "text_delta", "text": event.text})
            case ThinkingDelta() if event.text:
                return self._delta(event.block, _THINKING, {"type": "thinking_delta", "thinking": event.text})
            case ToolCallDelta():
                return self._call(event)
            case ThoughtSealed():
                return self._sealed(event)
            case PartArrived():
                return self._part(event)
            case _:
                return []

    def close(self) -> list[Wire]:
        """The end of whatever is open."""
        flushed = self._flush()
        if self._open is None:
            return flushed
        stop = {"type": "content_block_stop", "index": self._open}
        self._open = None
        return [*flushed, stop]

    def _begin(self, block: int, content: Wire) -> list[Wire]:
        """A block begins; the one before it ends."""
        closed = self.close()
        index = self._indexes[block] = len(self._indexes)
        self._open = index
        return [*closed, {"type": "content_block_start", "index": index, "content_block": content}]

    def _flush(self) -> list[Wire]:
        if self._held is None:
            return []
        block, content = self._held
        self._held = None
        return self._begin(block, content)

    def _delta(self, block: int, content: Wire, delta: Wire) -> list[Wire]:
        written = self._flush()
        if block not in self._indexes:
            written += self._begin(block, content)
        return [*written, {"type": "content_block_delta", "index": self._indexes[block], "delta": delta}]

    def _call(self, event: ToolCallDelta) -> list[Wire]:
        written: list[Wire] = []
        if event.block not in self._indexes and (self._held is None or self._held[0] != event.block):
            written = self._flush()
            call_id = event.id or f"call_{event.block}"
            content = {"type": "tool_use", "id": call_id, "name": event.name or "", "input": {}}
            self._held = (event.block, content)
        if not event.arguments:
            return written
        delta = {"type": "input_json_delta", "partial_json": event.arguments}
        return written + self._delta(event.block, {}, delta)

    def _part(self, event: PartArrived) -> list[Wire]:
        if not isinstance(event.part, (ServerTool, UnknownPart)):
            return []  # a message has no place for pictures of the model's making
        written = [] if self._held is not None and self._held[0] == event.block else self._flush()
        self._held = (event.block, msgspec.json.decode(event.part.json))
        return written

    def _sealed(self, event: ThoughtSealed) -> list[Wire]:
        seal = event.seal
        if seal.kind == SIGNATURE:
            return self._delta(event.block, _THINKING, {"type": "signature_delta", "signature": seal.value})
        if seal.kind == REDACTED:
            return [*self._flush(), *self._begin(event.block, {"type": "redacted_thinking", "data": seal.value})]
        if seal.entry is None:
            return []
        entry = msgspec.json.decode(seal.entry)
        if seal.kind == CITATIONS:
            told = [{"type": "citations_delta", "citation": citation} for citation in entry]
            return [wire for delta in told for wire in self._delta(event.block, _TEXT, delta)]
        if seal.kind == CALLER and self._held is not None and self._held[0] == event.block:
            self._held[1]["caller"] = entry
        return []


_TEXT: Wire = {"type": "text", "text": ""}
_THINKING: Wire = {"type": "thinking", "thinking": "", "signature": ""}


def _usage(usage: Usage) -> Wire:
    """Counts under their names here; what was not reported is absent, not zero."""
    told: Wire = {}
    if usage.input is not None:
        told["input_tokens"] = usage.input - (usage.cached or 0)
    if usage.cached is not None:
        told["cache_read_input_tokens"] = usage.cached
    if usage.output is not None:
        told["output_tokens"] = usage.output
    if usage.thinking is not None:
        told["output_tokens_details"] = {"thinking_tokens": usage.thinking}
    return told


def _message(started: ReplyStarted, usage: Wire) -> Wire:
    return {
        "id": started.id or _NAMELESS,
        "type": "message",
        "role": "assistant",
        "model": started.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


class _Stream:
    """Events about blocks as server-sent events."""

    def begin(self, started: ReplyStarted, usage: Wire) -> bytes:
        return self.add({"type": "message_start", "message": _message(started, usage)})

    def add(self, event: Wire) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))

    def end(self, stop_reason: str | None, details: Wire | None, usage: Wire) -> bytes:
        delta: Wire = {"stop_reason": stop_reason, "stop_sequence": None}
        if details is not None:
            delta["stop_details"] = details
        ended = self.add({"type": "message_delta", "delta": delta, "usage": usage})
        return ended + self.add({"type": "message_stop"})


class _Whole:
    """Events about blocks put together into one document."""

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

    def end(self, stop_reason: str | None, details: Wire | None, usage: Wire) -> bytes:
        for content, pieces in zip(self._content, self._pieces, strict=True):
            for name, values in pieces.items():
                if name == "partial_json":
                    content["input"] = _parsed("".join(values))
                else:
                    content[name] = "".join(values)
        document = {**_message(self._started, usage), "content": self._content, "stop_reason": stop_reason}
        if details is not None:
            document["stop_details"] = details
        return msgspec.json.encode(document)


def _parsed(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
