"""`StoredConversation`: one conversation in a store, and which version of it this process has read.

Not here: the messages themselves (message_history), and stores (store).
"""

from __future__ import annotations

from asides.conversations.store.protocol import (
    ConversationHeading,
    ConversationInfo,
    ConversationSnapshot,
    Store,
    StoreConflict,
)
from asides.values.messages import Message
from asides.values.usage import Usage

Messages = tuple[Message, ...]


class StoredConversation:
    """One name in one store, and the version of it that this process has read. Other processes may write too."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._version = 0

    def open(self) -> ConversationSnapshot | None:
        """Load the conversation; None when it is not in the store yet."""
        snapshot = self.store.load(self.name)
        if snapshot is not None:
            self._version = snapshot.about.version
        return snapshot

    def read_changes(self, known: Messages) -> ConversationSnapshot | None:
        """The whole conversation, if others changed it; None when nothing changed. `known` is what was read so far."""
        about = self.store.about(self.name)
        if about is None:
            if self._version:
                raise self._deleted()
            return None
        if about.version == self._version:
            return None
        snapshot = self._load(known)
        if snapshot is None:
            raise self._deleted()
        self._version = snapshot.about.version
        return snapshot

    def append(
        self,
        known: Messages,
        new: Messages,
        written: Messages,
        heading: ConversationHeading | None,
        spent: Usage | None,
    ) -> ConversationSnapshot:
        """Write `written`, the redacted form of `new`, after all stored messages. The snapshot ends with `new`; before
        it stands what is `known` and what others wrote since.
        """
        about = self.store.append(self.name, written, heading=heading, spent=spent)
        start = about.length - len(written)
        is_first = self._version == 0 and start == 0
        if start == len(known) and (is_first or about.rewritten <= self._version):
            self._version = about.version
            return ConversationSnapshot(about, (*known, *new))
        earlier = self._load(known)
        self._version = about.version
        # What others wrote after this is read with the next question.
        return ConversationSnapshot(about, (*(() if earlier is None else earlier.messages[:start]), *new))

    def replace(self, written: Messages, heading: ConversationHeading | None, spent: Usage | None) -> ConversationInfo:
        """Write `written` in the place of all messages. Raises `StoreConflict` when others changed the conversation."""
        about = self.store.replace(self.name, written, expected=self._version, heading=heading, spent=spent)
        self._version = about.version
        return about

    def _load(self, known: Messages) -> ConversationSnapshot | None:
        """All messages. Those that are `known` are not read again: they may hold thinking that was not written."""
        more = self.store.load(self.name, len(known))
        if more is None or more.about.rewritten > self._version:
            return self.store.load(self.name)
        return ConversationSnapshot(more.about, (*known, *more.messages))

    def _deleted(self) -> StoreConflict:
        return StoreConflict(
            f"the conversation {self.name!r} was deleted by somebody else meanwhile. To do: begin another one, or "
            "keep what is known of it with fork(name=…).",
            name=self.name,
            expected=self._version,
            found=None,
        )
