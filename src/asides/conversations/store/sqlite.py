"""`SqliteStore`: conversations in one SQLite file, for many threads and processes.

Not here: the SQL (tables), and how the file is used (sqlite_file).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Self

from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, tables
from asides.database import StoreError
from asides.database.sqlite_file import MEMORY, READ, WRITE, SqliteFile
from asides.values.messages import Message
from asides.values.usage import Usage

__all__ = ["MEMORY", "SqliteStore"]


class SqliteStore:
    """A store in one file. A new file can be read by its owner only; its folder must exist.

    The file is opened when it is first needed. A change is on the disk when its method returns, even if the process is
    killed right after. `patience` is the seconds to wait for other writers. ":memory:" is a store of this process alone
    and ends with it.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        self._file = SqliteFile(path, tables.has_tables, tables.create, patience=patience)

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
        return self._file.transact(
            WRITE,
            lambda connection: tables.append(connection, _check_name(name), messages, heading, spent, time.time()),
        )

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
        return self._file.transact(
            WRITE,
            lambda connection: tables.replace(
                connection, _check_name(name), messages, expected, heading, spent, time.time()
            ),
        )

    def delete(self, name: str) -> bool:
        """Delete a conversation. Returns whether it was in the store."""
        deleted = self._file.transact(WRITE, lambda connection: tables.delete(connection, name))
        if deleted:
            self._file.empty_log()
        return deleted

    def rename(self, name: str, new: str) -> bool:
        """Give a conversation another name. Returns whether it was in the store."""
        return self._file.transact(WRITE, lambda connection: tables.rename(connection, name, _check_name(new)))

    # --- reading ------------------------------------------------------------------------------------------------------

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation with its messages from index `start` on; None when it is not in the store."""
        return self._file.transact(READ, lambda connection: tables.load(connection, name, start))

    def load_first(self, name: str) -> Message | None:
        """The first message of a conversation; None when there is none."""
        return self._file.transact(READ, lambda connection: tables.load_first(connection, name))

    def about(self, name: str) -> ConversationInfo | None:
        """The facts about a conversation; None when it is not in the store."""
        return self._file.transact(READ, lambda connection: tables.about(connection, name))

    def names(self) -> tuple[str, ...]:
        """The names of all conversations, the latest changed first."""
        return self._file.transact(READ, tables.names)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. A later call opens it again; a store in memory is lost."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self._file.path!r})"


def _check_name(name: str) -> str:
    if not name.strip():
        raise StoreError("a stored conversation needs a name. To do: pass one that is not blank.")
    return name
