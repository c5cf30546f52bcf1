"""Write replies (`ContentWriter`; `ContentListWriter` for a stream without events) and errors (`write_error`) as a
server of generateContent does.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.dialects.gemini.decode import METADATA, SERVER_TOOLS, SIGNATURE, THOUGHT_PART
from asides.dialects.gemini.wire import FINISH_REASONS, map_stop_reason
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
from asides.values.fold import fold
from asides.values.parts import File, Image, ServerTool, ToolCall, UnknownPart
from asides.values.usage import Usage
from asides.wire.lenient import read_part_json

Wire: TypeAlias = dict[str, Any]
PartEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | ThoughtSealed | PartArrived

_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_STOP_REASONS: dict[StopKind, str] = {
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "OTHER",
    "unknown": "OTHER",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:
    """Write an error body; clients match on `kind`."""
    status_name = kind or _STATUS_NAMES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
    return msgspec.json.encode({"error": {"code": status, "message": message, "status": status_name}})


class ContentWriter(ReplyWriter):
    """Events of one reply in, a response out, in chunks or whole.

    A signature belongs to the part that it came with: in a stream, text that is sealed after several deltas becomes
    several parts, the last of them signed; a whole response has one part for it. Calls are written when they are
    complete. Refusals go into the finish message. Seals and tools of other dialects are not written.
    """

    parts = (ServerTool, UnknownPart, Image, File)
    # Some readers take a comment for data; all skip a blank line.
    ping = b"\r\n"

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._parts = _Parts(joins=not stream)
        self._whole: list[Wire] = []
        """All parts so far, for a whole response."""
        self._metadata: Wire = {}
        self._refusal: list[str] = []

    def _write_event(self, event: ContentEvent) -> bytes:
        match event:
            case RefusalDelta():
                self._refusal.append(event.text)
                return b""
            case PartArrived(part=ServerTool(name=name, json=document)) if name in METADATA:
                self._metadata[name] = msgspec.Raw(document.encode())
                return b""
            case TextDelta(text=text) if text and self._stream and self._is_foreign:
                # No other dialect signs text, so it need not wait for a signature.
                return b"".join(map(self._write_part, [*self._parts.flush(self._started), {"text": text}]))
            case _:
                return b"".join([self._write_part(part) for part in self._parts.add(event, self._started)])

    def _write_part(self, part: Wire) -> bytes:
        if not self._stream:
            self._whole.append(part)
            return b""
        return self._write_chunk({"content": {"parts": [part], "role": "model"}, "index": 0})

    def _write_end(self, stop: StopReason) -> bytes:
        last = self._parts.finish(self._started)
        candidate: Wire = {"content": {"parts": [*self._whole, *last], "role": "model"}}
        candidate["finishReason"] = _encode_stop(stop, refused=bool(self._refusal))
        if self._refusal:
            candidate["finishMessage"] = "".join(self._refusal)
        candidate |= {"index": 0, **self._metadata}
        usage = None if self._shown_usage is None else _encode_usage(self._shown_usage)
        return self._write_chunk(candidate, usage)

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        body = write_error(status, message, kind)
        return self._frame(body) if self._stream else body

    def _write_chunk(self, candidate: Wire, usage: Wire | None = None) -> bytes:
        document: Wire = {"candidates": [candidate]}
        if usage is not None:
            document["usageMetadata"] = usage
        document["modelVersion"] = self._started.model
        document["responseId"] = self._find_id("")
        body = msgspec.json.encode(document)
        return self._frame(body) if self._stream else body

    def _frame(self, chunk: bytes) -> bytes:
        return b"data: %b\r\n\r\n" % chunk


class ContentListWriter(ContentWriter):
    """A stream as one JSON list of its chunks, for clients that do not ask for events."""

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        super().__init__(model=model, stream=stream, include_usage=include_usage)
        self.content_type = "application/json"
        self._begun = False

    def _write_end(self, stop: StopReason) -> bytes:
        return super()._write_end(stop) + b"]\n"

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        written = super()._write_failure(status, message, kind)
        return written + b"]\n" if self._stream else written

    def _frame(self, chunk: bytes) -> bytes:
        before, self._begun = b",\r\n" if self._begun else b"[", True
        return before + chunk


class _Parts:
    """Converts events to wire parts. The last text waits for its signature, and a call for its end."""

    def __init__(self, *, joins: bool) -> None:
        """`joins`: the texts of a block become one part."""
        self._joins = joins
        self._held: Wire | None = None
        self._held_block = -1
        self._pieces: list[str] = []
        """The texts of the held part, if it is text."""
        self._calls: list[ToolCallDelta | ThoughtSealed] = []
        self._sent: set[int] = set()
        """The blocks of calls that were written. Later fields for them, such as an id or a seal, are dropped."""

    def add(self, event: PartEvent, started: ReplyStarted) -> list[Wire]:
        """Add an event; return the parts that it completes."""
        match event:
            case ToolCallDelta() | ThoughtSealed() if event.block in self._sent:
                return []
            case ToolCallDelta():
                ready = self._release() if not self._calls else []
                self._calls.append(event)
                return ready
            case ThoughtSealed():
                return self._add_seal(event, started)
            case TextDelta():
                return self._add_text({"text": event.text}, event.block, started)
            case ThinkingDelta():
                return self._add_text({"text": event.text, "thought": True}, event.block, started)
            case PartArrived():
                part = _encode_part(event.part)
                return self.finish(started) if part is None else self._hold(part, event.block, started)

    def finish(self, started: ReplyStarted) -> list[Wire]:
        """Return all parts that waited."""
        calls = fold([started, *self._calls]).tool_calls if self._calls else ()
        self._sent |= {piece.block for piece in self._calls}
        self._calls = []
        return [*self._release(), *map(_encode_call, calls)]

    def flush(self, started: ReplyStarted) -> list[Wire]:
        """Return the parts that waited, except calls whose arguments may continue."""
        waiting = self._calls
        if not waiting:
            return self._release()
        pieces: dict[int, list[str]] = {}
        for piece in waiting:
            if isinstance(piece, ToolCallDelta):
                pieces.setdefault(piece.block, []).append(piece.arguments)
        unfinished = {block for block, arguments in pieces.items() if not has_all_arguments(arguments)}
        self._calls = [piece for piece in waiting if piece.block not in unfinished]
        ready = self.finish(started)
        self._calls = [piece for piece in waiting if piece.block in unfinished]
        return ready

    def _release(self) -> list[Wire]:
        held, self._held = self._held, None
        if held is None:
            return []
        if self._pieces:
            held["text"] = "".join(self._pieces)
            self._pieces = []
        return [held]

    def _add_text(self, part: Wire, block: int, started: ReplyStarted) -> list[Wire]:
        held = self._held
        is_next = held is not None and self._held_block == block and held.keys() == part.keys()
        if not self._joins or not is_next or self._calls:
            ready = self._hold(part, block, started)
            self._pieces = [part["text"]]
            return ready
        self._pieces.append(part["text"])
        return []

    def _hold(self, part: Wire, block: int, started: ReplyStarted) -> list[Wire]:
        ready = self.flush(started)
        self._held, self._held_block = part, block
        return ready

    def _add_seal(self, event: ThoughtSealed, started: ReplyStarted) -> list[Wire]:
        if event.seal.kind == THOUGHT_PART:
            return self._hold(msgspec.json.decode(event.seal.value), event.block, started)
        if event.seal.kind != SIGNATURE or not event.seal.value:
            return []
        if any(isinstance(piece, ToolCallDelta) and piece.block == event.block for piece in self._calls):
            self._calls.append(event)
            return []
        ready: list[Wire] = []
        if self._held is None or self._held_block != event.block or "thoughtSignature" in self._held:
            # A thought without text, only with its signature.
            ready = self._hold({"text": "", "thought": True}, event.block, started)
        if self._held is not None:
            self._held["thoughtSignature"] = event.seal.value
        return ready


def _encode_call(call: ToolCall) -> Wire:
    part: Wire = {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
    signature = next((seal.value for seal in call.seals if seal.kind == SIGNATURE), None)
    return part if signature is None else {**part, "thoughtSignature": signature}


def _encode_part(part: ServerTool | Image | File | UnknownPart) -> Wire | None:
    if isinstance(part, (Image, File)):
        if part.data is None:
            return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}} if part.url else None
        return {"inlineData": {"mimeType": part.media_type, "data": b64encode(part.data).decode()}}
    if isinstance(part, ServerTool) and part.name not in SERVER_TOOLS:
        return None
    document = read_part_json(part.json)
    return document if isinstance(document, dict) else None


def _encode_stop(stop: StopReason, *, refused: bool) -> str:
    if refused and map_stop_reason(stop.raw or "") != "content_filter":
        return "SAFETY"
    return name_stop(stop, FINISH_REASONS, _STOP_REASONS, complete="STOP")


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Its output excludes thinking. A missing count is absent, not zero."""
    output = usage.output
    if output is not None and usage.thinking is not None:
        output = max(output - usage.thinking, 0)
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": output,
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thinking,
        **_encode_tier(usage.tier),
    }
    return {name: count for name, count in counts.items() if count is not None}


# The words of `trafficType` (google-genai 3.1, 2026-11); other tiers are in `serviceTier`.
_TRAFFIC_TYPES = frozenset({"on_demand_priority", "on_demand_flex", "on_demand_offpeak", "provisioned_throughput"})


def _encode_tier(tier: str | None) -> Wire:
    return {"trafficType": tier.upper()} if tier in _TRAFFIC_TYPES else {"serviceTier": tier}
