"""The columns and the tables of a database, as it tells them: `list_columns`, `has_table`."""

from __future__ import annotations

from asides.database import Database, Queries, Query
from asides.database.postgres_url import SCHEMA

_POSTGRES = (
    f"SELECT column_name FROM information_schema.columns WHERE table_schema = '{SCHEMA}' AND table_name = ? "  # noqa: S608
    "ORDER BY ordinal_position"
)


def list_columns(database: Database, table: str) -> list[str]:
    """The names of the columns of a table, in their order; none if there is no such table."""

    def work() -> Queries[list[str]]:
        result = yield Query(
            "SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,), postgres=_POSTGRES, is_all=True
        )
        return [row[0] for row in result.rows]

    return database.run(work, writes=False)


def has_table(database: Database, table: str) -> bool:
    """Whether there is such a table."""
    return bool(list_columns(database, table))
