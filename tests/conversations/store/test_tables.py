"""The tables of conversations, in SQLite and in PostgreSQL: versions that only grow, places of messages, conflicts; and
files of others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import pytest

from asides.conversations.store import ConversationHeading, ConversationInfo, StoreConflict, tables
from asides.database import Database, Queries, Query, StoreError
from asides.database.migrate import MigratedPostgres
from asides.database.sqlite_database import SqliteDatabase
from asides.database.sqlite_file import MEMORY
from asides.values.messages import assistant, user
from asides.values.usage import Usage

Run: TypeAlias = Callable[[Queries[Any]], Any]
ONE, TWO, THREE = user("one"), assistant("two"), user("three")


@pytest.fixture(params=["sqlite", "postgres"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs work on an empty database."""
    database: Database
    if request.param == "sqlite":
        database = SqliteDatabase(MEMORY, tables.has_tables, tables.create, patience=1)
    else:
        database = MigratedPostgres(request.getfixturevalue("postgres_url"))
    yield lambda work: database.run(lambda: work)
    database.close()


def execute(sql: str, *values: Any) -> Queries[list[tuple[Any, ...]]]:
    return (yield Query(sql, values)).rows


def test_messages_are_added_at_the_end_and_loaded_from_any_place(run: Run) -> None:
    first = run(tables.append("a", [ONE], ConversationHeading("Be brief.", "m"), Usage(1, 2), 10.0))
    heading = ConversationHeading("Be brief.", "m")
    assert first == ConversationInfo("a", 1, 1, 1, heading, Usage(1, 2), 10.0, 10.0)
    second = run(tables.append("a", [TWO, THREE], None, Usage(3, 4), 20.0))
    assert second == ConversationInfo("a", 2, 1, 3, heading, Usage(4, 6), 10.0, 20.0)
    assert run(tables.about("a")) == second
    for start in range(5):
        loaded = run(tables.load("a", start))
        assert loaded is not None
        assert (loaded.about, loaded.messages) == (second, (ONE, TWO, THREE)[start:])


def test_what_is_not_there_is_none(run: Run) -> None:
    assert (run(tables.about("a")), run(tables.load("a", 0))) == (None, None)
    assert (run(tables.names()), run(tables.delete("a"))) == ((), False)


def test_replacing_takes_the_expected_version_and_rewrites(run: Run) -> None:
    before = run(tables.append("a", [ONE, TWO], None, Usage(1), 10.0))
    after = run(tables.replace("a", [THREE], before.version, ConversationHeading("s"), None, 20.0))
    assert after == ConversationInfo("a", 2, 2, 1, ConversationHeading("s"), Usage(1), 10.0, 20.0)
    loaded = run(tables.load("a", 0))
    assert loaded is not None
    assert loaded.messages == (THREE,)
    created = run(tables.replace("b", [ONE], 0, None, None, 30.0))
    assert (created.version, created.rewritten, created.created) == (3, 3, 30.0)


@pytest.mark.parametrize(("name", "expected", "found"), [("a", 0, 1), ("a", 7, 1), ("b", 1, None)])
def test_another_version_is_a_conflict_and_nothing_is_written(
    run: Run, name: str, expected: int, found: int | None
) -> None:
    before = run(tables.append("a", [ONE], None, None, 10.0))
    with pytest.raises(StoreConflict, match="changed by another process") as caught:
        run(tables.replace(name, [TWO], expected, None, None, 20.0))
    assert (caught.value.name, caught.value.expected, caught.value.found) == (name, expected, found)
    assert (run(tables.about("a")), run(tables.names())) == (before, ("a",))


def test_no_version_is_used_twice_and_the_last_changed_is_first(run: Run) -> None:
    for name in ("a", "b", "c", "a"):
        run(tables.append(name, [ONE], None, None, 10.0))
    assert run(tables.names()) == ("a", "c", "b")
    assert run(tables.delete("a"))
    assert run(execute("SELECT count(*) FROM messages")) == [(2,)]
    again = run(tables.append("a", [TWO], None, None, 20.0))
    assert (again.version, again.length, again.created) == (5, 1, 20.0)


def test_a_message_or_a_head_that_does_not_read_is_an_error(run: Run) -> None:
    run(tables.append("a", [ONE, TWO], None, None, 10.0))
    for damage in (b"{", b"3"):
        run(execute("UPDATE messages SET message = ? WHERE place = 1", damage))
        with pytest.raises(StoreError, match="message 1 of the conversation 'a' cannot be read"):
            run(tables.load("a", 0))
        first = run(tables.load("a", 2))
        assert first is not None
        assert first.messages == ()
    for damage in (b"{", b"3"):
        run(execute("UPDATE conversations SET usage = ?", damage))
        with pytest.raises(StoreError, match="the head of the conversation 'a' cannot be read"):
            run(tables.about("a"))


def test_a_file_is_empty_ours_newer_or_of_another_program() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    tables.create(connection)
    assert tables.has_tables(connection, "f")
    connection.execute(f"PRAGMA user_version = {tables.FORMAT + 1}")
    with pytest.raises(StoreError, match="the store f was written by a newer asides"):
        tables.has_tables(connection, "f")
    connection.close()
    for statement in ("SELECT 1", "CREATE TABLE t (x)", "PRAGMA user_version = 3", "PRAGMA application_id = 5"):
        other = sqlite3.connect(":memory:", isolation_level=None)
        other.execute(statement)
        if statement == "SELECT 1":
            assert not tables.has_tables(other, "f")
        else:
            with pytest.raises(StoreError, match="f is a database of another program"):
                tables.has_tables(other, "f")
        other.close()


def test_usage_is_saved_as_json(run: Run) -> None:
    run(tables.append("a", [], None, Usage(1, 2, 3), 10.0))
    ((saved,),) = run(execute("SELECT usage FROM conversations"))
    assert msgspec.json.decode(saved, type=Usage) == Usage(1, 2, 3)
