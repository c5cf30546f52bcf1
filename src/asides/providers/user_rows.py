"""Reads a user's row, a TOML table, into a Provider. Errors name the place, the table and the field.

Rows in code need none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from asides.providers.find import adapt_to_foreign_address, find_provider, is_own_address
from asides.providers.provider import Provider
from asides.providers.table import find_maker, plain_row
from asides.values.errors import ConfigError, UnknownProvider

# Tables whose keys are not changed: X-Header, api-version.
_PAIRS = ("headers", "query", "fields")
# Lists that may be written as a single value.
_LISTS = ("base_url_env", "key_env", "aliases", "thinking_in", "tags", "efforts", "forbids")
# Tables, or lists of tables, whose fields are normalised too.
_NESTED = ("quirks", "models", "replay")


def read_rows(tables: Any, where: str, before: Sequence[Provider]) -> list[Provider]:
    """Return the rows of a file's tables [providers.NAME]. `before` are the rows of files that win over it."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{where}: providers is a table of tables: [providers.NAME].")
    return [
        read_row(name, table, f"{where}: [providers.{name}]", lambda name: find_provider(name, before))
        for name, table in tables.items()
    ]


def read_row(name: str, table: Any, where: str, find: Callable[[str], Provider]) -> Provider:
    """Return the row in `table`.

    With the name of a known provider, or with `like = "…"`, the table changes that row: a field replaces the row's,
    quirks replace one by one, and model rules come before the known ones. `find` returns a row by name or raises
    UnknownProvider.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{where} is a table of fields, such as base_url and key_env.")
    fields = _normalise(table)
    if "api_key" in fields:
        raise ConfigError(
            f"{where}: api_key does not belong in a file; store it with `asides keys set {name}`, or name the "
            'variable that holds it: key_env = "…".'
        )
    if "launcher" in fields:
        # It names code to run, and a settings file may come with a folder from elsewhere.
        raise ConfigError(f"{where}: launcher does not belong in a file; give the row to a client in code.")
    if "name" in fields:
        raise ConfigError(f"{where}: the name of the row is the name of its table; take `name` out.")
    template = _find_template(name, fields.pop("like", None), where, find)
    address = fields.get("base_url")
    if template is not None and isinstance(address, str) and not is_own_address(template, address):
        template = adapt_to_foreign_address(template)
    row: dict[str, Any] = {} if template is None else msgspec.to_builtins(template)
    dialect = fields.get("dialect", "openai_chat" if template is None else template.dialect)
    if "quirks" not in fields and (template is None or template.dialect != dialect):
        # How servers of this dialect are asked: with the key in which header, and how thinking is turned on. A table
        # with quirks says that itself.
        row |= _describe_dialect(dialect)
    for field, value in fields.items():
        if field == "quirks" and isinstance(value, dict):
            row["quirks"] = {**row.get("quirks", {}), **value}
        elif field in ("models", "replay") and isinstance(value, list):
            row[field] = [*value, *row.get(field, ())]
        else:
            row[field] = value
    if template is None or template.name != name:
        row["aliases"] = fields.get("aliases", [])
    row |= {"name": name, "tier": "yours"}
    try:
        return msgspec.convert(row, Provider)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{where} is not valid: {problem}. Its fields are those of asides.Provider.") from None


def _find_template(name: str, like: Any, where: str, find: Callable[[str], Provider]) -> Provider | None:
    if like is None:
        try:
            return find(name)
        except UnknownProvider:
            return None
    try:
        return find(str(like))
    except UnknownProvider as problem:
        raise ConfigError(f"{where}: like: {problem}") from None


def _describe_dialect(dialect: Any) -> dict[str, Any]:
    """The facts of an otherwise unknown server that speaks one of our dialects."""
    if not isinstance(dialect, str) or dialect == "openai_chat" or find_maker(dialect) is None:
        return {}
    plain = adapt_to_foreign_address(plain_row(dialect))
    return {name: msgspec.to_builtins(getattr(plain, name)) for name in ("quirks", "headers", "replay")}


def _normalise(table: dict[str, Any]) -> dict[str, Any]:
    """Return the table with `_` for `-` in field names, pairs for tables of names, and lists for single values."""
    fields: dict[str, Any] = {}
    for key, value in table.items():
        field = key.replace("-", "_")
        if field in _PAIRS and isinstance(value, dict):
            value = list(value.items())
        elif field in _LISTS and isinstance(value, str):
            value = [value]
        elif field in _NESTED and isinstance(value, dict):
            value = _normalise(value)
        elif field in _NESTED and isinstance(value, list):
            value = [_normalise(entry) if isinstance(entry, dict) else entry for entry in value]
        fields[field] = value
    return fields
