"""The server half's replies: events in, Converse out, in frames or whole (`ConverseWriter`), and errors.

Not here: requests (read_request), sockets and status lines. A whole response is a stream that was put together.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.bedrock.encode import EVENT_STREAM
from asides.dialects.server_half import ReplyWriter
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.fold import fold
from asides.values.messages import ServerTool, UnknownPart
from asides.values.usage import Usage
from asides.wire.aws_frames import write_frame

_STOP_REASONS = frozenset(
    {
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
    }
)
_SPOKEN: dict[StopKind, str] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "error": "malformed_model_output",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - it stands in a header
    """An error body."""
    return msgspec.json.encode({"message": message} if kind is None else {"message": message, "__type": kind})


class ConverseWriter(ReplyWriter):
    """Events of one reply in, Converse out, in frames or whole.

    A block goes out as it comes, except those that have to be known whole: calls without an id, citations. Warnings are
    not on this wire, nor are seals of other dialects.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = EVENT_STREAM if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream)
        self._stream = stream
        self._begun = False
        self._places: dict[int, int] = {}
        """The index of each block, in the order of their first word."""
        self._whole: dict[int, dict[str, Any]] = {}
        self._unnamed: list[ToolCallDelta] = []
        self._calls = 0

    def _write_event(self, event: Event) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._delta(event.block, {"text": event.text}) if event.text else b""
            case ThinkingDelta():
                return self._think(event.block, {"text": event.text}) if event.text else b""
            case ToolCallDelta():
                return self._call(event)
            case ThoughtSealed():
                return self._seal(event)
            case PartArrived(part=ServerTool() | UnknownPart() as part):
                return self._keep(event.block, part.json)
            case _:
                return b""

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _place(self, block: int) -> int:
        return self._places.setdefault(block, len(self._places))

    def _delta(self, block: int, delta: dict[str, Any]) -> bytes:
        place = self._place(block)
        if self._stream:
            return self._event("contentBlockDelta", {"contentBlockIndex": place, "delta": delta})
        held = self._whole.setdefault(place, {})
        for name, value in delta.items():
            held.setdefault(name, []).append(value)
        return b""

    def _think(self, block: int, delta: dict[str, Any]) -> bytes:
        return self._delta(block, {"reasoningContent": delta})

    def _seal(self, event: ThoughtSealed) -> bytes:
        seal = event.seal
        if seal.kind == SIGNATURE:
            return self._think(event.block, {"signature": seal.value})
        if seal.kind == REDACTED:
            return self._think(event.block, {"redactedContent": seal.value})
        if seal.kind == CITATIONS and seal.entry is not None:
            entries = msgspec.json.decode(seal.entry, type=list[msgspec.Raw])
            return b"".join(self._delta(event.block, {"citation": entry}) for entry in entries)
        return b""

    def _call(self, event: ToolCallDelta) -> bytes:
        if event.block in self._places:
            return self._delta(event.block, {"toolUse": {"input": event.arguments}}) if event.arguments else b""
        self._unnamed.append(event)
        mine = [piece for piece in self._unnamed if piece.block == event.block]
        if event.id is None or not any(piece.name for piece in mine):
            return b""
        self._unnamed = [piece for piece in self._unnamed if piece.block != event.block]
        name = next(piece.name for piece in mine if piece.name)
        return self._begin_call(event.block, event.id, name, "".join(piece.arguments for piece in mine))

    def _begin_call(self, block: int, call_id: str, name: str, arguments: str) -> bytes:
        place = self._place(block)
        self._calls += 1
        told = {"toolUseId": call_id, "name": name}
        more = self._delta(block, {"toolUse": {"input": arguments}}) if arguments else b""
        if not self._stream:
            self._whole.setdefault(place, {})["call"] = told
            return b""
        return self._event("contentBlockStart", {"contentBlockIndex": place, "start": {"toolUse": told}}) + more

    def _keep(self, block: int, told: str) -> bytes:
        place = self._place(block)
        if not self._stream:
            self._whole[place] = {"kept": msgspec.Raw(told.encode())}
            return b""
        kind, fields = next(iter(msgspec.json.decode(told).items()))
        # What begins with an event of its own and what does not is the provider's affair; both read the same.
        more = b""
        start = fields
        if isinstance(fields, dict) and "input" in fields:
            start = {name: value for name, value in fields.items() if name != "input"}
            text = msgspec.json.encode(fields["input"]).decode()
            more = self._delta(block, {kind: {"input": text}})
        return self._event("contentBlockStart", {"contentBlockIndex": place, "start": {kind: start}}) + more

    # --- the end ----------------------------------------------------------------------------------------------------

    def _write_end(self, stop: StopReason) -> bytes:
        written: list[bytes] = []
        numbers = sorted({piece.block for piece in self._unnamed})
        # Ids that nobody gave are those that the fold of the same events gives.
        for block, call in zip(numbers, fold([self._started, *self._unnamed]).tool_calls, strict=True):
            arguments = "".join(piece.arguments for piece in self._unnamed if piece.block == block)
            written.append(self._begin_call(block, call.id, call.name, arguments))
        reason = self._stop_reason(stop)
        usage = {} if self._shown_usage is None else _usage(self._shown_usage)
        if not self._stream:
            return self._document(reason, usage)
        written += [self._event("contentBlockStop", {"contentBlockIndex": place}) for place in self._places.values()]
        written.append(self._event("messageStop", {"stopReason": reason}))
        metadata: dict[str, Any] = {"metrics": {"latencyMs": 0}}
        if usage:
            metadata["usage"] = usage
        written.append(self._event("metadata", metadata))
        return b"".join(written)

    def _stop_reason(self, stop: StopReason) -> str:
        if stop.raw in _STOP_REASONS:
            return stop.raw
        return _SPOKEN.get(stop.reason, "tool_use" if self._calls else "end_turn")

    def _document(self, reason: str, usage: dict[str, Any]) -> bytes:
        content = [_block(self._whole[place]) for place in sorted(self._whole)]
        document: dict[str, Any] = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "metrics": {"latencyMs": 0},
        }
        if usage:
            document["usage"] = usage
        return msgspec.json.encode(document)

    def _event(self, kind: str, payload: dict[str, Any]) -> bytes:
        headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
        frame = write_frame(headers, msgspec.json.encode(payload))
        if self._begun or kind == "messageStart":
            return frame
        self._begun = True
        return self._event("messageStart", {"role": "assistant"}) + frame


def _block(held: dict[str, Any]) -> Any:
    """A block put together from its deltas."""
    if "kept" in held:
        return held["kept"]
    if "call" in held:
        text = "".join(piece["input"] for piece in held.get("toolUse", ()))
        try:
            value: Any = msgspec.json.decode(text) if text else {}
        except msgspec.DecodeError:
            value = text
        return {"toolUse": {**held["call"], "input": value}}
    if "reasoningContent" in held:
        pieces = held["reasoningContent"]
        redacted = "".join(piece.get("redactedContent", "") for piece in pieces)
        if redacted:
            return {"reasoningContent": {"redactedContent": redacted}}
        told = {"text": "".join(piece.get("text", "") for piece in pieces)}
        signature = "".join(piece.get("signature", "") for piece in pieces)
        return {"reasoningContent": {"reasoningText": {**told, "signature": signature} if signature else told}}
    text = "".join(held.get("text", ()))
    if "citation" in held:
        return {"citationsContent": {"content": [{"text": text}], "citations": held["citation"]}}
    return {"text": text}


def _usage(usage: Usage) -> dict[str, Any]:
    """Counts under their names here, where input leaves out what the cache read."""
    read = usage.cached or 0
    counts = {
        "inputTokens": None if usage.input is None else max(usage.input - read, 0),
        "outputTokens": usage.output,
        "totalTokens": usage.total,
        "cacheReadInputTokens": usage.cached,
    }
    return {name: count for name, count in counts.items() if count is not None}
