"""Shorten a history: `trim` to a number of tokens, `strip_thinking`; split it into turns, and estimate its tokens.

Not here: removing text that must not be saved (redact).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from asides import dialects
from asides.history.pair import begins_turn, find_results
from asides.history.plan import Plan, encode_plan, plan
from asides.history.redact import invalidate_seals
from asides.providers.provider import Provider, Target
from asides.values.messages import File, Image, Message, Part, Prompt, Refusal, Text, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought

_log = logging.getLogger("asides")

TokenCounter: TypeAlias = Callable[[Sequence[Message]], int]
"""Messages in, tokens out."""

Strip: TypeAlias = Literal["none", "all_but_last", "all"]
"""Which thoughts to drop: none, those of every turn but the last turn that has any, or all."""

CHARACTERS_PER_TOKEN = 4
PICTURE_TOKENS = 1_600
"""The price of a picture of the largest size that is not scaled down, at the providers that publish it."""
FILE_TOKENS = 3_000
"""The price of a document of a few pages. Its size in bytes says little about it."""


# --- turns --------------------------------------------------------------------------------------------------------


def split_units(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Group the messages that can only be dropped together: a message with tool calls and its results; others alone."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and groups[-1][0].tool_calls and find_results(message):
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(map(tuple, groups))


def split_turns(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Split the messages into turns: a user message and everything up to the next one. Messages before the first user
    message are one turn.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if begins_turn(message) or not groups:
            groups.append([])
        groups[-1].append(message)
    return tuple(map(tuple, groups))


# --- thoughts -----------------------------------------------------------------------------------------------------


def strip_thinking(messages: Sequence[Message], strip: Strip, *, rows: Sequence[Provider] = ()) -> tuple[Message, ...]:
    """Drop thoughts, and messages that have nothing else. Text, calls and results stay.

    Seals that become void are marked (`invalidate_seals`); `rows` are providers of the caller. The model's replay rule
    still decides which of the remaining thoughts go back.
    """
    if strip == "none":
        return tuple(messages)
    turns = split_turns(messages)
    thinking = [place for place, turn in enumerate(turns) if any(_has_thoughts(message) for message in turn)]
    untouched = thinking[-1] if thinking and strip == "all_but_last" else None
    remaining: list[Message] = []
    first_change: int | None = None
    for place, turn in enumerate(turns):
        for message in turn:
            if place == untouched or not _has_thoughts(message):
                remaining.append(message)
                continue
            first_change = len(remaining) if first_change is None else first_change
            parts = tuple(part for part in message.parts if not isinstance(part, Thought))
            if parts:
                remaining.append(msgspec.structs.replace(message, parts=parts))
    return tuple(remaining) if first_change is None else invalidate_seals(remaining, first_change, rows=rows)


def _has_thoughts(message: Message) -> bool:
    return any(isinstance(part, Thought) for part in message.parts)


# --- trimming to a number of tokens ---------------------------------------------------------------------------------


class TrimmedHistory(msgspec.Struct, frozen=True):
    """A history that fits, or the smallest one that can be sent."""

    messages: tuple[Message, ...]
    tokens: int
    """The tokens it costs."""
    fits: bool = True
    """False: even the smallest history that can be sent costs more than the budget."""
    dropped: int = 0
    """The number of messages left out."""
    notices: tuple[Notice, ...] = ()
    """Notices about messages left out and a budget that was missed."""

    def __repr__(self) -> str:
        return (
            f"TrimmedHistory(messages={len(self.messages)}, tokens={self.tokens}, fits={self.fits}, "
            f"dropped={self.dropped})"
        )


def trim(
    messages: Sequence[Message], tokens: int, count: TokenCounter, *, rows: Sequence[Provider] = ()
) -> TrimmedHistory:
    """Shorten the messages to this many tokens. They stay unchanged if they fit.

    It drops thoughts of finished turns first, then whole turns from the oldest on, then the oldest calls of the last
    turn with their results. System messages at the start, the last message and the user's message that it belongs to
    always stay. Seals that become void are marked (`invalidate_seals`); `rows` are providers of the caller.
    """
    trimmed = _trim(tuple(messages), tokens, count, rows)
    _log.debug(
        "trim: %d of %d messages stay, %d tokens of %d allowed%s",
        len(trimmed.messages),
        len(messages),
        trimmed.tokens,
        tokens,
        "" if trimmed.fits else "; no shorter history can be sent",
    )
    return trimmed


def _trim(given: tuple[Message, ...], tokens: int, count: TokenCounter, rows: Sequence[Provider]) -> TrimmedHistory:
    cost = count(given)
    if cost <= tokens:
        return TrimmedHistory(given, cost)
    choices = _Choices(given, rows)
    remaining = choices[_find_first_fitting(len(choices), lambda number: count(choices[number]) <= tokens)]
    cost = count(remaining)
    dropped = len(given) - len(remaining)
    notices = [Notice("history_trimmed", _describe(dropped), "messages")] if remaining != given else []
    if cost > tokens:
        detail = "the last message and the messages it needs cost more than the budget"
        notices.append(Notice("history_over_budget", detail, "messages", str(tokens), str(cost)))
    return TrimmedHistory(remaining, cost, cost <= tokens, dropped, tuple(notices))


def _describe(dropped: int) -> str:
    thoughts = "thoughts of finished turns were left out"
    return f"{thoughts}, and {dropped} of the oldest messages" if dropped else thoughts


class _Choices:
    """The histories that can remain, from the longest to the shortest."""

    def __init__(self, messages: tuple[Message, ...], rows: Sequence[Provider]) -> None:
        start = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
        self._head = messages[:start]
        self._rows = rows
        self._given = messages
        *finished, last = split_turns(messages[start:]) or ((),)
        self._finished = [bare for turn in finished if (bare := _drop_thoughts(turn))]
        opening = 0
        while opening < len(last) and begins_turn(last[opening]):
            opening += 1
        self._opening = last[:opening]
        self._units = split_units(last[opening:])

    def __len__(self) -> int:
        return 1 + len(self._finished) + max(0, len(self._units) - 1)

    def __getitem__(self, number: int) -> tuple[Message, ...]:
        turns_dropped = min(number, len(self._finished))
        units_dropped = number - turns_dropped
        finished = [message for turn in self._finished[turns_dropped:] for message in turn]
        units = [message for unit in self._units[units_dropped:] for message in unit]
        remaining = (*self._head, *finished, *self._opening, *units)
        if remaining == self._given:
            return remaining
        pairs = enumerate(zip(remaining, self._given, strict=False))
        first_change = next((place for place, (now, before) in pairs if now != before), 0)
        return invalidate_seals(remaining, first_change, rows=self._rows)


def _drop_thoughts(turn: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the thoughts and seals of a finished turn, which are often larger than its text."""
    remaining: list[Message] = []
    for message in turn:
        if message.role != "assistant":
            remaining.append(message)
            continue
        parts = tuple(bare for part in message.parts if (bare := _drop_seals(part)) is not None)
        if parts:
            remaining.append(message if parts == message.parts else msgspec.structs.replace(message, parts=parts))
    return tuple(remaining)


def _drop_seals(part: Part) -> Part | None:
    if isinstance(part, Thought):
        return None
    if isinstance(part, (ToolResult, Refusal)) or not any(seal.value for seal in part.seals):
        return part
    seals = tuple(seal for seal in part.seals if not seal.value)
    if isinstance(part, Text) and not part.text and not seals:
        return None  # it only carried its seal
    return msgspec.structs.replace(part, seals=seals)


def _find_first_fitting(number_of_choices: int, fits: Callable[[int], bool]) -> int:
    """Find the first choice that fits, by bisection; the last one if none does.

    If the cost does not fall with every choice, a longer history that fits may be missed.
    """
    low, high = 0, number_of_choices - 1
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


# --- the cost of a history ------------------------------------------------------------------------------------------


def build_token_counter(prompt: Prompt, target: Target) -> TokenCounter:
    """Build a counter of the tokens of a request to this target: messages, and the system prompt and tools of `prompt`.

    Four characters of the request count as a token; pictures and files have a fixed price. The counter raises the
    errors of encoding a request.
    """

    def count(messages: Sequence[Message]) -> int:
        planned = plan(msgspec.structs.replace(prompt, messages=tuple(messages)), target, on_conflict="adjust")
        without_media, media_tokens = _remove_media(planned.prompt.messages)
        sendable = Plan(msgspec.structs.replace(planned.prompt, messages=without_media))
        request, _ = encode_plan(sendable, target, dialects.find_dialect(target.dialect), on_conflict="adjust")
        characters = len(request.body.decode("utf-8", "replace"))
        return -(-characters // CHARACTERS_PER_TOKEN) + media_tokens

    return count


def _remove_media(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """Empty the pictures and files of the messages. Returns the messages and the tokens that these cost."""
    tokens = 0

    def remove(part: Part) -> Part:
        nonlocal tokens
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            content = tuple(each for inner in part.content if isinstance(each := remove(inner), (Text, Image, File)))
            return msgspec.structs.replace(part, content=content)
        if isinstance(part, Image):
            tokens += PICTURE_TOKENS
        elif isinstance(part, File) and not part.media_type.startswith("text/"):
            tokens += FILE_TOKENS
        else:
            return part
        return part if part.data is None else msgspec.structs.replace(part, data=b"")

    emptied = tuple(
        msgspec.structs.replace(message, parts=tuple(remove(part) for part in message.parts)) for message in messages
    )
    return emptied, tokens
