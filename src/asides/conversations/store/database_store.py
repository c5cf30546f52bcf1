"""`DatabaseStore`: a store of conversations on any database. `SqliteStore` and `PostgresStore` name theirs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, tables
from asides.database import Database, StoreError
from asides.database.sqlite_file import SqliteFile
from asides.values.messages import Message
from asides.values.usage import Usage

_MAX_NAME = 2000
"""Maximum bytes of a name in a shared database: it must fit into an index page."""


class DatabaseStore:
    """Conversations in a database, for any number of threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use it too."""
        return self._database.is_shared

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Add messages at the end, together and in this order, while others may be writing too."""
        check_name(name, is_shared=self.is_shared)
        return self._database.run(lambda: tables.append(name, messages, heading, spent, time.time()))

    def replace(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        expected: int,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Replace all messages. Raises `StoreConflict` if another process changed them."""
        check_name(name, is_shared=self.is_shared)
        return self._database.run(lambda: tables.replace(name, messages, expected, heading, spent, time.time()))

    def delete(self, name: str) -> bool:
        """Delete a conversation. Returns whether it was in the store."""
        deleted = self._database.run(lambda: tables.delete(name))
        if deleted:
            self._empty_log()
        return deleted

    def rename(self, name: str, new: str) -> bool:
        """Give a conversation another name. Returns whether it was in the store."""
        check_name(new, is_shared=self.is_shared)
        return self._database.run(lambda: tables.rename(name, new, time.time()))

    def _empty_log(self) -> None:
        """Remove what was deleted from the log of a file too. A server does so by itself."""
        if isinstance(self._database, SqliteFile):
            self._database.empty_log()

    # --- reading ------------------------------------------------------------------------------------------------------

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation with its messages from index `start` on; None when it is not in the store."""
        return self._database.run(lambda: tables.load(name, start), writes=False)

    def load_first(self, name: str) -> Message | None:
        """The first message of a conversation, or None."""
        return self._database.run(lambda: tables.load_first(name), writes=False)

    def about(self, name: str) -> ConversationInfo | None:
        """The facts about a conversation; None when it is not in the store."""
        return self._database.run(lambda: tables.about(name), writes=False)

    def names(self) -> tuple[str, ...]:
        """The names of all conversations, the latest changed first."""
        return self._database.run(tables.names, writes=False)

    def list_infos(self, limit: int | None = None) -> list[ConversationInfo]:
        """Summaries of all conversations, or of the latest `limit`, the last changed first."""
        return self._database.run(lambda: tables.list_infos(limit), writes=False)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the database. A later call opens it again; a store in memory is lost."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_name(name: str, *, is_shared: bool) -> None:
    """Raise StoreError for a name that a conversation in a store cannot have."""
    if not name.strip():
        raise StoreError("a stored conversation needs a name. Pass one that is not blank.")
    if is_shared and len(name.encode("utf-8", "replace")) > _MAX_NAME:
        raise StoreError(f"the name of a conversation in PostgreSQL has at most {_MAX_NAME} bytes. Pass a shorter one.")
