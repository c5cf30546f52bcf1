"""Stores of conversations: what any store promises (protocol), and the one in SQLite.

Not here: a conversation in use, and what of its thinking may be stored (conversations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage


class StoreError(ConfigError):
    """The store cannot be used, or cannot take what it was given. It still holds what it held before."""


class StoreConflict(StoreError):
    """Another process changed the conversation meanwhile, and nothing was written. Load it again and decide anew."""

    def __init__(self, message: str, *, name: str, expected: int, found: int | None) -> None:
        super().__init__(message)
        self.name = name
        self.expected = expected
        """The version that the change was made for."""
        self.found = found
        """The version in the store; None when the conversation was deleted."""


class ConversationHeading(msgspec.Struct, frozen=True):
    """The system prompt and the model of a conversation."""

    system: str | None = None
    model: str | None = None

    def __repr__(self) -> str:
        return f"ConversationHeading(system={'None' if self.system is None else '…'}, model={self.model!r})"


class ConversationInfo(msgspec.Struct, frozen=True):
    """What a store knows of a conversation without reading its messages."""

    name: str
    version: int
    """Goes up with every change. No version is used twice, not even by a later conversation of the same name."""
    rewritten: int
    """The version of the last change that was not an append. Messages read since then are unchanged."""
    length: int
    """The number of messages."""
    heading: ConversationHeading = ConversationHeading()
    usage: Usage = Usage()
    """The cost so far."""
    created: float = 0.0
    """Seconds since 1970, as is `updated`."""
    updated: float = 0.0


class ConversationSnapshot(msgspec.Struct, frozen=True):
    """A conversation as it was at one moment."""

    about: ConversationInfo
    messages: tuple[Message, ...]

    def __repr__(self) -> str:
        return f"ConversationSnapshot({self.about.name!r}, messages={len(self.messages)}, version={self.about.version})"


class Store(Protocol):
    """Keeps conversations by name, for any number of threads and processes at a time.

    Each method is one step that happens whole or not at all, and its change is permanent when it returns. A store keeps
    messages exactly as it gets them; the conversation decides whether readable thinking is among them.
    """

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Add messages at the end, together and in this order, while others may be writing too.

        They are the last ones of the returned `length`. A conversation that is not there begins with them. A `heading`
        replaces the old one; `spent` is added to the usage.
        """
        ...

    def replace(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        expected: int,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Put these messages in the place of all messages.

        Raises `StoreConflict`, and changes nothing, unless the conversation is at the version `expected`. A
        conversation that is not there has version 0.
        """
        ...

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation with its messages from the place `start` on; None when it is not there."""
        ...

    def about(self, name: str) -> ConversationInfo | None:
        """What the store knows of a conversation; None when it is not there."""
        ...

    def names(self) -> tuple[str, ...]:
        """The names of all conversations, the last changed first."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a conversation; False when it was not there."""
        ...
