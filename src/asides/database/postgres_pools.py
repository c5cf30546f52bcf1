"""Connections to a PostgreSQL server: how they are opened, which ones can still be used, and the pools that hold them.

Each connection detects whether it goes through a pooler such as PgBouncer. If so, the next transaction may use another
connection of the server: nothing is set or prepared for longer than a transaction then.
"""

from __future__ import annotations

import asyncio
import logging
import select
import time
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from asides.database.postgres_deadlines import Deadlines, cut
from asides.database.postgres_outage import Outage
from asides.database.postgres_url import SCHEMA, PostgresUrl, build_parameters

POOL_NAME = "asides-store"
_PREPARE_AFTER = 5
"""A statement that runs more often than this on a connection is prepared there."""
_SLICE_SECONDS = 0.1
"""While a caller waits for a connection, it checks this often whether the server is down."""


class Greeting(NamedTuple):
    """The first statement on a connection: it detects a pooler, and without one sets what our work relies on. Behind a
    pooler these settings would affect other clients, and not us."""

    has_pooler: bool | None
    """What is known before; None: nothing."""
    patience: float
    durable: bool

    def write(self, number: int) -> Any:
        """The statement, for a connection with this number."""
        # A pooler reports its own process numbers instead of the server's.
        is_pooled = f"pg_backend_pid() <> {number}" if self.has_pooler is None else str(self.has_pooler).lower()
        # Behind a pooler, the begin of a transaction names it.
        isolation = f"set_config('default_transaction_isolation', 'read committed', {is_pooled})"
        return f"SELECT {is_pooled}, {isolation}, {_list_settings(self.patience, self.durable, is_pooled)}"


class StoreConnection(Connection[Any]):
    """A connection for threads. It knows when it was opened, and reports to `outage` why it could not be."""

    opened_at = 0.0
    has_session = False
    """Whether it keeps settings and prepared statements from one transaction to the next."""

    @classmethod
    def connect(cls, conninfo: str = "", *, outage: Outage, greeting: Greeting, **parameters: Any) -> StoreConnection:  # type: ignore[override]
        """Open it."""
        try:
            connection = super().connect(conninfo, **parameters)
            try:
                with Deadlines().watch(connection, time.monotonic() + greeting.patience):
                    cursor = connection.execute(greeting.write(connection.info.backend_pid))
                    _note_session(connection, cursor.fetchone())
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as problem:
            outage.note_failed_connection(problem)
            raise
        outage.note_opened()
        return connection


class AsyncStoreConnection(AsyncConnection[Any]):
    """The same for an event loop."""

    opened_at = 0.0
    has_session = False

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, outage: Outage, greeting: Greeting, **parameters: Any
    ) -> AsyncStoreConnection:
        """Open it."""
        try:
            connection = await super().connect(conninfo, **parameters)
            watch = asyncio.get_running_loop().call_later(greeting.patience, cut, connection)
            try:
                cursor = await connection.execute(greeting.write(connection.info.backend_pid))
                _note_session(connection, await cursor.fetchone())
            except BaseException:
                await connection.close()
                raise
            finally:
                watch.cancel()
        except psycopg.Error as problem:
            outage.note_failed_connection(problem)
            raise
        outage.note_opened()
        return connection


def _note_session(connection: StoreConnection | AsyncStoreConnection, greeted: Any) -> None:
    """Note what the first statement has returned."""
    connection.opened_at = time.monotonic()
    connection.has_session = greeted is not None and not greeted[0]
    connection.prepare_threshold = _PREPARE_AFTER if connection.has_session else None


class AsyncPool(AsyncConnectionPool[AsyncStoreConnection]):
    """A pool for one event loop, whose workers end when their tasks are cancelled."""

    @classmethod
    async def worker(cls, q: Any) -> None:
        """Run the work of a queue until it is stopped, or the task is cancelled.

        The pool's own worker survives a cancellation while it opens a connection, so that `asyncio.run` would wait for
        it without end (psycopg_pool 3.3.3).
        """
        await super().worker(_EndingQueue(q))  # type: ignore[arg-type] # it has what a worker uses


class _EndingQueue:
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def get(self) -> Any:
        """The next item. Raises CancelledError in a task that was cancelled before."""
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


ThreadPool = ConnectionPool[StoreConnection]


class _OurPools(logging.Filter):
    """Drops what psycopg logs about our pools and connections: it names users, and `Outage` logs an outage once."""

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args if isinstance(record.args, tuple) else (record.args,)
        for argument in arguments:
            # A pipeline or a transaction has its connection.
            connection = getattr(argument, "_conn", argument)
            if isinstance(connection, (StoreConnection, AsyncStoreConnection)) or POOL_NAME in repr(argument)[:200]:
                return False
        return True


for _name in ("psycopg", "psycopg.pool"):
    logging.getLogger(_name).addFilter(_OurPools())


# --- opening ----------------------------------------------------------------------------------------------------------


def make_thread_pool(url: PostgresUrl, outage: Outage, patience: float, most: int, durable: bool) -> ThreadPool:
    """A pool for threads. It is not open yet."""
    return ConnectionPool(
        url.conninfo,
        kwargs=_build_arguments(url, outage, patience, durable),
        connection_class=StoreConnection,
        **_choose_sizes(patience, most),
    )


def make_async_pool(url: PostgresUrl, outage: Outage, patience: float, most: int, durable: bool) -> AsyncPool:
    """A pool for one event loop. It is not open yet."""
    return AsyncPool(
        url.conninfo,
        kwargs=_build_arguments(url, outage, patience, durable),
        connection_class=AsyncStoreConnection,
        **_choose_sizes(patience, most),
    )


def _build_arguments(url: PostgresUrl, outage: Outage, patience: float, durable: bool) -> dict[str, Any]:
    own = {"outage": outage, "greeting": Greeting(url.has_pooler, patience, durable)}
    return {**build_parameters(url, patience), **own}


def _choose_sizes(patience: float, most: int) -> dict[str, Any]:
    return {
        "min_size": 0,
        "max_size": most,
        "timeout": patience,
        # The next caller tries again; the pool does not by itself.
        "reconnect_timeout": 0.0,
        "open": False,
        "name": POOL_NAME,
    }


@lru_cache(maxsize=64)
def write_settings(patience: float, durable: bool) -> Any:
    """The statement that sets what our work relies on for one transaction."""
    return f"SELECT {_list_settings(patience, durable, 'true')}"


def _list_settings(patience: float, durable: bool, is_local: str) -> str:
    """The calls that set it, for one transaction if the expression `is_local` is true, else for the connection."""
    settings = {"search_path": SCHEMA, "statement_timeout": str(int(patience * 1000))}
    if not durable:
        settings["synchronous_commit"] = "off"
    return ", ".join(f"set_config('{name}', '{value}', {is_local})" for name, value in settings.items())


# --- taking -----------------------------------------------------------------------------------------------------------


def take_connection(pool: ThreadPool, outage: Outage, deadline: float) -> StoreConnection:
    """Take a connection that is open as far as we know. Raises StoreUnavailable."""
    began = time.monotonic()
    while True:
        try:
            connection = pool.getconn(timeout=min(_SLICE_SECONDS, max(deadline - time.monotonic(), 0.001)))
        except psycopg_pool.PoolTimeout:
            _check_wait(pool, outage, began, deadline)
            continue
        if not _is_stale(connection, outage):
            return connection
        connection.close()
        pool.putconn(connection)


async def take_connection_async(pool: AsyncPool, outage: Outage, deadline: float) -> AsyncStoreConnection:
    """The same in an event loop."""
    began = time.monotonic()
    while True:
        try:
            connection = await pool.getconn(timeout=min(_SLICE_SECONDS, max(deadline - time.monotonic(), 0.001)))
        except psycopg_pool.PoolTimeout:
            _check_wait(pool, outage, began, deadline)
            continue
        if not _is_stale(connection, outage):
            return connection
        await connection.close()
        await pool.putconn(connection)


def _check_wait(pool: ThreadPool | AsyncPool, outage: Outage, began: float, deadline: float) -> None:
    """Raise StoreUnavailable if waiting longer for a connection is useless."""
    if outage.is_full(began) and pool.get_stats()["pool_size"]:
        # Connections in use return later.
        if time.monotonic() >= deadline:
            raise outage.build_full_error()
        return
    if time.monotonic() >= deadline or outage.failed_at >= began:
        outage.note_down(began)
    outage.check(writes=False)


def _is_stale(connection: StoreConnection | AsyncStoreConnection, outage: Outage) -> bool:
    """Whether a connection must not be used: it has ended, as after a restart, or may lead to a read-only server.

    An idle connection has nothing to read, unless the server has closed it or says why it will.
    """
    if connection.closed or connection.opened_at < outage.stale_before:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return bool(poller.poll(0))
