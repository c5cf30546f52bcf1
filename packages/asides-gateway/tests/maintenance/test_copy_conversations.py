"""Conversations move between engines with everything that belongs to them, and nothing there is lost."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from asides.conversations.store import ConversationHeading
from asides.conversations.store.sqlite import SqliteStore
from asides.values.messages import user
from asides_gateway.maintenance.copy_conversations import ConversationReader
from asides_gateway.maintenance.open_stores import open_stores
from asides_gateway.page_store import PageStore
from tests.maintenance.filled_stores import answer, copy, fill_conversations


def _read_all(folder: Path) -> dict[str, object]:
    """Everything that readers see of a store."""
    seen: dict[str, object] = {}
    with PageStore(folder) as store:
        for name in store.names():
            snapshot = store.load(name)
            assert snapshot is not None
            about = snapshot.about
            seen[name] = (snapshot.messages, about.heading, about.usage, about.created, about.updated)
        for tenant in ("tenant 0", "tenant 1", "tenant 2"):
            for found in store.list_page(tenant, "", None, 1000):
                notes = [(each.place, each.note) for each in store.read_messages(found, None, 100)]
                seen[f"page of {found.name}"] = (tenant, found.id, found.title, notes)
    return seen


def test_there_and_back_is_the_same(tmp_path: Path, postgres_url: str) -> None:
    names = fill_conversations(tmp_path, 7)
    with SqliteStore(tmp_path / "conversations.db") as store:
        store.append("named", [user("ünï \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))])
        store.append("empty", [], heading=ConversationHeading("a system prompt", "openai:any"))
    there = copy(tmp_path, postgres_url)["conversations"]
    assert (there.copied, there.checked, there.is_whole) == (9, 9, True)
    back = copy(postgres_url, tmp_path / "back")["conversations"]
    assert (back.copied, back.checked) == (9, 9)
    assert _read_all(tmp_path / "back") == _read_all(tmp_path)
    with PageStore(tmp_path) as first, PageStore(tmp_path / "back") as second:
        assert second.names() == first.names() == ("empty", "named", *reversed(names))


def test_a_second_run_changes_nothing(tmp_path: Path, postgres_url: str) -> None:
    fill_conversations(tmp_path, 3)
    copy(tmp_path, postgres_url)
    again = copy(tmp_path, postgres_url)["conversations"]
    assert (again.copied, again.updated, again.same, again.is_whole) == (0, 0, 3, True)


def test_what_went_on_at_the_source_is_brought_up_to_date(tmp_path: Path, postgres_url: str) -> None:
    first, second = fill_conversations(tmp_path, 2)
    copy(tmp_path, postgres_url)
    with PageStore(tmp_path) as store:
        store.append(first, [user("and then?"), answer("then this")])
    fill_conversations(tmp_path, 1, start=2)
    again = copy(tmp_path, postgres_url)["conversations"]
    assert (again.copied, again.updated, again.same, again.is_whole) == (1, 1, 1, True)
    copy(postgres_url, tmp_path / "back")
    assert _read_all(tmp_path / "back") == _read_all(tmp_path)
    assert second in _read_all(tmp_path)


def test_a_new_name_at_the_source_is_the_same_conversation(tmp_path: Path) -> None:
    (name,) = fill_conversations(tmp_path, 1)
    copy(tmp_path, tmp_path / "to")
    with PageStore(tmp_path) as store:
        store.rename(name, "renamed")
        store.append("renamed", [user("more")])
    again = copy(tmp_path, tmp_path / "to")["conversations"]
    assert (again.updated, again.copied, again.is_whole) == (1, 0, True)
    with PageStore(tmp_path / "to") as store:
        assert store.names() == ("renamed",)


def test_what_is_another_one_there_stays_unless_told(tmp_path: Path) -> None:
    for folder, words in ((tmp_path / "a", "one"), (tmp_path / "b", "another")):
        folder.mkdir()
        with SqliteStore(folder / "conversations.db") as store:
            store.append("same name", [user(words)])
    refused = copy(tmp_path / "a", tmp_path / "b")["conversations"]
    assert (refused.different, refused.missing, refused.names) == (1, 1, ["same name"])
    assert not refused.is_whole
    with SqliteStore(tmp_path / "b" / "conversations.db") as store:
        kept = store.load("same name")
    assert kept is not None
    assert kept.messages == (user("another"),)
    told = copy(tmp_path / "a", tmp_path / "b", replace=True)["conversations"]
    assert (told.updated, told.is_whole) == (1, True)
    with SqliteStore(tmp_path / "b" / "conversations.db") as store:
        replaced = store.load("same name")
        assert replaced is not None
        assert replaced.messages == (user("one"),)
        # Whoever holds the old one is told, and versions go on.
        assert replaced.about.version > kept.about.version
        assert store.append("next", [user("x")]).version > replaced.about.version


def test_versions_of_the_target_go_on_above_those_of_the_source(tmp_path: Path, postgres_url: str) -> None:
    fill_conversations(tmp_path, 3)
    copy(tmp_path, postgres_url)
    copy(postgres_url, tmp_path / "back")
    with PageStore(tmp_path) as first, SqliteStore(tmp_path / "back" / "conversations.db") as second:
        newest = max(info.version for name in first.names() if (info := first.about(name)) is not None)
        assert second.append("next", [user("x")]).version > newest


def test_messages_pass_in_pieces(tmp_path: Path) -> None:
    (name,) = fill_conversations(tmp_path, 1)
    with PageStore(tmp_path) as store:
        store.append(name, [user("x" * 2_000_000) for _ in range(5)])
    with open_stores(str(tmp_path)) as stores:
        pieces = [len(piece) for piece in ConversationReader(stores.areas["conversations"]).read_pieces(1)]
    assert sum(pieces) == 7
    assert max(pieces) < 5  # of 4 MB each
    assert copy(tmp_path, tmp_path / "to")["conversations"].is_whole


def test_a_damaged_one_costs_the_others_nothing(tmp_path: Path, postgres_url: str) -> None:
    fill_conversations(tmp_path, 3)
    with closing(sqlite3.connect(tmp_path / "conversations.db")) as connection, connection:
        connection.execute("UPDATE messages SET message = 17 WHERE conversation = 2 AND place = 1")
    report = copy(tmp_path, postgres_url)["conversations"]
    assert (report.copied, report.failed, report.missing) == (2, 1, 1)


def test_a_conversation_that_is_written_to_meanwhile_arrives_whole_or_later(tmp_path: Path, postgres_url: str) -> None:
    names = fill_conversations(tmp_path, 20)
    ended = threading.Event()

    def write() -> None:
        with PageStore(tmp_path) as store:
            number = 0
            while not ended.is_set():
                store.append(names[number % 20], [user(f"more {number}"), answer(f"{number}")])
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copy(tmp_path, postgres_url)
    finally:
        ended.set()
        writer.join()
    rest = copy(tmp_path, postgres_url)["conversations"]
    assert rest.is_whole
    assert rest.checked == 20
