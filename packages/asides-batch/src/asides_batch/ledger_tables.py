"""The tables of a ledger in a SQLite file, and how a ledger's database is opened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from asides.database import Database, StoreError
from asides.database.postgres_url import is_postgres_url
from asides.database.sqlite_database import SqliteDatabase
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1
"""The version of the tables. A file with a later version is refused."""
_APPLICATION = 0x61736C67
"""Marks the file as a ledger of asides: "aslg"."""
# A ledger waits for a busy disk or a restarting server rather than give up a batch of hours.
_PATIENCE = 60.0

_TABLES = """
CREATE TABLE batches (
    name            TEXT    PRIMARY KEY,
    version         INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    via             TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    plan            BLOB    NOT NULL,
    plan_digest     TEXT    NOT NULL,
    source          TEXT    NOT NULL,
    source_digest   TEXT    NOT NULL,
    output          TEXT    NOT NULL,
    row_count       INTEGER NOT NULL,
    requests        INTEGER NOT NULL,
    done            INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    thinking_tokens INTEGER NOT NULL,
    cost            INTEGER NOT NULL,
    unpriced        INTEGER NOT NULL,
    reserved        INTEGER NOT NULL,
    next_request    REAL    NOT NULL,
    next_token      REAL    NOT NULL,
    paused_until    REAL    NOT NULL,
    began           REAL    NOT NULL,
    done_before     INTEGER NOT NULL,
    created         REAL    NOT NULL,
    updated         REAL    NOT NULL
);
CREATE TABLE batch_requests (
    batch        TEXT    NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    hash         TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    request      BLOB    NOT NULL,
    state        TEXT    NOT NULL,
    owner        TEXT,
    lease        REAL,
    attempts     INTEGER NOT NULL,
    reserved     INTEGER NOT NULL,
    result       BLOB,
    vendor_batch TEXT,
    PRIMARY KEY (batch, hash)
);
CREATE INDEX batch_requests_state ON batch_requests (batch, state, number);
CREATE INDEX batch_requests_vendor ON batch_requests (batch, vendor_batch) WHERE vendor_batch IS NOT NULL;
CREATE TABLE batch_rows (
    batch TEXT    NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    hash  TEXT    NOT NULL,
    id    TEXT,
    rest  BLOB,
    PRIMARY KEY (batch, place)
);
CREATE INDEX batch_rows_hash ON batch_rows (batch, hash);
CREATE TABLE vendor_batches (
    batch        TEXT    NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    marker       TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    requests     INTEGER NOT NULL,
    owner        TEXT,
    lease        REAL,
    sent         REAL,
    vendor_id    TEXT,
    candidates   TEXT,
    vendor_state TEXT    NOT NULL,
    done         INTEGER,
    created      REAL    NOT NULL,
    PRIMARY KEY (batch, marker)
);
"""


def open_ledger_database(location: str) -> Database:
    """Open the database of a ledger: a SQLite file, or a URL of PostgreSQL, whose tables are created if need be."""
    if re.match(r"\w+://", location) and not is_postgres_url(location):
        kind = location.partition(":")[0]
        raise ConfigError(f"a ledger is a file or a postgresql:// URL, not {kind}://. Name one of these.")
    if not is_postgres_url(location):
        return SqliteDatabase(location, _has_tables, _create_tables, patience=_PATIENCE, is_watched=True)
    from asides.database.postgres import PostgresDatabase  # psycopg loads only for it.

    database = PostgresDatabase(location, patience=_PATIENCE, most_connections=4)
    from asides.database.migrate import migrate

    migrate(location)
    return database


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _APPLICATION:
        if version > FORMAT:
            raise StoreError(
                f"the ledger {path} was written by a newer asides. Upgrade asides, or name another output."
            )
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()[0]:
            # A view may compute without end, and a trigger delete what is written.
            raise StoreError(
                f"{path} has views or triggers, which a ledger must not have. Remove them, or name another output."
            )
        return True
    if application or version or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is a database, but not the ledger of a batch. Name another output or ledger.")
    return False


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
