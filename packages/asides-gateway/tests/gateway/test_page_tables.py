"""Titles of the page's conversations. test_page_store has the rest of its tables."""

from __future__ import annotations

import pytest

from asides_gateway.page_tables import MOST_TITLE, make_title


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
