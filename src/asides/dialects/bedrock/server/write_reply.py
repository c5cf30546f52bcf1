"""Write replies (`ConverseWriter`) and errors (`write_error`) as a server of Converse does.

A whole response is built from the same blocks as a stream.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.bedrock.encode import EVENT_STREAM
from asides.dialects.server_half import ContentEvent, ReplyWriter, has_all_arguments, name_stop
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
from asides.values.parts import ServerTool, UnknownPart
from asides.values.usage import Usage
from asides.wire.aws_frames import encode_headers, write_frame
from asides.wire.lenient import read_part_json

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
    "error": "malformed_model_output",
}


# The exceptions of the service, which clients name their own after.
_EXCEPTIONS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def write_error_headers(status: int, kind: str | None = None) -> dict[str, str]:
    """Write the header that names the exception; clients read the name from it, not from the body."""
    fallback = "InternalServerException" if status >= 500 else "ValidationException"
    return {"x-amzn-errortype": kind or _EXCEPTIONS.get(status, fallback)}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - it is in a header
    """Write an error body."""
    return msgspec.json.encode({"message": message} if kind is None else {"message": message, "__type": kind})


@cache
def _name_event(kind: str) -> bytes:
    return encode_headers({":event-type": kind, ":content-type": "application/json", ":message-type": "event"})


class ConverseWriter(ReplyWriter):
    """Events of one reply in, Converse out, in frames or whole.

    Deltas are written as they arrive, and a block of a stream ends before the next one begins: text that returns to an
    earlier block begins another. While the arguments of a call are not complete, other blocks wait. A call without an
    id waits for the end. Images and files of the model, and seals of other dialects, are not written.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = EVENT_STREAM if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._begun = False
        self._index = -1
        """The index of the last block."""
        self._open: int | None = None
        """The block of the reply that is open in the stream."""
        self._open_arguments: list[str] | None = None
        """The arguments so far, if the open block is a call."""
        self._held: dict[int, list[ContentEvent]] = {}
        """The events, by their block, that wait for the open call."""
        self._whole: dict[int, dict[str, Any]] = {}
        self._waiting: list[ToolCallDelta] = []
        """The pieces of calls that have no id or no name yet."""
        self._begun_calls: set[int] = set()

    def _write_event(self, event: ContentEvent) -> bytes:
        if self._stream and event.block != self._open and (self._held or not self._can_close()):
            self._held.setdefault(event.block, []).append(event)
            return b""
        return self._write_now(event)

    def _can_close(self) -> bool:
        """Whether the open block may end: it is text or a thought, which can continue in another block, or a call with
        complete arguments.
        """
        if self._open_arguments is None:
            return True
        return has_all_arguments(self._open_arguments)

    def _write_now(self, event: ContentEvent) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._write_delta(event.block, {"text": event.text}) if event.text else b""
            case ThinkingDelta():
                return self._write_thought(event.block, {"text": event.text}) if event.text else b""
            case ToolCallDelta():
                return self._write_call(event)
            case ThoughtSealed():
                return self._write_seal(event)
            case PartArrived(part=ServerTool() | UnknownPart() as part):
                return self._write_part(event.block, part.json)
            case PartArrived():
                return b""

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _enter(self, block: int) -> bytes:
        """Make this block of the reply the open one."""
        if self._open == block:
            return b""
        closed = self._close()
        self._index += 1
        self._open = block
        return closed

    def _close(self) -> bytes:
        """End the open block."""
        if self._open is None:
            return b""
        self._open = self._open_arguments = None
        return self._write_frame("contentBlockStop", {"contentBlockIndex": self._index})

    def _write_delta(self, block: int, delta: dict[str, Any]) -> bytes:
        if self._stream:
            entered = self._enter(block)
            return entered + self._write_frame("contentBlockDelta", {"contentBlockIndex": self._index, "delta": delta})
        pieces = self._whole.setdefault(block, {})
        for name, value in delta.items():
            pieces.setdefault(name, []).append(value)
        return b""

    def _write_thought(self, block: int, delta: dict[str, Any]) -> bytes:
        return self._write_delta(block, {"reasoningContent": delta})

    def _write_seal(self, event: ThoughtSealed) -> bytes:
        seal = event.seal
        if seal.kind == SIGNATURE:
            return self._write_thought(event.block, {"signature": seal.value})
        if seal.kind == REDACTED:
            return self._write_thought(event.block, {"redactedContent": seal.value})
        if seal.kind == CITATIONS and seal.entry is not None:
            entries = msgspec.json.decode(seal.entry, type=list[msgspec.Raw])
            return b"".join(self._write_delta(event.block, {"citation": entry}) for entry in entries)
        return b""

    def _write_call(self, event: ToolCallDelta) -> bytes:
        if event.block in self._begun_calls:
            return self._write_input(event.block, event.arguments)
        self._waiting.append(event)
        pieces = [piece for piece in self._waiting if piece.block == event.block]
        if event.id is None or not any(piece.name for piece in pieces):
            return b""
        self._waiting = [piece for piece in self._waiting if piece.block != event.block]
        name = next(piece.name for piece in pieces if piece.name)
        return self._begin_call(event.block, event.id, name, "".join(piece.arguments for piece in pieces))

    def _begin_call(self, block: int, call_id: str, name: str, arguments: str) -> bytes:
        self._begun_calls.add(block)
        call = {"toolUseId": call_id, "name": name}
        if not self._stream:
            self._whole.setdefault(block, {})["call"] = call
            return self._write_input(block, arguments)
        entered = self._enter(block)
        self._open_arguments = []
        start = self._write_frame("contentBlockStart", {"contentBlockIndex": self._index, "start": {"toolUse": call}})
        return entered + start + self._write_input(block, arguments)

    def _write_input(self, block: int, arguments: str) -> bytes:
        if self._stream:
            if self._open_arguments is None or self._open != block:
                return b""  # the call ended with complete arguments, and only white space can follow them
            self._open_arguments.append(arguments)
        return self._write_delta(block, {"toolUse": {"input": arguments}}) if arguments else b""

    def _write_part(self, block: int, document: str) -> bytes:
        if not self._stream:
            self._whole[block] = {"part": msgspec.Raw(document.encode())}
            return b""
        entered = self._enter(block)
        fields: Any
        kind, fields = next(iter(read_part_json(document).items()), ("", {}))
        # The provider sends a start event only for some kinds of blocks; a decoder accepts it for all.
        has_input = isinstance(fields, dict) and "input" in fields
        shown = {name: value for name, value in fields.items() if name != "input"} if has_input else fields
        start = self._write_frame("contentBlockStart", {"contentBlockIndex": self._index, "start": {kind: shown}})
        if not has_input:
            return entered + start
        text = msgspec.json.encode(fields["input"]).decode()
        return entered + start + self._write_delta(block, {kind: {"input": text}})

    # --- the end ----------------------------------------------------------------------------------------------------

    def _write_end(self, stop: StopReason) -> bytes:
        held, self._held = self._held, {}
        written = [self._write_now(event) for events in held.values() for event in events]
        numbers = sorted({piece.block for piece in self._waiting})
        # A call without an id gets the id that the fold of the same events derives.
        for block, call in zip(numbers, fold([self._started, *self._waiting]).tool_calls, strict=True):
            arguments = "".join(piece.arguments for piece in self._waiting if piece.block == block)
            written.append(self._begin_call(block, call.id, call.name, arguments))
        reason = self._encode_stop(stop)
        shown = self._shown_usage
        measured: dict[str, Any] = {"metrics": {"latencyMs": 0}}
        if shown is not None and (usage := _encode_usage(shown)):
            measured["usage"] = usage
        if shown is not None and shown.tier is not None:
            measured["serviceTier"] = {"type": shown.tier}
        if not self._stream:
            return self._write_document(reason, measured)
        written.append(self._close())
        written.append(self._write_frame("messageStop", {"stopReason": reason}))
        written.append(self._write_frame("metadata", measured))
        return b"".join(written)

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        if not self._stream:
            return write_error(status, message, kind)
        name = write_error_headers(status, kind)["x-amzn-errortype"]
        headers = {
            ":exception-type": name[:1].lower() + name[1:],
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        return write_frame(headers, msgspec.json.encode({"message": message}))

    def _encode_stop(self, stop: StopReason) -> str:
        return name_stop(
            stop, _KNOWN_STOP_REASONS, _STOP_REASONS, complete="tool_use" if self._begun_calls else "end_turn"
        )

    def _write_document(self, reason: str, measured: dict[str, Any]) -> bytes:
        content = [_join_pieces(block) for block in self._whole.values()]
        output = {"message": {"role": "assistant", "content": content}}
        return msgspec.json.encode({"output": output, "stopReason": reason, **measured})

    def _write_frame(self, kind: str, payload: dict[str, Any]) -> bytes:
        frame = write_frame(_name_event(kind), msgspec.json.encode(payload))
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
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
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
        "inputTokens": None
        if usage.input is None
        else max(usage.input - (usage.cached or 0) - (usage.cache_written or 0), 0),
        "outputTokens": usage.output,
        "totalTokens": usage.total,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.cache_written,
    }
    encoded: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    hour = usage.cache_written_hour
    if hour is not None:
        minutes = max((usage.cache_written or 0) - hour, 0)
        encoded["cacheDetails"] = [{"ttl": "1h", "inputTokens": hour}, {"ttl": "5m", "inputTokens": minutes}]
    return encoded
