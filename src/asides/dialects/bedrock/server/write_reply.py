"""Write replies (`ConverseWriter`) and errors (`write_error`) as a server of Converse does.

Not here: requests (read_request), sockets and status lines. A whole response is built from the same blocks as a stream.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.bedrock.encode import EVENT_STREAM
from asides.dialects.server_half import ContentEvent, ReplyWriter
from asides.values.events import (
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

_KNOWN_STOP_REASONS = frozenset(
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
_STOP_REASONS: dict[StopKind, str] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "error": "malformed_model_output",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - it is in a header
    """Write an error body."""
    return msgspec.json.encode({"message": message} if kind is None else {"message": message, "__type": kind})


class ConverseWriter(ReplyWriter):
    """Events of one reply in, Converse out, in frames or whole.

    Deltas are written as they arrive. A call without an id waits for the end. Images and files of the model, and seals
    of other dialects, are not written.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = EVENT_STREAM if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream)
        self._stream = stream
        self._begun = False
        self._indexes: dict[int, int] = {}
        """The index of each block, in the order in which they begin."""
        self._whole: dict[int, dict[str, Any]] = {}
        self._waiting: list[ToolCallDelta] = []
        """The pieces of calls that have no id or no name yet."""
        self._calls = 0

    def _write_event(self, event: ContentEvent) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._write_delta(event.block, {"text": event.text}) if event.text else b""
            case ThinkingDelta():
                return self._write_thinking(event.block, {"text": event.text}) if event.text else b""
            case ToolCallDelta():
                return self._write_call(event)
            case ThoughtSealed():
                return self._write_seal(event)
            case PartArrived(part=ServerTool() | UnknownPart() as part):
                return self._write_part(event.block, part.json)
            case PartArrived():
                return b""

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _find_index(self, block: int) -> int:
        return self._indexes.setdefault(block, len(self._indexes))

    def _write_delta(self, block: int, delta: dict[str, Any]) -> bytes:
        index = self._find_index(block)
        if self._stream:
            return self._write_frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        pieces = self._whole.setdefault(index, {})
        for name, value in delta.items():
            pieces.setdefault(name, []).append(value)
        return b""

    def _write_thinking(self, block: int, delta: dict[str, Any]) -> bytes:
        return self._write_delta(block, {"reasoningContent": delta})

    def _write_seal(self, event: ThoughtSealed) -> bytes:
        seal = event.seal
        if seal.kind == SIGNATURE:
            return self._write_thinking(event.block, {"signature": seal.value})
        if seal.kind == REDACTED:
            return self._write_thinking(event.block, {"redactedContent": seal.value})
        if seal.kind == CITATIONS and seal.entry is not None:
            entries = msgspec.json.decode(seal.entry, type=list[msgspec.Raw])
            return b"".join(self._write_delta(event.block, {"citation": entry}) for entry in entries)
        return b""

    def _write_call(self, event: ToolCallDelta) -> bytes:
        if event.block in self._indexes:
            return self._write_delta(event.block, {"toolUse": {"input": event.arguments}}) if event.arguments else b""
        self._waiting.append(event)
        pieces = [piece for piece in self._waiting if piece.block == event.block]
        if event.id is None or not any(piece.name for piece in pieces):
            return b""
        self._waiting = [piece for piece in self._waiting if piece.block != event.block]
        name = next(piece.name for piece in pieces if piece.name)
        return self._begin_call(event.block, event.id, name, "".join(piece.arguments for piece in pieces))

    def _begin_call(self, block: int, call_id: str, name: str, arguments: str) -> bytes:
        index = self._find_index(block)
        self._calls += 1
        call = {"toolUseId": call_id, "name": name}
        written = b""
        if self._stream:
            start = {"contentBlockIndex": index, "start": {"toolUse": call}}
            written = self._write_frame("contentBlockStart", start)
        else:
            self._whole.setdefault(index, {})["call"] = call
        return written + self._write_delta(block, {"toolUse": {"input": arguments}}) if arguments else written

    def _write_part(self, block: int, document: str) -> bytes:
        index = self._find_index(block)
        if not self._stream:
            self._whole[index] = {"part": msgspec.Raw(document.encode())}
            return b""
        kind, fields = next(iter(msgspec.json.decode(document).items()))
        # The provider sends a start event only for some kinds of blocks; a decoder accepts it for all.
        if not isinstance(fields, dict) or "input" not in fields:
            return self._write_frame("contentBlockStart", {"contentBlockIndex": index, "start": {kind: fields}})
        start = {name: value for name, value in fields.items() if name != "input"}
        written = self._write_frame("contentBlockStart", {"contentBlockIndex": index, "start": {kind: start}})
        text = msgspec.json.encode(fields["input"]).decode()
        return written + self._write_delta(block, {kind: {"input": text}})

    # --- the end ----------------------------------------------------------------------------------------------------

    def _write_end(self, stop: StopReason) -> bytes:
        written: list[bytes] = []
        numbers = sorted({piece.block for piece in self._waiting})
        # A call without an id gets the id that the fold of the same events derives.
        for block, call in zip(numbers, fold([self._started, *self._waiting]).tool_calls, strict=True):
            arguments = "".join(piece.arguments for piece in self._waiting if piece.block == block)
            written.append(self._begin_call(block, call.id, call.name, arguments))
        reason = self._encode_stop(stop)
        usage = {} if self._shown_usage is None else _encode_usage(self._shown_usage)
        if not self._stream:
            return self._write_document(reason, usage)
        indexes = self._indexes.values()
        written += [self._write_frame("contentBlockStop", {"contentBlockIndex": index}) for index in indexes]
        written.append(self._write_frame("messageStop", {"stopReason": reason}))
        metadata: dict[str, Any] = {"metrics": {"latencyMs": 0}}
        if usage:
            metadata["usage"] = usage
        written.append(self._write_frame("metadata", metadata))
        return b"".join(written)

    def _encode_stop(self, stop: StopReason) -> str:
        if stop.raw in _KNOWN_STOP_REASONS:
            return stop.raw
        return _STOP_REASONS.get(stop.reason, "tool_use" if self._calls else "end_turn")

    def _write_document(self, reason: str, usage: dict[str, Any]) -> bytes:
        content = [_join_pieces(self._whole[index]) for index in sorted(self._whole)]
        document: dict[str, Any] = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "metrics": {"latencyMs": 0},
        }
        if usage:
            document["usage"] = usage
        return msgspec.json.encode(document)

    def _write_frame(self, kind: str, payload: dict[str, Any]) -> bytes:
        headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
        frame = write_frame(headers, msgspec.json.encode(payload))
        if self._begun or kind == "messageStart":
            return frame
        self._begun = True
        return self._write_frame("messageStart", {"role": "assistant"}) + frame


def _join_pieces(block: dict[str, Any]) -> Any:
    """Join the deltas of a block."""
    if "part" in block:
        return block["part"]
    if "call" in block:
        text = "".join(piece["input"] for piece in block.get("toolUse", ()))
        try:
            value: Any = msgspec.json.decode(text) if text else {}
        except msgspec.DecodeError:
            value = text
        return {"toolUse": {**block["call"], "input": value}}
    if "reasoningContent" in block:
        pieces = block["reasoningContent"]
        redacted = "".join(piece.get("redactedContent", "") for piece in pieces)
        if redacted:
            return {"reasoningContent": {"redactedContent": redacted}}
        thought = {"text": "".join(piece.get("text", "") for piece in pieces)}
        if signature := "".join(piece.get("signature", "") for piece in pieces):
            thought["signature"] = signature
        return {"reasoningContent": {"reasoningText": thought}}
    text = "".join(block.get("text", ()))
    if "citation" in block:
        return {"citationsContent": {"content": [{"text": text}], "citations": block["citation"]}}
    return {"text": text}


def _encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode the counts by this dialect's names. Its input excludes the tokens that were read from the cache."""
    counts = {
        "inputTokens": None if usage.input is None else max(usage.input - (usage.cached or 0), 0),
        "outputTokens": usage.output,
        "totalTokens": usage.total,
        "cacheReadInputTokens": usage.cached,
    }
    return {name: count for name, count in counts.items() if count is not None}
