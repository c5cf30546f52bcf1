"""What a store of conversations promises, and the values that go in and out of one. Not here: any store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage


class StoreError(ConfigError):
    """The store cannot be used, or did not take what it was given. What it had before is still there."""


class StoreConflict(StoreError):
    """Somebody else changed the conversation meanwhile; nothing was written. Load it again and decide anew."""

    def __init__(self, message: str, *, name: str, expected: int, found: int | None) -> None:
        super().__init__(message)
        self.name = name
        self.expected = expected
        """The version that the change was made for."""
        self.found = found
        """The version that is there; None when the conversation is gone."""


class ConversationHeading(msgspec.Struct, frozen=True):
    """What stands above the messages."""

    system: str | None = None
    model: str | None = None

    def __repr__(self) -> str:
        return f"Heading(system={'None' if self.system is None else '…'}, model={self.model!r})"


class ConversationInfo(msgspec.Struct, frozen=True):
    """What is known of a kept conversation without reading its messages."""

    name: str
    version: int
    """Goes up with every change, and is never given twice, not even to a conversation of the same name later on."""
    rewritten: int
    """The version of the last change that was not an append: what was read since then is still as it was."""
    length: int
    """How many messages there are."""
    heading: ConversationHeading = ConversationHeading()
    usage: Usage = Usage()
    """What it has cost so far."""
    created: float = 0.0
    """Seconds since 1970, as is `updated`."""
    updated: float = 0.0


class ConversationSnapshot(msgspec.Struct, frozen=True):
    """A conversation as it was at one moment."""

    about: ConversationInfo
    messages: tuple[Message, ...]

    def __repr__(self) -> str:
        return f"Kept({self.about.name!r}, messages={len(self.messages)}, version={self.about.version})"


class Store(Protocol):
    """Keeps conversations by name, for any number of threads and processes at a time.

    Each method is one step that happens whole or not at all, and what it did is there for good when it returns. A store
    keeps what it is given, as it is given: whether readable thinking is among it is the conversation's choice.
    """

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Put messages behind those that are there, together and in this order, whoever else is writing.

        The last ones of `about.length` are these. A conversation that is not there begins with them. A `heading`
        replaces the old one; what was `spent` is added to the sum.
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
        """Put these messages in the place of all that are there.

        Raises `StoreConflict`, and changes nothing, unless the conversation is at the version `expected`; 0 is that of
        one that is not there.
        """
        ...

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation, its messages from the place `start` on; None when there is none."""
        ...

    def about(self, name: str) -> ConversationInfo | None:
        """What is known of it; None when it is not there."""
        ...

    def names(self) -> tuple[str, ...]:
        """All conversations, the one that was changed last first."""
        ...

    def delete(self, name: str) -> bool:
        """Forget a conversation; False when there was none."""
        ...
