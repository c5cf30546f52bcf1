"""Calls and their results in a flat list of messages: which is missing, which was never asked for, which stands twice.

Not here: in which words a provider refuses them, and histories whose turns are made of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

Wire: TypeAlias = dict[str, Any]


class Unpaired(msgspec.Struct, frozen=True):
    """What is wrong with the calls and results of one message."""

    kind: Literal["unanswered", "unasked", "twice"]
    place: int
    """The message that made the calls, or that has the result."""
    ids: tuple[str, ...]


def unpaired(messages: list[Wire]) -> Iterator[Unpaired]:
    """Every fault of the history, in order: results stand directly behind the turn that asked for them, once each."""
    asked: list[str] = []
    waiting: list[str] = []
    asked_at = 0
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            name = str(message.get("tool_call_id"))
            if name in waiting:
                waiting.remove(name)
            else:
                yield Unpaired("twice" if name in asked else "unasked", place, (name,))
            continue
        if waiting:
            yield Unpaired("unanswered", asked_at, tuple(waiting))
        asked, asked_at = call_ids(message), place
        waiting = list(dict.fromkeys(asked))
        if len(waiting) != len(asked):
            yield Unpaired("twice", place, tuple(name for name in waiting if asked.count(name) > 1))
    if waiting:
        yield Unpaired("unanswered", asked_at, tuple(waiting))


def call_ids(message: Wire) -> list[str]:
    """The ids of the calls that an assistant's message makes; of others there are none."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [str(call.get("id")) for call in calls or ()]


def turn_under_way(messages: list[Wire]) -> int:
    """The place of the last user's message; what stands behind it belongs to the turn under way."""
    return max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
