"""Changes values of a JSON text and leaves everything else as it is: comments, order, spelling, commas, line ends.

Settings files of other programs are JSON with comments and with commas behind the last member; a plain JSON text is
one of them. The result is read again: every other value must be what it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from asides.values.errors import ConfigError

Path = tuple[str, ...]
_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|[-+0-9.eE]+|true|false|null')
_DEEPEST = 100
_BY_HAND = "Change the file by hand."


class _Member(NamedTuple):
    """A member of an object: where its name begins, and its value."""

    start: int
    node: _Node


class _Node(NamedTuple):
    """A value of the text, and where it is."""

    start: int
    end: int
    value: Any
    members: dict[str, _Member] | None = None
    """The members of an object; the last of two with one name, as everybody reads it."""
    last_end: int = 0
    """Where the last member of an object ends."""
    has_comma: bool = False
    """Whether a comma follows the last member."""


def parse_json(text: str) -> Any:
    """The value of a text; {} if it has only blanks and comments. Raises a ConfigError with the place."""
    return _read(text).value


def set_values(text: str, values: Mapping[Path, Any]) -> str:
    """The text with these values, each at its path. An object that is missing on the way is added."""
    for path, value in values.items():
        text = _set(text, path, value)
    return text


def remove_values(text: str, paths: Iterable[Path]) -> str:
    """The text without the values at these paths, and without the objects that are empty because of that."""
    for path in paths:
        text = _remove(text, path)
    return text


def look_up(document: Any, path: Path) -> Any:
    """The value at a path; None where there is none."""
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    return document


def _set(text: str, path: Path, value: Any) -> str:
    root = _read(text)
    if look_up(root.value, path) == value and value is not None:
        return text
    if root.start == root.end:
        # Nothing, or comments alone.
        text = f"{text}{_find_gap(text)}{{}}\n"
        root = _read(text)
    node = root
    for depth, part in enumerate(path):
        if node.members is None:
            raise ConfigError(f"{'.'.join(path[:depth]) or 'the whole file'} is not a JSON object. {_BY_HAND}")
        if part not in node.members:
            changed = _insert(text, node, part, _nest(path[depth + 1 :], value), depth + 1)
            break
        node = node.members[part].node
    else:
        changed = text[: node.start] + _format(value, text, len(path)) + text[node.end :]
    return _check(changed, _change(root.value, path, value))


def _find_gap(text: str) -> str:
    return "" if not text or text.endswith(("\n", "\ufeff")) else "\n"


def _nest(path: Path, value: Any) -> Any:
    for part in reversed(path):
        value = {part: value}
    return value


def _insert(text: str, node: _Node, name: str, value: Any, depth: int) -> str:
    member = f"{json.dumps(name, ensure_ascii=False)}: {_format(value, text, depth)}"
    line, indent = find_line_end(text), _find_indent(text)
    if not node.members:
        inside = text[node.start + 1 : node.end - 1]
        kept = "" if not inside.strip() else f"{line}{indent * depth}{inside.strip()}"
        content = f"{kept}{line}{indent * depth}{member}{line}{indent * (depth - 1)}"
        return f"{text[: node.start]}{{{content}}}{text[node.end :]}"
    is_spread = "\n" in text[node.start : node.end]
    # Comments behind the last member stay with it.
    close = node.end - 1
    tail = node.last_end + len(text[node.last_end : close].rstrip())
    comma = "" if node.has_comma else ","
    before = f"{text[: node.last_end]}{comma}{text[node.last_end : tail]}"
    own = "," if node.has_comma else ""
    if not is_spread:
        return f"{before} {member}{own}{text[tail:]}"
    place = min(each.start for each in node.members.values())
    begin = text.rfind("\n", 0, place) + 1
    margin = text[begin:place] if not text[begin:place].strip() else indent * depth
    return f"{before}{line}{margin}{member}{own}{text[tail:]}"


def _remove(text: str, path: Path) -> str:
    root = _read(text)
    node, parents = root, [root]
    for part in path:
        if node.members is None or part not in node.members:
            return text
        node = node.members[part].node
        parents.append(node)
    # An object that would be empty goes too, but never the whole text.
    depth = len(path)
    while depth > 1 and len(parents[depth - 1].value) == 1:
        depth -= 1
    holder, name = parents[depth - 1], path[depth - 1]
    member = (holder.members or {})[name]
    start, end = member.start, member.node.end
    after = _BLANK.match(text, end)
    stop = end if after is None else after.end()
    if text[stop : stop + 1] == ",":
        end = stop + 1
        start = _find_blank_start(text, start)
    else:
        # It is the last one: the comma before it goes too.
        start = _find_blank_start(text, start)
        before = text[:start].rstrip()
        if before.endswith(",") and not holder.has_comma:
            start = len(before) - 1
    return _check(text[:start] + text[end:], _drop(root.value, path[:depth]))


def _find_blank_start(text: str, start: int) -> int:
    """Where the blanks before a place begin, up to one line end."""
    begin = start
    while begin > 0 and text[begin - 1] in " \t":
        begin -= 1
    if text[:begin].endswith("\r\n"):
        return begin - 2
    return begin - 1 if text[:begin].endswith("\n") else begin


def _check(text: str, expected: Any) -> str:
    """Return the text, if its values are the expected ones."""
    try:
        is_right = parse_json(text) == expected
    except ConfigError:
        is_right = False
    if not is_right:
        raise ConfigError(f"this file is written in a way that cannot be changed safely. {_BY_HAND}")
    return text


def _change(document: Any, path: Path, value: Any) -> Any:
    first, *rest = path
    inner = document.get(first, {})
    return {**document, first: _change(inner, tuple(rest), value) if rest else value}


def _drop(document: Any, path: Path) -> Any:
    first, *rest = path
    if not rest:
        return {key: each for key, each in document.items() if key != first}
    return {**document, first: _drop(document[first], tuple(rest))}


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(text: str) -> _Node:
    start = _skip(text, 0)
    if start == len(text):
        return _Node(start, start, {}, {})
    node = _read_value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise _refuse(text, end, "something follows the end")
    return node


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return place if found is None else found.end()


def _read_value(text: str, place: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise _refuse(text, place, "it is nested too deeply")
    mark = text[place : place + 1]
    if mark == "{":
        return _read_object(text, place, depth)
    if mark == "[":
        return _read_array(text, place, depth)
    found = _WORD.match(text, place)
    if found is None:
        raise _refuse(text, place, "a value is missing" if not mark or mark in ",]}:" else f"{mark!r} begins no value")
    try:
        return _Node(place, found.end(), json.loads(found.group()))
    except ValueError:
        raise _refuse(text, place, "this is not a JSON value") from None


def _read_object(text: str, start: int, depth: int) -> _Node:
    values: dict[str, Any] = {}
    members: dict[str, _Member] = {}
    place, last_end, has_comma = _skip(text, start + 1), start + 1, False
    while text[place : place + 1] != "}":
        if members and not has_comma:
            raise _refuse(text, place, "a comma or } is missing")
        if text[place : place + 1] != '"':
            raise _refuse(text, place, "a name in quotes is missing")
        name = _read_value(text, place, depth)
        colon = _skip(text, name.end)
        if text[colon : colon + 1] != ":":
            raise _refuse(text, colon, "a colon is missing")
        node = _read_value(text, _skip(text, colon + 1), depth + 1)
        values[name.value] = node.value
        members[name.value] = _Member(place, node)
        last_end = node.end
        place = _skip(text, node.end)
        has_comma = text[place : place + 1] == ","
        place = _skip(text, place + 1) if has_comma else place
    return _Node(start, place + 1, values, members, last_end, has_comma)


def _read_array(text: str, start: int, depth: int) -> _Node:
    values: list[Any] = []
    place, has_comma = _skip(text, start + 1), True
    while text[place : place + 1] != "]":
        if not has_comma:
            raise _refuse(text, place, "a comma or ] is missing")
        node = _read_value(text, place, depth + 1)
        values.append(node.value)
        place = _skip(text, node.end)
        has_comma = text[place : place + 1] == ","
        place = _skip(text, place + 1) if has_comma else place
    return _Node(start, place + 1, values)


def _refuse(text: str, place: int, what: str) -> ConfigError:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return ConfigError(f"line {line}, column {column}: {what}.")


# --- writing ----------------------------------------------------------------------------------------------------------


def _format(value: Any, text: str, depth: int) -> str:
    """A value as JSON, with the indent and the line ends of the text."""
    indent = _find_indent(text)
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    return written.replace("\n", find_line_end(text) + indent * depth)


def find_line_end(text: str) -> str:
    """The line end that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def _find_indent(text: str) -> str:
    found = re.search(r'^([ \t]+)["/]', text, re.MULTILINE)
    return "  " if found is None else found.group(1)
