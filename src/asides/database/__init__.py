"""Databases: SQLite files and PostgreSQL, behind one protocol, and the queries that both run.

Work on a database is a generator of queries, so that the same SQL serves both engines, and threads as well as event
loops: `Query`, `Queries`, `Database`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from asides.values.errors import ConfigError

_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)


# The clocks of machines differ, so leases go by the clock of the database.
NOW_SQLITE = "((julianday('now') - 2440587.5) * 86400.0)"
"""The time of the database, in seconds since 1970, as SQL of SQLite."""
NOW_POSTGRES = "extract(epoch FROM clock_timestamp())::double precision"
"""The same as SQL of PostgreSQL."""
LEASE_SECONDS = 120.0
"""How long a claim on rows, or a reservation of money, counts without being renewed: for so long a killed process holds
it back.
"""


class StoreError(ConfigError):
    """The store cannot be used, or cannot store the given values. Its content is unchanged."""


class StoreUnavailable(StoreError):
    """The server of the store does not answer. A later attempt may succeed."""


class Query(msgspec.Struct, frozen=True):
    """One statement, with `?` for values. The SQL works on both engines, unless `postgres` is given."""

    sql: str
    values: tuple[Any, ...] = ()
    postgres: str | None = None
    """The statement for PostgreSQL, with the same values, where it has to differ."""
    is_alone: bool = False
    """Whether it is the only query of its work, so that it needs no transaction."""


class QueryMany(msgspec.Struct, frozen=True):
    """One statement, for each row of values."""

    sql: str
    rows: Sequence[tuple[Any, ...]]
    postgres: str | None = None


class QueryResult(NamedTuple):
    """The result of a query."""

    rows: list[tuple[Any, ...]]
    changed: int
    """The rows that it inserted, updated or deleted."""

    @property
    def first(self) -> tuple[Any, ...] | None:
        """The first row, or None."""
        return self.rows[0] if self.rows else None


Queries: TypeAlias = Generator[Query | QueryMany, QueryResult, _Result_co]
"""Work on a database: it yields queries, gets their results, and returns its own. All of it is one transaction."""


class Database(Protocol):
    """Runs work, for any number of threads. Its repr and its errors show no password."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use it too."""
        ...

    @property
    def problem(self) -> str | None:
        """What is wrong with the server, such as "does not answer"; None if it works as far as is known."""
        ...

    def was_down_since(self, moment: float) -> bool:
        """Whether the server is down, or was at some time after `moment`, a reading of `time.monotonic()`."""
        ...

    def run(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """Run work as one transaction. It is given as a function, since it may be run again after a conflict.

        `durable`: whether a change must survive a loss of power; if not, it still survives the end of this process.
        `repeatable`: whether the work may run twice without harm. Such work is run again if the connection was lost
        while it was committed. `patience`: the seconds that it may take in all; None: the default of the database.
        """
        ...

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
        ...

    def close(self) -> None:
        """Close the connections of threads."""
        ...

    async def close_async(self) -> None:
        """Close the connections of this event loop, and of threads."""
        ...
