"""A row that a person wrote as a table, read into a Provider; errors name the place, the table and the field.

Not here: where such tables are found (settings). Rows written in code need none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from asides.providers.provider import Provider
from asides.values.errors import ConfigError, UnknownProvider

# A table of names, which keep their spelling: X-Header, api-version.
_PAIRS = ("headers", "query", "fields")
# A list that is most often of one.
_LISTS = ("base_url_env", "key_env", "aliases", "thinking_in", "tags", "efforts", "forbids")


def read_row(name: str, table: Any, where: str, known: Callable[[str], Provider]) -> Provider:
    """The row in `table`.

    Under the name of a known provider, or with `like = "…"`, the table is laid over that row: fields replace, quirks
    one by one, rules for models come before the known ones. `known` gives a row by name and raises UnknownProvider.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{where} is a table of fields, such as base_url and key_env.")
    fields = _spelled(table)
    if "api_key" in fields:
        raise ConfigError(
            f'{where}: api_key does not belong into a file; name the variable that holds it: key_env = "…".'
        )
    if "launcher" in fields:
        # It is the name of code that will run, and a settings file may have come with somebody else's folder.
        raise ConfigError(f"{where}: launcher does not belong into a file; give the row to a client in code.")
    if "name" in fields:
        raise ConfigError(f"{where}: the name of the row is the name of its table; take `name` out.")
    base = _base(name, fields.pop("like", None), where, known)
    row: dict[str, Any] = {} if base is None else msgspec.to_builtins(base)
    for field, value in fields.items():
        if field == "quirks" and isinstance(value, dict):
            row["quirks"] = {**row.get("quirks", {}), **value}
        elif field in ("models", "replay") and isinstance(value, list):
            row[field] = [*value, *row.get(field, ())]
        else:
            row[field] = value
    if base is None or base.name != name:
        row["aliases"] = fields.get("aliases", [])
    row |= {"name": name, "tier": "yours"}
    try:
        return msgspec.convert(row, Provider)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{where} does not read: {problem}. Its fields are those of asides.Provider.") from None


def _base(name: str, like: Any, where: str, known: Callable[[str], Provider]) -> Provider | None:
    if like is None:
        try:
            return known(name)
        except UnknownProvider:
            return None
    try:
        return known(str(like))
    except UnknownProvider as problem:
        raise ConfigError(f"{where}: like: {problem}") from None


_NESTED = ("quirks", "models", "replay")


def _spelled(table: dict[str, Any]) -> dict[str, Any]:
    """Field names with `_` for `-`, pairs for tables of names, lists for single values."""
    fields: dict[str, Any] = {}
    for written, value in table.items():
        field = written.replace("-", "_")
        if field in _PAIRS and isinstance(value, dict):
            value = list(value.items())
        elif field in _LISTS and isinstance(value, str):
            value = [value]
        elif field in _NESTED and isinstance(value, dict):
            value = _spelled(value)
        elif field in _NESTED and isinstance(value, list):
            value = [_spelled(entry) if isinstance(entry, dict) else entry for entry in value]
        fields[field] = value
    return fields
