"""Put the events of a streamed reply into an order in which one block is open at a time: `BlockOrder`.

Some servers go back to an earlier text after a thought, or send the arguments of several calls in turns. Most dialects
cannot say that: a block has ended when the next one begins. Not here: the bytes of a dialect (its folder `server`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from asides.values.events import (
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.parts import read_arguments

ContentEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | ThoughtSealed | RefusalDelta | PartArrived
"""The events that belong to a block. Each writer has a case for every one of them."""


class BlockOrder:
    """Events in, the same events out, some of them later or with another block.

    Text and thoughts that return to an earlier block begin another one. While the arguments of a call are not complete,
    the events of other blocks wait.
    """

    __slots__ = ("_arguments", "_held", "_numbers", "_open")

    def __init__(self) -> None:
        self._open: int | None = None
        """The block of the last event."""
        self._arguments: list[str] | None = None
        """The arguments so far, if the open block is a call."""
        self._numbers: dict[int, int] = {}
        """The blocks so far, and the number that each has now: its own, or one below zero."""
        self._held: dict[int, list[ContentEvent]] = {}

    def add(self, event: ContentEvent) -> Sequence[ContentEvent]:
        """Add an event; return those that can be written now."""
        block = event.block
        if block != self._open:
            if self._held or not self._can_leave():
                self._held.setdefault(block, []).append(event)
                return ()
            self._enter(event)
        if self._arguments is not None and isinstance(event, ToolCallDelta):
            self._arguments.append(event.arguments)
        number = self._numbers.get(block, block)
        return (event,) if number == block else (msgspec.structs.replace(event, block=number),)

    def finish(self) -> list[ContentEvent]:
        """Return the events that waited, block by block."""
        held, self._held = self._held, {}
        self._arguments = None
        ready: list[ContentEvent] = []
        for events in held.values():
            for event in events:
                self._arguments = None
                ready += self.add(event)
        return ready

    def _can_leave(self) -> bool:
        """Whether the open block may end: it is no call, or one with complete arguments."""
        if self._arguments is None:
            return True
        arguments = "".join(self._arguments)
        return arguments.rstrip().endswith("}") and read_arguments(arguments) is not None

    def _enter(self, event: ContentEvent) -> None:
        """Make the block of this event the open one. A seal that comes late opens nothing."""
        block = event.block
        is_new = block not in self._numbers
        if is_new:
            self._numbers[block] = block
        elif isinstance(event, (TextDelta, ThinkingDelta, RefusalDelta)):
            if not event.text:
                return
            self._numbers[block] = min(0, *self._numbers.values()) - 1
        else:
            return
        self._open = block
        self._arguments = [] if isinstance(event, ToolCallDelta) else None
