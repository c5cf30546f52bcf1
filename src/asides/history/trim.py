"""Shorten a history: `trim` to a number of tokens, `strip_thinking`; and estimate its tokens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

import msgspec

from asides import dialects
from asides.history.plan import Plan, encode_plan, plan
from asides.history.redact import invalidate_seals
from asides.history.turns import begins_turn, count_system_head, split_turns, split_units
from asides.providers.provider import Provider, Target
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Commentary, File, Image, Part, Text, ToolResult
from asides.values.thinking import Thought
from asides.values.traits import HAS_MEDIA, IS_BOUND, find_traits, has_thoughts

_log = logging.getLogger("asides")

TokenCounter: TypeAlias = Callable[[Sequence[Message]], int]
"""Messages in, tokens out."""

Strip: TypeAlias = Literal["none", "all_but_last", "all"]
"""Which thoughts to drop: none, those of every turn but the last turn that has any, or all."""

CHARACTERS_PER_TOKEN = 4
PICTURE_TOKENS = 1_600
"""The price of a picture of the largest size that is not scaled down, at the providers that publish it."""
FILE_TOKENS = 3_000
"""The price of a document of a few pages. It hardly depends on its size in bytes."""


# --- thoughts -----------------------------------------------------------------------------------------------------


def strip_thinking(messages: Sequence[Message], strip: Strip, *, rows: Sequence[Provider] = ()) -> tuple[Message, ...]:
    """Drop thoughts, and messages that have nothing else. Text, calls and results stay.

    Seals that become void are marked (`invalidate_seals`); `rows` are providers of the caller. The model's replay rule
    still decides which of the remaining thoughts go back.
    """
    if strip == "none":
        return tuple(messages)
    turns = split_turns(messages)
    thinking = [place for place, turn in enumerate(turns) if any(has_thoughts(message) for message in turn)]
    untouched = thinking[-1] if thinking and strip == "all_but_last" else None
    remaining: list[Message] = []
    first_change: int | None = None
    for place, turn in enumerate(turns):
        for message in turn:
            if place == untouched or not has_thoughts(message):
                remaining.append(message)
                continue
            first_change = len(remaining) if first_change is None else first_change
            parts = tuple(part for part in message.parts if not isinstance(part, Thought))
            if parts:
                remaining.append(msgspec.structs.replace(message, parts=parts))
    return tuple(remaining) if first_change is None else invalidate_seals(remaining, first_change, rows=rows)


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

    It drops the seals of finished turns first, which are often larger than all else; then their readable thoughts, then
    whole turns from the oldest on, then the oldest calls of the last turn with their results. What stays of the last
    turn keeps its thoughts and seals. System messages at the start, the last message and the user's message that it
    belongs to always stay. Seals that become void are marked (`invalidate_seals`); `rows` are providers of the caller.
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
    tried: dict[int, tuple[tuple[Message, ...], int]] = {}

    def measure(number: int) -> tuple[tuple[Message, ...], int]:
        if number not in tried:
            chosen = choices[number]
            tried[number] = chosen, cost if chosen is given else count(chosen)
        return tried[number]

    guess = None
    if isinstance(count, RequestCounter):
        guess = choices.guess_choice(count.weigh, measure(0)[1] - tokens)
    place = _find_first_fitting(len(choices), lambda number: measure(number)[1] <= tokens, guess)
    remaining, cost = measure(place)
    dropped = len(given) - len(remaining)
    notices = [Notice("history_trimmed", _describe(remaining, dropped), "messages")] if remaining != given else []
    if cost > tokens:
        detail = "the last message and the messages it needs cost more than the budget"
        notices.append(Notice("history_over_budget", detail, "messages", str(tokens), str(cost)))
    return TrimmedHistory(remaining, cost, cost <= tokens, dropped, tuple(notices))


def lighten(
    messages: Sequence[Message], tokens: int, count: TokenCounter, *, rows: Sequence[Provider] = ()
) -> tuple[Message, ...]:
    """The messages with less thinking, if that is enough for this many tokens: without the seals of finished turns, or
    also without their readable thoughts. Else the messages as they are.
    """
    choices = _Choices(tuple(messages), rows)
    for number in range(choices.lighter_count):
        if count(chosen := choices[number]) <= tokens:
            return chosen
    return tuple(messages)


def _describe(remaining: Sequence[Message], dropped: int) -> str:
    *finished, _ = split_turns(remaining) or ((),)
    keeps_thoughts = any(has_thoughts(message) for turn in finished for message in turn)
    thoughts = f"{'seals' if keeps_thoughts else 'thoughts'} of finished turns were left out"
    return f"{thoughts}, and {dropped} of the oldest messages" if dropped else thoughts


class _Choices:
    """The histories that can remain, from the longest to the shortest."""

    def __init__(self, messages: tuple[Message, ...], rows: Sequence[Provider]) -> None:
        start = count_system_head(messages)
        self._head = messages[:start]
        self._rows = rows
        self._given = messages
        *finished, last = split_turns(messages[start:]) or ((),)
        self._finished = [bare for turn in finished if (bare := _drop_thoughts(turn))]
        unsealed = [light for turn in finished if (light := _unseal_turn(turn))]
        self._unsealed = unsealed if unsealed != self._finished else None
        opening = 0
        while opening < len(last) and begins_turn(last[opening]):
            opening += 1
        self._opening = last[:opening]
        self._units = split_units(last[opening:])

    @property
    def lighter_count(self) -> int:
        """How many of the first choices drop only thinking: without seals, and without any."""
        return 1 if self._unsealed is None else 2

    def __len__(self) -> int:
        return self.lighter_count + len(self._finished) + max(0, len(self._units) - 1)

    def guess_choice(self, weigh: Callable[[Message], float], tokens: float) -> int:
        """Guess which choice saves this many tokens compared with the first one, from the weights of the messages."""
        units = self._units[: max(0, len(self._units) - 1)]
        saved = accumulate(sum(map(weigh, group)) for group in (*self._finished, *units))
        first = self.lighter_count
        return next((number for number, weight in enumerate(saved, first) if weight >= tokens), len(self) - 1)

    def __getitem__(self, number: int) -> tuple[Message, ...]:
        number -= self.lighter_count - 1
        turns = self._finished if self._unsealed is None or number >= 0 else self._unsealed
        turns_dropped = min(max(number, 0), len(turns))
        units_dropped = max(number, 0) - turns_dropped
        finished = [message for turn in turns[turns_dropped:] for message in turn]
        units = [message for unit in self._units[units_dropped:] for message in unit]
        remaining = (*self._head, *finished, *self._opening, *units)
        if remaining == self._given:
            return self._given
        pairs = enumerate(zip(remaining, self._given, strict=False))
        first_change = next((place for place, (now, before) in pairs if now != before), 0)
        return invalidate_seals(remaining, first_change, rows=self._rows)


def _unseal_turn(turn: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the seals of a finished turn. Their readable thoughts stay, but are not sent back."""
    return _reduce_parts(turn, _unseal) if find_traits(turn) & IS_BOUND else turn


def _unseal(part: Part) -> Part | None:
    if not isinstance(part, Thought):
        return _drop_seals(part)
    if not part.seals:
        return part
    return msgspec.structs.replace(part, seals=(), replayable=False) if part.text.strip() else None


def _drop_thoughts(turn: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the thoughts and seals of a finished turn, which are often larger than its text."""
    if not find_traits(turn) & IS_BOUND and all(message.parts for message in turn):
        return turn
    return _reduce_parts(turn, _drop_seals)


def _reduce_parts(turn: tuple[Message, ...], reduce: Callable[[Part], Part | None]) -> tuple[Message, ...]:
    """Reduce the parts of the model's messages. Drop a part that becomes None, and a message without parts."""
    remaining: list[Message] = []
    for message in turn:
        if message.role != "assistant":
            remaining.append(message)
            continue
        parts = tuple(reduced for part in message.parts if (reduced := reduce(part)) is not None)
        if parts:
            remaining.append(message if parts == message.parts else msgspec.structs.replace(message, parts=parts))
    return tuple(remaining)


def _drop_seals(part: Part) -> Part | None:
    if isinstance(part, Thought):
        return None
    if not any(seal.value for seal in part.seals):
        return part
    seals = tuple(seal for seal in part.seals if not seal.value)
    if isinstance(part, (Text, Commentary)) and not part.text and not seals:
        return None  # it only carried its seal
    return msgspec.structs.replace(part, seals=seals)


def _find_first_fitting(number_of_choices: int, fits: Callable[[int], bool], guess: int | None) -> int:
    """Find the first choice that fits; the last one if none does. A good guess saves most of the search.

    If the cost does not fall with every choice, a longer history that fits may be missed.
    """
    low, high = 0, number_of_choices - 1
    step = 1
    while low < high:
        middle = (low + high) // 2 if guess is None else min(max(guess, low), high - 1)
        if fits(middle):
            high = middle
            guess = None if guess is None else high - step
        else:
            low = middle + 1
            guess = None if guess is None else low + step - 1
        step *= 2
    return low


# --- the cost of a history ------------------------------------------------------------------------------------------


class RequestCounter:
    """Counts the tokens of a request to this target: messages, and the system prompt and tools of `prompt`.

    Four characters of the request count as a token; pictures and files have a fixed price. Raises the errors of
    encoding a request.
    """

    def __init__(self, prompt: Prompt, target: Target) -> None:
        self._prompt = prompt
        self._target = target

    def __call__(self, messages: Sequence[Message]) -> int:
        """The tokens of a request with these messages."""
        target = self._target
        prompt = msgspec.structs.replace(self._prompt, messages=tuple(messages))
        planned = plan(prompt, target, on_conflict="adjust")
        without_media, media_tokens = _remove_media(planned.prompt.messages)
        sendable = Plan(msgspec.structs.replace(planned.prompt, messages=without_media))
        request, _ = encode_plan(sendable, target, dialects.find_dialect(target.dialect), on_conflict="adjust")
        characters = len(request.body.decode("utf-8", "replace"))
        return -(-characters // CHARACTERS_PER_TOKEN) + media_tokens

    def weigh(self, message: Message) -> float:
        """Estimate the tokens of one message."""
        if find_traits((message,)) & HAS_MEDIA:
            return len(message.text) / CHARACTERS_PER_TOKEN
        written = msgspec.json.encode(message.parts, enc_hook=repr).decode()
        return len(written) / CHARACTERS_PER_TOKEN


def build_token_counter(prompt: Prompt, target: Target) -> TokenCounter:
    """Build a counter of the tokens of a request to this target."""
    return RequestCounter(prompt, target)


def _remove_media(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """Empty the pictures and files of the messages. Returns the messages and the tokens that these cost."""
    tokens = 0
    if not find_traits(messages) & HAS_MEDIA:
        return tuple(messages), tokens

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
