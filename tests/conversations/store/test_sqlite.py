"""The SQLite store in one process: its file, and errors that say what to do. test_database_store has the rest."""

from __future__ import annotations

import gc
import os
import re
import sqlite3
import stat
import sys
import warnings
from pathlib import Path

import pytest

from asides.conversations.store.sqlite import SqliteStore
from asides.database import StoreError
from asides.values.errors import ConfigError
from asides.values.messages import assistant, user


def test_a_closed_store_opens_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.append("talk", [user("a")])
    store.close()
    store.close()
    store.append("talk", [user("b")])
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("store.db")] == []
    store.close()
    # The log is folded into the file, so that the file alone is the store.
    assert [path.name for path in tmp_path.iterdir()] == ["store.db"]


def test_a_store_that_is_let_go_of_is_closed_quietly(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = SqliteStore(tmp_path / "store.db")
        store.append("talk", [user("a")])
        del store
        gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["store.db"]


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "nowhere" / "store.db")
    assert "nowhere" in repr(store)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no such bits")
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with SqliteStore(tmp_path / "store.db") as store:
            store.append("talk", [user("a")])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("links", [1, 2], ids=["a link", "a link to a link"])
@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_a_store_behind_a_dangling_link_is_for_its_owner_alone(tmp_path: Path, links: int, umask: int) -> None:
    place = tmp_path / "real"
    place.mkdir()
    link, target = tmp_path / "store.db", place / "there.db"
    for number in range(links - 1):
        between = tmp_path / f"between-{number}"
        between.symlink_to(target)
        target = between
    link.symlink_to(target)
    before = os.umask(umask)
    try:
        with SqliteStore(link) as store:
            store.append("a", [user("1")])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*.db*")}
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert {"there.db", "store.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_a_store_behind_a_link_to_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "store.db").symlink_to(tmp_path / "gone" / "there.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(tmp_path / "store.db").names()


@pytest.mark.parametrize("name", ["a?mode=memory.db", "per%20cent.db", "hash#.db", "ü 日本.db"])
def test_any_name_of_a_file_will_do(tmp_path: Path, name: str) -> None:
    with SqliteStore(tmp_path / name) as store:
        store.append("a", [user("1")])
    assert (tmp_path / name).is_file()
    assert SqliteStore(tmp_path / name).names() == ("a",)


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store, store._file._pool.connection() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_relative_paths_are_meant_from_where_the_store_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("store.db")
    monkeypatch.chdir("/")
    with store:
        store.append("talk", [user("a")])
    assert (tmp_path / "store.db").exists()


# --- complaints ---------------------------------------------------------------------------------------------------


def complaint(store: SqliteStore) -> str:
    with store, pytest.raises(ConfigError) as caught:
        store.append("talk", [user("canary")])
    assert re.search(r"\. [A-Z]", str(caught.value))
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and nobody overwrites them. " * 40, encoding="utf-8")
    before = path.read_bytes()
    assert "is not a database" in complaint(SqliteStore(path))
    assert path.read_bytes() == before


def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE messages (a)")
    other.close()
    assert "of another program" in complaint(SqliteStore(path))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["other.db"]


def test_a_store_of_a_newer_asides(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.append("talk", [user("a")])
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    assert "newer asides" in complaint(SqliteStore(path))


def test_a_damaged_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        for number in range(60):
            store.append("talk", [user("x" * 2000 + str(number))])
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    assert "is damaged" in complaint(SqliteStore(path))


def test_a_message_that_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.append("talk", [user("a"), assistant("b")])
        with store._file._pool.connection() as connection:
            connection.execute("UPDATE messages SET message = ? WHERE place = 1", (b'{"role":"canary","parts":[]}',))
        with pytest.raises(StoreError, match="message 1 of the conversation 'talk' cannot be read") as caught:
            store.load("talk")
    assert "canary" not in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "does not exist" in complaint(SqliteStore(tmp_path / "nowhere" / "store.db"))


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert "is a folder" in complaint(SqliteStore(tmp_path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert "cannot be opened" in complaint(SqliteStore(tmp_path / "store.db"))
    finally:
        tmp_path.chmod(0o700)


def test_a_file_system_that_may_not_be_written_to() -> None:
    """Where even root may not: what /proc holds can be neither made nor written."""
    if not Path("/proc/self").is_dir():
        pytest.skip("has no /proc")
    assert "cannot be opened" in complaint(SqliteStore("/proc/self/store.db"))


def test_a_store_that_others_hold_for_too_long(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.append("talk", [user("a")])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert "was busy with other writers for 0.05 seconds" in complaint(SqliteStore(path, patience=0.05))
        with SqliteStore(path, patience=0.05) as store:
            # Who only reads waits for nobody.
            assert store.names() == ("talk",)
    finally:
        other.close()
