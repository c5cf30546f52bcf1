"""Connections to a PostgreSQL server: how they are opened, which ones can still be used, and the pools that hold them.

Not here: when a pool is opened and closed (postgres), and the work on a connection (postgres_work).
"""

from __future__ import annotations

import logging
import select
import time
from typing import Any

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from asides.database.postgres_outage import Outage
from asides.database.postgres_url import SCHEMA, PostgresUrl, build_parameters

POOL_NAME = "asides-store"
_SLICE_SECONDS = 0.1
"""While a caller waits for a connection, it checks this often whether the server is down."""


class StoreConnection(Connection[Any]):
    """A connection for threads. It knows when it was opened, and reports to `outage` why it could not be."""

    opened_at = 0.0

    @classmethod
    def connect(cls, conninfo: str = "", *, outage: Outage | None = None, **parameters: Any) -> StoreConnection:  # type: ignore[override]
        """Open it."""
        try:
            connection = super().connect(conninfo, **parameters)
        except psycopg.Error as problem:
            if outage is not None:
                outage.note_failed_connection(problem)
            raise
        connection.opened_at = time.monotonic()
        return connection


class AsyncStoreConnection(AsyncConnection[Any]):
    """The same for an event loop."""

    opened_at = 0.0

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, outage: Outage | None = None, **parameters: Any
    ) -> AsyncStoreConnection:
        """Open it."""
        try:
            connection = await super().connect(conninfo, **parameters)
        except psycopg.Error as problem:
            if outage is not None:
                outage.note_failed_connection(problem)
            raise
        connection.opened_at = time.monotonic()
        return connection


AsyncPool = AsyncConnectionPool[AsyncStoreConnection]
ThreadPool = ConnectionPool[StoreConnection]


class _OurPools(logging.Filter):
    """Drops what psycopg logs about our pools: it names users, and `Outage` logs an outage once."""

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args if isinstance(record.args, tuple) else (record.args,)
        for argument in arguments:
            if isinstance(argument, (StoreConnection, AsyncStoreConnection)) or POOL_NAME in repr(argument)[:200]:
                return False
        return True


logging.getLogger("psycopg.pool").addFilter(_OurPools())


# --- opening ----------------------------------------------------------------------------------------------------------


def make_thread_pool(url: PostgresUrl, outage: Outage, patience: float, most: int, durable: bool) -> ThreadPool:
    """A pool for threads. It is not open yet."""
    settings = None if url.has_pooler else write_settings(patience, durable, is_local=False)

    def configure(connection: Connection[Any]) -> None:
        if settings is not None:
            connection.execute(settings)

    return ConnectionPool(
        url.conninfo,
        kwargs={**build_parameters(url, patience), "outage": outage},
        connection_class=StoreConnection,
        configure=configure,
        **_choose_sizes(patience, most),
    )


def make_async_pool(url: PostgresUrl, outage: Outage, patience: float, most: int, durable: bool) -> AsyncPool:
    """A pool for one event loop. It is not open yet."""
    settings = None if url.has_pooler else write_settings(patience, durable, is_local=False)

    async def configure(connection: AsyncConnection[Any]) -> None:
        if settings is not None:
            await connection.execute(settings)

    return AsyncConnectionPool(
        url.conninfo,
        kwargs={**build_parameters(url, patience), "outage": outage},
        connection_class=AsyncStoreConnection,
        configure=configure,
        **_choose_sizes(patience, most),
    )


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


def write_settings(patience: float, durable: bool, *, is_local: bool) -> Any:
    """The statement that sets what our work relies on, for a connection or, if it is local, for one transaction."""
    settings = {"search_path": SCHEMA, "statement_timeout": str(int(patience * 1000))}
    if not durable:
        settings["synchronous_commit"] = "off"
    if not is_local:
        # Of a transaction that has begun, it cannot be changed.
        settings["default_transaction_isolation"] = "read committed"
    local = "true" if is_local else "false"
    calls = ", ".join(f"set_config('{name}', '{value}', {local})" for name, value in settings.items())
    return f"SELECT {calls}"


# --- taking -----------------------------------------------------------------------------------------------------------


def take_connection(pool: ThreadPool, outage: Outage, deadline: float) -> StoreConnection:
    """Take a connection that is open as far as we know. Raises StoreUnavailable."""
    began = time.monotonic()
    while True:
        try:
            connection = pool.getconn(timeout=min(_SLICE_SECONDS, max(deadline - time.monotonic(), 0.001)))
        except psycopg_pool.PoolTimeout:
            _check_wait(outage, began, deadline)
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
            _check_wait(outage, began, deadline)
            continue
        if not _is_stale(connection, outage):
            return connection
        await connection.close()
        await pool.putconn(connection)


def _check_wait(outage: Outage, began: float, deadline: float) -> None:
    """Raise StoreUnavailable if waiting longer for a connection is useless."""
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
