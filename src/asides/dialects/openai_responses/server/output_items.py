"""The items of a response while they are written: text, reasoning, calls, pictures, and parts that come whole.

Not here: the order of the items and the response around them (write_reply).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from asides.dialects.server_half import ContentEvent, has_all_arguments
from asides.values.events import (
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.parts import Image, ServerTool, UnknownPart

Wire: TypeAlias = dict[str, Any]
WireEvent: TypeAlias = tuple[str, Wire]
"""The type of an event on the wire, and its fields."""

_ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
}


def make_item_id(kind: str, response_id: str, number: int) -> str:
    """Make the id of an item: unique if the response's id is."""
    return f"{_ID_PREFIXES.get(kind, 'item')}_{response_id.removeprefix('resp_')}_{number}"


def begin_item(event: ContentEvent, response_id: str, number: int, namespace: str = "") -> OutputItem | None:
    """Make the item that this event begins; None if it begins none. `namespace`: that of the tool which it calls."""
    match event:
        case ThinkingDelta():
            return _Reasoning(response_id, number)
        case ThoughtSealed():
            return _begin_sealed(event, response_id, number) if event.seal.kind == "encrypted" else None
        case TextDelta():
            return _Message(response_id, number, refuses=False)
        case RefusalDelta():
            return _Message(response_id, number, refuses=True)
        case ToolCallDelta():
            return _Call(response_id, number, event, namespace)
        case PartArrived(part=Image(data=bytes() as data)):
            return _Picture(response_id, number, data)
        case PartArrived(part=ServerTool() | UnknownPart()):
            return _Part(response_id, number, event)
        case PartArrived():
            return None


def _begin_sealed(event: ThoughtSealed, response_id: str, number: int) -> OutputItem:
    """A thought without text. Its own id is known before the item is announced."""
    item = _Reasoning(response_id, number)
    item.store_entry(event, "reasoning")
    item.id = str(item.entry.get("id") or item.id)
    return item


class OutputItem:
    """One item of the output."""

    def __init__(self, kind: str, response_id: str, number: int) -> None:
        self.id = make_item_id(kind, response_id, number)
        self.index = 0
        self.announced = False
        """Whether the client of a stream knows its id, which stays from then on: clients find the item by it."""
        self.closed = False
        self.status = "completed"
        """The status that it ends with."""
        self.pieces: list[str] = []
        self.entry: Wire = {}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    @property
    def delta(self) -> WireEvent | None:
        """The event of a further piece of text, without the text; None if the item has no pieces."""
        return None

    def can_go_on(self) -> bool:
        """Whether more of it may come after another item has begun."""
        return False

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

    def store_entry(self, event: ThoughtSealed, *kinds: str) -> None:
        """Keep the item that a seal came in, if it is of one of these kinds."""
        if event.seal.entry is not None:
            entry = msgspec.json.decode(event.seal.entry)
            if isinstance(entry, dict) and entry.get("type") in kinds:
                self.entry = {**entry, "id": self.id} if self.announced else entry

    def _select_entry(self, *names: str) -> Wire:
        return {name: value for name, value in self.entry.items() if name in names}


class _Message(OutputItem):
    def __init__(self, response_id: str, number: int, *, refuses: bool) -> None:
        super().__init__("message", response_id, number)
        self._field = "refusal" if refuses else "text"
        self._kind = "refusal" if refuses else "output_text"
        # Clients count on a list of probabilities beside every piece of text, even if it is empty.
        self._more: Wire = {} if refuses else {"logprobs": []}

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "message")
        if isinstance(event, (TextDelta, RefusalDelta)) and event.text:
            if not self.pieces:
                yield "response.content_part.added", {"content_index": 0, "part": self._encode_part("")}
            self.pieces.append(event.text)
            kind, fields = self.delta
            yield kind, {**fields, "delta": event.text}

    @property
    def delta(self) -> WireEvent:
        return f"response.{self._kind}.delta", {"content_index": 0, **self._more}

    def finish(self) -> Iterator[WireEvent]:
        if self.pieces:
            yield f"response.{self._kind}.done", {"content_index": 0, self._field: self.text, **self._more}
            yield "response.content_part.done", {"content_index": 0, "part": self._encode_part(self.text)}

    def _encode_part(self, text: str) -> Wire:
        part: Wire = {"type": self._kind, self._field: text}
        return part if self._kind == "refusal" else {**part, "annotations": []}

    def encode(self) -> Wire:
        content = [self._encode_part(self.text)] if self.pieces else []
        item = {"type": "message", "id": self.id, "role": "assistant", "status": self.status, "content": content}
        return {**item, **self._select_entry("id", "phase")}


class _Reasoning(OutputItem):
    def __init__(self, response_id: str, number: int) -> None:
        super().__init__("reasoning", response_id, number)
        self._raw = False
        self._encrypted: str | None = None

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "reasoning")
            if event.seal.kind == "encrypted":
                self._encrypted = event.seal.value
        if isinstance(event, ThinkingDelta) and event.text:
            if not self.pieces:
                self._raw = event.kind != "summary"
                if not self._raw:
                    part = {"type": "summary_text", "text": ""}
                    yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": part}
            self.pieces.append(event.text)
            kind, fields = self.delta
            yield kind, {**fields, "delta": event.text}

    @property
    def delta(self) -> WireEvent:
        return f"response.{self._kind}.delta", self._index

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


class _Call(OutputItem):
    def __init__(self, response_id: str, number: int, event: ToolCallDelta, namespace: str) -> None:
        self._kind = "custom_tool_call" if event.custom else "function_call"
        super().__init__(self._kind, response_id, number)
        self._field = "input" if event.custom else "arguments"
        self._call_id = event.id
        self._name = event.name
        self._beside: Wire = {"namespace": namespace} if namespace else {}

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "function_call", "custom_tool_call")
        if isinstance(event, ToolCallDelta):
            self._call_id, self._name = self._call_id or event.id, self._name or event.name
            if event.arguments:
                self.pieces.append(event.arguments)
                kind, fields = self.delta
                yield kind, {**fields, "delta": event.arguments}

    @property
    def delta(self) -> WireEvent:
        return f"response.{self._kind}_{self._field}.delta", {}

    def can_go_on(self) -> bool:
        return self._field == "arguments" and not has_all_arguments(self.pieces)

    def finish(self) -> Iterator[WireEvent]:
        yield f"response.{self._kind}_{self._field}.done", {self._field: self.text}

    def encode(self) -> Wire:
        return {
            "type": self._kind,
            "id": self.id,
            "call_id": self._call_id or self.id,
            "name": self._name or "",
            **self._beside,
            self._field: self.text,
            "status": self.status,
            **self._select_entry("id", "namespace"),
        }


class _Picture(OutputItem):
    """A picture of the model, as the item of the tool that makes pictures here."""

    def __init__(self, response_id: str, number: int, data: bytes) -> None:
        super().__init__("image_generation_call", response_id, number)
        self._result = b64encode(data).decode()

    def write(self, event: ContentEvent) -> Iterator[WireEvent]:  # noqa: ARG002 - it has come whole
        yield from ()

    def encode(self) -> Wire:
        return {"type": "image_generation_call", "id": self.id, "status": self.status, "result": self._result}


class _Part(OutputItem):
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
