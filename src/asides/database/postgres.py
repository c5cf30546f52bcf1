"""`PostgresDatabase`: work on a PostgreSQL server, for threads and for event loops, each with pools of connections.

While a server does not answer, the first caller waits as long as its patience allows. After that all calls fail
immediately, until the server answers again.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from asides.database import Queries
from asides.database.postgres_deadlines import Deadlines, cut
from asides.database.postgres_outage import Outage
from asides.database.postgres_url import SCHEMA, describe_url, is_postgres_url, read_url
from asides.values.errors import ConfigError
from asides.values.fork_guard import call_in_children

if TYPE_CHECKING:
    from asides.database.postgres_attempts import Attempts
    from asides.database.postgres_pools import AsyncPool, ThreadPool

__all__ = ["SCHEMA", "PostgresDatabase", "describe_url", "is_postgres_url"]

_Result = TypeVar("_Result")

MOST_CONNECTIONS = 10
"""The connections of each event loop, and as many of all threads together. A server allows 100 by default."""
_FEW_CONNECTIONS = 4
"""How many of them are for work that need not be durable, which is short."""
_CLOSE_SECONDS = 1.0
"""How long closing waits for a connection that is being opened."""


class PostgresDatabase:
    """A server, connected to when it is first needed. `url`: postgresql://user@host/name, as libpq reads it.

    It may be behind a pooler such as PgBouncer, in session or transaction mode. `patience`: seconds that work may take,
    unless it sets its own. Tables are those of `migrate`.
    """

    def __init__(self, url: str, *, patience: float = 5.0, most_connections: int = MOST_CONNECTIONS) -> None:
        check_package()
        self.url = url
        """It holds the password: never show it."""
        self._url = read_url(url)
        self._patience = patience
        few = max(1, min(_FEW_CONNECTIONS, most_connections // 2))
        self._most = {False: few, True: max(1, most_connections - few)}
        self._inherited: list[Any] = []
        self._pools: dict[bool, ThreadPool] = {}
        self._async_pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, AsyncPool]]
        self._async_pools = weakref.WeakKeyDictionary()
        self._prepare_process()
        call_in_children(self._prepare_process)

    def _prepare_process(self) -> None:
        """Make locks and pools for this process. After a fork the old ones belong to the parent."""
        self._inherited += [self._pools, self._async_pools]
        self._pools, self._async_pools = {}, weakref.WeakKeyDictionary()
        self._lock, self._deadlines, self._outage = threading.Lock(), Deadlines(), Outage(self._url)

    def _begin(self, patience: float | None, *, writes: bool, durable: bool, repeatable: bool) -> tuple[Attempts, Any]:
        """The attempts to run work, and the settings that a transaction begins with where a connection keeps none."""
        from asides.database.postgres_attempts import Attempts
        from asides.database.postgres_pools import write_settings

        patience = self._patience if patience is None else patience
        attempts = Attempts(self.name, self._outage, patience, writes=writes, repeatable=repeatable)
        return attempts, write_settings(patience, durable)

    @property
    def name(self) -> str:
        """The server and the database, without user and password."""
        return self._url.name

    @property
    def is_shared(self) -> bool:
        """Other machines may use it too."""
        return True

    @property
    def problem(self) -> str | None:
        """What is wrong with the server, such as "does not answer"; None if it works as far as is known."""
        return self._outage.problem

    def was_down_since(self, moment: float) -> bool:
        """Whether the server is down, or was at some time after `moment`."""
        return self._outage.was_down_since(moment)

    def check_works(self) -> None:
        """Raise StoreUnavailable if it is known that the server does not answer."""
        self._outage.check(writes=False)

    def note_down(self) -> None:
        """Note that the server does not answer. Until it does, calls fail immediately."""
        self._outage.note_down()

    # --- threads ------------------------------------------------------------------------------------------------------

    def run(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """Run work as one transaction. See `Database`."""
        from asides.database.postgres_pools import take_connection
        from asides.database.postgres_work import carry_out

        attempts, settings = self._begin(patience, writes=writes, durable=durable, repeatable=repeatable)
        while True:
            self._outage.check(writes=writes)
            pool = self._find_pool(durable)
            try:
                connection = take_connection(pool, self._outage, attempts.deadline)
                try:
                    with self._deadlines.watch(connection, attempts.deadline):
                        return carry_out(connection, work(), attempts, None if connection.has_session else settings)
                finally:
                    pool.putconn(connection)
            except Exception as problem:  # noqa: BLE001 - raise_final decides
                attempts.raise_final(problem)
            time.sleep(attempts.pause)

    def _find_pool(self, durable: bool) -> ThreadPool:
        from asides.database.postgres_pools import make_thread_pool

        pool = self._pools.get(durable)
        if pool is None:
            with self._lock:
                pool = self._pools.get(durable)
                if pool is None:
                    pool = make_thread_pool(self._url, self._outage, self._patience, self._most[durable], durable)
                    pool.open()
                    self._pools[durable] = pool
        return pool

    def close(self) -> None:
        """Close the connections of threads. A later call opens new ones."""
        self._outage.close()
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close(timeout=_CLOSE_SECONDS)

    # --- event loops --------------------------------------------------------------------------------------------------

    async def run_async(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """The same in an event loop."""
        from asides.database.postgres_pools import take_connection_async
        from asides.database.postgres_work import carry_out_async

        attempts, settings = self._begin(patience, writes=writes, durable=durable, repeatable=repeatable)
        loop = asyncio.get_running_loop()
        while True:
            self._outage.check(writes=writes)
            pool = await self._find_async_pool(loop, durable)
            try:
                connection = await take_connection_async(pool, self._outage, attempts.deadline)
                watch = loop.call_later(max(attempts.deadline - time.monotonic(), 0.0), cut, connection)
                try:
                    own = None if connection.has_session else settings
                    return await carry_out_async(connection, work(), attempts, own)
                finally:
                    watch.cancel()
                    await pool.putconn(connection)
            except Exception as problem:  # noqa: BLE001 - raise_final decides
                attempts.raise_final(problem)
            await asyncio.sleep(attempts.pause)

    async def _find_async_pool(self, loop: asyncio.AbstractEventLoop, durable: bool) -> AsyncPool:
        pools = self._async_pools.get(loop)
        pool = None if pools is None else pools.get(durable)
        if pool is None:
            from asides.database.postgres_pools import make_async_pool

            pool = make_async_pool(self._url, self._outage, self._patience, self._most[durable], durable)
            # Stored before it is open, so that a second task opens no second pool. Opening waits for nothing.
            self._async_pools.setdefault(loop, {})[durable] = pool
            await pool.open()
        return pool

    async def close_async(self) -> None:
        """Close the connections of this event loop, and of threads."""
        for pool in self._async_pools.pop(asyncio.get_running_loop(), {}).values():
            await pool.close(timeout=_CLOSE_SECONDS)
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.name!r})"


def check_package() -> None:
    """Raise ConfigError if psycopg is not installed."""
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise ConfigError(
            "a store in PostgreSQL needs psycopg, which is not installed. Run pip install 'asides[postgres]'."
        )
