"""Notices, and the escapes of characters that would command a terminal."""

from __future__ import annotations

import unicodedata

import pytest

from asides.values.notices import Notice, escape_controls


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain, Grüße, 日本 and 😀", "plain, Grüße, 日本 and 😀"),
        ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
        ("\x1b[31m\x07\x00\x7f", "\\x1b[31m\\x07\\x00\\x7f"),
        ("\x85\x9b1m", "\\x85\\x9b1m"),
        ("\u202eabc\u2066\u2069\u200f\u061c", "\\u202eabc\\u2066\\u2069\\u200f\\u061c"),
        ("one\u2028two\u2029three", "one\\u2028two\\u2029three"),
        ("a family: 👨\u200d👩\u200d👧", "a family: 👨\u200d👩\u200d👧"),
        ("half \ud83d", "half \\ud83d"),
        ("", ""),
    ],
)
def test_what_commands_a_terminal_is_escaped_and_the_rest_stays(text: str, escaped: str) -> None:
    assert escape_controls(text) == escaped


def test_every_control_character_direction_and_separator_of_unicode_is_escaped() -> None:
    wide = {"L", "R", "AL", "EN", "ES", "ET", "AN", "CS", "NSM", "B", "S", "WS", "ON", ""}
    for code in range(0x110000):
        character = chr(code)
        directs = unicodedata.bidirectional(character) not in wide | {"BN"}
        breaks = len(f"a{character}b".splitlines()) > 1
        if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") or directs or breaks:
            assert escape_controls(character) != character, hex(code)


def test_a_notice_is_one_line_whatever_a_server_called_things() -> None:
    notice = Notice("unknown_field", "the field 'a\nwarning: all is well\u202e' is not known")
    assert str(notice) == "unknown_field: the field 'a\\x0awarning: all is well\\u202e' is not known"
    assert notice.detail.isprintable()
