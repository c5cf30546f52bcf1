"""Write replies (`ResponsesWriter`) as a server of Responses does: one output item for each block of the reply.

A whole response is built from the same items as a stream. An item that came from this dialect is written with the
fields of its entry. Not here: requests (read_request), errors (openai_chat/server/write_reply), sockets and status
lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from asides.dialects.server_half import ContentEvent, ReplyWriter
from asides.values.events import (
    PartArrived,
    RefusalDelta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.parts import ServerTool, UnknownPart
from asides.values.usage import Usage

Wire: TypeAlias = dict[str, Any]
WireEvent: TypeAlias = tuple[str, Wire]
"""The type of an event on the wire, and its fields."""

_ID_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


class ResponsesWriter(ReplyWriter):
    """Events of one reply in, a response out. Images and files, and seals of other dialects, are not written."""

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        super().__init__(model, "text/event-stream" if stream else "application/json", shows_usage=include_usage)
        self._stream = stream
        self._items: dict[int, _Item] = {}
        """The item of each block."""
        self._open: _Item | None = None
        self._number = 0
        self._begun = False

    def _write_event(self, event: ContentEvent) -> bytes:
        return b"".join([*self._begin(), *self._write_to_item(event)])

    # --- items ------------------------------------------------------------------------------------------------------

    def _write_to_item(self, event: ContentEvent) -> list[bytes]:
        item = self._items.get(event.block)
        written: list[bytes] = []
        if item is None:
            item = _begin_item(event, self._id, len(self._items))
            if item is None:
                return []
            written += self._close_item()
            item.index = len(self._items)
            self._items[event.block] = self._open = item
            written.append(self._write_sse("response.output_item.added", output_index=item.index, item=item.start()))
        if item.closed:
            return written  # the item is already sent, so a late event is dropped
        for kind, fields in item.write(event):
            written.append(self._write_sse(kind, item_id=item.id, output_index=item.index, **fields))
        return written

    def _close_item(self) -> list[bytes]:
        item, self._open = self._open, None
        if item is None:
            return []
        item.closed = True
        written = [
            self._write_sse(kind, item_id=item.id, output_index=item.index, **fields) for kind, fields in item.finish()
        ]
        done = self._write_sse("response.output_item.done", output_index=item.index, item=item.encode())
        return [*written, done]

    # --- the response -----------------------------------------------------------------------------------------------

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        response = self._encode_response("in_progress")
        return [self._write_sse(kind, response=response) for kind in ("response.created", "response.in_progress")]

    def _write_end(self, stop: StopReason) -> bytes:
        written = [*self._begin(), *self._close_item()]
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(stop.reason)
        response = self._encode_response("completed" if reason is None else "incomplete")
        if reason is not None:
            response["incomplete_details"] = {"reason": reason}
        items = sorted(self._items.items()) if not self._stream else self._items.items()
        response["output"] = [item.encode() for _, item in items]
        if self._shown_usage is not None and self._shown_usage != Usage():
            response["usage"] = _encode_usage(self._shown_usage)
        if not self._stream:
            return msgspec.json.encode(response)
        return b"".join([*written, self._write_sse(f"response.{response['status']}", response=response)])

    @property
    def _id(self) -> str:
        return self._find_id("resp_")

    def _encode_response(self, status: str) -> Wire:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._started.model,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "output": [],
            "store": self._started.stored,
            "usage": None,
        }

    def _write_sse(self, kind: str, **fields: Any) -> bytes:
        if not self._stream:
            return b""
        document = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Clients may count on every one, so one that is unknown is zero."""
    received, sent = usage.input or 0, usage.output or 0
    return {
        "input_tokens": received,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_written or 0},
        "output_tokens": sent,
        "output_tokens_details": {"reasoning_tokens": usage.thinking or 0},
        "total_tokens": received + sent if usage.total is None else usage.total,
    }


# --- items while they are written -----------------------------------------------------------------------------------


def make_item_id(kind: str, response_id: str, number: int) -> str:
    """Make the id of an item: unique if the response's id is."""
    return f"{_ID_PREFIXES.get(kind, 'item')}_{response_id.removeprefix('resp_')}_{number}"


def _begin_item(event: ContentEvent, response_id: str, number: int) -> _Item | None:
    """Make the item that this event begins; None if it begins none."""
    match event:
        case ThinkingDelta():
            return _Reasoning(response_id, number)
        case ThoughtSealed():
            return _Reasoning(response_id, number) if event.seal.kind == "encrypted" else None
        case TextDelta():
            return _Message(response_id, number, refuses=False)
        case RefusalDelta():
            return _Message(response_id, number, refuses=True)
        case ToolCallDelta():
            return _Call(response_id, number, event)
        case PartArrived(part=ServerTool() | UnknownPart()):
            return _Part(response_id, number, event)
        case PartArrived():
            return None


class _Item:
    """One item of the output."""

    def __init__(self, kind: str, response_id: str, number: int) -> None:
        self.id = make_item_id(kind, response_id, number)
        self.index = 0
        self.closed = False
        self.pieces: list[str] = []
        self.entry: Wire = {}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        """Add an event; yield its events on the wire."""
        raise NotImplementedError

    def finish(self) -> Iterator[WireEvent]:
        """Yield the events that end the parts of the item."""
        yield from ()

    def start(self) -> Wire:
        """Encode the item as it is announced, before its content."""
        return {**self.encode(), "status": "in_progress"}

    def encode(self) -> Wire:
        """Encode the item with its content so far."""
        raise NotImplementedError

    def _store_entry(self, event: ThoughtSealed, *kinds: str) -> None:
        if event.seal.entry is not None:
            entry = msgspec.json.decode(event.seal.entry)
            if isinstance(entry, dict) and entry.get("type") in kinds:
                self.entry = entry

    def _select_entry(self, *names: str) -> Wire:
        return {name: value for name, value in self.entry.items() if name in names}


class _Message(_Item):
    def __init__(self, response_id: str, number: int, *, refuses: bool) -> None:
        super().__init__("message", response_id, number)
        self._field = "refusal" if refuses else "text"
        self._kind = "refusal" if refuses else "output_text"
        # Clients count on a list of probabilities beside every piece of text, even if it is empty.
        self._more: Wire = {} if refuses else {"logprobs": []}

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self._store_entry(event, "message")
        if isinstance(event, (TextDelta, RefusalDelta)) and event.text:
            if not self.pieces:
                yield "response.content_part.added", {"content_index": 0, "part": self._encode_part("")}
            self.pieces.append(event.text)
            yield f"response.{self._kind}.delta", {"content_index": 0, "delta": event.text, **self._more}

    def finish(self) -> Iterator[WireEvent]:
        if self.pieces:
            yield f"response.{self._kind}.done", {"content_index": 0, self._field: self.text, **self._more}
            yield "response.content_part.done", {"content_index": 0, "part": self._encode_part(self.text)}

    def _encode_part(self, text: str) -> Wire:
        part: Wire = {"type": self._kind, self._field: text}
        return part if self._kind == "refusal" else {**part, "annotations": []}

    def encode(self) -> Wire:
        content = [self._encode_part(self.text)] if self.pieces else []
        item = {"type": "message", "id": self.id, "role": "assistant", "status": "completed", "content": content}
        return {**item, **self._select_entry("id", "phase")}


class _Reasoning(_Item):
    def __init__(self, response_id: str, number: int) -> None:
        super().__init__("reasoning", response_id, number)
        self._raw = False
        self._encrypted: str | None = None

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self._store_entry(event, "reasoning")
            if event.seal.kind == "encrypted":
                self._encrypted = event.seal.value
        if isinstance(event, ThinkingDelta) and event.text:
            if not self.pieces:
                self._raw = event.kind != "summary"
                if not self._raw:
                    part = {"type": "summary_text", "text": ""}
                    yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": part}
            self.pieces.append(event.text)
            yield f"response.{self._kind}.delta", {**self._index, "delta": event.text}

    @property
    def _kind(self) -> str:
        return "reasoning_text" if self._raw else "reasoning_summary_text"

    @property
    def _index(self) -> Wire:
        return {"content_index": 0} if self._raw else {"summary_index": 0}

    def finish(self) -> Iterator[WireEvent]:
        if not self.pieces:
            return
        yield f"response.{self._kind}.done", {**self._index, "text": self.text}
        if not self._raw:
            part = {"type": "summary_text", "text": self.text}
            yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}

    def encode(self) -> Wire:
        item: Wire = {"type": "reasoning", "id": self.id, "summary": []}
        if self.pieces and self._raw:
            item["content"] = [{"type": "reasoning_text", "text": self.text}]
        elif self.pieces:
            item["summary"] = [{"type": "summary_text", "text": self.text}]
        if self._encrypted is not None:
            item["encrypted_content"] = self._encrypted
        return {**item, **self.entry}


class _Call(_Item):
    def __init__(self, response_id: str, number: int, event: ToolCallDelta) -> None:
        self._kind = "custom_tool_call" if event.custom else "function_call"
        super().__init__(self._kind, response_id, number)
        self._field = "input" if event.custom else "arguments"
        self._call_id = event.id
        self._name = event.name

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self._store_entry(event, "function_call", "custom_tool_call")
        if isinstance(event, ToolCallDelta):
            self._call_id, self._name = self._call_id or event.id, self._name or event.name
            if event.arguments:
                self.pieces.append(event.arguments)
                yield f"response.{self._kind}_{self._field}.delta", {"delta": event.arguments}

    def finish(self) -> Iterator[WireEvent]:
        yield f"response.{self._kind}_{self._field}.done", {self._field: self.text}

    def encode(self) -> Wire:
        return {
            "type": self._kind,
            "id": self.id,
            "call_id": self._call_id or self.id,
            "name": self._name or "",
            self._field: self.text,
            "status": "completed",
            **self._select_entry("id", "namespace"),
        }


class _Part(_Item):
    """An item that comes whole: a tool that the provider ran, or something unknown."""

    def __init__(self, response_id: str, number: int, event: PartArrived) -> None:
        super().__init__("item", response_id, number)
        self._item = _encode_part(event)
        self.id = str(self._item.get("id") or self.id)

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, PartArrived):
            self._item = _encode_part(event)
            if isinstance(event.part, ServerTool) and event.part.status:
                yield f"response.{event.part.name}.{event.part.status}", {}

    def start(self) -> Wire:
        return self._item

    def encode(self) -> Wire:
        return self._item


def _encode_part(event: PartArrived) -> Wire:
    if not isinstance(event.part, (ServerTool, UnknownPart)):
        return {}
    item = msgspec.json.decode(event.part.json)
    if isinstance(event.part, ServerTool):
        known = {"id": event.part.id, "status": event.part.status}
        return {**item, "type": event.part.name, **{name: value for name, value in known.items() if value is not None}}
    return item if isinstance(item, dict) else {"type": "unknown", "value": item}
