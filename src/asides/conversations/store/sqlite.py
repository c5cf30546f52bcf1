"""`SqliteStore`: conversations in one SQLite file, for many threads and processes."""

from __future__ import annotations

import os

from asides.conversations.store import tables
from asides.conversations.store.database_store import DatabaseStore
from asides.database.sqlite_database import SqliteDatabase
from asides.database.sqlite_file import MEMORY

__all__ = ["MEMORY", "SqliteStore"]


class SqliteStore(DatabaseStore):
    """A store in one file. A new file can be read by its owner only; its folder must exist.

    The file is opened when it is first needed. A change is on the disk when its method returns, even if the process is
    killed right after. `patience` is the seconds to wait for other writers. ":memory:" is a store of this process alone
    and ends with it.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        self._file = SqliteDatabase(path, tables.has_tables, tables.create, patience=patience)
        super().__init__(self._file)

    def __repr__(self) -> str:
        return f"SqliteStore({self._file.path!r})"
