"""Fold events into a reply (`fold`), and make events of a whole reply again (`simulate`).

Only `fold` builds a Reply, streamed or whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import msgspec

from asides.values.errors import ProtocolError
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import (
    Commentary,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    UnknownPart,
    read_arguments,
)
from asides.values.raw_documents import Documents
from asides.values.reply import CallContext, Reply
from asides.values.thinking import Seal, Thought, ThoughtKind, ThoughtSource
from asides.values.usage import ReplyTimer, Usage

_BlockKind: TypeAlias = Literal["text", "thought", "commentary", "call", "refusal", "part"]


class _Block(msgspec.Struct, eq=False):
    """A part while it arrives; its pieces are joined once, at the end."""

    kind: _BlockKind
    pieces: list[str] = msgspec.field(default_factory=list[str])
    joined: int = 0
    """How many of the pieces `join_pieces` has made."""
    order: int = 0
    """The rank of its last event among all blocks; 0 for a block with nothing but seals."""
    closed: bool = False
    """Whether a closing seal has come, and no text after it."""
    seals: list[Seal] | None = None
    thought_kind: ThoughtKind = "raw"
    source: ThoughtSource = "field"
    via: str | None = None
    call_id: str | None = None
    call_name: str | None = None
    custom: bool = False
    size: int = 0
    """The bytes of a call's arguments so far."""
    part: ServerTool | Image | File | UnknownPart | None = None


# Seals that come after all text of their thought. Seals of other kinds may come before or with the text.
_CLOSING = frozenset({"signature", "redacted", "encrypted", "item"})


class Fold:
    """Collects events as they come; `reply()` may be called at any time and returns the reply so far.

    A call without an id gets one. With a `nonce` it is an id that no other reply has; without one it depends on the
    events alone, so that recorded bytes always give the same reply.
    A call beyond `max_calls`, or arguments beyond `max_argument_bytes`, raise ProtocolError. The event that was not
    added is `refused`.
    """

    # Class-level defaults: a fold is created per reply and rarely changes them.
    refused: Event | None = None
    started: ReplyStarted | None = None
    unnamed = False
    """Whether a call came without an id; one may have followed."""
    ended = False
    _calls = _order = 0
    _usage: Usage | None = None
    _stop = StopReason()
    _truncated, void_before = False, 0  # thoughts of blocks below `void_before` are not replayable
    timer: ReplyTimer | None = None  # given by a flow that measures the reply
    _moved_to = -1

    def __init__(self, nonce: str = "", *, max_calls: int | None = None, max_argument_bytes: int | None = None) -> None:
        self._nonce = nonce
        self._max_calls = max_calls
        self._max_argument_bytes = max_argument_bytes
        self._blocks: dict[int, _Block] = {}
        self._warnings: list[Notice] = []
        self.moves: list[tuple[int, str]] = []  # blocks that began, or went on, since the last stamp; and their kinds

    @property
    def has_thinking(self) -> bool:
        """Whether thinking with text has come so far."""
        thoughts = (block for block in self._blocks.values() if block.kind == "thought")
        return any(piece and not piece.isspace() for block in thoughts for piece in block.pieces)

    def stamp(self, now: float | None) -> None:
        """Record the time of the events since the last stamp; None: no clock."""
        if self.timer is not None and now is not None:
            self.timer.stamp(now, self.moves)
        self.moves.clear()

    def feed(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        for event in events:
            _HANDLERS[type(event)](self, event)

    def _add_text(self, event: TextDelta) -> None:
        self._open_block(event.block, "text").pieces.append(event.text)

    def _reclassify(self, event: TextReclassified) -> None:
        block = self._blocks.get(event.block) or self._open_block(event.block, "text")
        if block.kind != "text":
            return
        block.pieces, block.joined = [event.text], 0
        if event.channel == "commentary":
            block.kind = "commentary"
            if self.timer is not None:
                self.timer.reclassify(event.block, is_thought=False)
            return
        block.kind, block.thought_kind, block.source = "thought", event.kind, event.source
        if self.timer is not None:
            self.timer.reclassify(event.block)
        self._move_to(-1, "end")

    def _add_commentary(self, event: CommentaryDelta) -> None:
        self._open_block(event.block, "commentary").pieces.append(event.text)

    def _add_thinking(self, event: ThinkingDelta) -> None:
        block = self._open_block(event.block, "thought")
        if not block.pieces:
            block.kind = "thought"
            block.thought_kind, block.source, block.via = event.kind, event.source, event.via
        block.pieces.append(event.text)

    def _add_call(self, event: ToolCallDelta) -> None:
        if event.block not in self._blocks:
            if self._max_calls is not None and self._calls >= self._max_calls:
                self._refuse(event, f"the reply has more than {self._max_calls} tool calls")
            self._calls += 1
        block = self._open_block(event.block, "call")
        block.size += len(event.arguments) if event.arguments.isascii() else len(event.arguments.encode())
        if self._max_argument_bytes is not None and block.size > self._max_argument_bytes:
            self._refuse(event, f"a tool call has more than {self._max_argument_bytes} bytes of arguments")
        block.call_id = block.call_id or event.id
        if not block.call_id:
            self.unnamed = True
        block.call_name = block.call_name or event.name
        block.custom = block.custom or event.custom
        if event.arguments:
            block.pieces.append(event.arguments)

    def _refuse(self, event: Event, what: str) -> NoReturn:
        self.refused = event
        raise ProtocolError(f"{what}, the limit for one. Set reply_limits= if you expect more.")

    def _add_seal(self, event: ThoughtSealed) -> None:
        block = self._blocks.get(event.block)
        if block is None:
            block = self._blocks[event.block] = _Block("thought", thought_kind=event.kind, source=event.source)
        if block.seals is None:
            block.seals = []
        block.seals.append(event.seal)
        if event.seal.kind in _CLOSING:
            block.closed = True
            if self._moved_to == event.block and block.kind in ("text", "commentary", "thought"):
                self._move_to(-1, "end")

    def _add_refusal(self, event: RefusalDelta) -> None:
        self._open_block(event.block, "refusal").pieces.append(event.text)

    @property
    def warning_count(self) -> int:
        """How many warnings came so far."""
        return len(self._warnings)

    def replace_warnings(self, replace: Callable[[Notice], Notice]) -> None:
        """Replace every warning so far."""
        self._warnings = [replace(notice) for notice in self._warnings]

    def _add_part(self, event: PartArrived) -> None:
        self._open_block(event.block, "part").part = event.part

    def _add_usage(self, event: UsageReported) -> None:
        self._usage = event.usage if self._usage is None else self._usage.merge(event.usage)

    def _add_warning(self, event: Warned) -> None:
        self._warnings.append(event.notice)

    def _add_start(self, event: ReplyStarted) -> None:
        self.started = event

    def _add_end(self, event: ReplyEnded) -> None:
        self._stop, self._truncated, self.ended = event.stop, event.truncated_thought, True
        self.started = event.started or self.started
        self.void_before = event.void_before or self.void_before
        self._move_to(-1, "end")

    def _move_to(self, number: int, kind: str) -> None:
        if number != self._moved_to:
            self._moved_to = number
            self.moves.append((number, kind))

    def join_pieces(self) -> None:
        """Join the pieces of the current part that came since the last time: many short texts take much memory."""
        block = self._blocks.get(self._moved_to)
        if block is not None and len(block.pieces) > block.joined + 1:
            block.pieces[block.joined :] = ["".join(block.pieces[block.joined :])]
            block.joined += 1

    def _open_block(self, number: int, kind: _BlockKind) -> _Block:
        """Return the block that the current event belongs to, or create it."""
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block(kind)
        self._order = block.order = self._order + 1
        block.closed = False
        if number != self._moved_to:
            self._move_to(number, kind)
        return block

    def reply(self, payloads: Sequence[bytes] = (), *, streamed: bool = False) -> Reply:
        """Return the reply so far; it is complete once ReplyEnded was fed."""
        started = self.started or ReplyStarted()
        warnings = self._warnings[:]
        numbers = sorted(blocks := self._blocks)
        cut = () if self.ended and not self._truncated else self._find_cut_thoughts(numbers)
        parts: list[Part] = []
        for number in numbers:
            part = self._build_part(number, blocks[number], started, warnings, number not in cut)
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
            started.stored,
            CallContext(
                payloads=payloads if type(payloads) is Documents else tuple(payloads),
                streamed=streamed,
                timing=None if self.timer is None else self.timer.build_timing(),
            ),
        )

    def _build_part(
        self, number: int, block: _Block, started: ReplyStarted, warnings: list[Notice], complete: bool
    ) -> Part | None:
        text = "".join(block.pieces)
        kind, seals = block.kind, () if block.seals is None else tuple(block.seals)
        if kind == "text":
            return Text(text, seals) if text or seals else None
        if kind == "commentary":
            return Commentary(text, seals) if text or seals else None
        if kind == "thought":
            is_blank = not text or text.isspace()
            if is_blank and not any(seal.value for seal in seals):
                return None
            thought_kind: ThoughtKind = "hidden" if is_blank else block.thought_kind
            facts = (started.origin, seals, block.via, complete, False, number >= self.void_before)
            seconds = None if self.timer is None else self.timer.seconds.get(number)
            return Thought(text, thought_kind, block.source, *facts, seconds)
        if kind == "refusal":
            return Refusal(text) if text else None
        if kind == "part":
            return block.part if block.part is None or not seals else msgspec.structs.replace(block.part, seals=seals)
        return _build_call(block, block.call_id or self._make_call_id(number), text, seals, warnings)

    def name_calls(self) -> list[Event]:
        """Return an event with the id of each call that came without one, so that every fold of the events agrees."""
        calls = [number for number, block in self._blocks.items() if block.kind == "call" and not block.call_id]
        return [ToolCallDelta(number, self._make_call_id(number)) for number in sorted(calls)]

    def _make_call_id(self, number: int) -> str:
        """Derive an id from the content, so that streamed and whole replies have the same."""
        block, reply_id = self._blocks[number], None if self.started is None else self.started.id
        text = f"{self._nonce}{reply_id}|{number}|{block.call_name or ''}|{''.join(block.pieces)}"
        return f"call_{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=9).hexdigest()}"

    def _find_cut_thoughts(self, numbers: list[int]) -> set[int]:
        """Return the blocks that are not complete as thoughts. In a reply that broke off, a thought is complete if its
        seal closed it or if a later block had an event after it.
        """
        if self.ended:
            # Only the last thought can be cut, and only if the reply ended inside it.
            thoughts = [number for number in numbers if self._blocks[number].kind == "thought"]
            return {thoughts[-1]} if thoughts else set()
        cut: set[int] = set()
        latest = 0
        for number in reversed(numbers):
            block = self._blocks[number]
            if not block.closed and latest <= block.order:
                cut.add(number)
            latest = max(latest, block.order)
        return cut


_HANDLERS: dict[type, Callable[[Fold, Any], None]] = {
    TextDelta: Fold._add_text,
    TextReclassified: Fold._reclassify,
    CommentaryDelta: Fold._add_commentary,
    ThinkingDelta: Fold._add_thinking,
    ToolCallDelta: Fold._add_call,
    ThoughtSealed: Fold._add_seal,
    RefusalDelta: Fold._add_refusal,
    PartArrived: Fold._add_part,
    UsageReported: Fold._add_usage,
    Warned: Fold._add_warning,
    ReplyStarted: Fold._add_start,
    ReplyEnded: Fold._add_end,
}


def _build_call(block: _Block, call_id: str, raw: str, seals: tuple[Seal, ...], warnings: list[Notice]) -> ToolCall:
    name = block.call_name or ""
    if not name:
        _add_notice(warnings, Notice("tool_call_unnamed", "a tool call came without a name"))
    if block.custom:
        return ToolCall(call_id, name, {}, raw, seals, custom=True)
    arguments = read_arguments(raw)
    if arguments is None:
        detail = f"the arguments of {name or 'a call'} cannot be read as a JSON object"
        _add_notice(warnings, Notice("tool_arguments_invalid", detail))
        return ToolCall(call_id, name, {}, raw, seals)
    return ToolCall(call_id, name, arguments, None, seals)


def _add_notice(warnings: list[Notice], notice: Notice) -> None:
    # A simulated reply already has the notices of its first fold.
    if notice not in warnings:
        warnings.append(notice)


def fold(events: Iterable[Event]) -> Reply:
    """Fold these events into a reply."""
    folding = Fold()
    folding.feed(events)
    return folding.reply()


# --- a reply as events again ------------------------------------------------------------------------------------------


def simulate(reply: Reply, size: int = 20) -> list[Event]:
    """Return the events of a whole reply, its parts in order and its texts in pieces of `size` characters."""
    if size < 1:
        raise ValueError(f"size is {size}; a piece has at least one character.")
    events: list[Event] = [ReplyStarted(reply.model, reply.id, reply.origin, reply.stored)]
    for number, part in enumerate(reply.parts):
        match part:
            case Thought():
                kind = part.kind, part.source, part.via
                events += [ThinkingDelta(piece, number, *kind) for piece in _cut_text(part.text, size)]
            case Text() | Commentary():
                delta = TextDelta if isinstance(part, Text) else CommentaryDelta
                # An empty text with a seal is a part too.
                events += [delta(piece, number) for piece in _cut_text(part.text, size) or [""][: len(part.seals)]]
            case Refusal():
                events += [RefusalDelta(piece, number) for piece in _cut_text(part.text, size)]
            case ToolCall():
                raw = part.raw_arguments
                if raw is None:
                    raw = msgspec.json.encode(part.arguments).decode()
                events.append(ToolCallDelta(number, part.id, part.name, custom=part.custom))
                events += [ToolCallDelta(number, arguments=piece, custom=part.custom) for piece in _cut_text(raw, size)]
            case ServerTool() | Image() | File() | UnknownPart():
                events.append(PartArrived(msgspec.structs.replace(part, seals=()), number))
            case _:
                continue
        source: ThoughtSource = part.source if isinstance(part, Thought) else "field"
        events += [ThoughtSealed(seal, number, "hidden", source) for seal in part.seals]
    if reply.usage != Usage():
        events.append(UsageReported(reply.usage))
    events += [Warned(notice) for notice in reply.warnings]
    truncated = any(isinstance(part, Thought) and not part.complete for part in reply.parts)
    void = [number for number, part in enumerate(reply.parts) if isinstance(part, Thought) and not part.replayable]
    events.append(ReplyEnded(reply.stop, truncated, void_before=void[-1] + 1 if void else 0))
    return events


def _cut_text(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
