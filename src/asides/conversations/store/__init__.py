"""Stores of conversations: the protocol `Store`, its values and its errors. `sqlite` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from asides.database import StoreError
from asides.values.messages import Message
from asides.values.usage import Usage


class StoreConflict(StoreError):
    """Another process changed the conversation first, and nothing was written. Load it again and repeat the change."""

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
    """Facts about a stored conversation, known without reading its messages."""

    name: str
    version: int
    """Increases with every change. No version is used twice, not even by a later conversation of the same name."""
    rewritten: int
    """The version of the last change that was not an append. Messages read since then have not changed."""
    length: int
    """The number of messages."""
    heading: ConversationHeading = ConversationHeading()
    usage: Usage = Usage()
    """The tokens used so far."""
    created: float = 0.0
    """Unix time in seconds, like `updated`."""
    updated: float = 0.0


class ConversationSnapshot(msgspec.Struct, frozen=True):
    """A conversation at one moment."""

    about: ConversationInfo
    messages: tuple[Message, ...]

    def __repr__(self) -> str:
        return f"ConversationSnapshot({self.about.name!r}, messages={len(self.messages)}, version={self.about.version})"


class Store(Protocol):
    """Stores conversations by name, for any number of threads and processes at a time.

    Each method is atomic, and its change is permanent when it returns. A store writes messages exactly as it gets them;
    the conversation decides whether they hold readable thinking.
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

        They are the last messages of the returned `length`. A missing conversation is created. A `heading` replaces
        the old one; `spent` is added to the usage.
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
        """Replace all messages.

        Raises `StoreConflict`, and changes nothing, unless the conversation has the version `expected`. A missing
        conversation has version 0.
        """
        ...

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation with its messages from index `start` on; None when it is not in the store."""
        ...

    def about(self, name: str) -> ConversationInfo | None:
        """The facts about a conversation; None when it is not in the store."""
        ...

    def names(self) -> tuple[str, ...]:
        """The names of all conversations, the latest changed first."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a conversation. Returns whether it was in the store."""
        ...
