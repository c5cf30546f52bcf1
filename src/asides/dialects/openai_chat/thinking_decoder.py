"""The thinking of a chat message: fields, mirrored fields, snapshots, `reasoning_details` and signatures, as one
thought.

Precedence is decided per reply, not per chunk: whichever channel speaks first has the text, the others only confirm it.
Not here: thinking inside the content (decode).
"""

from __future__ import annotations

from typing import Any

from asides.dialects.openai_chat.details import Details, Told
from asides.dialects.openai_chat.wire import ResponseReader, is_nothing, read_signature
from asides.providers.provider import Target
from asides.values.events import Event, ThinkingDelta, ThoughtSealed, Warned
from asides.values.notices import Notice
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.deduplicate import Echoes, Increments, Shadow

FIELD_BLOCK = 0


class Thoughts:
    """What the fields of one reply's messages say of its thinking."""

    __slots__ = (
        "_details",
        "_increments",
        "_kind",
        "_own_fields",
        "_shadow",
        "_snapshots",
        "_target",
        "echoes",
        "tagged",
    )

    def __init__(self, target: Target, kind: ThoughtKind) -> None:
        self._target = target
        self._kind: ThoughtKind = kind
        self._own_fields = target.facts.thinking_in
        self._snapshots = target.quirks.snapshots
        self._increments: dict[str, Increments] = {}
        self._details: Details | None = None
        self._shadow: Shadow | None = None
        self.echoes = Echoes()
        self.tagged: list[str] = []
        """What inline tags said while no field had spoken."""

    def take(self, values: tuple[Any, ...], delta: Any, reading: ResponseReader, events: list[Event]) -> None:
        """The thinking in one message, or a piece of it."""
        kind = self._kind
        told = None
        if delta.reasoning_details:
            if self._details is None:
                self._details = Details(snapshots=self._snapshots)
                self._details.alone = not self._increments  # a field may have spoken in an earlier chunk
            told = self._details.take(delta.reasoning_details)
            if told and told[0].summary:
                kind = "summary"
        spoken = False
        for name, value in zip(reading.thinking_fields, values, strict=True):
            if not value:
                continue
            if type(value) is not str:
                _warn(events, "unreadable_thinking", f"the field {name} holds {type(value).__name__}, not text")
                continue
            spoken = True
            increments = self._increments.get(name)
            if increments is None:
                increments = self._first_words(name, events)
            if not increments.settled:
                value = increments.take(value)
            self._say(name, value, kind, events)
        if told and not spoken and self._details is not None:
            self._say_details(self._details, told, kind, events)
        elif spoken and self._details is not None:
            self._details.alone = False

    def _first_words(self, name: str, events: list[Event]) -> Increments:
        if name not in self._own_fields:
            _warn(events, "unknown_thinking_field", f"the field {name} was taken for thinking")
        if self.tagged and not self.echoes:
            self._shadow = Shadow("".join(self.tagged).strip())
        increments = self._increments[name] = Increments(snapshots=self._snapshots)
        return increments

    def _say(self, name: str, text: str, kind: ThoughtKind, events: list[Event]) -> None:
        if not text:
            return
        known_to_differ = name in self.echoes.differing
        text = self.echoes.take(name, text)
        if not text and name in self.echoes.differing and not known_to_differ:
            _warn(events, "other_thinking_field", f"the field {name} says something else and was left out")
        if text and self._shadow is not None:
            text = self._shadow.take(text)
        if text:
            events.append(ThinkingDelta(text, FIELD_BLOCK, kind, "field", name))

    def _say_details(self, details: Details, told: list[Told], kind: ThoughtKind, events: list[Event]) -> None:
        for entry in told:
            if entry.text and (fresh := details.fresh(entry, self.echoes)):
                block = entry.number if details.alone else FIELD_BLOCK
                shown: ThoughtKind = "summary" if entry.summary else kind
                events.append(ThinkingDelta(fresh, block, shown, "field", "reasoning_details"))

    def take_signature(self, delta: Any, events: list[Event]) -> None:
        """A signature of the whole message, beside its fields."""
        entry = None if is_nothing(delta.extra_content) else bytes(delta.extra_content)
        value = delta.thought_signature if isinstance(delta.thought_signature, str) else None
        if entry is not None:
            value = read_signature(entry) or value
        if value:
            told = None if entry is None else entry.decode("utf-8", "replace")
            seal = Seal("thought_signature", value, self._target.origin, told)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))
        if isinstance(delta.reasoning_opaque, str) and delta.reasoning_opaque:
            seal = Seal("reasoning_opaque", delta.reasoning_opaque, self._target.origin)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))

    def finish(self, events: list[Event]) -> None:
        """What was held for certainty, and the seals."""
        for name, increments in self._increments.items():
            self._say(name, increments.finish(), self._kind, events)
        if self._details is not None:
            if held := self._details.finish():
                self._say_details(self._details, held, self._kind, events)
            alone = self._details.alone
            for number, seal in self._details.seals(self._target.origin):
                events.append(ThoughtSealed(seal, number if alone else FIELD_BLOCK))


def _warn(events: list[Event], code: str, detail: str) -> None:
    events.append(Warned(Notice(code, detail)))
