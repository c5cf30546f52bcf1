"""Copy the rows of tables that are found by columns of their own: keys, spending, summaries, ledgers. `copy_rows` and
`verify_rows`.

Not here: tables whose rows point at each other by numbers (copy_conversations, copy_records), and which tables
there are (copy_stores).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.database import Database, Queries, Query
from asides.maintenance.copy_report import CopyReport, OnProgress
from asides.maintenance.table_columns import list_columns

_BATCH = 100
Row: TypeAlias = dict[str, Any]


class CopiedTable(msgspec.Struct, frozen=True):
    """A table, and how its rows are known again."""

    name: str
    key: tuple[str, ...]
    """The columns by which a row is found."""
    grows: tuple[str, ...] = ()
    """Columns whose values only grow: the greater one is the later one, whichever side it is on."""
    later: str | None = None
    """A column that says which of two rows is the later one: that one is kept, as a whole."""
    order: tuple[str, ...] = ()
    """The values of this column, the latest last, where they are words. Others come before all of them."""


def copy_rows(
    source: Database,
    target: Database,
    table: CopiedTable,
    report: CopyReport,
    on_progress: OnProgress,
    *,
    replace: bool,
) -> None:
    """Copy the rows that the target lacks, and what has grown. A row that is another one there stays, unless
    `replace`."""
    columns = _find_columns(source, target, table)
    after: tuple[Any, ...] | None = None
    while columns and (batch := _list_batch(source, table, columns, after)):
        after = _read_key(table, batch[-1])
        found = _find(target, table, columns, batch)
        written: list[Row] = []
        for row in batch:
            key = _read_key(table, row)
            verdict = _compare(table, row, found.get(key))
            if verdict in ("copied", "updated") or (verdict == "different" and replace):
                written.append(_merge(table, row, found.get(key)))
            report.count("updated" if verdict == "different" and replace else verdict, " ".join(map(str, key)))
        if written:
            target.run(lambda: _write(table, columns, written))  # noqa: B023 - run at once
        on_progress(report)


def verify_rows(
    source: Database, target: Database, table: CopiedTable, report: CopyReport, on_progress: OnProgress
) -> None:
    """Read both sides again, and count what is not equal."""
    columns = _find_columns(source, target, table)
    after: tuple[Any, ...] | None = None
    count = 0
    while columns and (batch := _list_batch(source, table, columns, after)):
        after = _read_key(table, batch[-1])
        found = _find(target, table, columns, batch)
        for row in batch:
            key = _read_key(table, row)
            count += 1
            if _compare(table, row, found.get(key)) == "same":
                report.checked += 1
            else:
                report.note_missing(" ".join(map(str, key)))
        on_progress(report)

    def count_rows() -> Queries[int]:
        result = yield Query(f"SELECT count(*) FROM {table.name}", is_all=True)  # noqa: S608
        return int(result.rows[0][0])

    if columns:
        report.others += max(target.run(count_rows, writes=False) - count, 0)


def _compare(table: CopiedTable, row: Row, other: Row | None) -> Literal["copied", "updated", "same", "different"]:
    if other is None:
        return "copied"
    if table.later is not None and (ours := _rank(table, row)) != (theirs := _rank(table, other)):
        return "updated" if ours > theirs else "same"
    if any(row[name] != other[name] for name in row if name not in table.grows):
        return "different"
    return "updated" if _merge(table, row, other) != other else "same"


def _rank(table: CopiedTable, row: Row) -> Any:
    value = row[table.later or ""]
    if not table.order:
        return value
    return table.order.index(value) if value in table.order else -1


def _merge(table: CopiedTable, row: Row, other: Row | None) -> Row:
    """The row, with the later values of both."""
    if other is None or (table.later is not None and _rank(table, row) > _rank(table, other)):
        return row
    later = {name: max((row[name], other[name]), key=lambda value: (value is not None, value)) for name in table.grows}
    return {**row, **{name: value for name, value in later.items() if name in row}}


# --- queries ----------------------------------------------------------------------------------------------------------


def _find_columns(source: Database, target: Database, table: CopiedTable) -> list[str]:
    theirs = set(list_columns(target, table.name))
    return [name for name in list_columns(source, table.name) if name in theirs]


def _read_key(table: CopiedTable, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)


def _list_batch(
    database: Database, table: CopiedTable, columns: Sequence[str], after: tuple[Any, ...] | None
) -> list[Row]:
    keys, marks = ", ".join(table.key), ", ".join("?" * len(table.key))
    start = "" if after is None else f"WHERE ({keys}) > ({marks})"
    statement = f"SELECT {', '.join(columns)} FROM {table.name} {start} ORDER BY {keys} LIMIT {_BATCH}"  # noqa: S608

    def work() -> Queries[list[Row]]:
        result = yield Query(statement, after or (), is_all=True)
        return [_read_row(columns, row) for row in result.rows]

    return database.run(work, writes=False)


def _find(
    database: Database, table: CopiedTable, columns: Sequence[str], rows: Sequence[Row]
) -> dict[tuple[Any, ...], Row]:
    one = " AND ".join(f"{name} = ?" for name in table.key)
    any_of = " OR ".join(f"({one})" for _ in rows)
    statement = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {any_of}"  # noqa: S608
    values = tuple(value for row in rows for value in _read_key(table, row))

    def work() -> Queries[list[Row]]:
        result = yield Query(statement, values, is_all=True)
        return [_read_row(columns, row) for row in result.rows]

    return {_read_key(table, row): row for row in database.run(work, writes=False)}


def _read_row(columns: Sequence[str], row: Sequence[Any]) -> Row:
    return {
        name: bytes(value) if isinstance(value, (bytearray, memoryview)) else value
        for name, value in zip(columns, row, strict=True)
    }


def _write(table: CopiedTable, columns: Sequence[str], rows: Sequence[Row]) -> Queries[None]:
    """Write rows over those that are there. What grows is never less than what another process wrote meanwhile."""
    marks = ", ".join("?" * len(columns))
    changes = ", ".join(
        f"{name} = {_take_greater(table.name, name)}"
        if name in table.grows and table.later is None
        else f"{name} = excluded.{name}"
        for name in columns
        if name not in table.key
    )
    end = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
    for row in rows:
        yield Query(
            f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(table.key)}) {end}",
            tuple(row[name] for name in columns),
        )


def _take_greater(table: str, name: str) -> str:
    """The greater of two values, of which one may be missing, in words that both engines know."""
    return (
        f"CASE WHEN {table}.{name} IS NULL OR excluded.{name} > {table}.{name} THEN excluded.{name} "
        f"ELSE {table}.{name} END"
    )
