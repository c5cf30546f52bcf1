"""Create, upgrade and check the tables in PostgreSQL: `migrate(url)`, `check(url)`, `MigratedPostgres`.

The steps are numbered files in migrations/. One process migrates at a time, under an advisory lock; the others wait. A
step only adds, so that instances of the previous version keep working while the next one starts. A step that has to
change more says in its first line which versions still work after it: `-- oldest: 12` means those that know step 12.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from asides.database import Queries, StoreError, StoreUnavailable
from asides.database.postgres import SCHEMA, PostgresDatabase, check_package, describe_url
from asides.database.postgres_deadlines import Deadlines
from asides.database.postgres_outage import quote_failure
from asides.database.postgres_url import build_parameters, read_url

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection

_Result = TypeVar("_Result")

PATIENCE = 60.0
"""The seconds to wait for another process that migrates."""
_CONNECT_SECONDS = 5
_SECONDS_BETWEEN_ATTEMPTS = 0.1
_TABLE = f"{SCHEMA}.migrations"
_LOCK = 0x61736964
"""The number of the advisory lock: "asid"."""
_OLDEST = re.compile(r"-- oldest: (\d+)\s")


class Migration(msgspec.Struct, frozen=True):
    """One step."""

    number: int
    name: str
    sql: str
    oldest: int = 0
    """Versions that do not know the step with this number do not work after this one."""

    @property
    def label(self) -> str:
        """The number and the name, as in `0003_gateway_keys`."""
        return write_label(self.number, self.name)


def write_label(number: int, name: str) -> str:
    """The number and the name of a step, as people read them."""
    return f"{number:04}_{name}"


class TablesState(msgspec.Struct, frozen=True):
    """Which steps a database lacks, and which it has from a newer version."""

    missing: tuple[Migration, ...]
    """The steps that this version knows and the database lacks."""
    newer: tuple[str, ...]
    """The names of steps of a newer version, with which this one still works."""
    is_read_only: bool = False
    """Whether the server takes no changes, as a standby does not."""

    @property
    def is_current(self) -> bool:
        """Whether this version can work with the tables as they are."""
        return not self.missing


@cache
def list_migrations() -> tuple[Migration, ...]:
    """All steps that this version knows, in order."""
    found: list[Migration] = []
    for file in resources.files("asides.database").joinpath("migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            oldest = _OLDEST.match(sql)
            found.append(Migration(int(number), name, sql, int(oldest[1]) if oldest else 0))
    return tuple(sorted(found, key=lambda migration: migration.number))


def check(url: str) -> TablesState:
    """Read which steps a database has. Raises StoreUnavailable if it does not answer, and StoreError if its tables are
    of a newer asides that this one cannot work with, or of another program. Changes nothing.
    """
    # A transaction, as our work is: a pooler may allow none.
    with _connect(url) as connection, _watch(connection), connection.transaction():
        state = _read_state(connection, url)
        (read_only,) = connection.execute("SHOW transaction_read_only").fetchone() or ("off",)
        return msgspec.structs.replace(state, is_read_only=read_only == "on")


def migrate(url: str, *, patience: float = PATIENCE) -> list[Migration]:
    """Carry out the steps that the database lacks, all of them or none. Returns them. Raises what `check` raises.

    `patience` is the seconds to wait for another process that does the same.
    """
    with _connect(url) as connection:
        with _watch(connection), connection.transaction():
            if _read_state(connection, url).is_current:
                # A user who may not create tables can still use them.
                return []
        with connection.transaction():
            _lock(connection, url, patience)
            _check_encoding(connection, url)
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {_TABLE} (number integer PRIMARY KEY, name text NOT NULL, "
                "oldest integer NOT NULL DEFAULT 0, done timestamptz NOT NULL DEFAULT now())"
            )
            missing = _read_state(connection, url).missing
            connection.execute(f"SET LOCAL search_path = {SCHEMA}")
            for step in missing:
                connection.execute(cast("Any", step.sql))
                note = cast("Any", f"INSERT INTO {_TABLE} (number, name, oldest) VALUES (%s, %s, %s)")  # noqa: S608
                connection.execute(note, (step.number, step.name, step.oldest))
        return list(missing)


class MigratedPostgres(PostgresDatabase):
    """A database that is migrated before its first work, or, if the server is down then, as soon as it answers."""

    _is_ready = False

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._preparing = threading.Lock()

    def run(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = True,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """Run work as one transaction."""
        self.prepare()
        return super().run(work, writes=writes, durable=durable, repeatable=repeatable, patience=patience)

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
        if not self._is_ready:
            await asyncio.to_thread(self.prepare)
        return await super().run_async(work, writes=writes, durable=durable, repeatable=repeatable, patience=patience)

    def prepare(self) -> None:
        """Migrate it, unless that is done."""
        if self._is_ready:
            return
        with self._preparing:
            if self._is_ready:
                return
            self.check_works()
            try:
                migrate(self.url)
            except StoreUnavailable:
                self.note_down()
                raise
            self._is_ready = True


# --- one connection ---------------------------------------------------------------------------------------------------


def _read_state(connection: Connection, url: str) -> TablesState:
    (exists,) = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (_TABLE,)).fetchone() or (False,)
    if not exists:
        return TablesState(list_migrations(), ())
    rows = connection.execute(f"SELECT number, name, oldest FROM {_TABLE}").fetchall()  # noqa: S608
    done: dict[int, tuple[str, int]] = {number: (name, oldest) for number, name, oldest in rows}
    known = {migration.number for migration in list_migrations()}
    newer = {number: step for number, step in sorted(done.items()) if number not in known}
    for number, (name, oldest) in newer.items():
        if oldest > max(known):
            raise StoreError(
                f"the tables of {describe_url(url)} were created by a newer asides: its step "
                f"{write_label(number, name)} needs a version that knows step {oldest:04}, and this one knows up to "
                f"{max(known):04}. Upgrade asides, or use another database."
            )
    missing = tuple(migration for migration in list_migrations() if migration.number not in done)
    return TablesState(missing, tuple(write_label(number, name) for number, (name, _) in newer.items()))


def _lock(connection: Connection, url: str, patience: float) -> None:
    """Wait until no other process migrates. The lock ends with the transaction."""
    deadline = time.monotonic() + patience
    while connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() != (True,):
        if time.monotonic() >= deadline:
            raise StoreError(
                f"another process has been changing the tables of {describe_url(url)} for {patience:g} seconds. "
                "Wait for it and try again, or look in pg_stat_activity for what it waits for."
            )
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
    # Changing a table waits for the transactions that use it. One that never ends must not block it endlessly.
    milliseconds = max(1, int(patience * 1000))
    connection.execute(cast("Any", f"SET LOCAL lock_timeout = {milliseconds}"))


def _check_encoding(connection: Connection, url: str) -> None:
    (found,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    # From a database without an encoding, even its name comes as bytes.
    encoding = found.decode() if isinstance(found, bytes) else found
    if encoding != "UTF8":
        raise StoreError(
            f"the database {describe_url(url)} has the encoding {encoding}, which cannot hold every text. "
            "Create another one with ENCODING 'UTF8' TEMPLATE template0."
        )


@contextmanager
def _connect(url: str) -> Generator[Connection, None, None]:
    check_package()
    import psycopg

    was_open = False
    try:
        read = read_url(url)
        with psycopg.connect(read.conninfo, **build_parameters(read, _CONNECT_SECONDS)) as connection:
            was_open = True
            # READ COMMITTED: after waiting for the lock, see the other process's migrations.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            yield connection
    except psycopg.Error as problem:
        raise _to_store_error(problem, url, was_open) from None


def _watch(connection: Connection) -> AbstractContextManager[None]:
    """Cut the connection if the block does not end soon: a pooler takes connections that its server has no room for."""
    return Deadlines().watch(connection, time.monotonic() + _CONNECT_SECONDS)


def _to_store_error(problem: psycopg.Error, url: str, was_open: bool) -> StoreError:
    import psycopg
    from psycopg import errors

    name = describe_url(url)
    match problem:
        case errors.LockNotAvailable():
            text = f"the tables of {name} are locked by a long-running transaction. End it and try again."
        case errors.InsufficientPrivilege():
            from asides.database.postgres_attempts import explain_missing_right

            text = explain_missing_right(name)
        case errors.ReadOnlySqlTransaction():
            text = f"the database {name} can only be read. Use the primary server, not a standby."
        case errors.DuplicateTable() | errors.DuplicateObject() | errors.UndefinedColumn():
            text = (
                f"the schema {SCHEMA} of {name} has tables of another program. Use another database, or rename "
                "that schema."
            )
        case psycopg.OperationalError() if problem.sqlstate is None or problem.sqlstate.startswith(("08", "57P")):
            return quote_failure(name, problem, was_open=was_open)
        case psycopg.ProgrammingError() if problem.sqlstate is None:
            text = (
                "the URL of the store is not a PostgreSQL URL. Write it as postgresql://user@host:5432/name, "
                "special characters in a password as percent codes, such as %40 for @, and only options of "
                "PostgreSQL after the ?."
            )
        case _:
            text = (
                f"the tables of {name} cannot be read or created: {type(problem).__name__} ({problem.sqlstate}). "
                "Check the log of the server."
            )
    return StoreError(text)
