"""The tables of the SQLite store: versions that only grow, places of messages, conflicts, and files of others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec
import pytest

from asides.conversations.store import ConversationHeading, ConversationInfo, StoreConflict, tables
from asides.database import StoreError
from asides.values.messages import assistant, user
from asides.values.usage import Usage

ONE, TWO, THREE = user("one"), assistant("two"), user("three")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    tables.create(connection)
    yield connection
    connection.close()


def test_messages_are_added_at_the_end_and_loaded_from_any_place(connection: sqlite3.Connection) -> None:
    first = tables.append(connection, "a", [ONE], ConversationHeading("Be brief.", "m"), Usage(1, 2), 10.0)
    heading = ConversationHeading("Be brief.", "m")
    assert first == ConversationInfo("a", 1, 1, 1, heading, Usage(1, 2), 10.0, 10.0)
    second = tables.append(connection, "a", [TWO, THREE], None, Usage(3, 4), 20.0)
    assert second == ConversationInfo("a", 2, 1, 3, heading, Usage(4, 6), 10.0, 20.0)
    assert tables.about(connection, "a") == second
    for start in range(5):
        loaded = tables.load(connection, "a", start)
        assert loaded is not None
        assert (loaded.about, loaded.messages) == (second, (ONE, TWO, THREE)[start:])


def test_what_is_not_there_is_none(connection: sqlite3.Connection) -> None:
    assert (tables.about(connection, "a"), tables.load(connection, "a", 0)) == (None, None)
    assert (tables.names(connection), tables.delete(connection, "a")) == ((), False)


def test_replacing_takes_the_expected_version_and_rewrites(connection: sqlite3.Connection) -> None:
    before = tables.append(connection, "a", [ONE, TWO], None, Usage(1), 10.0)
    after = tables.replace(connection, "a", [THREE], before.version, ConversationHeading("s"), None, 20.0)
    assert after == ConversationInfo("a", 2, 2, 1, ConversationHeading("s"), Usage(1), 10.0, 20.0)
    loaded = tables.load(connection, "a", 0)
    assert loaded is not None
    assert loaded.messages == (THREE,)
    created = tables.replace(connection, "b", [ONE], 0, None, None, 30.0)
    assert (created.version, created.rewritten, created.created) == (3, 3, 30.0)


@pytest.mark.parametrize(("name", "expected", "found"), [("a", 0, 1), ("a", 7, 1), ("b", 1, None)])
def test_another_version_is_a_conflict_and_nothing_is_written(
    connection: sqlite3.Connection, name: str, expected: int, found: int | None
) -> None:
    before = tables.append(connection, "a", [ONE], None, None, 10.0)
    with pytest.raises(StoreConflict, match="changed by another process") as caught:
        tables.replace(connection, name, [TWO], expected, None, None, 20.0)
    assert (caught.value.name, caught.value.expected, caught.value.found) == (name, expected, found)
    assert (tables.about(connection, "a"), tables.names(connection)) == (before, ("a",))


def test_no_version_is_used_twice_and_the_last_changed_is_first(connection: sqlite3.Connection) -> None:
    for name in ("a", "b", "c", "a"):
        tables.append(connection, name, [ONE], None, None, 10.0)
    assert tables.names(connection) == ("a", "c", "b")
    assert tables.delete(connection, "a")
    assert connection.execute("SELECT count(*) FROM messages").fetchone() == (2,)
    again = tables.append(connection, "a", [TWO], None, None, 20.0)
    assert (again.version, again.length, again.created) == (5, 1, 20.0)


def test_a_message_or_a_head_that_does_not_read_is_an_error(connection: sqlite3.Connection) -> None:
    tables.append(connection, "a", [ONE, TWO], None, None, 10.0)
    for damage in (b"{", 3):
        connection.execute("UPDATE messages SET message = ? WHERE place = 1", (damage,))
        with pytest.raises(StoreError, match="message 1 of the conversation 'a' cannot be read"):
            tables.load(connection, "a", 0)
        first = tables.load(connection, "a", 2)
        assert first is not None
        assert first.messages == ()
    for damage in (b"{", 3):
        connection.execute("UPDATE conversations SET usage = ?", (damage,))
        with pytest.raises(StoreError, match="the head of the conversation 'a' cannot be read"):
            tables.about(connection, "a")


def test_a_file_is_empty_ours_newer_or_of_another_program(connection: sqlite3.Connection) -> None:
    assert tables.has_tables(connection, "f")
    connection.execute(f"PRAGMA user_version = {tables.FORMAT + 1}")
    with pytest.raises(StoreError, match="the store f was written by a newer asides"):
        tables.has_tables(connection, "f")
    for statement in ("SELECT 1", "CREATE TABLE t (x)", "PRAGMA user_version = 3", "PRAGMA application_id = 5"):
        other = sqlite3.connect(":memory:", isolation_level=None)
        other.execute(statement)
        if statement == "SELECT 1":
            assert not tables.has_tables(other, "f")
        else:
            with pytest.raises(StoreError, match="f is a database of another program"):
                tables.has_tables(other, "f")
        other.close()


def test_usage_is_saved_as_json(connection: sqlite3.Connection) -> None:
    tables.append(connection, "a", [], None, Usage(1, 2, 3), 10.0)
    (saved,) = connection.execute("SELECT usage FROM conversations").fetchone()
    assert msgspec.json.decode(saved, type=Usage) == Usage(1, 2, 3)
