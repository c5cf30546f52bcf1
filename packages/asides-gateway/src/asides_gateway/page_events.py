"""The events of a reply as server-sent events of the page: `EventWriter(visibility).write(events) → bytes`.

Thinking is in `thought` alone, and only as far as the policy allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from asides.values.events import (
    CommentaryDelta,
    Event,
    OutputEvent,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.json_form import write_json
from asides.values.parts import ServerTool, ToolCall, read_arguments
from asides.values.visibility import Visibility
from asides_gateway.page_messages import show_call, show_notice, show_server_tool

PING = b": ping\n\n"

_Kind = Literal["thought", "text", "refusal", "call", "other"]


def write_event(name: str, data: Any, position: str = "") -> bytes:
    """One server-sent event. `position`: its id, for a stream that a reader can resume there."""
    try:
        written = msgspec.json.encode(data)
    except UnicodeEncodeError:  # Half a character (a lone surrogate).
        written = write_json(data).encode()
    place = b"id: %b\n" % position.encode() if position else b""
    return b"%bevent: %b\ndata: %b\n\n" % (place, name.encode(), written)


class EventWriter:
    """Writes the events of one reply. Deltas of one block that came together leave together."""

    def __init__(self, visibility: Visibility, clock: Callable[[], float] = time.monotonic) -> None:
        self._visibility = visibility
        self._clock = clock
        self._kinds: dict[int, _Kind] = {}
        """What each block is."""
        self._calls: dict[int, tuple[str, str, list[str]]] = {}
        """The id, the name and the pieces of the arguments of the calls that are under way."""
        self._thought: tuple[int, float] | None = None
        """The block that is being thought, and since when."""
        self._sealed: int | None = None
        """A block with only a seal so far: a hidden thought, unless its text or call follows."""
        self._pending: tuple[str, dict[str, Any], list[str]] | None = None
        """The event that grows: its name, its fields, and its pieces of text."""
        self._written: list[bytes] = []

    def write(self, events: Iterable[Event]) -> bytes:
        """Write events that came together; b"" if the page has nothing to show for them."""
        for event in events:
            match event:
                case TextDelta():
                    self._enter(event.block, "text")
                    self._grow("text", {"block": event.block}, event.text)
                case TextReclassified():
                    self._move_text(event)
                case CommentaryDelta():
                    self._enter(event.block, "text")
                    self._grow("text", {"block": event.block, "commentary": True}, event.text)
                case ThinkingDelta():
                    self._write_thought(event)
                case RefusalDelta():
                    self._enter(event.block, "refusal")
                    self._grow("text", {"block": event.block, "refusal": True}, event.text)
                case ToolCallDelta():
                    self._add_call(event)
                case ThoughtSealed():
                    if event.block not in self._kinds:
                        self._enter(None)
                        self._sealed = event.block
                case Warned():
                    self._put("notice", show_notice(event.notice))
                case ReplyStarted() | UsageReported() | ReplyEnded():
                    pass
                case _:
                    self._write_part(event)
        return self._flush()

    def finish(self) -> bytes:
        """Write what is still to be said at the end of the events."""
        self._enter(None)
        return self._flush()

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _enter(self, block: int | None, kind: _Kind = "other") -> None:
        """Another block may begin: end the one before."""
        if self._sealed is not None and self._sealed != block:
            hidden, self._sealed = self._sealed, None
            self._kinds[hidden] = "thought"
            self._put("thought", {"block": hidden, "kind": "hidden", "text": ""})
            self._put("thought_end", {"block": hidden, "seconds": 0.0})
        elif self._sealed == block:
            self._sealed = None
        if self._thought is not None and self._thought[0] != block:
            (ended, since), self._thought = self._thought, None
            self._put("thought_end", {"block": ended, "seconds": round(self._clock() - since, 3)})
        for place in [place for place in self._calls if place != block]:
            self._end_call(place)
        if block is not None:
            self._kinds[block] = kind

    def _move_text(self, event: TextReclassified) -> None:
        """Take the text of a block out of the answer, and write it as the thought or the commentary that it is."""
        self._enter(None)
        self._put("text_moved", {"block": event.block})
        moved = event.build_delta()
        if isinstance(moved, ThinkingDelta):
            self._write_thought(moved)
        else:
            self._enter(event.block, "text")
            self._grow("text", {"block": event.block, "commentary": True}, moved.text)
        self._enter(None)

    def _write_thought(self, event: ThinkingDelta) -> None:
        if not event.text:
            return
        block, kind = event.block, event.kind
        self._enter(block, "thought")
        is_new = self._thought is None
        if is_new:
            self._thought = (block, self._clock())
        if self._visibility.allows("gateway", kind) and kind != "hidden":
            self._grow("thought", {"block": block, "kind": kind}, event.text)
        elif is_new:
            self._put("thought", {"block": block, "kind": "hidden", "text": ""})

    def _add_call(self, event: ToolCallDelta) -> None:
        # Calls may come in turns: one ends when something else than a call begins, or at the end.
        if event.block not in self._calls:
            if not self._calls:
                self._enter(event.block, "call")
            self._kinds[event.block] = "call"
            self._calls[event.block] = ("", "", [])
        identifier, name, pieces = self._calls[event.block]
        pieces.append(event.arguments)
        self._calls[event.block] = (event.id or identifier, event.name or name, pieces)

    def _end_call(self, block: int) -> None:
        identifier, name, pieces = self._calls.pop(block)
        written = "".join(pieces)
        arguments = read_arguments(written)
        call = ToolCall(identifier, name, arguments or {}, written if arguments is None else None)
        shown = show_call(call)
        self._put("call", {"block": block} | {name: shown[name] for name in ("id", "name", "arguments")})

    def _write_part(self, event: OutputEvent) -> None:
        self._enter(event.block)
        if isinstance(event, PartArrived) and isinstance(event.part, ServerTool):
            shown = show_server_tool(event.part)
            del shown["type"]
            self._put("call", {"block": event.block} | shown)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _grow(self, name: str, fields: dict[str, Any], text: str) -> None:
        if not text:
            return
        if self._pending is not None and self._pending[:2] == (name, fields):
            self._pending[2].append(text)
            return
        self._write_pending()
        self._pending = (name, fields, [text])

    def _put(self, name: str, data: dict[str, Any]) -> None:
        self._write_pending()
        self._written.append(write_event(name, data))

    def _write_pending(self) -> None:
        if self._pending is not None:
            (name, fields, pieces), self._pending = self._pending, None
            self._written.append(write_event(name, {**fields, "text": "".join(pieces)}))

    def _flush(self) -> bytes:
        self._write_pending()
        written, self._written = b"".join(self._written), []
        return written
