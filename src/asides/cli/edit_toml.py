"""Changes one value of a TOML text and leaves everything else as it is: comments, order, spelling, line ends.

`tomllib` finds where each statement ends, and checks the result: every other value must be what it was.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from asides.cli.edit_json import find_line_end, look_up
from asides.values.errors import ConfigError

Path = tuple[str, ...]

_BARE_KEY = r"[A-Za-z0-9_-]+"
_BY_HAND = "To do: change the file by hand."


class _Statement(NamedTuple):
    """A statement of the text: `key = value`, or a table's header."""

    first: int
    """Its first line."""
    end: int
    """The line behind its last."""
    path: Path
    """The full path of the key, or of the table."""
    table: Path | None
    """The table that it stands in; None for a header."""
    value: Any = None


def parse_name(name: str) -> Path:
    """The path of a dotted name, in which parts may be quoted as in TOML."""
    path = None if "\n" in name or "#" in name else _read_key(name)
    if path is None:
        raise ConfigError(f"{name!r} is no name of a setting; write it as `timeouts.idle`.")
    return path


def set_value(text: str, path: Path, value: Any) -> str:
    """The text with this value. Raises a ConfigError where the text has something at this path that is no value."""
    document = tomllib.loads(text)
    _refuse_table(document, path)
    statements, lines = _read_statements(text)
    ending = find_line_end(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += ending
    found = _find_statement(statements, path)
    if found is not None and found.path == path:
        changed = [*lines[: found.first], _replace_value(lines, found, value), *lines[found.end :]]
    elif found is not None:
        inner = _change_copy(found.value, path[len(found.path) :], value)
        changed = [*lines[: found.first], _replace_value(lines, found, inner), *lines[found.end :]]
    else:
        changed = _insert(lines, statements, path, value, ending)
    return _check("".join(changed), _change_copy(document, path, value))


def unset_value(text: str, path: Path) -> str:
    """The text without the value. Raises a ConfigError where it has none."""
    document = tomllib.loads(text)
    _refuse_table(document, path)
    statements, lines = _read_statements(text)
    found = _find_statement(statements, path)
    if found is None or look_up(document, path) is None:
        raise ConfigError(f"{'.'.join(path)} is not in the file.")
    kept: list[str] = []
    if found.path != path:
        inner = _remove_copy(found.value, path[len(found.path) :])
        kept = [_replace_value(lines, found, inner)]
    return _check("".join([*lines[: found.first], *kept, *lines[found.end :]]), _remove_copy(document, path))


def remove_table(text: str, path: Path) -> str:
    """The text without a table, with everything in it; as it is where it has none."""
    document = tomllib.loads(text)
    if not isinstance(look_up(document, path), dict):
        return text
    statements, lines = _read_statements(text)
    gone = [each for each in statements if each.path[: len(path)] == path]
    kept = list(lines)
    for statement in reversed(gone):
        first = statement.first
        if statement.table is None and first > 0 and not kept[first - 1].strip():
            first -= 1  # The blank line above a header.
        del kept[first : statement.end]
    return _check("".join(kept), _remove_copy(document, path))


def _check(text: str, expected: Mapping[str, Any]) -> str:
    """Return the text, if its values are the expected ones."""
    try:
        is_right = _drop_empty(tomllib.loads(text)) == _drop_empty(expected)
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError(f"this file is written in a way that cannot be changed safely. {_BY_HAND}")
    return text


def _drop_empty(value: Any) -> Any:
    """The value without empty tables, which set nothing; NaN as text, since it equals nothing."""
    if isinstance(value, Mapping):
        inner = {key: _drop_empty(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each != {}}
    if isinstance(value, list):
        return [_drop_empty(each) for each in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_statements(text: str) -> tuple[list[_Statement], list[str]]:
    """Every statement of a valid text, in order, and its lines with their ends."""
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    statements: list[_Statement] = []
    table: Path = ()
    place = 0
    while place < len(lines):
        begin = lines[place].strip()
        if not begin or begin.startswith("#"):
            place += 1
        elif begin.startswith("["):
            # A table of a list has no name of its own, so nothing in it is found.
            is_listed = begin.startswith("[[")
            path = _walk(tomllib.loads(begin))
            table = (*path, "") if is_listed else path
            statements.append(_Statement(place, place + 1, table, None))
            place += 1
        else:
            end = place + 1
            while (parsed := _parse("".join(lines[place:end]))) is None:
                end += 1
            key = _read_key(_split_key(lines[place])[0]) or ()
            value = look_up(parsed, key)
            statements.append(_Statement(place, end, (*table, *key), table, value))
            place = end
    return statements, lines


def _parse(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _read_key(text: str) -> Path | None:
    document = _parse(f"{text} = 0")
    return None if document is None else _walk(document) or None


def _walk(document: Any) -> Path:
    """The keys on the way to the only value."""
    path: list[str] = []
    while isinstance(document, (dict, list)) and document:
        if isinstance(document, dict):
            key, document = next(iter(document.items()))
            path.append(key)
        else:
            document = document[0]
    return tuple(path)


def _split_key(line: str) -> tuple[str, str]:
    """The key of a statement and what follows the first `=` outside of quotes."""
    found = re.match(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^="'])*""", line)
    end = 0 if found is None else found.end()
    return line[:end], line[end + 1 :]


def _refuse_table(document: Mapping[str, Any], path: Path) -> None:
    inner: Any = document
    for depth, part in enumerate(path):
        if part not in inner:
            return
        inner = inner[part]
        is_last = depth == len(path) - 1
        if is_last and isinstance(inner, dict):
            raise ConfigError(
                f"{'.'.join(path)} is a table in the file. To do: name one value of it, such as "
                f"{'.'.join((*path, next(iter(inner), 'name')))}."
            )
        if not is_last and not isinstance(inner, dict):
            taken = ".".join(path[: depth + 1])
            raise ConfigError(f"{taken} has a value of its own in the file, and no {path[depth + 1]}. To do: unset it.")


def _find_statement(statements: Sequence[_Statement], path: Path) -> _Statement | None:
    """The statement that sets this path, itself or with an inline table."""
    for statement in statements:
        inside = statement.path == path[: len(statement.path)] and isinstance(statement.value, dict)
        if statement.table is not None and (statement.path == path or inside):
            return statement
    return None


# --- writing ----------------------------------------------------------------------------------------------------------


def _replace_value(lines: Sequence[str], statement: _Statement, value: Any) -> str:
    """The statement with another value. What stands before the value, and a comment behind it, stays."""
    text = "".join(lines[statement.first : statement.end])
    key, rest = _split_key(text)
    blank = rest[: len(rest) - len(rest.lstrip(" \t"))]
    return f"{key}={blank or ' '}{format_value(value)}{_find_tail(text)}"


def _find_tail(text: str) -> str:
    """The comment and the line end behind the value of a statement."""
    whole = _drop_empty(_parse(text))
    last = text.rfind("\n", 0, len(text) - 1) + 1
    for found in re.finditer("#", text[last:]):
        before = text[: last + found.start()]
        if _drop_empty(_parse(before)) == whole:
            return before[len(before.rstrip(" \t")) :] + text[last + found.start() :]
    return text[len(text.rstrip("\r\n")) :]


def _insert(lines: list[str], statements: Sequence[_Statement], path: Path, value: Any, ending: str) -> list[str]:
    """Insert a new statement where a reader looks for it: behind those of its table."""
    *parent, name = path
    outer = tuple(parent)
    neighbours = [each for each in statements if each.table == outer]
    headers = [each for each in statements if each.table is None]
    line = f"{format_key((name,))} = {format_value(value)}{ending}"
    if neighbours:
        return _put(lines, neighbours[-1].end, [line])
    header = next((each for each in headers if each.path == outer), None)
    if outer and header is not None:
        return _put(lines, header.end, [line])
    dotted = [
        each
        for each in statements
        if each.table is not None and len(each.table) < len(outer) and each.path[: len(outer)] == outer
    ]
    if dotted:
        inside = dotted[-1].table or ()
        line = f"{format_key(path[len(inside) :])} = {format_value(value)}{ending}"
        return _put(lines, dotted[-1].end, [line])
    if outer:
        gap = [ending] if lines and lines[-1].strip() else []
        return [*lines, *gap, f"[{format_key(outer)}]{ending}", line]
    if not headers:
        return [*lines, line]
    place = headers[0].first
    while place > 0 and lines[place - 1].lstrip().startswith("#"):
        place -= 1  # A comment right above a header belongs to it.
    return _put(lines, place, [line, ending])


def _put(lines: list[str], place: int, new: list[str]) -> list[str]:
    return [*lines[:place], *new, *lines[place:]]


def format_key(path: Sequence[str]) -> str:
    """A key as TOML writes it."""
    return ".".join(part if re.fullmatch(_BARE_KEY, part) else _format_text(part) for part in path)


def format_value(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _format_text(value)
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case list():
            return f"[{', '.join(map(format_value, value))}]"
        case dict():
            pairs = ", ".join(f"{format_key((key,))} = {format_value(each)}" for key, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:
            # Numbers, dates and times are written as Python writes them.
            return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _format_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _change_copy(document: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**document, first: _change_copy(document.get(first, {}), tuple(rest), value) if rest else value}


def _remove_copy(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {key: each for key, each in document.items() if key != first}
    return {**document, first: _remove_copy(document[first], tuple(rest))}
