"""The events of a reply, in the order in which they arrive.

    stream := ReplyStarted (ThinkingDelta | ThoughtSealed | CommentaryDelta | TextDelta | TextReclassified
                            | RefusalDelta | ToolCallDelta | PartArrived | UsageReported | Warned)* ReplyEnded

`block` numbers the parts of a reply: a new number is a new part, deltas of a block arrive in order. Parts are sorted by
their numbers, which may have gaps. UsageReported is a snapshot: later values replace earlier ones, field by field.
Nothing follows ReplyEnded. Parts have no start and end events: block numbers mark their boundaries, and
`blocks(events)` groups events for a user interface. Errors are raised, with `.partial`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from asides.values.json_form import JsonForm
from asides.values.notices import Notice
from asides.values.parts import File, Image, ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind, ThoughtSource
from asides.values.usage import Usage

StopKind: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "unknown"]

NEAREST_STOPS: dict[StopKind, StopKind] = {"refusal": "content_filter"}
"""The nearest reason, for dialects without a word for one."""

BROKEN_OFF: frozenset[StopKind] = frozenset({"length", "error"})
"""Stop reasons of replies whose last call may be incomplete."""


def find_stop_word(words: Mapping[StopKind, str], reason: StopKind) -> str | None:
    """Return the word for a reason, or else for the nearest reason; None if there is neither."""
    if reason not in words and reason in NEAREST_STOPS:
        reason = NEAREST_STOPS[reason]
    return words.get(reason)


class StopReason(msgspec.Struct, JsonForm, frozen=True):
    """Why the model stopped: our name for the reason, and the provider's."""

    reason: StopKind = "unknown"
    raw: str | None = None


class ReplyStarted(msgspec.Struct, JsonForm, frozen=True, tag="reply_started"):
    """The first event: the model, and the id of the reply."""

    model: str | None = None
    id: str | None = None
    origin: Origin | None = None
    stored: bool = False
    """The provider stores the reply under its id."""


class ThinkingDelta(msgspec.Struct, JsonForm, frozen=True, tag="thinking", gc=False):
    """More text of a thought."""

    _private = {"text": "thinking"}

    text: str
    block: int = 0
    kind: ThoughtKind = "raw"
    source: ThoughtSource = "field"
    via: str | None = None

    def __repr__(self) -> str:
        return f"ThinkingDelta(<{len(self.text)} characters>, block={self.block})"


class ThoughtSealed(msgspec.Struct, JsonForm, frozen=True, tag="sealed"):
    """A seal for a block: for a thought, which it creates if there is none, or for the text or call there."""

    seal: Seal
    block: int = 0
    kind: ThoughtKind = "hidden"
    """The kind of a thought that has nothing but seals."""
    source: ThoughtSource = "field"


class TextDelta(msgspec.Struct, JsonForm, frozen=True, tag="text", gc=False):
    """More text of the answer."""

    text: str
    block: int = 0

    def __repr__(self) -> str:
        return f"TextDelta(<{len(self.text)} characters>, block={self.block})"


class TextReclassified(msgspec.Struct, JsonForm, frozen=True, tag="text_reclassified"):
    """The text of this block came as the answer and is thinking: only its closing tag came, and only now. Or it is
    commentary: the server named its phase only at its end.

    The block becomes a thought, or commentary, with this text, the beginning of what came. The rest of it, if any,
    comes again in later blocks. A Warned follows thinking, for consumers that cannot move what they have shown.
    """

    _private = {"text": "thinking"}

    text: str
    block: int
    kind: ThoughtKind = "raw"
    source: ThoughtSource = "tags"
    channel: Literal["thinking", "commentary"] = "thinking"

    def build_delta(self) -> ThinkingDelta | CommentaryDelta:
        """Return the event that the text would have been from the start."""
        if self.channel == "commentary":
            return CommentaryDelta(self.text, self.block)
        return ThinkingDelta(self.text, self.block, self.kind, self.source)

    def __repr__(self) -> str:
        return f"TextReclassified(<{len(self.text)} characters>, block={self.block})"


class CommentaryDelta(msgspec.Struct, JsonForm, frozen=True, tag="commentary", gc=False):
    """More of what the model says on the way to its answer. It is never part of the answer."""

    text: str
    block: int = 0

    def __repr__(self) -> str:
        return f"CommentaryDelta(<{len(self.text)} characters>, block={self.block})"


class RefusalDelta(msgspec.Struct, JsonForm, frozen=True, tag="refusal"):
    """More text of the model's refusal."""

    text: str
    block: int = 0

    def __repr__(self) -> str:
        return f"RefusalDelta(<{len(self.text)} characters>, block={self.block})"


class ToolCallDelta(msgspec.Struct, JsonForm, frozen=True, tag="tool_call"):
    """More of a call. `id` and `name` come once, arguments in pieces of JSON text."""

    block: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    custom: bool = False
    """The arguments are free text, not JSON."""

    def __repr__(self) -> str:
        return (
            f"ToolCallDelta(block={self.block}, id={self.id!r}, name={self.name!r}, <{len(self.arguments)} characters>)"
        )


class PartArrived(msgspec.Struct, JsonForm, frozen=True, tag="part"):
    """A part that comes whole: a tool that the provider ran itself, a picture, a sound, or an unknown part.

    A later part of the same block replaces it: a tool reports its progress like this.
    """

    part: ServerTool | Image | File | UnknownPart
    block: int


class UsageReported(msgspec.Struct, JsonForm, frozen=True, tag="usage"):
    """The tokens so far, as far as the server has reported them."""

    usage: Usage


class Warned(msgspec.Struct, JsonForm, frozen=True, tag="warned"):
    """A notice: something was adjusted, dropped or not understood."""

    notice: Notice

    @property
    def code(self) -> str:
        """The notice's code, to match on."""
        return self.notice.code


class ReplyEnded(msgspec.Struct, JsonForm, frozen=True, tag="reply_ended"):
    """The last event."""

    stop: StopReason = StopReason()
    truncated_thought: bool = False
    """The reply ended inside a thinking tag."""
    started: ReplyStarted | None = None
    """The model and the id of the reply, if the server named them only after the first event."""
    void_before: int = 0
    """Blocks below this number are of attempts that gave no answer (`recover=`): their thoughts do not go back."""


OutputEvent: TypeAlias = TextDelta | CommentaryDelta | RefusalDelta | ToolCallDelta | PartArrived
"""The content of a reply other than thinking."""

Event: TypeAlias = (
    ReplyStarted | ThinkingDelta | ThoughtSealed | TextReclassified | OutputEvent | UsageReported | Warned | ReplyEnded
)


def is_thinking(event: Event) -> bool:
    """Whether the event is text of a thought that can be read."""
    return isinstance(event, ThinkingDelta) and bool(event.text) and not event.text.isspace()


def move_reclassified(events: Iterable[Event]) -> list[Event]:
    """Return all events of a reply with reclassified text as thinking from its start, for whole responses."""
    every = list(events)
    moved = {event.block: event for event in every if isinstance(event, TextReclassified)}
    result: list[Event] = []
    written: set[int] = set()
    for event in every:
        if isinstance(event, TextReclassified):
            continue
        if isinstance(event, TextDelta) and (thought := moved.get(event.block)) is not None:
            if event.block not in written:
                written.add(event.block)
                result.append(thought.build_delta())
            continue
        result.append(event)
    return result


def has_content(events: Iterable[Event]) -> bool:
    """Whether events have content. Without it, as with only a start and usage, another attempt is better."""
    return any(not isinstance(event, (ReplyStarted, UsageReported, Warned)) for event in events)


def blocks(events: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Group neighbouring events of one block, for a user interface; an event without a block comes as (-1, [event])."""
    group: list[Event] = []
    current = -1
    for event in events:
        block: int = getattr(event, "block", -1)
        if group and (block != current or block == -1):
            yield current, group
            group = []
        current = block
        group.append(event)
    if group:
        yield current, group
