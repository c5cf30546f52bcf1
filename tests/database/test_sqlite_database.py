"""`SqliteDatabase`: work on a file is one transaction, for threads and for event loops alike."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from asides.database import Queries, Query, QueryMany
from asides.database.sqlite_database import SqliteDatabase


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE names (name TEXT UNIQUE)")


@pytest.fixture
def database(tmp_path: Path) -> SqliteDatabase:
    return SqliteDatabase(tmp_path / "names.db", _has_tables, _create, patience=1)


def insert(*names: str) -> Queries[tuple[int, int]]:
    one = yield Query("INSERT INTO names VALUES (?)", names[:1])
    many = yield QueryMany("INSERT INTO names VALUES (?)", [(name,) for name in names[1:]])
    return one.changed, many.changed


def fail() -> Queries[None]:
    yield Query("INSERT INTO names VALUES (?)", ("never",))
    raise KeyError("mine")


def read() -> Queries[list[str]]:
    found = yield Query("SELECT name FROM names ORDER BY name", is_alone=True)
    return [name for (name,) in found.rows]


def test_work_is_one_transaction(database: SqliteDatabase) -> None:
    assert database.run(lambda: insert("a", "b", "c")) == (1, 2)
    with pytest.raises(KeyError):
        database.run(fail)
    assert database.run(read, writes=False) == ["a", "b", "c"]
    assert not database.is_shared


async def test_event_loops_run_the_same_work(database: SqliteDatabase) -> None:
    assert await database.run_async(lambda: insert("a", "b")) == (1, 1)
    with pytest.raises(KeyError):
        await database.run_async(fail, durable=False)
    assert await database.run_async(read, writes=False) == ["a", "b"]
    await database.close_async()


def test_work_without_a_query_is_done_too(database: SqliteDatabase) -> None:
    def nothing() -> Queries[int]:
        if not database.path:
            yield Query("SELECT 1")
        return 7

    assert database.run(nothing) == 7
