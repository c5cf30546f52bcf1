"""`SqliteDatabase`: work on one SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from asides.database import Queries, Query, QueryResult
from asides.database.sqlite_file import READ, WRITE, SqliteFile

if TYPE_CHECKING:
    import sqlite3

_Result = TypeVar("_Result")


class SqliteDatabase(SqliteFile):
    """A file as a `Database`. How durable its changes are is a property of the file, not of the work."""

    @property
    def is_shared(self) -> bool:
        """Always False: other machines have other files."""
        return False

    @property
    def problem(self) -> None:
        """Always None: a file has no server."""

    def was_down_since(self, moment: float) -> bool:  # noqa: ARG002
        """Always False: a file has no server."""
        return False

    def run(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,  # noqa: ARG002
        repeatable: bool = False,  # noqa: ARG002
        patience: float | None = None,  # noqa: ARG002
    ) -> _Result:
        """Run work as one transaction. How long it waits for other writers is a property of the file too."""
        return self.transact(WRITE if writes else READ, lambda connection: carry_out(connection, work()))

    async def run_async(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """The same in an event loop: it may wait for the disk, so it gets a thread."""
        return await asyncio.to_thread(
            self.run, work, writes=writes, durable=durable, repeatable=repeatable, patience=patience
        )

    async def close_async(self) -> None:
        """Close the file."""
        self.close()


def carry_out(connection: sqlite3.Connection, work: Queries[_Result]) -> _Result:
    """Run work in the transaction of a connection."""
    try:
        query = next(work)
        while True:
            if isinstance(query, Query):
                cursor = connection.execute(query.sql, query.values)
            else:
                cursor = connection.executemany(query.sql, query.rows)
            query = work.send(QueryResult(cursor.fetchall(), cursor.rowcount))
    except StopIteration as end:
        result: _Result = end.value
        return result
