"""Seals that hold only behind the very same messages: `loosened(messages, from_index)`, for histories that were edited.

Not here: who edits a history, and which models bind their seals so (rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.values.errors import UnknownProvider
from asides.values.messages import Message, Part
from asides.values.thinking import Origin, Thought


def invalidate_seals(
    messages: Sequence[Message], from_index: int, *, rows: Sequence[Provider] = ()
) -> tuple[Message, ...]:
    """The messages, their thoughts from this place on marked as not to be sent back where a changed past makes their
    seals worthless.

    That is so for models whose row says it (`prefix_bound`); thoughts of others, and of nobody that is known, stay as
    they are. After an edit of message n the place is n + 1; after another system prompt or other tools it is 0. `rows`
    are the caller's own and win over ours.
    """
    return tuple(message if place < from_index else _loosened(message, rows) for place, message in enumerate(messages))


def _loosened(message: Message, rows: Sequence[Provider]) -> Message:
    parts = tuple(_loose(part, rows) for part in message.parts)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _loose(part: Part, rows: Sequence[Provider]) -> Part:
    if not isinstance(part, Thought) or not part.complete or not _is_bound(part, rows):
        return part
    return msgspec.structs.replace(part, complete=False)


def _is_bound(thought: Thought, rows: Sequence[Provider]) -> bool:
    makers = {thought.origin, *(seal.origin for seal in thought.seals)}
    return bool(thought.seals) and any(_binds(maker, rows) for maker in makers if maker is not None)


def _binds(maker: Origin, rows: Sequence[Provider]) -> bool:
    try:
        row = find_provider(maker.provider, rows)
    except UnknownProvider:
        return False
    return row.rule(maker.model).prefix_bound
