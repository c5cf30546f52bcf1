"""The server half: replies and errors out (`ContentWriter`, `write_error`). Requests are read in read_request.

Not here: sockets and status lines, which are the stage's and the gateway's.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.dialects.gemini.decode import METADATA, SERVER_TOOLS, SIGNATURE
from asides.dialects.gemini.stop_and_errors import FINISH_REASONS
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
from asides.values.fold import fold
from asides.values.messages import File, Image, ServerTool, ToolCall, UnknownPart
from asides.values.usage import Usage

Wire: TypeAlias = dict[str, Any]

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_FINISH: dict[StopKind, str] = {
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "error": "OTHER",
    "unknown": "OTHER",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:
    """An error body; `kind` is what clients match on."""
    word = kind or _STATUS.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
    return msgspec.json.encode({"error": {"code": status, "message": message, "status": word}})


class ContentWriter(ReplyWriter):
    """Events of one reply in, a response out, in chunks or whole.

    A signature belongs to the part it came with: text that is sealed after several deltas becomes two parts, the last
    delta being the signed one. Calls are written when they are whole. Refusals have no part of their own and stand in
    the finish message; warnings are not on this wire, nor are seals and tools of other dialects.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream)
        self._stream = stream
        self._parts = _Parts()
        self._whole: list[Wire] = []
        self._metadata: Wire = {}
        self._refusal: list[str] = []

    def _write_event(self, event: Event) -> bytes:
        match event:
            case RefusalDelta():
                self._refusal.append(event.text)
            case PartArrived(part=ServerTool(name=name, json=held)) if name in METADATA:
                self._metadata[name] = msgspec.Raw(held.encode())
            case _:
                return b"".join([self._say(part) for part in self._parts.take(event, self._started)])
        return b""

    def _say(self, part: Wire) -> bytes:
        if not self._stream:
            self._whole.append(part)
            return b""
        return self._chunk({"content": {"parts": [part], "role": "model"}, "index": 0})

    def _write_end(self, stop: StopReason) -> bytes:
        last = self._parts.finish(self._started)
        candidate: Wire = {"content": {"parts": [*self._whole, *last], "role": "model"}}
        candidate["finishReason"] = _finish_reason(stop)
        if self._refusal:
            candidate["finishMessage"] = "".join(self._refusal)
        candidate |= {"index": 0, **self._metadata}
        usage = None if self._shown_usage is None else _usage(self._shown_usage)
        return self._chunk(candidate, usage)

    def _chunk(self, candidate: Wire, usage: Wire | None = None) -> bytes:
        document: Wire = {"candidates": [candidate]}
        if usage is not None:
            document["usageMetadata"] = usage
        document["modelVersion"] = self._started.model
        if self._started.id is not None:
            document["responseId"] = self._started.id
        body = msgspec.json.encode(document)
        return b"data: %b\r\n\r\n" % body if self._stream else body


class _Parts:
    """What each event is on the wire. The last text waits for its signature, and a call for its end."""

    def __init__(self) -> None:
        self._held: Wire | None = None
        self._held_block = -1
        self._calls: list[Event] = []

    def take(self, event: Event, started: ReplyStarted) -> list[Wire]:
        match event:
            case ToolCallDelta():
                ready = self._release() if not self._calls else []
                self._calls.append(event)
                return ready
            case ThoughtSealed():
                return self._seal(event, started)
            case TextDelta():
                return self._hold({"text": event.text}, event.block, started)
            case ThinkingDelta():
                return self._hold({"text": event.text, "thought": True}, event.block, started)
            case PartArrived():
                part = _part(event.part)
                return self.finish(started) if part is None else self._hold(part, event.block, started)
            case _:
                return []

    def finish(self, started: ReplyStarted) -> list[Wire]:
        """Everything that was held."""
        made = fold([started, *self._calls]).tool_calls
        self._calls = []
        return [*self._release(), *map(_call, made)]

    def _release(self) -> list[Wire]:
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _hold(self, part: Wire, block: int, started: ReplyStarted) -> list[Wire]:
        ready = self.finish(started)
        self._held, self._held_block = part, block
        return ready

    def _seal(self, event: ThoughtSealed, started: ReplyStarted) -> list[Wire]:
        if event.seal.kind != SIGNATURE or not event.seal.value:
            return []
        if any(isinstance(piece, ToolCallDelta) and piece.block == event.block for piece in self._calls):
            self._calls.append(event)
            return []
        ready: list[Wire] = []
        if self._held is None or self._held_block != event.block or "thoughtSignature" in self._held:
            # A thought of which only the signature is to be seen.
            ready = self._hold({"text": "", "thought": True}, event.block, started)
        if self._held is not None:
            self._held["thoughtSignature"] = event.seal.value
        return ready


def _call(call: ToolCall) -> Wire:
    spelled: Wire = {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
    signature = next((seal.value for seal in call.seals if seal.kind == SIGNATURE), None)
    return spelled if signature is None else {**spelled, "thoughtSignature": signature}


def _part(part: ServerTool | Image | File | UnknownPart) -> Wire | None:
    if isinstance(part, (Image, File)):
        if part.data is None:
            return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}} if part.url else None
        return {"inlineData": {"mimeType": part.media_type, "data": b64encode(part.data).decode()}}
    if isinstance(part, ServerTool) and part.name not in SERVER_TOOLS:
        return None
    held = msgspec.json.decode(part.json)
    return held if isinstance(held, dict) else None


def _finish_reason(stop: StopReason) -> str:
    if stop.raw in FINISH_REASONS:
        return stop.raw
    return "OTHER" if stop == StopReason() else _FINISH.get(stop.reason, "STOP")


def _usage(usage: Usage) -> Wire:
    """Counts under their names; the thinking stands outside the output, and what was not reported is absent."""
    output = usage.output
    if output is not None and usage.thinking is not None:
        output = max(output - usage.thinking, 0)
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": output,
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thinking,
    }
    return {name: count for name, count in counts.items() if count is not None}
