"""Searches in the page's conversations, on both engines: what was said is found, and nothing else."""

from __future__ import annotations

import time

import pytest

from asides.values.messages import Message, user
from asides.values.parts import Text, ToolResult
from asides.values.thinking import Seal, Thought
from asides_gateway import page_search
from asides_gateway.page_tables import PageSettings
from tests.stores import open_page_place, open_place


def test_a_search_sees_what_was_said_and_nothing_else(store_place: str) -> None:
    with open_place(store_place) as before:
        before.append(
            "a name",
            [
                Message("system", (Text("instructed"),)),
                user('A "quoted" \\ word'),
                Message("assistant", (Thought("thought of", seals=(Seal("signature", "sealed"),)), Text("Straße"))),
                Message("tool", (ToolResult("c1", "returned"),)),
            ],
        )
    store = open_page_place(store_place)
    for word in ("a name", "A NAME", 'a "quoted" \\', "\\ word", "Straße", "straße", "quoted", "QUOTED"):
        assert len(store.list_page("", word)) == 1, word
    for word in ("instructed", "thought of", "sealed", "signature", "%", "_", "!", "\\\\", "\0", "role", "text"):
        assert store.list_page("", word) == [], word
    store.close()


def test_a_search_in_many_conversations_is_fast(store_place: str) -> None:
    with open_place(store_place) as before:
        for n in range(100):
            before.append(f"number-{n}", [user(f"message {k} of {n} " + "word " * 60) for k in range(20)])
    store = open_page_place(store_place)
    store.list_page("", limit=200)
    started = time.process_time()
    found = store.list_page("", "message 7 of 42 ")
    seconds = time.process_time() - started
    store.close()
    assert [each.name for each in found] == ["number-42"]
    assert seconds < 1.0, seconds


@pytest.mark.parametrize(
    "text",
    [
        "100% sure",
        "snake_case",
        "wow!",
        "C:\\temp\\new",
        "日本語の質問",
        "ÄRGER",
        "line\nbreak",
        "tab\tstop",
        "a\0b",
        "'; --",
        "😀",
    ],
    ids=repr,
)
def test_any_text_finds_itself(store_place: str, text: str) -> None:
    store = open_page_place(store_place)
    made = store.create("", PageSettings())
    store.append(made.name, [user(f"before {text} after")])
    other = store.create("", PageSettings())
    store.append(other.name, [user("100 sure, snakeXcase, wow, C: temp")])
    titled = store.create("", PageSettings(title=None if "\0" in text else f"on {text}"))
    for form in (text, text.lower()):
        found = {each.id for each in store.list_page("", form)}
        assert found == ({made.id} if "\0" in text else {made.id, titled.id})
    store.close()


def test_pages_of_a_search_have_each_conversation_once(store_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_search, "_CONVERSATIONS_AT_ONCE", 3)
    monkeypatch.setattr(page_search, "_MESSAGES_AT_ONCE", 2)
    store = open_page_place(store_place)
    expected: list[str] = []
    for number in range(20):
        made = store.create("", PageSettings(title="named needle" if number % 7 == 3 else f"number {number}"))
        # A thought is a candidate, and not found.
        thought = Message("assistant", (Thought("needle", seals=(Seal("signature", "needle"),)), Text("hay")))
        said = [user("a needle")] * 3 if number % 3 == 1 else [user("straw")]
        store.append(made.name, [*[thought] * (number % 5), *said])
        if number % 7 == 3 or number % 3 == 1:
            expected.insert(0, made.id)
    for limit in (1, 2, 5, 50):
        found: list[str] = []
        before: int | None = None
        while page := store.list_page("", "needle", before, limit):
            assert len(page) <= limit
            found += [each.id for each in page]
            before = page[-1].version
        assert found == expected
    assert store.list_page("another", "needle") == []
    store.close()


def test_a_search_reads_few_messages_at_a_time(store_place: str) -> None:
    """What every document has in it, such as a name of JSON, makes each message a candidate."""
    with open_place(store_place) as before:
        for number in range(30):
            before.append(f"talk {number}", [user("hello " * 10)] * 40)
    store = open_page_place(store_place)
    started = time.process_time()
    assert store.list_page("", "parts") == []
    assert time.process_time() - started < 3.0
    store.close()
