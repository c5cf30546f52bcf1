"""Reads a docstring: its first paragraph and the description of each parameter, in Google, numpy or Sphinx style.

Not here: types. They come only from annotations, so a docstring's types are ignored.
"""

from __future__ import annotations

import re

import msgspec

_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$")
_NUMPY = re.compile(r"^(?:Parameters|Other Parameters)\s*\n-{3,}\s*$", re.MULTILINE)
_FIELD = re.compile(r"^[:@](?P<field>\w+)(?:[ \t]+(?P<names>[^:\n]*))?:[ \t]*(?P<text>.*)$")
_PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
# The start of a section, also without a blank line before it.
_SECTION_START = re.compile(
    r"^(?:[:@]\w+[^:\n]*:.*|(?:[A-Z]\w+)(?: [A-Z]\w+)?:[ \t]*(?:\n[ \t]+\S.*)|[A-Z][\w ]*\n-{3,}[ \t]*)$", re.MULTILINE
)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+)[ \t]*(?:\([^\n]*?\))?[ \t]*:(?:[ \t]+(?P<text>.*)|[ \t]*)$")
_NUMPY_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, *\*{0,2}\w+)*)[ \t]*(?::.*)?$")


class Docstring(msgspec.Struct, frozen=True):
    """The summary and the parameters of a docstring."""

    summary: str = ""
    """The first paragraph, on one line."""
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Name → description on one line, for the described ones."""


def read_docstring(text: str) -> Docstring:
    """Read a docstring whose indentation was removed, as by `inspect.cleandoc`."""
    first_section = _SECTION_START.search(text)
    prose = text[: first_section.start()] if first_section else text
    lines = text.split("\n")
    parameters = {**_read_google(lines), **_read_numpy(text), **_read_sphinx(lines)}
    return Docstring(_join_lines(prose.strip().partition("\n\n")[0]), parameters)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_google(lines: list[str]) -> dict[str, str]:
    """Read sections like `Args:`, with an indented entry for each parameter."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        if _GOOGLE.match(line):
            found |= _read_entries(_take_indented(lines[number + 1 :], deeper_than=0), _GOOGLE_ENTRY)
    return found


def _read_numpy(text: str) -> dict[str, str]:
    """Read sections underlined with dashes: a line `name : type`, and the description indented below it."""
    found: dict[str, str] = {}
    for header in _NUMPY.finditer(text):
        section = text[header.end() :].lstrip("\n")
        end = re.search(r"^[A-Z][\w ]*\n-{3,}[ \t]*$", section, re.MULTILINE)
        found |= _read_entries((section[: end.start()] if end else section).split("\n"), _NUMPY_ENTRY)
    return found


def _read_sphinx(lines: list[str]) -> dict[str, str]:
    """Read lines like `:param name: text` or `:param type name: text`, with the indented lines below them."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        field = _FIELD.match(line)
        if field is None or field["field"] not in _PARAMETER_FIELDS or not (field["names"] or "").strip():
            continue
        name = field["names"].split()[-1].lstrip("*\\")
        description = _join_lines(" ".join([field["text"], *_take_indented(lines[number + 1 :], deeper_than=0)]))
        if description:
            found[name] = description
    return found


def _take_indented(lines: list[str], *, deeper_than: int) -> list[str]:
    """Return the leading lines that are indented, and blank ones among them."""
    for number, line in enumerate(lines):
        if line.strip() and _measure_indent(line) <= deeper_than:
            return lines[:number]
    return lines


def _read_entries(lines: list[str], entry: re.Pattern[str]) -> dict[str, str]:
    """Read the entries at the indentation of the first line, each with the deeper lines below it."""
    found: dict[str, str] = {}
    filled = [line for line in lines if line.strip()]
    if not filled:
        return found
    margin = _measure_indent(filled[0])
    for number, line in enumerate(filled):
        head = entry.match(line.strip()) if _measure_indent(line) == margin else None
        if head is None:
            continue
        same_line = head.groupdict().get("text") or ""
        description = _join_lines(" ".join([same_line, *_take_indented(filled[number + 1 :], deeper_than=margin)]))
        for name in head["names"].split(","):
            if description:
                found[name.strip().lstrip("*")] = description
    return found
