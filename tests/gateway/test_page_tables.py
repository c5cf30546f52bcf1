"""Titles, searches and rows of the page's tables."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from asides.conversations.store.conversation_names import STORE_FILE
from asides.conversations.store.sqlite import SqliteStore
from asides.gateway.page_store import PageStore
from asides.gateway.page_tables import MOST_TITLE, make_title
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolResult
from asides.values.thinking import Seal, Thought


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("  two\n\tlines ", "two lines"),
        ("", ""),
        (" \n ", ""),
        ("one two three four five six seven eight nine ten eleven twelve thirteen", None),
        ("x" * 500, None),
        ("word " * 100_000, None),
        ("日本語の長い質問です。" * 20, None),
    ],
)
def test_a_title_is_the_first_words_on_one_line(text: str, title: str | None) -> None:
    made = make_title(text)
    if title is not None:
        assert made == title
        return
    assert made.endswith("…")
    assert len(made) <= MOST_TITLE
    assert " ".join(text.split()).startswith(made[:-1])


def test_a_search_sees_what_was_said_and_nothing_else(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / STORE_FILE) as before:
        before.append(
            "a name",
            [
                Message("system", (Text("instructed"),)),
                user('A "quoted" \\ word'),
                Message("assistant", (Thought("thought of", seals=(Seal("signature", "sealed"),)), Text("Straße"))),
                Message("tool", (ToolResult("c1", "returned"),)),
            ],
        )
    store = PageStore(tmp_path)
    for word in ("a name", 'a "quoted" \\', "Straße", "straße", "QUOTED"):
        assert len(store.list_page("", word)) == 1, word
    for word in ("instructed", "thought of", "sealed", "signature", "%", "_", "role", "text"):
        assert store.list_page("", word) == [], word
    store.close()


def test_a_search_in_many_conversations_is_fast(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / STORE_FILE) as before:
        for n in range(100):
            before.append(f"number-{n}", [user(f"message {k} of {n} " + "word " * 60) for k in range(20)])
    store = PageStore(tmp_path)
    store.list_page("", limit=200)
    started = time.process_time()
    found = store.list_page("", "message 7 of 42 ")
    seconds = time.process_time() - started
    store.close()
    assert [each.name for each in found] == ["number-42"]
    assert seconds < 1.0, seconds
