"""The fold of events: `fold(events) → Reply`. Nothing else builds a Reply, streamed or whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from asides.errors import NoAnswer
from asides.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    Stop,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.messages import Message, Part, Refusal, ServerTool, Text, ToolCall, Unknown
from asides.notices import Notice
from asides.thinking import Origin, Seal, Thought, ThoughtKind, ThoughtSource, join_thoughts
from asides.usage import Usage

Outcome: TypeAlias = Literal["answered", "tool_calls", "starved", "unterminated", "refused", "filtered"]

_ADVICE: dict[Outcome, str] = {
    "answered": "the answer is blank.",
    "tool_calls": "it asked for tools instead; run them and send their results.",
    "starved": "it ran out of tokens while thinking; raise max_tokens or ask for less thinking.",
    "unterminated": "it stopped after thinking, without an answer; ask again, or ask for less thinking.",
    "refused": "it refused; reply.refusal has its words.",
    "filtered": "the provider's filter stopped it; change the request.",
}


class Reply(msgspec.Struct, frozen=True, eq=False):
    """What a model said: the answer in `text`, the thinking apart, the rest as values."""

    parts: tuple[Part, ...] = ()
    """The reply in order: thoughts, text, tool calls, each with its own seals."""
    usage: Usage = Usage()
    stop: Stop = Stop()
    warnings: tuple[Notice, ...] = ()
    model: str | None = None
    id: str | None = None
    origin: Origin | None = None
    complete: bool = True
    """False for the `.partial` of an error or of a cancelled stream."""
    payloads: tuple[bytes, ...] = ()
    """The JSON documents it was read from, as received; not part of equality."""
    streamed: bool = False

    @property
    def text(self) -> str:
        """The answer. Never thinking; "" when there is none."""
        return "".join([part.text for part in self.parts if type(part) is Text])

    @property
    def content(self) -> str:
        """The answer, under the name that other libraries use."""
        return self.text

    @property
    def thinking(self) -> Thought | None:
        """The thinking of the whole reply, blocks joined by a blank line; None when there is none."""
        thoughts = [part for part in self.parts if type(part) is Thought]
        if not thoughts:
            return None
        text = join_thoughts([thought.text for thought in thoughts])
        seals = tuple(seal for thought in thoughts for seal in thought.seals if seal.value)
        if text is None and not seals:
            return None
        shown = [thought for thought in thoughts if thought.text] or thoughts
        kind: ThoughtKind = "hidden"
        if text is not None:
            kind = "summary" if all(thought.kind == "summary" for thought in shown) else "raw"
        first = shown[0]
        return Thought(
            text or "", kind, first.source, self.origin, seals, first.via, all(thought.complete for thought in thoughts)
        )

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(part for part in self.parts if type(part) is ToolCall)

    @property
    def refusal(self) -> str | None:
        """The model's own words for not answering."""
        return "".join(part.text for part in self.parts if type(part) is Refusal) or None

    @property
    def seals(self) -> tuple[Seal, ...]:
        """Every opaque token of the reply, in order."""
        return tuple(
            seal
            for part in self.parts
            if isinstance(part, (Thought, Text, ToolCall))
            for seal in part.seals
            if seal.value
        )

    @property
    def outcome(self) -> Outcome:
        """What became of the question, in one word."""
        if self.stop.reason == "content_filter":
            return "filtered"
        if self.stop.reason == "refusal" or self.refusal:
            return "refused"
        if self.tool_calls:
            return "tool_calls"
        if self.text.strip():
            return "answered"
        return "starved" if self.stop.reason == "length" else "unterminated"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The flat, read-only view: model, usage, raw, thinking, thinking_type, thinking_source."""
        view: dict[str, Any] = {"model": self.model, "usage": self.usage, "raw": self.raw, "thinking_source": "none"}
        thought = self.thinking
        if thought is not None:
            view["thinking_source"] = thought.source
            if thought.text:
                view["thinking"] = thought.text
                view["thinking_type"] = thought.kind
        return MappingProxyType(view)

    @property
    def raw(self) -> Any:
        """What was received: the decoded response, or the list of decoded events."""
        documents = [_readable(payload) for payload in self.payloads]
        if self.streamed:
            return documents
        return documents[0] if documents else None

    def with_tags(self) -> str:
        """The old habit: the thinking in front of the answer, in tags; the answer alone when there is none."""
        thought = self.thinking
        if thought is None or not thought.text:
            return self.text
        return f"<thinking>{thought.text}</thinking>\n\n{self.text}"

    def to_message(self) -> Message | None:
        """The assistant message for history; None when the server sent no choice at all."""
        if not self.parts and any(notice.code == "no_choices" for notice in self.warnings):
            return None
        return Message("assistant", self.parts)

    def require_answer(self) -> Reply:
        """This reply, or `NoAnswer` with advice when there is no answer in it."""
        outcome = self.outcome
        if self.text.strip() and outcome in ("answered", "tool_calls"):
            return self
        raise NoAnswer(f"{self.model or 'the model'} gave no answer ({outcome}): {_ADVICE[outcome]}", self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"Reply(<{len(self.text)} characters>, outcome={self.outcome!r}, thinking={self.thinking!r}, "
            f"tool_calls={list(self.tool_calls)!r}, stop={self.stop!r}, usage={self.usage!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reply):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    def __ne__(self, other: object) -> bool:
        # The Struct's own comparison answers != by itself and would not ask __eq__.
        return not self == other

    __hash__ = None  # type: ignore[assignment]


# How it was framed is not what was said: streamed and whole must be equal (contract §4.2).
_COMPARED = tuple(name for name in Reply.__struct_fields__ if name not in ("payloads", "streamed"))


def _readable(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return payload.decode("utf-8", "replace")


_BlockKind: TypeAlias = Literal["text", "thought", "call", "refusal", "part"]


class _Block:
    """A part while it grows; its pieces are joined once."""

    __slots__ = ("call_id", "call_name", "custom", "kind", "part", "pieces", "seals", "source", "thought_kind", "via")

    def __init__(self, kind: _BlockKind) -> None:
        self.kind: _BlockKind = kind
        self.pieces: list[str] = []
        self.seals: list[Seal] = []
        self.thought_kind: ThoughtKind = "raw"
        self.source: ThoughtSource = "field"
        self.via: str | None = None
        self.call_id: str | None = None
        self.call_name: str | None = None
        self.custom = False
        self.part: ServerTool | Unknown | None = None


class Fold:
    """Takes events as they come; `reply()` may be asked at any time and gives what there is."""

    __slots__ = ("_append", "_block", "_blocks", "_stop", "_truncated", "_usage", "_warnings", "ended", "started")

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._block = -1
        self._append: Callable[[str], None] = _nowhere
        self._warnings: list[Notice] = []
        self._usage: Usage | None = None
        self._stop = Stop()
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
        self._block = event.block
        self._append = block.pieces.append

    def _take_rare(self, event: Event) -> None:
        _RARE[type(event)](self, event)

    def _take_call(self, event: ToolCallDelta) -> None:
        block = self._at(event.block, "call")
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

    def _take_refusal(self, event: RefusalDelta) -> None:
        self._at(event.block, "refusal").pieces.append(event.text)

    def _take_part(self, event: PartArrived) -> None:
        self._at(event.block, "part").part = event.part

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
            # Only the last block can be the one that was cut.
            whole = self.ended and not (self._truncated and number == self._last_thought())
            return Thought(text, kind, block.source, started.origin, seals, block.via, whole)
        if block.kind == "refusal":
            return Refusal(text) if text else None
        if block.kind == "part":
            return block.part
        return _call_of(number, block, text, seals, started, warnings)

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


def read_arguments(raw: str) -> dict[str, Any] | None:
    """The arguments as an object, also when none were sent or when they were encoded twice; None when they do not
    parse.
    """
    if not raw.strip():
        return {}
    value: Any = raw
    for _ in range(2):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return None
        if not isinstance(value, str):
            break
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


def fold(events: Iterable[Event]) -> Reply:
    """The reply that these events are."""
    folding = Fold()
    folding.take(events)
    return folding.reply()
