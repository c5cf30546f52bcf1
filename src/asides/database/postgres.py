"""`PostgresDatabase`: work on a PostgreSQL server, for threads and for event loops, each with a pool of connections.

Not here: the tables (migrate), and the SQL (wherever something is stored).
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar
from urllib.parse import urlsplit

from asides.database import Queries, Query, QueryMany, QueryResult, StoreError, StoreUnavailable
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection, Cursor
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

_Result = TypeVar("_Result")

SCHEMA = "asides"
"""The schema of all tables."""
MOST_CONNECTIONS = 10
_MOST_ATTEMPTS = 5
_DOWN_SECONDS = 1.0
"""After a server did not answer, for how long nobody waits for it again."""


class PostgresDatabase:
    """A server, connected to when it is first needed. `url`: postgresql://user@host/name, as libpq reads it.

    `patience` is the seconds to wait for a connection, and for an answer. Tables are those of `migrate`.
    """

    def __init__(self, url: str, *, patience: float = 5.0, most_connections: int = MOST_CONNECTIONS) -> None:
        _check_package()
        self._url = url
        self.name = describe_url(url)
        """The server and the database, without user and password."""
        self._patience = patience
        self._most = most_connections
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pools: dict[bool, ConnectionPool[Connection[Any]]] = {}
        self._async_pools: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[bool, AsyncConnectionPool[AsyncConnection[Any]]]
        ] = weakref.WeakKeyDictionary()
        self._down_until = 0.0

    @property
    def is_shared(self) -> bool:
        """Other machines may use it too."""
        return True

    # --- threads ------------------------------------------------------------------------------------------------------

    def run(self, work: Callable[[], Queries[_Result]], *, writes: bool = True, durable: bool = True) -> _Result:
        """Run work as one transaction."""
        attempts = _Attempts(self, writes=writes)
        while True:
            try:
                with self._find_pool(durable).connection() as connection:
                    return _carry_out(connection, work(), attempts)
            except Exception as problem:  # noqa: BLE001 - sorted there
                attempts.take(problem)
            attempts.pause()

    def _find_pool(self, durable: bool) -> ConnectionPool[Connection[Any]]:
        from psycopg_pool import ConnectionPool

        self._check_down()
        with self._lock:
            if self._process != os.getpid():
                # After a fork the connections belong to the parent.
                self._pools, self._process = {}, os.getpid()
            pool = self._pools.get(durable)
            if pool is None:
                pool = self._pools[durable] = ConnectionPool(
                    self._url, kwargs=_list_parameters(self._patience, durable), **self._pool_settings
                )
                pool.open()
        return pool

    def close(self) -> None:
        """Close the connections of threads. A later call opens new ones."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    # --- event loops --------------------------------------------------------------------------------------------------

    async def run_async(
        self, work: Callable[[], Queries[_Result]], *, writes: bool = True, durable: bool = True
    ) -> _Result:
        """The same in an event loop."""
        attempts = _Attempts(self, writes=writes)
        while True:
            try:
                pool = await self._find_async_pool(durable)
                async with pool.connection() as connection:
                    return await _carry_out_async(connection, work(), attempts)
            except Exception as problem:  # noqa: BLE001 - sorted there
                attempts.take(problem)
            await asyncio.sleep(attempts.seconds)

    async def _find_async_pool(self, durable: bool) -> AsyncConnectionPool[AsyncConnection[Any]]:
        from psycopg_pool import AsyncConnectionPool

        self._check_down()
        pools = self._async_pools.setdefault(asyncio.get_running_loop(), {})
        pool = pools.get(durable)
        if pool is None:
            pool = pools[durable] = AsyncConnectionPool(
                self._url, kwargs=_list_parameters(self._patience, durable), **self._pool_settings
            )
            await pool.open()
        return pool

    async def close_async(self) -> None:
        """Close the connections of this event loop, and of threads."""
        for pool in self._async_pools.pop(asyncio.get_running_loop(), {}).values():
            await pool.close()
        await asyncio.to_thread(self.close)

    # --- both ---------------------------------------------------------------------------------------------------------

    @property
    def _pool_settings(self) -> dict[str, Any]:
        return {
            "min_size": 0,
            "max_size": self._most,
            "timeout": self._patience,
            "reconnect_timeout": self._patience,
            "open": False,
            "name": "asides",
        }

    def _check_down(self) -> None:
        if time.monotonic() < self._down_until:
            raise self.build_down_error()

    def note_down(self) -> None:
        """Note that the server does not answer: for a moment, nobody waits for it."""
        self._down_until = time.monotonic() + _DOWN_SECONDS

    def build_down_error(self) -> StoreUnavailable:
        """The error of a server that does not answer."""
        return StoreUnavailable(
            f"the database {self.name} does not answer. To do: start it, or check its address, name, user and password."
        )

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.name!r})"


class _Attempts:
    """The attempts to run one work: which errors are worth another one, and which are told how."""

    def __init__(self, database: PostgresDatabase, *, writes: bool) -> None:
        self._database = database
        self.writes = writes
        self._count = 0
        self.is_ending = False
        """Whether the end of the transaction was asked for: then nobody knows whether it counts."""

    @property
    def seconds(self) -> float:
        return 0.002 * float(2**self._count)

    def pause(self) -> None:
        time.sleep(self.seconds)

    def take(self, problem: Exception) -> None:
        """Return if the work is worth another attempt; else raise what to tell."""
        import psycopg
        import psycopg_pool
        from psycopg import errors

        self._count += 1
        if isinstance(problem, (psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed)):
            self._database.note_down()
            raise self._database.build_down_error() from None
        if isinstance(problem, UnicodeEncodeError):
            raise StoreError(
                "the store cannot take half a character (a lone surrogate). To do: look for one in the names."
            ) from None
        if not isinstance(problem, psycopg.Error):
            raise problem
        if isinstance(problem, (errors.SerializationFailure, errors.DeadlockDetected)):
            if self._count < _MOST_ATTEMPTS:
                return
        elif (isinstance(problem, psycopg.OperationalError) and problem.sqlstate is None) or isinstance(
            problem, (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)
        ):
            # A connection that is broken, perhaps since long ago.
            if self._count < _MOST_ATTEMPTS and not (self.is_ending and self.writes):
                return
            self._database.note_down()
            raise self._database.build_down_error() from None
        elif isinstance(problem, (errors.UndefinedTable, errors.InvalidSchemaName)):
            raise StoreError(
                f"the database {self._database.name} lacks tables of asides. To do: run `asides store migrate`."
            ) from None
        raise StoreError(
            f"the database {self._database.name} failed: {type(problem).__name__} ({problem.sqlstate}). To do: check "
            "its log."
        ) from None


def _carry_out(connection: Connection[Any], work: Queries[_Result], attempts: _Attempts) -> _Result:
    attempts.is_ending = False
    try:
        query = next(work)
        if isinstance(query, Query) and query.is_all:
            attempts.is_ending = True
            work.send(_fetch(connection.execute(*_read_query(query))))
            raise RuntimeError("a query that is all is followed by none.")
        with connection.pipeline() as pipeline:
            connection.execute(_choose_begin(attempts.writes))
            result = _execute(connection, query, pipeline.sync)
        while True:
            query = work.send(result)
            result = _execute(connection, query)
    except StopIteration as end:
        if connection.info.transaction_status:
            attempts.is_ending = True
            connection.execute("COMMIT")
        value: _Result = end.value
        return value
    except BaseException:
        if not connection.closed and connection.info.transaction_status:
            connection.execute("ROLLBACK")
        raise


async def _carry_out_async(connection: AsyncConnection[Any], work: Queries[_Result], attempts: _Attempts) -> _Result:
    attempts.is_ending = False
    try:
        query = next(work)
        if isinstance(query, Query) and query.is_all:
            attempts.is_ending = True
            cursor = await connection.execute(*_read_query(query))
            work.send(QueryResult(await cursor.fetchall() if cursor.description else [], cursor.rowcount))
            raise RuntimeError("a query that is all is followed by none.")
        async with connection.pipeline() as pipeline:
            await connection.execute(_choose_begin(attempts.writes))
            result = await _execute_async(connection, query, pipeline.sync)
        while True:
            query = work.send(result)
            result = await _execute_async(connection, query)
    except StopIteration as end:
        if connection.info.transaction_status:
            attempts.is_ending = True
            await connection.execute("COMMIT")
        value: _Result = end.value
        return value
    except BaseException:
        if not connection.closed and connection.info.transaction_status:
            await connection.execute("ROLLBACK")
        raise


def _choose_begin(writes: bool) -> LiteralString:
    return "BEGIN" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def _execute(
    connection: Connection[Any], query: Query | QueryMany, wait: Callable[[], None] | None = None
) -> QueryResult:
    """`wait`: for the results of a pipeline, whose cursors say before that they have none."""
    if isinstance(query, Query):
        found = connection.execute(*_read_query(query))
        if wait is not None:
            wait()
        return _fetch(found)
    cursor = connection.cursor()
    cursor.executemany(_translate(query.postgres or query.sql), query.rows)
    return QueryResult([], cursor.rowcount)


async def _execute_async(
    connection: AsyncConnection[Any], query: Query | QueryMany, wait: Callable[[], Awaitable[None]] | None = None
) -> QueryResult:
    if isinstance(query, Query):
        cursor = await connection.execute(*_read_query(query))
        if wait is not None:
            await wait()
        return QueryResult(await cursor.fetchall() if cursor.description else [], cursor.rowcount)
    cursor = connection.cursor()
    await cursor.executemany(_translate(query.postgres or query.sql), query.rows)
    return QueryResult([], cursor.rowcount)


def _fetch(cursor: Cursor[Any]) -> QueryResult:
    return QueryResult(cursor.fetchall() if cursor.description else [], cursor.rowcount)


def _read_query(query: Query) -> tuple[LiteralString, tuple[Any, ...]]:
    return _translate(query.postgres or query.sql), query.values


@lru_cache(maxsize=512)
def _translate(sql: str) -> LiteralString:
    """The statement as psycopg takes it. Ours have no question mark but those for values."""
    translated: Any = sql.replace("%", "%%").replace("?", "%s")
    return translated  # type: ignore[no-any-return]


def _list_parameters(patience: float, durable: bool) -> dict[str, Any]:
    options = f"-c search_path={SCHEMA} -c statement_timeout={int(patience * 1000)}"
    return {
        "autocommit": True,
        "connect_timeout": max(2, int(patience)),
        "application_name": "asides",
        "options": options if durable else f"{options} -c synchronous_commit=off",
    }


def describe_url(url: str) -> str:
    """The server and the database of a URL, without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _check_package() -> None:
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise ConfigError(
            "a store in PostgreSQL needs psycopg, which is not installed. To do: pip install 'asides[postgres]'."
        )
