"""Notices, and text of others on one line: control, format and invisible characters become visible."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.values.notices import Notice, escape_controls

# Format characters that have a shape of their own, such as the Arabic signs of numbers and years.
_WITH_A_SHAPE = {"ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümläut, 漢字, العربية, ❤️", "plain, ümläut, 漢字, العربية, ❤️"),
        ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x7f\x85\x9b31m", "\\x7f\\x85\\x9b31m"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("\u2066x\u2069\u200e\u200f\u061c", "\\u2066x\\u2069\\u200e\\u200f\\u061c"),
        ("a\u200bb\u2060c\ufeffd", "a\\u200bb\\u2060c\\ufeffd"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("half \ud83d", "half \\ud83d"),
        ("\U000e0041", "\\U000e0041"),
        ("\\x1b as text", "\\x1b as text"),
    ],
)
def test_what_could_forge_or_hide_is_written_as_an_escape(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_every_control_and_format_character_of_unicode_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = unicodedata.category(character)
        has_shape = kind == "Cf" and unicodedata.name(character, "").split(" ")[0] in _WITH_A_SHAPE and code != 0x61C
        if kind in ("Cc", "Cf", "Cs", "Zl", "Zp") and not has_shape:
            assert escape_controls(character).startswith("\\"), f"U+{code:04X} {unicodedata.name(character, '')}"


@given(st.text(st.characters(exclude_categories=())))
def test_the_line_is_one_line_and_a_second_call_changes_nothing(text: str) -> None:
    shown = escape_controls(text)
    assert len(shown.splitlines()) <= 1
    assert escape_controls(shown) == shown
    shown.encode()  # no half characters


def test_a_notice_is_one_line_whatever_a_server_called_things() -> None:
    notice = Notice("unknown_field", "the field 'a\nwarning: all is well\u202e' is not known")
    assert str(notice) == "unknown_field: the field 'a\\x0awarning: all is well\\u202e' is not known"
    assert notice.detail.isprintable()
