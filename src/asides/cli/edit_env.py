"""Changes variables of a `.env` file, and leaves everything else as it is: comments, order, other variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from asides.cli.edit_json import find_line_end
from asides.values.errors import ConfigError

# A value in quotes may have several lines.
_STATEMENT = re.compile(
    r"""(?P<lead>[ \t]*(?:export[ \t]+)?(?P<name>[\w.-]+)[ \t]*=[ \t]*)"""
    r"""(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|[^\r\n#]*?)(?P<rest>[ \t]*(?:\#[^\r\n]*)?)(?P<end>\r?\n|\Z)""",
    re.DOTALL,
)
_PLAIN = re.compile(r"[\w./:@,+~-]*")


def parse_env(text: str) -> dict[str, str]:
    """The variables of a text; the last of two with one name."""
    return {found["name"]: _unquote(found["value"]) for found in _find_statements(text)}


def set_variables(text: str, values: Mapping[str, str]) -> str:
    """The text with these variables. Existing lines are changed in place; new ones are appended."""
    for name, value in values.items():
        found = [each for each in _find_statements(text) if each["name"] == name]
        if not found:
            gap = "" if not text or text.endswith("\n") else find_line_end(text)
            text += f"{gap}{name}={_quote(name, value)}{find_line_end(text)}"
        elif _unquote(found[-1]["value"]) != value:
            start, end = found[-1].span("value")
            text = text[:start] + _quote(name, value) + text[end:]
    return text


def remove_variables(text: str, names: Iterable[str]) -> str:
    """The text without the lines that set these variables."""
    gone = set(names)
    for found in reversed(list(_find_statements(text))):
        if found["name"] in gone:
            text = text[: found.start()] + text[found.end() :]
    return text


def _find_statements(text: str) -> Iterator[re.Match[str]]:
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        found = _STATEMENT.match(text, place)
        if found is None:
            end = text.find("\n", place)
            place = len(text) if end < 0 else end + 1
        else:
            yield found
            place = found.end()


def _unquote(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`":
        inner = value[1:-1]
        return inner.replace("\\n", "\n") if value[0] == '"' else inner
    return value


def _quote(name: str, value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    for mark in "'\"`":
        if mark not in value and "\n" not in value and "\r" not in value:
            return f"{mark}{value}{mark}"
    raise ConfigError(f"the value of {name} cannot be written to a .env file. Set it in your shell.")
