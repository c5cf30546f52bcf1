"""Variables of a `.env` file: one changes, everything else stays as it was written."""

from __future__ import annotations

import pytest

from asides.cli.edit_env import parse_env, remove_variables, set_variables
from asides.values.errors import ConfigError

TEXT = "# mine\nexport A='x' # why\nB=\"two\nA=no\n\"\r\nC = 1"


def test_values_are_read_as_programs_read_them() -> None:
    assert parse_env(TEXT) == {"A": "x", "B": "two\nA=no\n", "C": "1"}


def test_a_line_changes_where_it_stands_and_new_ones_come_last() -> None:
    after = set_variables(TEXT, {"A": "new words", "D": "http://127.0.0.1:4242"})
    assert after == TEXT.replace("'x'", "'new words'") + "\r\nD=http://127.0.0.1:4242\r\n"
    assert set_variables(after, {"A": "new words", "D": "http://127.0.0.1:4242"}) == after


def test_a_line_goes_and_the_others_stay() -> None:
    assert remove_variables(TEXT, ["A", "none"]) == TEXT.replace("export A='x' # why\n", "")


@pytest.mark.parametrize("value", ["plain", "with blanks", "it's", 'a "word"', "a#b", "openrouter:a/b-1.5:free"])
def test_every_value_comes_back(value: str) -> None:
    assert parse_env(set_variables("", {"A": value})) == {"A": value}


def test_what_no_line_can_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="the value of A cannot be written"):
        set_variables("", {"A": "two\nlines"})
