"""Lists of the help: aligned, and wrapped to the terminal."""

from __future__ import annotations

import pytest

from asides.cli.help_text import format_list


def test_texts_begin_at_the_column_and_continue_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    entries = [("ask", "one two three four five six"), ("chat", "short")]
    assert format_list(entries, 6) == "  ask    one two three four five\n         six\n  chat   short\n"


def test_a_very_narrow_terminal_still_gets_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "5")
    assert format_list([("ask", "one two three four five six")]).split() == "ask one two three four five six".split()
