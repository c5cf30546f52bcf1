"""What a database says about its tables: `read_columns`, `count_rows`, `hides_rows`; and whether columns can hold given
values: `can_hold`.

SQLite takes any value for any column. A file that is damaged, or that another program wrote to, may hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.database import Database, Queries, Query
from asides.database.postgres_url import SCHEMA

_POSTGRES = (
    "SELECT column_name, data_type, CASE is_nullable WHEN 'YES' THEN 0 ELSE 1 END FROM information_schema.columns "  # noqa: S608
    f"WHERE table_schema = '{SCHEMA}' AND table_name = ? ORDER BY ordinal_position"
)
_KINDS: dict[str, tuple[tuple[type, ...], tuple[str, ...]]] = {
    "integer": ((int,), ("integer",)),
    "bigint": ((int,), ("integer",)),
    "real": ((int, float), ("integer", "real")),
    "double precision": ((int, float), ("integer", "real")),
    "text": ((str,), ("text",)),
    "blob": ((bytes,), ("blob",)),
    "bytea": ((bytes,), ("blob",)),
}
"""What the columns of our tables hold: in Python, and as SQLite calls it."""
BEFORE_ALL = -(1 << 63)
"""A number below those of all rows, also of rows with odd numbers: reading all rows in order begins here."""


class Column(msgspec.Struct, frozen=True):
    """What a column holds."""

    kind: str
    """As it was declared, in small letters."""
    is_required: bool
    is_shared: bool
    """Whether it is a column of PostgreSQL, whose texts cannot hold a NUL."""

    @property
    def sqlite_types(self) -> tuple[str, ...]:
        """What SQLite calls the values that belong there; none if anything does."""
        if self.kind not in _KINDS:
            return ()
        return (*_KINDS[self.kind][1], *(() if self.is_required else ("null",)))

    def fits(self, value: object) -> bool:
        """Whether the column can hold a value."""
        if value is None:
            return not self.is_required
        if self.is_shared and isinstance(value, str) and "\0" in value:
            return False
        return self.kind not in _KINDS or isinstance(value, _KINDS[self.kind][0])


def read_columns(database: Database, table: str) -> dict[str, Column]:
    """The columns of a table, in their order; none if there is no such table."""

    def work() -> Queries[dict[str, Column]]:
        result = yield Query(
            'SELECT name, type, "notnull" OR pk FROM pragma_table_info(?) ORDER BY cid',
            (table,),
            postgres=_POSTGRES,
            is_alone=True,
        )
        return {
            name: Column(str(kind).lower(), bool(required), database.is_shared) for name, kind, required in result.rows
        }

    return database.run(work, writes=False)


def hides_rows(database: Database, table: str) -> bool:
    """Whether row-level security of PostgreSQL hides rows of a table from this user."""

    def work() -> Queries[bool]:
        result = yield Query(f"SELECT row_security_active('{SCHEMA}.{table}')", is_alone=True)
        return bool(result.rows[0][0])

    return database.is_shared and database.run(work, writes=False)


def read_value(value: Any) -> Any:
    """A value of a row, with binary ones as bytes."""
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def can_hold(columns: Mapping[str, Column], values: Mapping[str, Any]) -> bool:
    """Whether the columns can hold these values."""
    return all(columns[name].fits(value) for name, value in values.items() if name in columns)


def count_rows(database: Database, table: str, condition: str = "") -> int:
    """How many rows a table has, or those of them for which a condition holds; none if there is no such table."""

    def work() -> Queries[int]:
        result = yield Query(f"SELECT count(*) FROM {table} {condition}", is_alone=True)  # noqa: S608
        return int(result.rows[0][0])

    return database.run(work, writes=False) if read_columns(database, table) else 0
