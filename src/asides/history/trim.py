"""Histories that fit: `trimmed(messages, tokens, measure)`, and what of a history belongs together.

Dropped are, in this order: what nobody reads (thoughts of turns that are over), whole turns from the oldest on, and of
the last turn its oldest calls with their results. Not here: how much a history costs (measuring).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from asides.history.estimate_tokens import Measure
from asides.history.pair import results_in
from asides.history.redact import invalidate_seals
from asides.providers.provider import Provider
from asides.values.messages import Message, Part, Refusal, Text, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought


class Trimmed(msgspec.Struct, frozen=True):
    """A history that fits, or the smallest one that can be sent."""

    messages: tuple[Message, ...]
    tokens: int
    """What it measures."""
    fits: bool = True
    """False when even the smallest history that can be sent is over the budget."""
    dropped: int = 0
    """How many messages are gone."""
    notices: tuple[Notice, ...] = ()
    """What was done, and what could not be."""

    def __repr__(self) -> str:
        return f"Trimmed(messages={len(self.messages)}, tokens={self.tokens}, fits={self.fits}, dropped={self.dropped})"


def units(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """The messages in groups that are kept or dropped as one: a turn that calls tools with its results, any other
    message alone. A thought and what followed it are parts of one message, and so never come apart.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if groups and groups[-1][0].tool_calls and results_in(message):
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(map(tuple, groups))


def turns(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """The messages in turns: what a person says, and all that follows until one speaks again. What stands in front of
    the first of them is a turn of its own.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if begins_turn(message) or not groups:
            groups.append([])
        groups[-1].append(message)
    return tuple(map(tuple, groups))


def begins_turn(message: Message) -> bool:
    """Whether a person speaks here and nothing is answered: a message that brings results goes on with the turn of its
    calls, whatever else is in it.
    """
    return message.role == "user" and not results_in(message)


def trimmed(messages: Sequence[Message], tokens: int, measure: Measure, *, rows: Sequence[Provider] = ()) -> Trimmed:
    """The messages that fit into so many tokens, by this measure; as they are, where they do.

    Kept are the system messages in front and the last message, with the person's words that it belongs to; calls stay
    with their results, and what remains begins with a person's words if any were there. Where the budget cannot be met,
    the smallest such history comes back and says so. Seals that the change made worthless are marked
    (`invalidate_seals`); `rows` are the caller's own.
    """
    given = tuple(messages)
    cost = measure(given)
    if cost <= tokens:
        return Trimmed(given, cost)
    choices = _Choices(given, rows)
    place = _first_fitting(len(choices), lambda number: measure(choices[number]) <= tokens)
    kept = choices[place]
    cost = measure(kept)
    dropped = len(given) - len(kept)
    told = [Notice("history_trimmed", _told(dropped), "messages")] if kept != given else []
    if cost > tokens:
        told.append(
            Notice(
                "history_over_budget",
                "the last message and what belongs to it are more than the budget allows",
                "messages",
                str(tokens),
                str(cost),
            )
        )
    return Trimmed(kept, cost, cost <= tokens, dropped, tuple(told))


def _told(dropped: int) -> str:
    thoughts = "thoughts of turns that are over were left out"
    return f"{thoughts}, and {dropped} of the oldest messages" if dropped else thoughts


class _Choices:
    """What can be kept of a history, from the most to the least."""

    def __init__(self, messages: tuple[Message, ...], rows: Sequence[Provider]) -> None:
        start = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
        # A history of nothing but system messages has its last one to answer, too.
        self._head, said = messages[:start], messages[start:]
        self._rows = rows
        self._given = messages
        *closed, last = turns(said) or ((),)
        self._closed = [shut for turn in closed if (shut := _without_thoughts(turn))]
        opening = 0
        while opening < len(last) and begins_turn(last[opening]):
            opening += 1
        self._opening = last[:opening]
        self._cycles = units(last[opening:])

    def __len__(self) -> int:
        return 1 + len(self._closed) + max(0, len(self._cycles) - 1)

    def __getitem__(self, number: int) -> tuple[Message, ...]:
        """The choice of this number; each is less than the one before."""
        turns_gone = min(number, len(self._closed))
        cycles_gone = number - turns_gone
        closed = [message for turn in self._closed[turns_gone:] for message in turn]
        cycles = [message for cycle in self._cycles[cycles_gone:] for message in cycle]
        kept = (*self._head, *closed, *self._opening, *cycles)
        pairs = enumerate(zip(kept, self._given, strict=False))
        changed = next((place for place, (now, before) in pairs if now != before), 0)
        return kept if kept == self._given else invalidate_seals(kept, changed, rows=self._rows)


def _without_thoughts(turn: tuple[Message, ...]) -> tuple[Message, ...]:
    """A turn that is over without what only the model could still use: thoughts and tokens, often larger than words."""
    kept: list[Message] = []
    for message in turn:
        if message.role != "assistant":
            kept.append(message)
            continue
        parts = tuple(bare for part in message.parts if (bare := _without_tokens(part)) is not None)
        if parts:
            kept.append(message if parts == message.parts else msgspec.structs.replace(message, parts=parts))
    return tuple(kept)


def _without_tokens(part: Part) -> Part | None:
    if isinstance(part, Thought):
        return None
    if isinstance(part, (ToolResult, Refusal)) or not any(seal.value for seal in part.seals):
        return part
    seals = tuple(seal for seal in part.seals if not seal.value)
    if isinstance(part, Text) and not part.text and not seals:
        return None  # it was there for its seal
    return msgspec.structs.replace(part, seals=seals)


def _first_fitting(count: int, fits: Callable[[int], bool]) -> int:
    """The first choice that fits, by halving; the last one where none does.

    A measure that does not fall with every step may hide a better choice, never make this one wrong.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low
