"""The SQLite store in one process: messages round-trip, changes are atomic, and errors say what to do."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.conversations.store import ConversationHeading, Store, StoreConflict
from asides.conversations.store.sqlite import SqliteStore
from asides.database import StoreError
from asides.values.errors import ConfigError
from asides.values.messages import Message, StoredResponse, assistant, user
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from asides.values.usage import Usage

ORIGIN = Origin("somebody", "http://127.0.0.1:9/v1", "made-up")
EVERYTHING = (
    user("Ünïcode 日本 👋 \ud7ff\x00", Image(data=b"\x00\xff", detail="low"), File("a.pdf", url="http://127.0.0.1/a")),
    Message(
        "assistant",
        (
            Thought("hm", "summary", "block", ORIGIN, (Seal("signature", "c2VhbA==", ORIGIN),)),
            Thought("", "hidden", seals=(Seal("redacted", "x", None, '{"a":1}'),)),
            Text("4", (Seal("thought_signature", "y"),), cache=True),
            ToolCall("call_1", "look", {"at": {"deep": [1, 2.5, None, True]}}, seals=(Seal("thought_signature", "z"),)),
            ToolCall("call_2", "draw", {}, "not json", custom=True),
            ServerTool("web_search_call", "ws_1", "completed", '{"type":"web_search_call"}', ORIGIN),
            UnknownPart('{"type":"new"}', ORIGIN),
        ),
        name="bot",
        stored=StoredResponse("resp_1", ORIGIN),
    ),
    Message("tool", (ToolResult("call_1", (Text("seen"), Image(url="http://127.0.0.1/p.png")), "look"),)),
    Message("tool", (ToolResult("call_2", "no", "draw", is_error=True),)),
)


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with SqliteStore(tmp_path / "store.db" if request.param == "file" else ":memory:") as opened:
        yield opened


def test_every_kind_of_part_comes_back_as_it_was(store: Store) -> None:
    store.append("talk", EVERYTHING)
    kept = store.load("talk")
    assert kept is not None
    assert kept.messages == EVERYTHING


def test_what_is_known_of_a_conversation_follows_what_is_done_to_it(store: Store) -> None:
    first = store.append("talk", [user("a"), assistant("b")], heading=ConversationHeading("be brief", "some:model"))
    assert (first.length, first.heading, first.usage) == (2, ConversationHeading("be brief", "some:model"), Usage())
    spent = Usage(3, 4, 1, 0, 7)
    second = store.append("talk", [user("c"), assistant("d")], spent=spent)
    assert (second.length, second.heading, second.usage) == (4, first.heading, spent)
    assert second.version > first.version
    assert second.rewritten == first.rewritten
    third = store.replace("talk", [user("e")], expected=second.version, spent=spent)
    assert (third.length, third.usage, third.rewritten) == (1, spent + spent, third.version)
    assert third.created == first.created <= first.updated <= second.updated <= third.updated
    assert store.about("talk") == third
    kept = store.load("talk")
    assert kept is not None
    assert (kept.about, [message.text for message in kept.messages]) == (third, ["e"])


def test_only_what_came_later_can_be_loaded(store: Store) -> None:
    store.append("talk", [user("a"), assistant("b"), user("c")])
    kept = store.load("talk", 2)
    assert kept is not None
    assert ([message.text for message in kept.messages], kept.about.length) == (["c"], 3)


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.about("talk") is None
    assert store.load("talk") is None
    assert store.delete("talk") is False
    assert store.names() == ()


def test_names_begin_with_the_one_that_was_changed_last(store: Store) -> None:
    for name in ("a", "b", "c", "a"):
        store.append(name, [user("?")])
    assert store.names() == ("a", "c", "b")
    assert store.delete("c")
    assert store.names() == ("a", "b")


def test_a_conversation_of_the_same_name_later_on_is_another(store: Store) -> None:
    old = store.append("talk", [user("a")])
    store.delete("talk")
    new = store.append("talk", [user("b")])
    assert new.version > old.version
    assert new.rewritten > old.version
    with pytest.raises(StoreConflict):
        store.replace("talk", [], expected=old.version)


def test_a_change_for_another_version_is_refused_and_changes_nothing(store: Store) -> None:
    first = store.append("talk", [user("a"), assistant("b")])
    store.append("talk", [user("c"), assistant("d")])
    with pytest.raises(StoreConflict) as caught:
        store.replace("talk", [user("x")], expected=first.version, heading=ConversationHeading("other"), spent=Usage(1))
    kept = store.load("talk")
    assert kept is not None
    assert [message.text for message in kept.messages] == ["a", "b", "c", "d"]
    assert (kept.about.heading, kept.about.usage) == (ConversationHeading(), Usage())
    assert caught.value.found == kept.about.version
    assert "To do:" in str(caught.value)


def test_only_one_who_knows_that_nothing_is_there_makes_it_by_replacing(store: Store) -> None:
    with pytest.raises(StoreConflict) as caught:
        store.replace("talk", [user("a")], expected=7)
    assert caught.value.found is None
    store.replace("talk", [user("a")], expected=0)
    with pytest.raises(StoreConflict):
        store.replace("talk", [user("b")], expected=0)


def test_a_turn_that_cannot_be_written_leaves_nothing_behind(store: Store) -> None:
    store.append("talk", [user("a"), assistant("b")])
    odd = Message("assistant", (ToolCall("call_1", "look", {"at": object()}),))
    with pytest.raises(ConfigError):
        store.append("talk", [user("c"), odd])
    with pytest.raises(ConfigError):
        store.append("other", [user("c"), odd])
    kept = store.load("talk")
    assert kept is not None
    assert [message.text for message in kept.messages] == ["a", "b"]
    assert store.names() == ("talk",)


def test_a_name_is_not_blank(store: Store) -> None:
    with pytest.raises(StoreError, match="needs a name"):
        store.append(" ", [user("a")])


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
    assert "To do:" in str(caught.value)
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
