"""Writes a provider's row for people to paste: as a table of `asides.toml`, and as Python. Both leave defaults out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from asides.providers.provider import ModelRule, Provider, ReplayRule
from asides.values.notices import escape_controls

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Fields of pairs: a table in TOML.
_PAIRS = ("headers", "query", "fields")
# Fields that a file cannot hold, or that are implied.
_NOT_IN_FILES = ("name", "tier")
_WIDTH = 100
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_toml(row: Provider) -> str:
    """The row as tables of a settings file."""
    table = f"providers.{_write_key(row.name)}"
    lines = [f"[{table}]"]
    lines += [f"{field} = {_write_value(field, value)}" for field, value in _list_changes(row) if _is_plain(field)]
    if quirks := _list_changes(row.quirks):
        lines += ["", f"[{table}.quirks]", *(f"{field} = {_write_value(field, value)}" for field, value in quirks)]
    for field in ("models", "replay"):
        entries: Iterable[ModelRule | ReplayRule] = getattr(row, field)
        for entry in entries:
            lines += ["", f"[[{table}.{field}]]"]
            lines += [f"{name} = {_write_value(name, value)}" for name, value in _list_changes(entry, "models", "when")]
    return "\n".join(lines) + "\n"


def _is_plain(field: str) -> bool:
    return field not in (*_NOT_IN_FILES, "quirks", "models", "replay")


def _list_changes(struct: msgspec.Struct, *always: str) -> list[tuple[str, Any]]:
    """The fields that differ from their defaults, and those that are always shown."""
    changes: list[tuple[str, Any]] = []
    for info in msgspec.structs.fields(type(struct)):
        value = getattr(struct, info.name)
        default = info.default if info.default is not msgspec.NODEFAULT else msgspec.NODEFAULT
        if info.name in always or value != default or type(value) is not type(default):
            changes.append((info.name, value))
    return changes


def _write_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote(name)


def _write_value(field: str, value: Any) -> str:
    if field in _PAIRS and isinstance(value, tuple):
        pairs = ", ".join(f"{_write_key(str(name))} = {_write_value('', inner)}" for name, inner in value)
        return f"{{ {pairs} }}"
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case tuple() | list():
            return f"[{', '.join(_write_value('', inner) for inner in value if inner is not None)}]"
        case _:
            return _quote(str(value))


def _quote(text: str) -> str:
    """A basic string of TOML. Control characters are escaped; half a character becomes `?`."""
    return f'"{"".join(_escape(letter) for letter in text)}"'


def _escape(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    code = ord(letter)
    if 0xD800 <= code < 0xE000:
        return "?"
    # TOML and Python write these alike.
    return letter if escape_controls(letter) == letter else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# --- Python -----------------------------------------------------------------------------------------------------------


def write_python(row: Provider) -> str:
    """The row as a call of `asides.Provider`."""
    return f"{_write_call(row, 0)}\n"


_ALWAYS: tuple[tuple[type[msgspec.Struct], tuple[str, ...]], ...] = (
    (Provider, ("name",)),
    (ModelRule, ("models",)),
    (ReplayRule, ("when",)),
)


def _write_call(struct: msgspec.Struct, depth: int) -> str:
    always = next((names for kind, names in _ALWAYS if isinstance(struct, kind)), ())
    arguments = [f"{name}={_write_literal(value, depth + 1)}" for name, value in _list_changes(struct, *always)]
    head = f"asides.{type(struct).__name__}("
    line = f"{head}{', '.join(arguments)})"
    if len(line) + 4 * depth <= _WIDTH and "\n" not in line:
        return line
    indent = "    " * (depth + 1)
    inner = "".join(f"{indent}{argument},\n" for argument in arguments)
    return f"{head}\n{inner}{'    ' * depth})"


def _write_literal(value: Any, depth: int) -> str:
    if isinstance(value, msgspec.Struct):
        return _write_call(value, depth)
    if isinstance(value, tuple):
        items = [_write_literal(item, depth) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return _quote(value) if isinstance(value, str) else repr(value)
