"""A stored conversation: what this process has read of it, while others write to the same name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asides.conversations.message_history import StoredConversation
from asides.conversations.store import StoreConflict
from asides.conversations.store.database_store import DatabaseStore
from asides.values.messages import assistant, user
from tests.stores import open_place

KNOWN = (user("1"), assistant("one"))
OTHERS = (user("uno"), assistant("eins"))
NEW = (user("2"), assistant("two"))


@pytest.fixture
def store(store_place: str) -> Iterator[DatabaseStore]:
    with open_place(store_place) as opened:
        yield opened


@pytest.fixture
def stored(store: DatabaseStore) -> StoredConversation:
    """One that knows two messages."""
    store.append("talk", KNOWN)
    stored = StoredConversation(store, "talk")
    stored.open()
    return stored


def test_what_nobody_else_touched_is_not_read_again(stored: StoredConversation) -> None:
    assert stored.append(KNOWN, NEW, NEW, None, None).messages == (*KNOWN, *NEW)
    assert stored.read_changes((*KNOWN, *NEW)) is None


def test_what_others_wrote_behind_the_known_stands_in_front_of_the_new(
    stored: StoredConversation, store: DatabaseStore
) -> None:
    store.append("talk", OTHERS)
    assert stored.append(KNOWN, NEW, NEW, None, None).messages == (*KNOWN, *OTHERS, *NEW)


def test_what_others_rewrote_counts_also_when_it_is_just_as_long(
    stored: StoredConversation, store: DatabaseStore
) -> None:
    about = store.about("talk")
    assert about is not None
    store.replace("talk", OTHERS, expected=about.version)
    assert stored.append(KNOWN, NEW, NEW, None, None).messages == (*OTHERS, *NEW)


def test_a_change_of_all_is_refused_when_others_were_faster(stored: StoredConversation, store: DatabaseStore) -> None:
    store.append("talk", OTHERS)
    with pytest.raises(StoreConflict):
        stored.replace(NEW, None, None)
    kept = store.load("talk")
    assert kept is not None
    assert kept.messages == (*KNOWN, *OTHERS)


def test_a_deleted_conversation_is_reported(stored: StoredConversation, store: DatabaseStore) -> None:
    store.delete("talk")
    with pytest.raises(StoreConflict, match="deleted by another process"):
        stored.read_changes(KNOWN)
