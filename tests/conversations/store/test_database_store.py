"""A store of conversations, in a file, in memory and on a server: messages round-trip, changes are atomic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.conversations.store import ConversationHeading, StoreConflict
from asides.conversations.store.database_store import DatabaseStore
from asides.conversations.store.sqlite import MEMORY
from asides.database import StoreError
from asides.values.errors import ConfigError
from asides.values.messages import Message, StoredResponse, assistant, user
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from asides.values.usage import Usage
from tests.stores import open_place

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


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseStore]:
    match request.param:
        case "postgres":
            place = request.getfixturevalue("postgres_url")
        case "file":
            place = str(tmp_path / "store.db")
        case _:
            place = MEMORY
    with open_place(place) as opened:
        yield opened


def test_every_kind_of_part_comes_back_as_it_was(store: DatabaseStore) -> None:
    store.append("talk", EVERYTHING)
    kept = store.load("talk")
    assert kept is not None
    assert kept.messages == EVERYTHING


def test_what_is_known_of_a_conversation_follows_what_is_done_to_it(store: DatabaseStore) -> None:
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


def test_only_what_came_later_can_be_loaded(store: DatabaseStore) -> None:
    store.append("talk", [user("a"), assistant("b"), user("c")])
    kept = store.load("talk", 2)
    assert kept is not None
    assert ([message.text for message in kept.messages], kept.about.length) == (["c"], 3)


def test_what_is_not_there_is_none(store: DatabaseStore) -> None:
    assert store.about("talk") is None
    assert store.load("talk") is None
    assert store.delete("talk") is False
    assert store.names() == ()


def test_names_begin_with_the_one_that_was_changed_last(store: DatabaseStore) -> None:
    for name in ("a", "b", "c", "a"):
        store.append(name, [user("?")])
    assert store.names() == ("a", "c", "b")
    assert store.delete("c")
    assert store.names() == ("a", "b")


def test_a_conversation_of_the_same_name_later_on_is_another(store: DatabaseStore) -> None:
    old = store.append("talk", [user("a")])
    store.delete("talk")
    new = store.append("talk", [user("b")])
    assert new.version > old.version
    assert new.rewritten > old.version
    with pytest.raises(StoreConflict):
        store.replace("talk", [], expected=old.version)


def test_a_change_for_another_version_is_refused_and_changes_nothing(store: DatabaseStore) -> None:
    first = store.append("talk", [user("a"), assistant("b")])
    store.append("talk", [user("c"), assistant("d")])
    with pytest.raises(StoreConflict) as caught:
        store.replace("talk", [user("x")], expected=first.version, heading=ConversationHeading("other"), spent=Usage(1))
    kept = store.load("talk")
    assert kept is not None
    assert [message.text for message in kept.messages] == ["a", "b", "c", "d"]
    assert (kept.about.heading, kept.about.usage) == (ConversationHeading(), Usage())
    assert caught.value.found == kept.about.version
    assert re.search(r"\. [A-Z]", str(caught.value))


def test_only_one_who_knows_that_nothing_is_there_makes_it_by_replacing(store: DatabaseStore) -> None:
    with pytest.raises(StoreConflict) as caught:
        store.replace("talk", [user("a")], expected=7)
    assert caught.value.found is None
    store.replace("talk", [user("a")], expected=0)
    with pytest.raises(StoreConflict):
        store.replace("talk", [user("b")], expected=0)


def test_a_turn_that_cannot_be_written_leaves_nothing_behind(store: DatabaseStore) -> None:
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


def test_a_name_is_not_blank(store: DatabaseStore) -> None:
    with pytest.raises(StoreError, match="needs a name"):
        store.append(" ", [user("a")])


def test_a_conversation_gets_another_name_that_nobody_has(store: DatabaseStore) -> None:
    store.append("mine", [user("a")])
    store.append("yours", [user("b")])
    with pytest.raises(StoreError, match="there is a conversation 'yours' already"):
        store.rename("mine", "yours")
    assert not store.rename("nobody's", "new")
    assert store.names() == ("yours", "mine"), "nothing was created"
    assert store.rename("mine", "mine")
    assert store.rename("mine", "ours")
    assert store.names() == ("yours", "ours")
    first = store.load_first("ours")
    assert first is not None
    assert first.text == "a"
    assert store.append("mine", [user("c")]).length == 1


def test_a_long_turn_is_written_at_once(store: DatabaseStore) -> None:
    messages = [user(f"{number} " + "word " * 2000) for number in range(500)]
    assert store.append("talk", messages).length == 500
    kept = store.load("talk", 250)
    assert kept is not None
    assert kept.messages == tuple(messages[250:])
