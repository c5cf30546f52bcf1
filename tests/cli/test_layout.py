"""Tables that fit a width: every word stays, and no line is longer."""

from __future__ import annotations

import random

import pytest

from asides.cli.layout import measure, pad, shorten, wrap_columns, wrap_field

TABLE = [
    ("MODELS", "EFFORTS", "SOURCE"),
    ("gpt-*", "low medium high", "platform.example.com: what it says about efforts"),
    ("*", "none", "https://docs.example.com/a/very/long/path/that/has/no/blank/in/it"),
]


def test_a_table_that_fits_is_as_in_a_pipe() -> None:
    assert wrap_columns(TABLE, 200) == wrap_columns(TABLE, None)
    assert wrap_columns(TABLE, 200, indent=2) == [f"  {line}" for line in wrap_columns(TABLE, None)]


@pytest.mark.parametrize("indent", [0, 2])
@pytest.mark.parametrize("width", [40, 50, 60, 80, 100])
def test_no_line_is_longer_and_no_character_is_lost(width: int, indent: int) -> None:
    lines = wrap_columns(TABLE, width, indent=indent)
    assert max(map(len, lines)) <= width
    shown = sorted("".join("".join(lines).split()))
    assert shown == sorted("".join("".join(cell for row in TABLE for cell in row).split()))


def test_wide_columns_give_way_before_narrow_ones() -> None:
    assert wrap_columns([("name", "one two three four five six")], 20) == [
        "name  one two three",
        "      four five six",
    ]


def test_random_tables_fit() -> None:
    dice = random.Random(3)
    for _ in range(300):
        columns = dice.randint(1, 4)
        table = [
            [" ".join("x" * dice.randint(1, 9) for _ in range(dice.randint(0, 6))) for _ in range(columns)]
            for _ in range(dice.randint(0, 5))
        ]
        width = dice.randint(40, 120)
        assert all(len(line) <= width for line in wrap_columns(table, width))


def test_fields_continue_below_themselves() -> None:
    assert wrap_field("docs:", "one two three", 13, 7) == ["docs:  one", "       two", "       three"]
    assert wrap_field("docs:", "one two three", None, 7) == ["docs:  one two three"]


def test_a_text_is_shortened_with_an_ellipsis() -> None:
    assert (shorten("abcdef", 6), shorten("abcdef", 5), shorten("abcdef", 0)) == ("abcdef", "abcd…", "…")


def test_a_wide_character_takes_two_columns() -> None:
    assert (measure("日本"), pad("日本", 6), shorten("日本語です", 5)) == (4, "日本  ", "日本…")
