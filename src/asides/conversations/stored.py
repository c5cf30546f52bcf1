"""Where a conversation is kept, and how far this process has read it there. Not here: what is said in it."""

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
    """One name in one store, and the version of it that is known here. Others may be writing at the same time."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._version = 0

    def open(self) -> ConversationSnapshot | None:
        """All that is there; None when nothing is yet."""
        kept = self.store.load(self.name)
        if kept is not None:
            self._version = kept.about.version
        return kept

    def newer(self, known: Messages) -> ConversationSnapshot | None:
        """The whole conversation, if others changed it since; None when all of it is `known`."""
        about = self.store.about(self.name)
        if about is None:
            if self._version:
                raise self._gone()
            return None
        if about.version == self._version:
            return None
        kept = self._joined(known)
        if kept is None:
            raise self._gone()
        self._version = kept.about.version
        return kept

    def append(
        self, known: Messages, new: Messages, kept: Messages, heading: ConversationHeading | None, spent: Usage | None
    ) -> ConversationSnapshot:
        """Write `kept` behind all that is there. The answer has `new` in its place, and in front of it what others
        wrote meanwhile.
        """
        about = self.store.append(self.name, kept, heading=heading, spent=spent)
        start = about.length - len(kept)
        first = self._version == 0 and start == 0
        if start == len(known) and (first or about.rewritten <= self._version):
            self._version = about.version
            return ConversationSnapshot(about, (*known, *new))
        earlier = self._joined(known)
        self._version = about.version
        # When others write on without a pause, theirs is read with the next question.
        return ConversationSnapshot(about, (*(() if earlier is None else earlier.messages[:start]), *new))

    def replace(self, kept: Messages, heading: ConversationHeading | None, spent: Usage | None) -> ConversationInfo:
        """Write `kept` in the place of all that is there, or raise `StoreConflict` when others wrote meanwhile."""
        about = self.store.replace(self.name, kept, expected=self._version, heading=heading, spent=spent)
        self._version = about.version
        return about

    def _joined(self, known: Messages) -> ConversationSnapshot | None:
        """All that is there now, of which the `known` is not read again: it may hold more than was written."""
        more = self.store.load(self.name, len(known))
        if more is None or more.about.rewritten > self._version:
            return self.store.load(self.name)
        return ConversationSnapshot(more.about, (*known, *more.messages))

    def _gone(self) -> StoreConflict:
        return StoreConflict(
            f"the conversation {self.name!r} was deleted by somebody else meanwhile. To do: begin another one, or keep "
            "what is known of it with fork(name=…).",
            name=self.name,
            expected=self._version,
            found=None,
        )
