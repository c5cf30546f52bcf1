"""Calls, results and turns in a flat list of wire messages, for the rules of the dialects that have one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from asides.dialects.rulebook import Wire


class PairingFault(msgspec.Struct, frozen=True):
    """A tool call without a result, a result without a call, or either of them twice."""

    kind: Literal["unanswered", "unasked", "twice"]
    place: int
    """The index of the message that makes the calls or holds the result."""
    ids: tuple[str, ...]


def find_pairing_faults(messages: list[Wire]) -> Iterator[PairingFault]:
    """Yield every fault in order. Results must follow directly after the turn that made the calls, once each."""
    asked: list[str] = []
    waiting: list[str] = []
    asked_at = 0
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            name = str(message.get("tool_call_id"))
            if name in waiting:
                waiting.remove(name)
            else:
                yield PairingFault("twice" if name in asked else "unasked", place, (name,))
            continue
        if waiting:
            yield PairingFault("unanswered", asked_at, tuple(waiting))
        asked, asked_at = list_call_ids(message), place
        waiting = list(dict.fromkeys(asked))
        if len(waiting) != len(asked):
            yield PairingFault("twice", place, tuple(name for name in waiting if asked.count(name) > 1))
    if waiting:
        yield PairingFault("unanswered", asked_at, tuple(waiting))


def list_call_ids(message: Wire) -> list[str]:
    """Return the ids of the calls of an assistant message; [] for any other message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [str(call.get("id")) for call in calls or ()]


def find_turn_start(messages: list[Wire]) -> int:
    """Return the index of the last user message, which starts the current turn; -1 if there is none."""
    return max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
