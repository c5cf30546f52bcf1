"""Histories without the thoughts that a caller does not want sent: `stripped(messages, strip)`.

Not here: what a model's own rule sends back of the rest (plan), and saving without words (withholding).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from asides.history.redact import invalidate_seals
from asides.history.trim import turns
from asides.providers.provider import Provider
from asides.values.messages import Message
from asides.values.thinking import Thought

Strip: TypeAlias = Literal["none", "all_but_last", "all"]
"""Whose thoughts go: nobody's · those of all turns but the last that has any · everybody's."""


def strip_thinking(messages: Sequence[Message], strip: Strip, *, rows: Sequence[Provider] = ()) -> tuple[Message, ...]:
    """The messages without these thoughts; a message of nothing else goes with them. Words, calls and results stay.

    What remains still goes back by the rule of the model only: `Thinking(replay="never")` sends nothing whatever is
    here. Seals that the change made worthless are marked (`invalidate_seals`); `rows` are the caller's own.
    """
    given = tuple(messages)
    if strip == "none":
        return given
    groups = turns(given)
    thinking = [place for place, turn in enumerate(groups) if any(_thinks(message) for message in turn)]
    kept_turn = thinking[-1] if thinking and strip == "all_but_last" else None
    kept: list[Message] = []
    changed: int | None = None
    for place, turn in enumerate(groups):
        for message in turn:
            if place == kept_turn or not _thinks(message):
                kept.append(message)
                continue
            changed = len(kept) if changed is None else changed
            parts = tuple(part for part in message.parts if not isinstance(part, Thought))
            if parts:
                kept.append(msgspec.structs.replace(message, parts=parts))
    return tuple(kept) if changed is None else invalidate_seals(kept, changed, rows=rows)


def _thinks(message: Message) -> bool:
    return any(isinstance(part, Thought) for part in message.parts)
