"""What a docstring says: its first paragraph, and its words about each parameter, in the three styles people write.

Not here: types. They are read from annotations alone, so what a docstring says of them is left out.
"""

from __future__ import annotations

import re

import msgspec

_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$")
_NUMPY = re.compile(r"^(?:Parameters|Other Parameters)\s*\n-{3,}\s*$", re.MULTILINE)
_FIELD = re.compile(r"^[:@](?P<field>\w+)(?:[ \t]+(?P<names>[^:\n]*))?:[ \t]*(?P<words>.*)$")
_PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
# Where the words for people end and something else begins, also without a blank line between them.
_SECTION = re.compile(
    r"^(?:[:@]\w+[^:\n]*:.*|(?:[A-Z]\w+)(?: [A-Z]\w+)?:[ \t]*(?:\n[ \t]+\S.*)|[A-Z][\w ]*\n-{3,}[ \t]*)$", re.MULTILINE
)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+)[ \t]*(?:\([^\n]*?\))?[ \t]*:(?:[ \t]+(?P<words>.*)|[ \t]*)$")
_NUMPY_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, *\*{0,2}\w+)*)[ \t]*(?::.*)?$")


class Description(msgspec.Struct, frozen=True):
    """What a docstring says."""

    summary: str = ""
    """The first paragraph, on one line."""
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Name → words, on one line; only those that are spoken of."""


def read_docstring(text: str) -> Description:
    """The description in a docstring that was cleaned of its indentation, as `inspect.cleandoc` does."""
    first_section = _SECTION.search(text)
    prose = text[: first_section.start()] if first_section else text
    lines = text.split("\n")
    parameters = {**_google(lines), **_numpy(text), **_fields(lines)}
    return Description(_one_line(prose.strip().partition("\n\n")[0]), parameters)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str]) -> dict[str, str]:
    """Sections like `Args:`, with an indented entry for each parameter."""
    found: dict[str, str] = {}
    for place, line in enumerate(lines):
        if _GOOGLE.match(line):
            found |= _entries(_block(lines[place + 1 :], deeper_than=0), _GOOGLE_ENTRY)
    return found


def _numpy(text: str) -> dict[str, str]:
    """Sections underlined with dashes, with a line `name : type` and the words indented below it."""
    found: dict[str, str] = {}
    for header in _NUMPY.finditer(text):
        section = text[header.end() :].lstrip("\n")
        end = re.search(r"^[A-Z][\w ]*\n-{3,}[ \t]*$", section, re.MULTILINE)
        found |= _entries((section[: end.start()] if end else section).split("\n"), _NUMPY_ENTRY)
    return found


def _fields(lines: list[str]) -> dict[str, str]:
    """Lines like `:param name: words` or `:param type name: words`, with what is indented below them."""
    found: dict[str, str] = {}
    for place, line in enumerate(lines):
        field = _FIELD.match(line)
        if field is None or field["field"] not in _PARAMETER_FIELDS or not (field["names"] or "").strip():
            continue
        name = field["names"].split()[-1].lstrip("*\\")
        words = _one_line(" ".join([field["words"], *_block(lines[place + 1 :], deeper_than=0)]))
        if words:
            found[name] = words
    return found


def _block(lines: list[str], *, deeper_than: int) -> list[str]:
    """The lines from the start that are indented, blank ones included."""
    for place, line in enumerate(lines):
        if line.strip() and _indent(line) <= deeper_than:
            return lines[:place]
    return lines


def _entries(lines: list[str], entry: re.Pattern[str]) -> dict[str, str]:
    """Entries at the indentation of the first line, each with the deeper lines below it."""
    found: dict[str, str] = {}
    written = [line for line in lines if line.strip()]
    if not written:
        return found
    margin = _indent(written[0])
    for place, line in enumerate(written):
        head = entry.match(line.strip()) if _indent(line) == margin else None
        if head is None:
            continue
        same_line = head.groupdict().get("words") or ""
        words = _one_line(" ".join([same_line, *_block(written[place + 1 :], deeper_than=margin)]))
        for name in head["names"].split(","):
            if words:
                found[name.strip().lstrip("*")] = words
    return found
