"""The database of a gateway: keys, budgets and summaries of requests. In a shared store, or in a file of its folder.

`open_gateway_database(store, folder)`. A file has the same tables as PostgreSQL, from the same migrations. Not here:
conversations and the vault, which have files of their own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from asides.database import Database, StoreError
from asides.database.migrate import Migration, list_migrations
from asides.database.sqlite_database import SqliteDatabase
from asides.database.sqlite_file import MEMORY

if TYPE_CHECKING:
    import sqlite3

GATEWAY_FILE = "gateway.db"
PREFIX = "gateway"
"""The names of the migrations whose tables are in the file begin with this. SQLite has to understand them too: no
IDENTITY, no sequence, and no function that only one of the engines has."""
_APPLICATION = 0x61736467
"""Marks the file as one of a gateway: "asdg"."""
_PATIENCE = 5.0
_NOTES = "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)"


def open_gateway_database(store: str | None, folder: Path | None) -> Database:
    """The database of the store's URL; else the file in this folder; else one in memory, that ends with the process."""
    if store is not None:
        from asides.database.postgres import PostgresDatabase

        return PostgresDatabase(store)
    return open_gateway_file(MEMORY if folder is None else folder / GATEWAY_FILE)


def open_gateway_file(path: str | Path) -> SqliteDatabase:
    """The file, opened when it is first needed. Its folder must exist."""
    return SqliteDatabase(path, _has_tables, _create, patience=_PATIENCE)


@cache
def _list_steps() -> tuple[Migration, ...]:
    return tuple(step for step in list_migrations() if step.name.startswith(PREFIX))


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION:
        if tables or application:
            raise StoreError(f"{path} is no file of a gateway of asides. To do: name another folder, or move it away.")
        return False
    return not _list_missing(connection)


def _list_missing(connection: sqlite3.Connection) -> list[Migration]:
    done = {number for (number,) in connection.execute("SELECT number FROM migrations")}
    return [step for step in _list_steps() if step.number not in done]


def _create(connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(_NOTES)
    for step in _list_missing(connection):
        for statement in _split(step.sql):
            connection.execute(statement)
        connection.execute("INSERT INTO migrations (number, name) VALUES (?, ?)", (step.number, step.name))


def _split(sql: str) -> list[str]:
    """The statements of a migration, without its comments."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]
