"""The store of the page: the store of conversations, with owners, titles, settings and notes."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from asides.conversations.store import StoreConflict
from asides.conversations.store.conversation_names import STORE_FILE
from asides.database import Queries, Query, StoreError
from asides.database.sqlite_file import MEMORY
from asides.values.messages import Message, user
from asides_gateway.page_store import PageStore
from asides_gateway.page_tables import PageConversation, PageSettings
from tests.stores import get_database, is_server, open_page_place, open_place


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    match request.param:
        case "postgres":
            place = request.getfixturevalue("postgres_url")
        case "file":
            place = str(tmp_path / STORE_FILE)
        case _:
            place = MEMORY
    with open_page_place(place) as opened:
        yield opened


def create(store: PageStore, tenant: str = "", *texts: str) -> PageConversation:
    made = store.create(tenant, PageSettings(None, "best", "acme:m"))
    if texts:
        store.append(made.name, [Message("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)])
    return made


def test_a_new_conversation_is_empty_and_has_its_settings(store: PageStore) -> None:
    made = store.create("one", PageSettings("Title", "best", "acme:m", 3000))
    assert (made.title, made.model, made.thinking, made.length) == ("Title", "best", 3000, 0)
    assert len(made.id) <= 64
    assert store.find("one", made.id) == made
    assert store.find("two", made.id) is None
    assert store.find("one", "another") is None


def test_settings_change_one_by_one(store: PageStore) -> None:
    made = create(store)
    changed = store.change("", made.id, thinking="high")
    assert changed is not None
    assert (changed.model, changed.thinking) == ("best", "high")
    changed = store.change("", made.id, model="fast", target="acme:s")
    assert changed is not None
    assert (changed.model, changed.thinking) == ("fast", "high")
    about = store.about(made.name)
    assert about is not None
    assert about.heading.model == "acme:s", "what another program asks, which knows no routes"
    assert store.change("another", made.id, title="x") is None


def test_a_model_that_another_program_chose_counts(store: PageStore) -> None:
    from asides.conversations.store import ConversationHeading

    made = create(store)
    store.append(made.name, (), heading=ConversationHeading(None, "other:model"))
    found = store.find("", made.id)
    assert found is not None
    assert found.model == "other:model"


def test_notes_belong_to_a_message_and_not_to_its_place(store: PageStore) -> None:
    made = create(store, "", "one", "two", "three")
    store.write_notes(made, {0: b"a", 1: b"b", 7: b"c"})
    assert [each.note for each in store.read_messages(made, None, 10)] == [b"a", b"b", None]
    about = store.about(made.name)
    assert about is not None
    # Another program removes the second message.
    store.replace(made.name, [user("one"), user("three")], expected=about.version)
    assert [each.note for each in store.read_messages(made, None, 10)] == [b"a", None]
    store.write_notes(made, {0: None})
    assert [each.note for each in store.read_messages(made, None, 10)] == [None, None]


def test_messages_are_read_from_the_end(store: PageStore) -> None:
    made = create(store, "", *(str(n) for n in range(10)))
    assert [each.place for each in store.read_messages(made, None, 3)] == [7, 8, 9]
    assert [each.message.text for each in store.read_messages(made, 7, 3)] == ["4", "5", "6"]
    assert store.read_messages(made, 0, 3) == []


def test_one_turn_at_a_time_holds_a_conversation(store: PageStore) -> None:
    made = create(store)
    assert store.hold(made, "one", 60)
    assert store.hold(made, "one", 60), "again, for longer"
    assert not store.hold(made, "two", 60)
    store.release(made, "two")
    assert not store.hold(made, "two", 60), "only the holder lets go"
    store.release(made, "one")
    assert store.hold(made, "two", -1)
    assert store.hold(made, "three", 60), "what a holder held too long is free"


def test_a_machine_whose_clock_is_wrong_takes_no_conversation_from_another(
    store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(store)
    assert store.hold(made, "one", 60)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert not store.hold(made, "two", 60)
    store.release(made, "one")
    assert store.hold(made, "two", 0.05)
    assert not store.hold(made, "three", 60)
    time.sleep(0.1)
    assert store.hold(made, "three", 60)


def test_a_conversation_that_was_deleted_is_not_written_again(store: PageStore) -> None:
    made = create(store, "one", "hello")
    assert not store.remove("two", made.id)
    assert store.remove("one", made.id)
    with pytest.raises(StoreConflict, match="deleted"):
        store.append(made.name, [user("hello")])
    assert store.names() == ()


def test_a_name_that_is_used_again_has_no_owner_and_no_notes_of_before(store: PageStore, tmp_path: Path) -> None:
    made = create(store, "one", "hello")
    store.write_notes(made, {0: b"a"})
    store.delete(made.name)
    assert store.list_page("one") == []
    store.replace(made.name, [user("hello")], expected=0)
    assert store.list_page("one") == []
    (found,) = store.list_page("")
    assert found.id != made.id
    assert [each.note for each in store.read_messages(found, None, 9)] == [None]


def test_a_store_of_the_command_line_gets_the_tables_and_keeps_all_that_it_had(store_place: str) -> None:
    with open_place(store_place) as before:
        before.append("mine", [user("hello there")])
        store = open_page_place(store_place)
        (found,) = store.list_page("")
        assert (found.title, found.length) == ("mine", 1)
        assert [each.id for each in store.list_page("")] == [found.id], "an id stays"
        before.append("mine", [user("again")])
        assert len(store.read_messages(found, None, 9)) == 2
        before.rename("mine", "yours")
        renamed = store.find("", found.id)
        assert renamed is not None
        assert renamed.name == "yours"
        before.delete("yours")
        assert store.find("", found.id) is None
        store.close()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    store = PageStore(folder)
    create(store)
    store.close()
    assert stat.S_IMODE((folder / STORE_FILE).stat().st_mode) == 0o600
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def damage() -> Queries[int]:
    done = yield Query("UPDATE messages SET message = ? WHERE place = 1", (b"\0\xff",))
    return done.changed


def test_a_message_that_cannot_be_read_is_an_error_that_names_its_place(store: PageStore) -> None:
    made = create(store, "", "one", "two")
    assert get_database(store).run(damage) == 1
    with pytest.raises(StoreError, match="message 1 "):
        store.read_messages(made, None, 9)
    assert store.list_page("", "o") != [], "others are found nevertheless"


# --- several at once --------------------------------------------------------------------------------------------------


def test_a_conversation_that_is_deleted_is_nobodys_to_change(store: PageStore) -> None:
    made = create(store, "one", "hello")
    store.delete(made.name)
    store.write_notes(made, {0: b"a"})
    assert store.change("one", made.id, title="x") is None
    assert not store.hold(made, "holder", 60)
    with pytest.raises(StoreConflict, match="deleted"):
        store.adopt_fork("one", made, "a fork that is gone")
    # Another of the same name has another key.
    store.replace(made.name, [user("hello")], expected=0)
    store.write_notes(made, {0: b"a"})
    assert store.change("one", made.id, title="x") is None


def test_many_that_list_give_one_id(store_place: str) -> None:
    with open_place(store_place) as before:
        for number in range(20):
            before.append(f"talk {number}", [user("hello")])
    stores = [open_page_place(store_place) for _ in range(4)]
    together = threading.Barrier(4)

    def look(store: PageStore) -> list[tuple[str, str]]:
        together.wait()
        return [(each.name, each.id) for each in store.list_page("")]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(look, stores))
    assert len(found[0]) == 20
    assert all(each == found[0] for each in found)
    assert all(identifier for _, identifier in found[0])
    for store in stores:
        store.close()


def test_of_many_that_hold_one_does(store_place: str) -> None:
    stores = [open_page_place(store_place) for _ in range(4)]
    made = create(stores[0])
    together = threading.Barrier(4)

    def hold(number: int) -> bool:
        together.wait()
        return stores[number].hold(made, str(number), 60)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(hold, range(4))) == [False, False, False, True]
    for store in stores:
        store.close()


def test_what_is_changed_deleted_and_noted_at_once_ends_well(store_place: str) -> None:
    """Each locks in the same order, so that none waits for ever; and what is deleted stays so."""
    stores = [open_page_place(store_place) for _ in range(4)]
    for _ in range(8):
        made = create(stores[0], "", "one", "two")
        together = threading.Barrier(4)

        def change(store: PageStore, number: int, made: PageConversation = made, together: Any = together) -> None:
            together.wait()
            match number:
                case 0:
                    store.change("", made.id, model="fast", target="acme:s")
                case 1:
                    store.write_notes(made, {0: b"a", 1: b"b"})
                case 2:
                    with suppress(StoreConflict):
                        store.append(made.name, [user("three")])
                case _:
                    assert store.remove("", made.id)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(change, stores, range(4)))
        assert stores[0].list_page("") == []
    if is_server(store_place):
        assert get_database(stores[0]).run(count_rows) == [0, 0, 0]
    for store in stores:
        store.close()


def count_rows() -> Queries[list[int]]:
    counts: list[int] = []
    for table in ("messages", "page_conversations", "page_notes"):
        found = yield Query(f"SELECT count(*) FROM {table}")
        counts.append(found.rows[0][0])
    return counts
