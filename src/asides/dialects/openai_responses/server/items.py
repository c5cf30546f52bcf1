"""Output items while they are written: an item for each block, told in events and put together into a whole.

An item that came from this dialect carries its entry along and is written as it was. Not here: the response around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.messages import ServerTool, UnknownPart

Wire: TypeAlias = dict[str, Any]
Told: TypeAlias = tuple[str, Wire]


_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def item_id(kind: str, response: str, number: int) -> str:
    """The id of the so-manieth item of a response: its own among all, as long as the response's is."""
    return f"{_PREFIXES.get(kind, 'item')}_{response.removeprefix('resp_')}_{number}"


class WrittenItem:
    """One item of the output."""

    def __init__(self, kind: str, response: str, number: int) -> None:
        self.id = item_id(kind, response, number)
        self.place = 0
        self.closed = False
        self.pieces: list[str] = []
        self.entry: Wire = {}

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self.pieces)

    def take(self, event: Event) -> Iterator[Told]:
        """The events that this one is on the wire."""
        raise NotImplementedError

    def finish(self) -> Iterator[Told]:
        """The events that end its parts."""
        yield from ()

    def announced(self) -> Wire:
        """The item before anything was said of it."""
        return {**self.whole(), "status": "in_progress"}

    def whole(self) -> Wire:
        """The item with all that was said of it."""
        raise NotImplementedError

    def _keep_entry(self, event: ThoughtSealed, *kinds: str) -> None:
        if event.seal.entry is not None:
            entry = msgspec.json.decode(event.seal.entry)
            if isinstance(entry, dict) and entry.get("type") in kinds:
                self.entry = entry


class _Message(WrittenItem):
    def __init__(self, response: str, number: int, *, refuses: bool) -> None:
        super().__init__("message", response, number)
        self._field = "refusal" if refuses else "text"
        self._kind = "refusal" if refuses else "output_text"

    def take(self, event: Event) -> Iterator[Told]:
        if isinstance(event, ThoughtSealed):
            self._keep_entry(event, "message")
        if isinstance(event, (TextDelta, RefusalDelta)) and event.text:
            if not self.pieces:
                yield "response.content_part.added", {"content_index": 0, "part": self._part("")}
            self.pieces.append(event.text)
            yield f"response.{self._kind}.delta", {"content_index": 0, "delta": event.text}

    def finish(self) -> Iterator[Told]:
        if self.pieces:
            yield f"response.{self._kind}.done", {"content_index": 0, self._field: self.text}
            yield "response.content_part.done", {"content_index": 0, "part": self._part(self.text)}

    def _part(self, words: str) -> Wire:
        beside: Wire = {} if self._kind == "refusal" else {"annotations": []}
        return {"type": self._kind, self._field: words, **beside}

    def whole(self) -> Wire:
        beside = {name: value for name, value in self.entry.items() if name in ("id", "phase")}
        content = [self._part(self.text)] if self.pieces else []
        whole = {"type": "message", "id": self.id, "role": "assistant", "status": "completed", "content": content}
        return {**whole, **beside}


class _Reasoning(WrittenItem):
    def __init__(self, response: str, number: int) -> None:
        super().__init__("reasoning", response, number)
        self._raw = False
        self._encrypted: str | None = None

    def take(self, event: Event) -> Iterator[Told]:
        if isinstance(event, ThoughtSealed):
            self._keep_entry(event, "reasoning")
            if event.seal.kind == "encrypted":
                self._encrypted = event.seal.value
        if isinstance(event, ThinkingDelta) and event.text:
            if not self.pieces:
                self._raw = event.kind != "summary"
                if not self._raw:
                    part = {"type": "summary_text", "text": ""}
                    yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": part}
            self.pieces.append(event.text)
            kind = "reasoning_text" if self._raw else "reasoning_summary_text"
            yield f"response.{kind}.delta", {**self._index(), "delta": event.text}

    def _index(self) -> Wire:
        return {"content_index": 0} if self._raw else {"summary_index": 0}

    def finish(self) -> Iterator[Told]:
        if not self.pieces:
            return
        kind = "reasoning_text" if self._raw else "reasoning_summary_text"
        yield f"response.{kind}.done", {**self._index(), "text": self.text}
        if not self._raw:
            part = {"type": "summary_text", "text": self.text}
            yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}

    def whole(self) -> Wire:
        whole: Wire = {"type": "reasoning", "id": self.id, "summary": []}
        if self.pieces and self._raw:
            whole["content"] = [{"type": "reasoning_text", "text": self.text}]
        elif self.pieces:
            whole["summary"] = [{"type": "summary_text", "text": self.text}]
        if self._encrypted is not None:
            whole["encrypted_content"] = self._encrypted
        return {**whole, **self.entry}


class _Call(WrittenItem):
    def __init__(self, response: str, number: int, event: ToolCallDelta) -> None:
        super().__init__("custom_tool_call" if event.custom else "function_call", response, number)
        self._custom = event.custom
        self._call_id = event.id
        self._name = event.name

    def take(self, event: Event) -> Iterator[Told]:
        if isinstance(event, ThoughtSealed):
            self._keep_entry(event, "function_call", "custom_tool_call")
        if isinstance(event, ToolCallDelta):
            self._call_id, self._name = self._call_id or event.id, self._name or event.name
            if event.arguments:
                self.pieces.append(event.arguments)
                yield f"response.{self._what}.delta", {"delta": event.arguments}

    @property
    def _what(self) -> str:
        return "custom_tool_call_input" if self._custom else "function_call_arguments"

    def finish(self) -> Iterator[Told]:
        yield f"response.{self._what}.done", {"input" if self._custom else "arguments": self.text}

    def whole(self) -> Wire:
        kind, field = ("custom_tool_call", "input") if self._custom else ("function_call", "arguments")
        beside = {name: value for name, value in self.entry.items() if name in ("id", "namespace")}
        return {
            "type": kind,
            "id": self.id,
            "call_id": self._call_id or self.id,
            "name": self._name or "",
            field: self.text,
            "status": "completed",
            **beside,
        }


class _Given(WrittenItem):
    """An item that comes as it is: a tool of the provider's, or something unknown."""

    def __init__(self, response: str, number: int, event: PartArrived) -> None:
        super().__init__("item", response, number)
        self._item = _given(event)
        self.id = str(self._item.get("id") or self.id)

    def take(self, event: Event) -> Iterator[Told]:
        if isinstance(event, PartArrived):
            self._item = _given(event)
            if isinstance(event.part, ServerTool) and event.part.status:
                yield f"response.{event.part.name}.{event.part.status}", {}

    def announced(self) -> Wire:
        return self._item

    def whole(self) -> Wire:
        return self._item


def _given(event: PartArrived) -> Wire:
    if not isinstance(event.part, (ServerTool, UnknownPart)):
        return {}
    item = msgspec.json.decode(event.part.json)
    if isinstance(event.part, ServerTool):
        beside = {"id": event.part.id, "status": event.part.status}
        known = {name: value for name, value in beside.items() if value is not None}
        return {**item, "type": event.part.name, **known}
    return item if isinstance(item, dict) else {"type": "unknown", "value": item}


def written_item(event: Event, response: str, number: int) -> WrittenItem | None:
    """The item that begins with this event, the so-manieth of this response; None where it begins none."""
    match event:
        case ThinkingDelta():
            return _Reasoning(response, number)
        case ThoughtSealed():
            return _Reasoning(response, number) if event.seal.kind == "encrypted" else None
        case TextDelta():
            return _Message(response, number, refuses=False)
        case RefusalDelta():
            return _Message(response, number, refuses=True)
        case ToolCallDelta():
            return _Call(response, number, event)
        case PartArrived(part=ServerTool() | UnknownPart()):
            return _Given(response, number, event)
        case _:
            return None
