"""The database of a gateway: `open_database(settings)`, and `prepare_database`, which creates its tables.

With a store it is PostgreSQL, which all instances share. Without one it is a SQLite file in the gateway's folder, or in
memory.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import cache
from typing import TYPE_CHECKING

from asides.database import Database, StoreError, StoreUnavailable
from asides.database.migrate import Migration, list_migrations
from asides.database.sqlite_database import SqliteDatabase
from asides.database.sqlite_file import MEMORY

if TYPE_CHECKING:
    import sqlite3

    from asides_gateway.gateway_settings import GatewaySettings

_log = logging.getLogger("asides.gateway")

GATEWAY_FILE = "gateway.db"
_APPLICATION = 0x61736467
"""Marks the file as that of a gateway: "asdg"."""
_FILE_PATIENCE = 5.0
_START_SECONDS = 5.0
"""How long a gateway waits at its start for the tables. After that it serves without them, and creates them later."""
_SECONDS_BETWEEN_ATTEMPTS = 1.0

PREFIX = "gateway"
"""Migrations whose names begin with this create the tables of the SQLite file too. So SQLite has to understand them: no
IDENTITY, no sequence, no function that one of the engines lacks, and no semicolon except between statements."""


def open_database(settings: GatewaySettings) -> Database:
    """The database of a gateway. It connects, or creates its file, when it is first used."""
    if settings.store is not None:
        from asides.database.postgres import PostgresDatabase

        return PostgresDatabase(settings.store)
    path = MEMORY if settings.folder is None else settings.folder / GATEWAY_FILE
    return SqliteDatabase(path, _has_tables, _create, patience=_FILE_PATIENCE)


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == _APPLICATION:
        return not _list_missing(connection)
    if application or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is the database of another program, not of a gateway. Move it away.")
    return False


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    for step in _list_missing(connection):
        for statement in _split(step.sql):
            connection.execute(statement)
        connection.execute("INSERT INTO migrations (number, name) VALUES (?, ?)", (step.number, step.name))


def _list_missing(connection: sqlite3.Connection) -> list[Migration]:
    done = {number for (number,) in connection.execute("SELECT number FROM migrations")}
    return [step for step in list_steps() if step.number not in done]


@cache
def list_steps() -> tuple[Migration, ...]:
    """The steps of the SQLite file, in order: each only adds, and is carried out once, whole or not at all."""
    return tuple(step for step in list_migrations() if step.name.startswith(PREFIX))


def _split(sql: str) -> list[str]:
    """The statements of a migration, without its comments."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def prepare_database(url: str) -> asyncio.Task[None] | None:
    """Create the tables that PostgreSQL lacks. If the server does not answer, return a task that keeps trying.

    Raises StoreError if the server answers and the tables cannot be created.
    """
    first = asyncio.ensure_future(_migrate(url))
    done, _ = await asyncio.wait({first}, timeout=_START_SECONDS)
    problem = first.exception() if done else None
    if done and problem is None:
        return None
    if problem is not None and not isinstance(problem, StoreUnavailable):
        raise problem
    reason = problem or "its tables are not ready yet."
    _log.warning("the gateway starts without its store, and will use it as soon as it answers: %s", reason)
    return asyncio.create_task(_keep_trying(first, url))


async def _keep_trying(attempt: asyncio.Future[None], url: str) -> None:
    while True:
        try:
            await attempt
        except StoreUnavailable:
            await asyncio.sleep(_SECONDS_BETWEEN_ATTEMPTS)
            attempt = asyncio.ensure_future(_migrate(url))
        except StoreError as problem:
            _log.error("%s", problem)
            return
        else:
            _log.info("the tables of the store are ready")
            return


async def _migrate(url: str) -> None:
    """Migrate in a daemon thread, so that a server that does not answer does not delay the end of the process."""
    from asides.database.migrate import migrate

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(problem: Exception | None) -> None:
        if ended.done():
            return
        if problem is None:
            ended.set_result(None)
        else:
            ended.set_exception(problem)

    def work() -> None:
        found: Exception | None = None
        try:
            migrate(url)
        except Exception as problem:  # noqa: BLE001 - raised where it is awaited
            found = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(end, found)

    threading.Thread(target=work, name="asides-migrate", daemon=True).start()
    await ended
