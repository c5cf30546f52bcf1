"""Changes one value of a TOML text and leaves everything else as it is: comments, order, spelling, line ends.

tomlkit makes the change; `tomllib` checks the result: every other value must be what it was.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, cast

import tomlkit
from tomlkit.items import InlineTable, Item

from asides.cli.edit_json import find_line_end, look_up
from asides.values.errors import ConfigError

Path = tuple[str, ...]

# A line that may be a header, with the comments right above it.
_HEADER = re.compile(r"^(?:[ \t]*#[^\n]*\n)*[ \t]*\[", re.MULTILINE)
_BLANK_END = re.compile(r"(\r?\n)\s+\Z")


def parse_name(name: str) -> Path:
    """The path of a dotted name, in which parts may be quoted as in TOML."""
    path: list[str] = []
    if "\n" not in name and "#" not in name:
        try:
            document: Any = tomllib.loads(f"{name} = 0")
        except tomllib.TOMLDecodeError:
            document = 0
        while isinstance(document, dict):
            ((key, document),) = document.items()
            path.append(key)
    if not path:
        raise ConfigError(f"{name!r} is not a valid name of a setting. Write it as `timeouts.idle`.")
    return tuple(path)


def set_value(text: str, path: Path, value: Any) -> str:
    """The text with this value. Raises a ConfigError where the path, or a part of it, is something else in the text."""
    before = tomllib.loads(text)
    _refuse_table(before, path)
    ending = find_line_end(text)
    sections = _split_sections(text)
    place = _find_section(sections, path)
    if place is not None:
        sections[place] = _set_in_section(sections[place], path, value, ending)
        if place == 0 and len(sections) > 1 and not _BLANK_END.search(sections[0]):
            sections[0] += ending
        after = "".join(sections)
    elif look_up(before, path[:-1]) is not None:
        after = _set_in_section(text, path, value, ending)
    else:
        gap = "" if not text else ending if text.endswith("\n") else ending * 2
        after = f"{text}{gap}{_set_in_section('', path, value, ending)}"
    return _check(after, _change_copy(before, path, value))


def unset_value(text: str, path: Path) -> str:
    """The text without the value. Raises a ConfigError where it has none."""
    before = tomllib.loads(text)
    _refuse_table(before, path)
    if look_up(before, path) is None:
        raise ConfigError(f"{'.'.join(path)} is not in the file.")
    return _remove(text, before, path)


def remove_table(text: str, path: Path) -> str:
    """The text without a table, with everything in it; as it is where it has none."""
    before = tomllib.loads(text)
    return _remove(text, before, path) if isinstance(look_up(before, path), dict) else text


def _split_sections(text: str) -> list[str]:
    """The text before the first header, and the text of each header with the comment above it. Each is a document."""
    sections: list[str] = []
    start = 0
    for found in _HEADER.finditer(text):
        with suppress(tomllib.TOMLDecodeError):  # The line is inside a list or a text.
            tomllib.loads(text[start : found.start()])
            sections.append(text[start : found.start()])
            start = found.start()
    return [*sections, text[start:]]


def _find_section(sections: Sequence[str], path: Path) -> int | None:
    """The section with the value; else the one with other values of its table; None if no section has any."""
    documents = [tomllib.loads(section) for section in sections]
    for place, document in enumerate(documents):
        if look_up(document, path) is not None:
            return place
    if len(path) == 1:
        return 0
    for place, document in enumerate(documents):
        table = look_up(document, path[:-1])
        if table is not None and not (table and all(isinstance(value, dict) for value in table.values())):
            return place
    return None


def _set_in_section(text: str, path: Path, value: Any, ending: str) -> str:
    """The text of a section with this value."""
    document = tomlkit.parse(text if not text or text.endswith("\n") else f"{text}{ending}")
    table: MutableMapping[str, Any] = document
    for part in path[:-1]:
        if part not in table:
            table[part] = _end_line(tomlkit.table(is_super_table=part != path[-2]), ending)
        table = cast("MutableMapping[str, Any]", table[part])
    old = table.get(path[-1])
    item = _end_line(_build_item(value), ending)
    if not isinstance(table, InlineTable) and isinstance(old, Item):
        item.trivia.indent, item.trivia.trail = old.trivia.indent, old.trivia.trail
        item.trivia.comment_ws, item.trivia.comment = old.trivia.comment_ws, old.trivia.comment
    table[path[-1]] = item
    return document.as_string()


def _remove(text: str, before: Mapping[str, Any], path: Path) -> str:
    document = tomlkit.parse(text)
    table: MutableMapping[str, Any] = document
    for part in path[:-1]:
        table = cast("MutableMapping[str, Any]", table[part])
    del table[path[-1]]
    after = document.as_string()
    if not _BLANK_END.search(text):
        after = _BLANK_END.sub(r"\1", after)  # The blank line above a table that was the last one.
    return _check(after, _remove_copy(before, path))


def _build_item(value: Any) -> Item:
    """A value as an item of tomlkit; a dict as an inline table."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, each in value.items():
            table[key] = _build_item(each)
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(map(_build_item, value))
        return array
    return cast("Item", tomlkit.item(value))


def _end_line(item: Item, ending: str) -> Item:
    item.trivia.trail = ending
    return item


def _refuse_table(document: Mapping[str, Any], path: Path) -> None:
    inner: Any = document
    for depth, part in enumerate(path):
        if part not in inner:
            return
        inner = inner[part]
        is_last = depth == len(path) - 1
        if is_last and isinstance(inner, dict):
            raise ConfigError(
                f"{'.'.join(path)} is a table in the file. Name one value of it, such as "
                f"{'.'.join((*path, next(iter(inner), 'name')))}."
            )
        if not is_last and not isinstance(inner, dict):
            taken = ".".join(path[: depth + 1])
            raise ConfigError(f"{taken} is a value in the file, so it has no {path[depth + 1]}. Unset {taken} first.")


def _check(text: str, expected: Mapping[str, Any]) -> str:
    """Return the text, if its values are the expected ones."""
    try:
        is_right = _drop_empty(tomllib.loads(text)) == _drop_empty(expected)
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError("this file is written in a way that cannot be changed safely. Change it by hand.")
    return text


def _drop_empty(value: Any) -> Any:
    """The value without empty tables, which set nothing; NaN as text, since it equals nothing."""
    if isinstance(value, Mapping):
        inner = {key: _drop_empty(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each != {}}
    if isinstance(value, list):
        return [_drop_empty(each) for each in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _change_copy(document: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**document, first: _change_copy(document.get(first, {}), tuple(rest), value) if rest else value}


def _remove_copy(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {key: each for key, each in document.items() if key != first}
    return {**document, first: _remove_copy(document[first], tuple(rest))}
