"""The fold of events: `fold(events) → Reply`. Nothing else builds a Reply, streamed or whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.messages import File, Image, Part, Refusal, ServerTool, Text, ToolCall, UnknownPart, read_arguments
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought, ThoughtKind, ThoughtSource
from asides.values.usage import Usage

_BlockKind: TypeAlias = Literal["text", "thought", "call", "refusal", "part"]


class _Block:
    """A part while it grows; its pieces are joined once."""

    __slots__ = (
        "call_id",
        "call_name",
        "closed",
        "custom",
        "kind",
        "part",
        "pieces",
        "seals",
        "source",
        "thought_kind",
        "turn",
        "via",
    )

    def __init__(self, kind: _BlockKind) -> None:
        self.kind: _BlockKind = kind
        self.turn = 0
        """When it was last turned to; 0 for one that has nothing but seals."""
        self.closed = False
        """A seal that ends a thought has come, and no word behind it."""
        self.pieces: list[str] = []
        self.seals: list[Seal] = []
        self.thought_kind: ThoughtKind = "raw"
        self.source: ThoughtSource = "field"
        self.via: str | None = None
        self.call_id: str | None = None
        self.call_name: str | None = None
        self.custom = False
        self.part: ServerTool | Image | File | UnknownPart | None = None


# Seals that come whole, behind the last word of their thought. Those of other kinds grow with it, or stand beside it.
_CLOSING = frozenset({"signature", "redacted", "encrypted", "item"})


class Fold:
    """Takes events as they come; `reply()` may be asked at any time and gives what there is."""

    __slots__ = (
        "_append",
        "_block",
        "_blocks",
        "_stop",
        "_truncated",
        "_turns",
        "_usage",
        "_warnings",
        "ended",
        "started",
    )

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._block: int | None = None
        self._turns = 0
        self._append: Callable[[str], None] = _nowhere
        self._warnings: list[Notice] = []
        self._usage: Usage | None = None
        self._stop = StopReason()
        self._truncated = False
        self.started: ReplyStarted | None = None
        self.ended = False

    def take(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is ThinkingDelta:
                if event.block != self._block:  # type: ignore[union-attr]
                    self._turn_to(event)  # type: ignore[arg-type]
                self._append(event.text)  # type: ignore[union-attr]
            else:
                self._take_rare(event)

    def _turn_to(self, event: TextDelta | ThinkingDelta) -> None:
        block = self._blocks.get(event.block)
        if block is None:
            block = self._blocks[event.block] = _Block("text" if type(event) is TextDelta else "thought")
        if isinstance(event, ThinkingDelta) and not block.pieces:
            block.kind = "thought"
            block.thought_kind, block.source, block.via = event.kind, event.source, event.via
        # As `_note_turn` does it; twice in every reply, so not worth a call.
        self._turns = block.turn = self._turns + 1
        block.closed = False
        self._block = event.block
        self._append = block.pieces.append

    def _note_turn(self, block: _Block) -> None:
        """This block goes on, or begins: whatever else was being said has had its say."""
        self._turns += 1
        block.turn = self._turns
        block.closed = False
        self._block = None  # the next delta has to turn, also where it goes on with the block before this one

    def _take_rare(self, event: Event) -> None:
        _RARE[type(event)](self, event)

    def _take_call(self, event: ToolCallDelta) -> None:
        block = self._turned(event.block, "call")
        block.call_id = block.call_id or event.id
        block.call_name = block.call_name or event.name
        block.custom = block.custom or event.custom
        if event.arguments:
            block.pieces.append(event.arguments)

    def _take_seal(self, event: ThoughtSealed) -> None:
        fresh = event.block not in self._blocks
        block = self._at(event.block, "thought")
        if fresh:
            block.thought_kind, block.source = event.kind, event.source
        block.seals.append(event.seal)
        if event.seal.kind in _CLOSING:
            block.closed = True
            if self._block == event.block:
                self._block = None  # a word behind it opens the thought again

    def _take_refusal(self, event: RefusalDelta) -> None:
        self._turned(event.block, "refusal").pieces.append(event.text)

    def _take_part(self, event: PartArrived) -> None:
        self._turned(event.block, "part").part = event.part

    def _take_usage(self, event: UsageReported) -> None:
        self._usage = event.usage if self._usage is None else self._usage.updated(event.usage)

    def _take_warning(self, event: Warned) -> None:
        self._warnings.append(event.notice)

    def _take_start(self, event: ReplyStarted) -> None:
        self.started = event

    def _take_end(self, event: ReplyEnded) -> None:
        self._stop, self._truncated, self.ended = event.stop, event.truncated_thought, True

    def _at(self, number: int, kind: _BlockKind) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block(kind)
        return block

    def _turned(self, number: int, kind: _BlockKind) -> _Block:
        block = self._at(number, kind)
        self._note_turn(block)
        return block

    def reply(self, payloads: Sequence[bytes] = (), *, streamed: bool = False) -> Reply:
        """The reply so far; whole once ReplyEnded was taken."""
        started = self.started or ReplyStarted()
        warnings = list(self._warnings)
        parts: list[Part] = []
        for number in sorted(self._blocks):
            block = self._blocks[number]
            part = self._part_of(number, block, started, warnings)
            if part is not None:
                parts.append(part)
        return Reply(
            tuple(parts),
            self._usage or Usage(),
            self._stop,
            tuple(warnings),
            started.model,
            started.id,
            started.origin,
            self.ended,
            tuple(payloads),
            streamed,
            started.stored,
        )

    def _part_of(self, number: int, block: _Block, started: ReplyStarted, warnings: list[Notice]) -> Part | None:
        text = "".join(block.pieces)
        seals = tuple(block.seals)
        if block.kind == "text":
            return Text(text, seals) if text or seals else None
        if block.kind == "thought":
            if not text.strip() and not any(seal.value for seal in seals):
                return None
            kind: ThoughtKind = block.thought_kind if text.strip() else "hidden"
            return Thought(text, kind, block.source, started.origin, seals, block.via, self._is_whole(number, block))
        if block.kind == "refusal":
            return Refusal(text) if text else None
        if block.kind == "part":
            return block.part if block.part is None or not seals else msgspec.structs.replace(block.part, seals=seals)
        return _call_of(number, block, text, seals, started, warnings)

    def _is_whole(self, number: int, block: _Block) -> bool:
        """Whether nothing of a thought is missing. Where a reply broke off, its last word was in the block that was
        turned to last; one that others followed, or that its seal has closed, had been said.
        """
        if self.ended:
            # Only the last block can be the one that was cut.
            return not (self._truncated and number == self._last_thought())
        return block.closed or any(other.turn > block.turn for place, other in self._blocks.items() if place > number)

    def _last_thought(self) -> int:
        return max(number for number, block in self._blocks.items() if block.kind == "thought")


_RARE: dict[type, Callable[[Fold, Any], None]] = {
    ToolCallDelta: Fold._take_call,
    ThoughtSealed: Fold._take_seal,
    RefusalDelta: Fold._take_refusal,
    PartArrived: Fold._take_part,
    UsageReported: Fold._take_usage,
    Warned: Fold._take_warning,
    ReplyStarted: Fold._take_start,
    ReplyEnded: Fold._take_end,
}


def _nowhere(_: str) -> None:
    raise AssertionError("a delta before its block")


def _call_of(
    number: int, block: _Block, raw: str, seals: tuple[Seal, ...], started: ReplyStarted, warnings: list[Notice]
) -> ToolCall:
    name = block.call_name or ""
    if not name:
        _note(warnings, Notice("tool_call_unnamed", "a tool call came without a name"))
    call_id = block.call_id
    if not call_id:
        # Derived from what arrived, so that streamed and whole agree.
        digest = hashlib.blake2b(f"{started.id}|{number}|{name}|{raw}".encode(), digest_size=9).hexdigest()
        call_id = f"call_{digest}"
    if block.custom:
        return ToolCall(call_id, name, {}, raw, seals, custom=True)
    arguments = read_arguments(raw)
    if arguments is None:
        _note(warnings, Notice("tool_arguments_invalid", f"the arguments of {name or 'a call'} are not a JSON object"))
        return ToolCall(call_id, name, {}, raw, seals)
    return ToolCall(call_id, name, arguments, None, seals)


def _note(warnings: list[Notice], notice: Notice) -> None:
    # A simulated reply already carries what its first fold found.
    if notice not in warnings:
        warnings.append(notice)


def fold(events: Iterable[Event]) -> Reply:
    """The reply that these events are."""
    folding = Fold()
    folding.take(events)
    return folding.reply()
