"""Parses JSON that is still arriving, for display: `PartialJson().feed(text)`, then `.value` is the value so far.

Not for results: an open value may change. Parse complete JSON strictly instead (msgspec).
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec

_Mode: TypeAlias = Literal[
    "value", "first_item", "first_key", "key", "colon", "after", "string", "number", "literal", "done", "broken"
]

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_DIGITS = re.compile(r"[-+.0-9eE]*")
# The certain part of a string: complete escapes only, and surrogates only in pairs.
_CERTAIN = re.compile(
    r"(?:[^\\\x00-\x1f\ud800-\udfff]++"
    r'|\\["\\/bfnrt]'
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, tuple[str, bool | None]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_ABSENT = object()
_LONG_NUMBER = 400
MAX_DEPTH = 1_000
"""Maximum nesting of lists and objects. Deeper text cannot be a reply: it ends the parsing like invalid JSON."""


def partial(text: str) -> Any:
    """Parse JSON that is cut off anywhere; None when nothing is certain yet. Never raises."""
    document = PartialJson()
    document.feed(text)
    return document.value


class PartialJson:
    """Parses one JSON value piece by piece, in time linear in the text, however it is cut.

    `value` shows strings and numbers as far as they have come, an entry once its value has begun, and nothing of `tru`.
    Text that is not JSON ends the parsing without an error: `value` stays as it was.
    """

    __slots__ = ("_begun", "_escaped", "_mode", "_open", "_pieces", "_root", "_shown", "_string_is_key", "_under")

    def __init__(self) -> None:
        self._mode: _Mode = "value"
        self._root: Any = _ABSENT
        self._open: list[list[Any] | dict[str, Any]] = []
        # For each open object, the key whose value comes next; None for a list.
        self._under: list[str | None] = []
        # The open string, number or word: of a string what was shown before, then the text after it.
        self._begun = ""
        self._pieces: list[str] = []
        self._escaped = False
        self._string_is_key = False
        self._shown = False

    @property
    def complete(self) -> bool:
        """Whether the value is complete. A number at the root never is: more digits may follow."""
        return self._mode == "done"

    @property
    def value(self) -> Any:
        """The value so far; None when there is none. Lists and objects are live: later pieces fill them.

        Each character is read once, however often this is asked for. An open string is copied.
        """
        self._show()
        return None if self._root is _ABSENT else self._root

    @property
    def is_closed(self) -> bool:
        """Whether the value is an object or a list that was closed, whatever follows it."""
        return not self._open and isinstance(self._root, (dict, list))

    def snapshot(self) -> Any:
        """The value so far, as it is now: later pieces do not change it. Costs a copy of what is still open."""
        value = self.value
        if not self._open:
            return value
        copies = [opened.copy() for opened in self._open]
        for outer, inner, key in zip(copies, copies[1:], self._under, strict=False):
            if isinstance(outer, dict):
                outer[key or ""] = inner
            else:
                outer[-1] = inner
        return copies[0]

    def feed(self, text: str) -> None:
        """Add the next piece, of any length."""
        at, end = 0, len(text)
        while at < end and self._mode != "broken":
            match self._mode:
                case "string":
                    at = self._read_string(text, at)
                case "number":
                    at = self._read_number(text, at)
                case "literal":
                    at = self._read_word(text, at)
                case _:
                    found = _BLANKS.match(text, at)
                    at = found.end() if found else at
                    if at < end:
                        at = self._read_mark(text, at)

    # --- between values -----------------------------------------------------------------------------------------------

    def _read_mark(self, text: str, at: int) -> int:
        mark = text[at]
        match self._mode:
            case "value" | "first_item":
                if mark == "]" and self._mode == "first_item":
                    self._close_container()
                else:
                    return self._begin_value(mark, at)
            case "first_key" | "key":
                if mark == '"':
                    self._mode, self._string_is_key = "string", True
                elif mark == "}" and self._mode == "first_key":
                    self._close_container()
                else:
                    self._mode = "broken"
            case "colon":
                self._mode = "value" if mark == ":" else "broken"
            case "after":
                self._read_after_value(mark)
            case _:  # done, and more comes
                self._mode = "broken"
        return at + 1

    def _begin_value(self, mark: str, at: int) -> int:
        """Begin a value at its first mark. The mark of a number or a word is read again as part of it."""
        if mark in "{[":
            if len(self._open) >= MAX_DEPTH:
                self._mode = "broken"
                return at + 1
            opened: list[Any] | dict[str, Any] = {} if mark == "{" else []
            self._put(opened)
            self._open.append(opened)
            self._under.append(None)
            self._mode = "first_key" if mark == "{" else "first_item"
            return at + 1
        if mark == '"':
            self._mode, self._string_is_key = "string", False
            return at + 1
        if mark in "-0123456789":
            self._mode = "number"
            return at
        if mark in _WORDS:
            self._mode = "literal"
            return at
        self._mode = "broken"
        return at + 1

    def _read_after_value(self, mark: str) -> None:
        inside = self._open[-1]
        if mark == ",":
            self._mode = "value" if isinstance(inside, list) else "key"
        elif mark == ("]" if isinstance(inside, list) else "}"):
            self._close_container()
        else:
            self._mode = "broken"

    def _close_container(self) -> None:
        self._open.pop()
        self._under.pop()
        self._mode = "after" if self._open else "done"

    # --- strings, numbers and words -----------------------------------------------------------------------------------

    def _read_string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            self._pieces.append(text[at])
            return at + 1
        plain = _PLAIN.match(text, at)
        until = plain.end() if plain else at
        if until > at:
            self._pieces.append(text[at:until])
        if until == len(text):
            return until
        if text[until] == "\\":
            self._pieces.append("\\")
            self._escaped = True
            return until + 1
        body = "".join(self._pieces)
        if len(_select_certain(body)) < len(body):
            return self._break_off(until)
        whole = self._begun + msgspec.json.decode(f'"{body}"')
        self._begun = ""
        self._pieces.clear()
        self._complete(whole)
        return until + 1

    def _read_number(self, text: str, at: int) -> int:
        """Read all characters that may belong to a number; the first other character ends it."""
        found = _DIGITS.match(text, at)
        until = found.end() if found else at
        self._pieces.append(text[at:until])
        if until == len(text):
            return until
        token = "".join(self._pieces)
        value = _parse_number(token) if _NUMBER.fullmatch(token) else _ABSENT
        if value is _ABSENT:
            return self._break_off(until)
        self._pieces.clear()
        self._complete(value)
        return until

    def _read_word(self, text: str, at: int) -> int:
        # The pieces are empty only before the first letter.
        word, value = _WORDS[self._pieces[0] if self._pieces else text[at]]
        if word[len(self._pieces)] != text[at]:
            return self._break_off(at)
        self._pieces.append(text[at])
        if len(self._pieces) == len(word):
            self._pieces.clear()
            self._complete(value)
        return at + 1

    def _break_off(self, at: int) -> int:
        """Stop: the text is not JSON from here on. The value so far stays."""
        self._show()
        self._mode = "broken"
        return at

    def _complete(self, value: Any) -> None:
        """Use a complete string, number or word."""
        if self._string_is_key:
            self._under[-1] = value
            self._string_is_key = False
            self._mode = "colon"
            return
        self._put(value)
        self._shown = False
        self._mode = "after" if self._open else "done"

    def _put(self, value: Any) -> None:
        """Put a value in its place. It replaces the part of it that was shown before."""
        if not self._open:
            self._root = value
            return
        inside = self._open[-1]
        if isinstance(inside, dict):
            inside[self._under[-1] or ""] = value
        elif self._shown:
            inside[-1] = value
        else:
            inside.append(value)

    def _show(self) -> None:
        """Put the certain part of an open string or number in its place."""
        if self._string_is_key or self._mode not in ("string", "number"):
            return
        text = "".join(self._pieces)
        if self._mode == "string":
            certain = _select_certain(text)
            self._begun += msgspec.json.decode(f'"{certain}"')
            self._pieces[:] = [text[len(certain) :]]
            self._put(self._begun)
            self._shown = True
            return
        self._pieces[:] = [text]
        begun = _NUMBER.match(text) if len(text) <= _LONG_NUMBER else None
        number = _parse_number(begun[0]) if begun else _ABSENT
        if number is not _ABSENT:
            self._put(number)
            self._shown = True


def _select_certain(body: str) -> str:
    found = _CERTAIN.match(body)
    return found[0] if found else ""


def _parse_number(token: str) -> Any:
    try:
        return msgspec.json.decode(token)
    except (msgspec.DecodeError, ValueError):
        return _ABSENT  # larger than any float
