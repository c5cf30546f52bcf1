"""Create and upgrade the tables in PostgreSQL: `migrate(url)`. The steps are numbered files in migrations/.

One process migrates at a time, under an advisory lock; the others wait. A step only adds, so that instances of the
version before go on while the next one starts. Not here: SQLite files, which carry their own tables.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, cast

import msgspec

from asides.database import StoreError, StoreUnavailable
from asides.database.postgres import SCHEMA, describe_url

if TYPE_CHECKING:
    from psycopg import Connection

_DONE = "SELECT number FROM asides.migrations"
_NOTE = "INSERT INTO asides.migrations (number, name) VALUES (%s, %s)"
_LOCK = 0x61736964
"""The number of the advisory lock: "asid"."""


class Migration(msgspec.Struct, frozen=True):
    """One step."""

    number: int
    name: str
    sql: str


def list_migrations() -> list[Migration]:
    """All steps that this version knows, in order."""
    found: list[Migration] = []
    for file in resources.files("asides.database").joinpath("migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql"):
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def migrate(url: str) -> list[Migration]:
    """Carry out the steps that the database lacks, each whole or not at all. Returns them."""
    import psycopg

    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10, application_name="asides") as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            _prepare(connection)
            done = {number for (number,) in connection.execute(_DONE).fetchall()}
            missing = [migration for migration in list_migrations() if migration.number not in done]
            for migration in missing:
                with connection.transaction():
                    connection.execute(f"SET LOCAL search_path = {SCHEMA}")
                    connection.execute(cast("Any", migration.sql))
                    connection.execute(
                        _NOTE,
                        (migration.number, migration.name),
                    )
            return missing
    except psycopg.OperationalError:
        raise StoreUnavailable(
            f"the database {describe_url(url)} does not answer. To do: start it, or check its address, name, user and "
            "password."
        ) from None
    except psycopg.Error as problem:
        raise StoreError(
            f"the tables of {describe_url(url)} cannot be created: {type(problem).__name__} ({problem.sqlstate}). To "
            "do: check that the user may create a schema and tables there."
        ) from None


def _prepare(connection: Connection) -> None:
    with connection.transaction():
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (number integer PRIMARY KEY, name text NOT NULL, "
            "done timestamptz NOT NULL DEFAULT now())"
        )
