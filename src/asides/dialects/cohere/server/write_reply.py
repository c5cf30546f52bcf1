"""The server half's replies: events in, a v2 chat out, streamed or whole (`ChatWriter`), and errors.

Not here: requests (read_request), sockets and status lines. A whole response is a stream that was put together.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.message_encoder import encode_arguments
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
from asides.values.messages import UnknownPart
from asides.values.usage import Usage

_FINISH_REASONS = frozenset({"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "ERROR_TOXIC", "TIMEOUT"})
_SPOKEN: dict[StopKind, str] = {
    "length": "MAX_TOKENS",
    "tool_calls": "TOOL_CALL",
    "content_filter": "ERROR_TOXIC",
    "error": "ERROR",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - there is one shape
    """An error body; `kind` is what clients match on."""
    return msgspec.json.encode({"message": message} if kind is None else {"message": message, "code": kind})


class ChatWriter(ReplyWriter):
    """Events of one reply in, a v2 chat out, in events or whole.

    Blocks keep their order, except that calls stand behind the content and come when all of them are known. Warnings
    are not on this wire, nor are seals of other dialects.
    """

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream)
        self._stream = stream
        self._begun = False
        self._places: dict[int, int] = {}
        """The index of the item that each block is."""
        self._items: list[dict[str, Any]] = []
        self._calls: list[ToolCallDelta] = []
        self._plan: str | None = None
        self._citations: list[Any] = []

    def _write_event(self, event: Event) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._say(event.block, "text", event.text)
            case ThinkingDelta():
                return self._say(event.block, "thinking", event.text)
            case ToolCallDelta():
                self._calls.append(event)
            case ThoughtSealed():
                self._seal(event)
            case PartArrived(part=UnknownPart() as part):
                return self._keep(event.block, part)
            case _:
                pass
        return b""

    def _say(self, block: int, field: str, text: str) -> bytes:
        if not text:
            return b""
        written = b""
        if block not in self._places:
            written = self._begin_item(block, {"type": field, field: ""})
        place = self._places[block]
        if self._stream:
            return written + self._event("content-delta", {"message": {"content": {field: text}}}, place)
        self._items[place].setdefault("pieces", []).append(text)
        return b""

    def _begin_item(self, block: int, item: dict[str, Any] | msgspec.Raw) -> bytes:
        self._places[block] = place = len(self._places)
        if self._stream:
            return self._begin() + self._event("content-start", {"message": {"content": item}}, place)
        self._items.append({"item": item})
        return b""

    def _keep(self, block: int, part: UnknownPart) -> bytes:
        if block in self._places:
            return b""
        return self._begin_item(block, msgspec.Raw(part.json.encode()))

    def _seal(self, event: ThoughtSealed) -> None:
        seal = event.seal
        if seal.entry is None:
            return
        if seal.kind == PLAN:
            self._plan = msgspec.json.decode(seal.entry, type=str)
        elif seal.kind == CITED:
            place = self._places.get(event.block)
            for citation in msgspec.json.decode(seal.entry, type=list[dict[str, Any]]):
                # Which item it belongs to is said where a reader could not know.
                told = place is not None and citation.get("content_index") in (None, place)
                self._citations.append(citation if told else {**citation, "content_index": place})

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        return self._event("message-start", {"message": message}, id=self._started.id or "")

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
        if (reason := _finish_reason(stop, calls=bool(calls))) is not None:
            ending["finish_reason"] = reason
        if self._shown_usage is not None:
            ending["usage"] = _usage(self._shown_usage)
        return self._end_stream(calls, ending) if self._stream else self._whole(calls, ending)

    def _end_stream(self, calls: list[dict[str, Any]], ending: dict[str, Any]) -> bytes:
        written = [self._begin()]
        written += [self._event("content-end", None, place) for place in self._places.values()]
        if self._plan:
            written.append(self._event("tool-plan-delta", {"message": {"tool_plan": self._plan}}))
        for place, call in enumerate(calls):
            written.append(self._event("tool-call-start", {"message": {"tool_calls": call}}, place))
            written.append(self._event("tool-call-end", None, place))
        for place, citation in enumerate(self._citations):
            written.append(self._event("citation-start", {"message": {"citations": citation}}, place))
            written.append(self._event("citation-end", None, place))
        written.append(self._event("message-end", ending))
        return b"".join(written)

    def _whole(self, calls: list[dict[str, Any]], ending: dict[str, Any]) -> bytes:
        message: dict[str, Any] = {"role": "assistant"}
        if self._items:
            message["content"] = [_item(item) for item in self._items]
        if self._plan:
            message["tool_plan"] = self._plan
        if calls:
            message["tool_calls"] = calls
        if self._citations:
            message["citations"] = self._citations
        return msgspec.json.encode({"id": self._started.id or "", "message": message, **ending})

    def _event(self, kind: str, delta: dict[str, Any] | None, index: int | None = None, **more: Any) -> bytes:
        document: dict[str, Any] = {**more, "type": kind}
        if index is not None:
            document["index"] = index
        if delta is not None:
            document["delta"] = delta
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


def _item(held: dict[str, Any]) -> Any:
    item = held["item"]
    return {**item, item["type"]: "".join(held["pieces"])} if isinstance(item, dict) else item


def _finish_reason(stop: StopReason, *, calls: bool) -> str | None:
    if stop.raw in _FINISH_REASONS:
        return stop.raw
    if stop == StopReason():
        return None
    return _SPOKEN.get(stop.reason, "TOOL_CALL" if calls else "COMPLETE")


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.input, "output_tokens": usage.output, "reasoning_tokens": usage.thinking}
    spelled: dict[str, Any] = {"tokens": {name: count for name, count in counts.items() if count is not None}}
    if usage.cached is not None:
        spelled["cached_tokens"] = usage.cached
    return spelled
