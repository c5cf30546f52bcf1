"""`SqliteFile`: tables are created once, transactions hold or leave nothing, and errors are ours.

What stores promise through it is in test_sqlite, test_together and tests/relay/vault.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from asides.database import StoreError
from asides.database.sqlite_file import READ, WRITE, SqliteFile


class Tables:
    """A table of numbers, and how often it was created."""

    def __init__(self) -> None:
        self.created = 0

    def has_tables(self, connection: sqlite3.Connection, path: str) -> bool:
        if connection.execute("PRAGMA user_version").fetchone()[0] > 1:
            raise StoreError(f"{path} is newer. Upgrade.")
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

    def create(self, connection: sqlite3.Connection) -> None:
        self.created += 1
        connection.execute("CREATE TABLE numbers (number INTEGER UNIQUE)")

    def open(self, path: Path | str, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> SqliteFile:
        return SqliteFile(path, self.has_tables, self.create, patience=0.1, synchronous=synchronous)


def insert(connection: sqlite3.Connection, *numbers: int) -> None:
    connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in numbers])


def list_numbers(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT number FROM numbers ORDER BY number")]


@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_tables_are_created_once_when_they_are_first_needed(tmp_path: Path, place: str) -> None:
    tables = Tables()
    file = tables.open(tmp_path / "a.db" if place == "file" else place)
    assert tables.created == 0
    assert list(tmp_path.iterdir()) == []
    file.transact(WRITE, lambda connection: insert(connection, 1))
    assert file.transact(READ, list_numbers) == [1]
    assert tables.created == 1
    file.close()
    if place == "file":
        assert tables.open(tmp_path / "a.db").transact(READ, list_numbers) == [1]
        assert tables.created == 1


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = Tables().open(tmp_path / "a.db")
    with pytest.raises(StoreError, match="failed"):
        file.transact(WRITE, lambda connection: insert(connection, 1, 2, 2))
    with pytest.raises(KeyboardInterrupt):
        file.transact(WRITE, insert_and_interrupt)
    assert file.transact(READ, list_numbers) == []
    file.close()


def insert_and_interrupt(connection: sqlite3.Connection) -> None:
    insert(connection, 3)
    raise KeyboardInterrupt


@pytest.mark.parametrize(("word", "level"), [("FULL", 2), ("NORMAL", 1)])
def test_what_survives_is_as_it_was_asked_for(tmp_path: Path, word: Literal["FULL", "NORMAL"], level: int) -> None:
    file = Tables().open(tmp_path / "a.db", word)
    assert file.transact(READ, lambda connection: connection.execute("PRAGMA synchronous").fetchone()) == (level,)
    assert file.transact(READ, lambda connection: connection.execute("PRAGMA journal_mode").fetchone()) == ("wal",)
    file.close()


def test_another_writer_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    file = Tables().open(tmp_path / "a.db")
    file.transact(WRITE, lambda connection: insert(connection, 1))
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"busy with other writers for 0\.1 seconds"):
            file.transact(WRITE, lambda connection: insert(connection, 2))
        other.execute("ROLLBACK")
    file.transact(WRITE, lambda connection: insert(connection, 2))
    assert file.transact(READ, list_numbers) == [1, 2]
    file.close()


def test_a_file_of_another_kind_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("PRAGMA user_version = 7")
    tables = Tables()
    with pytest.raises(StoreError, match="newer"):
        tables.open(tmp_path / "a.db").transact(WRITE, lambda connection: insert(connection, 1))
    assert tables.created == 0


@pytest.mark.parametrize("act", ["delete", "replace"])
def test_a_file_that_is_watched_and_gone_takes_no_more(tmp_path: Path, act: str) -> None:
    tables, path = Tables(), tmp_path / "file"
    file = SqliteFile(path, tables.has_tables, tables.create, patience=0.1, is_watched=True)
    file.transact(WRITE, lambda connection: insert(connection, 1))
    if act == "replace":
        path.with_name("other").write_bytes(path.read_bytes())
        path.with_name("other").replace(path)
    else:
        path.unlink()
    with pytest.raises(StoreError, match="was deleted, moved or replaced while it was in use"):
        file.transact(WRITE, lambda connection: insert(connection, 2))
    assert file.transact(READ, list_numbers) == [1], "what it has can still be read"
    file.close()
    file.transact(WRITE, lambda connection: insert(connection, 3))
    file.close()


def test_the_log_is_emptied(tmp_path: Path) -> None:
    file = Tables().open(tmp_path / "a.db")
    file.transact(WRITE, lambda connection: insert(connection, 1))
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    file.empty_log()
    assert (tmp_path / "a.db-wal").stat().st_size == 0
    file.close()
    Tables().open(":memory:").empty_log()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("moment", ["the pool is locked", "a transaction is open"])
def test_a_forked_child_waits_for_no_lock_and_uses_no_connection_of_its_parent(tmp_path: Path, moment: str) -> None:
    file = Tables().open(tmp_path / "a.db")
    file.transact(WRITE, lambda connection: insert(connection, 1))
    inherited: list[sqlite3.Connection] = []

    def fork(connection: sqlite3.Connection | None = None) -> int:
        inherited.extend([connection] if connection is not None else file._pool._idle)
        return os.fork()

    if moment == "the pool is locked":
        lock, done = file._pool._lock, threading.Event()

        def hold() -> None:
            with lock:
                done.wait(5)

        holder = threading.Thread(target=hold)
        holder.start()
        while not lock.locked():
            time.sleep(0.01)
        child = fork()
        if child:
            done.set()
            holder.join()
    else:
        child = file.transact(READ, fork)
    if child == 0:
        signal.alarm(5)
        code = 1
        try:
            own = file.transact(READ, lambda connection: connection)
            file.transact(WRITE, lambda connection: insert(connection, 2))
            code = 0 if inherited and own not in inherited else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert file.transact(READ, list_numbers) == [1, 2]
