"""Write replies (`ChatWriter`) and errors (`write_error`) as a server of Cohere's v2 chat does."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.message_encoder import encode_arguments
from asides.dialects.server_half import ContentEvent, ReplyWriter, name_stop
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
from asides.values.parts import UnknownPart
from asides.values.usage import Usage

_KNOWN_FINISH_REASONS = frozenset(
    {"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "ERROR_TOXIC", "TIMEOUT"}
)
_FINISH_REASONS: dict[StopKind, str] = {
    "length": "MAX_TOKENS",
    "tool_calls": "TOOL_CALL",
    "content_filter": "ERROR_TOXIC",
    "refusal": "COMPLETE",
    "error": "ERROR",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - all errors have one form
    """Write an error body; clients match on `kind`."""
    return msgspec.json.encode({"message": message} if kind is None else {"message": message, "code": kind})


class ChatWriter(ReplyWriter):
    """Events of one reply in, a v2 chat out, in events or whole.

    Blocks stay in order, except that whole calls follow the content at the end. An item of a stream ends before the
    next one begins: text that returns to an earlier block begins another. Images, files and tools that the provider
    ran, and seals of other dialects, are not written.
    """

    parts = (UnknownPart,)
    # A comment, which every reader of events skips.
    ping = b": ping\n\n"

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._begun = False
        self._indexes: dict[int, int] = {}
        """The last index of each block among the items of the content."""
        self._index = -1
        """The index of the last item."""
        self._open: int | None = None
        """The block whose item is open in the stream."""
        self._items: list[dict[str, Any]] = []
        self._calls: list[ToolCallDelta] = []
        self._plan: str | None = None
        self._citations: list[Any] = []

    def _write_event(self, event: ContentEvent) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._write_piece(event.block, "text", event.text)
            case ThinkingDelta():
                return self._write_piece(event.block, "thinking", event.text)
            case ToolCallDelta():
                self._calls.append(event)
            case ThoughtSealed():
                self._add_seal(event)
            case PartArrived(part=UnknownPart() as part):
                return self._write_part(event.block, part)
            case PartArrived():
                pass
        return b""

    def _write_piece(self, block: int, field: str, text: str) -> bytes:
        if not text:
            return b""
        written = b""
        if block not in self._indexes or (self._stream and self._open != block):
            written = self._begin_item(block, {"type": field, field: ""})
        index = self._indexes[block]
        if self._stream:
            return written + self._write_sse("content-delta", {"message": {"content": {field: text}}}, index)
        self._items[index].setdefault("pieces", []).append(text)
        return b""

    def _begin_item(self, block: int, item: dict[str, Any] | msgspec.Raw) -> bytes:
        ended = self._end_item()
        self._index += 1
        self._indexes[block] = self._index
        if self._stream:
            self._open = block
            return self._begin() + ended + self._write_sse("content-start", {"message": {"content": item}}, self._index)
        self._items.append({"item": item})
        return b""

    def _end_item(self) -> bytes:
        """End the open item."""
        if self._open is None:
            return b""
        self._open = None
        return self._write_sse("content-end", None, self._index)

    def _write_part(self, block: int, part: UnknownPart) -> bytes:
        if block in self._indexes:
            return b""
        return self._begin_item(block, msgspec.Raw(part.json.encode()))

    def _add_seal(self, event: ThoughtSealed) -> None:
        seal = event.seal
        if seal.entry is None:
            return
        if seal.kind == PLAN:
            self._plan = msgspec.json.decode(seal.entry, type=str)
        elif seal.kind == CITED:
            index = self._indexes.get(event.block)
            for citation in msgspec.json.decode(seal.entry, type=list[dict[str, Any]]):
                # A citation names its item only if a reader could not know it.
                is_clear = index is not None and citation.get("content_index") in (None, index)
                self._citations.append(citation if is_clear else {**citation, "content_index": index})

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        return self._write_sse("message-start", {"message": message}, id=self._find_id(""))

    def _write_end(self, stop: StopReason) -> bytes:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": encode_arguments(call)},
            }
            for call in fold([self._started, *self._calls]).tool_calls
        ]
        ending: dict[str, Any] = {}
        if (reason := _encode_stop(stop, has_calls=bool(calls))) is not None:
            ending["finish_reason"] = reason
        if self._shown_usage is not None:
            ending["usage"] = _encode_usage(self._shown_usage)
        return self._write_stream_end(calls, ending) if self._stream else self._write_document(calls, ending)

    def _write_stream_end(self, calls: list[dict[str, Any]], ending: dict[str, Any]) -> bytes:
        written = [self._begin(), self._end_item()]
        if self._plan:
            written.append(self._write_sse("tool-plan-delta", {"message": {"tool_plan": self._plan}}))
        for index, call in enumerate(calls):
            function = call["function"]
            begun = {**call, "function": {**function, "arguments": ""}}
            written.append(self._write_sse("tool-call-start", {"message": {"tool_calls": begun}}, index))
            piece = {"function": {"arguments": function["arguments"]}}
            written.append(self._write_sse("tool-call-delta", {"message": {"tool_calls": piece}}, index))
            written.append(self._write_sse("tool-call-end", None, index))
        for index, citation in enumerate(self._citations):
            written.append(self._write_sse("citation-start", {"message": {"citations": citation}}, index))
            written.append(self._write_sse("citation-end", None, index))
        written.append(self._write_sse("message-end", ending))
        return b"".join(written)

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        if not self._stream:
            return write_error(status, message, kind)
        ending = {"finish_reason": "ERROR", "error": message}
        return b"".join([self._begin(), self._end_item(), self._write_sse("message-end", ending)])

    def _write_document(self, calls: list[dict[str, Any]], ending: dict[str, Any]) -> bytes:
        message: dict[str, Any] = {"role": "assistant"}
        if self._items:
            message["content"] = [_join_pieces(item) for item in self._items]
        if self._plan:
            message["tool_plan"] = self._plan
        if calls:
            message["tool_calls"] = calls
        if self._citations:
            message["citations"] = self._citations
        return msgspec.json.encode({"id": self._find_id(""), "message": message, **ending})

    def _write_sse(self, kind: str, delta: dict[str, Any] | None, index: int | None = None, **more: Any) -> bytes:
        document: dict[str, Any] = {**more, "type": kind}
        if index is not None:
            document["index"] = index
        if delta is not None:
            document["delta"] = delta
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


def _join_pieces(held: dict[str, Any]) -> Any:
    item = held["item"]
    return {**item, item["type"]: "".join(held["pieces"])} if isinstance(item, dict) else item


def _encode_stop(stop: StopReason, *, has_calls: bool) -> str | None:
    if stop == StopReason():
        return None
    return name_stop(stop, _KNOWN_FINISH_REASONS, _FINISH_REASONS, complete="TOOL_CALL" if has_calls else "COMPLETE")


def _encode_usage(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.input, "output_tokens": usage.output, "reasoning_tokens": usage.thinking}
    tokens = {name: count for name, count in counts.items() if count is not None}
    billed = {name: count for name, count in tokens.items() if name != "reasoning_tokens"}
    encoded: dict[str, Any] = {"billed_units": billed, "tokens": tokens}
    if usage.cached is not None:
        encoded["cached_tokens"] = usage.cached
    return encoded
