"""Copy the rows of tables with natural keys: gateway keys, spending, summaries, ledgers. `copy_rows`, `verify_rows`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.database import Database, Queries, Query, StoreError, StoreUnavailable
from asides_gateway.maintenance.copy_report import CopyReport, OnProgress, Outcome
from asides_gateway.maintenance.table_columns import Column, can_hold, count_rows, read_columns, read_value

_BATCH = 100
Row: TypeAlias = dict[str, Any]


class CopiedTable(msgspec.Struct, frozen=True):
    """A table, and how its rows are identified and compared."""

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
    """Copy the rows that the target lacks, and what has grown. A row that differs there stays as it is, unless
    `replace`. A row that is damaged, or that the target cannot take, does not stop the others."""
    columns = _find_columns(source, target, table)
    after: tuple[Any, ...] | None = None
    while columns and (batch := _list_batch(source, table, columns, after)):
        after = _read_key(table, batch[-1])
        sound = [row for row in batch if can_hold(columns, row)]
        found = _find(target, table, columns, sound)
        written: list[tuple[Outcome, Row]] = []
        for row in batch:
            key = _read_key(table, row)
            verdict: Outcome = _compare(table, row, found.get(key)) if can_hold(columns, row) else "failed"
            if verdict == "different" and replace:
                verdict = "updated"
            if verdict in ("copied", "updated"):
                written.append((verdict, _merge(table, row, found.get(key))))
            else:
                report.count(verdict, _name(key))
        _write_each(target, table, columns, written, report)
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
        sound = [row for row in batch if can_hold(columns, row)]
        found = _find(target, table, columns, sound)
        for row in batch:
            key = _read_key(table, row)
            count += 1
            if can_hold(columns, row) and _compare(table, row, found.get(key)) == "same":
                report.checked += 1
            else:
                report.note_missing(_name(key))
        on_progress(report)
    # Rows whose key has a wrong type may be missing in the order.
    report.missing += max(count_rows(source, table.name) - count, 0)
    if columns:
        report.others += max(count_rows(target, table.name) - count, 0)


def _name(key: tuple[Any, ...]) -> str:
    return " ".join(map(str, key))


def _write_each(
    target: Database,
    table: CopiedTable,
    columns: Mapping[str, Column],
    written: Sequence[tuple[Outcome, Row]],
    report: CopyReport,
) -> None:
    """Write all rows at once or, if the target cannot take one of them, each alone."""
    if not written:
        return
    try:
        target.run(lambda: _write(table, columns, [row for _, row in written]))
    except StoreUnavailable:
        raise
    except StoreError:
        if len(written) == 1:
            report.count("failed", _name(_read_key(table, written[0][1])))
            return
        for one in written:
            _write_each(target, table, columns, [one], report)
    else:
        for verdict, row in written:
            report.count(verdict, _name(_read_key(table, row)))


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


def _find_columns(source: Database, target: Database, table: CopiedTable) -> dict[str, Column]:
    """The columns that both have, as the target declares them."""
    theirs, ours = read_columns(target, table.name), read_columns(source, table.name)
    if ours and (lost := [name for name in table.key if name not in ours]):
        raise StoreError(
            f"the table {table.name} of the source has no column {lost[0]}: it is damaged, or made by another program. "
            "To do: restore it from a backup."
        )
    return {name: theirs[name] for name in ours if name in theirs}


def _read_key(table: CopiedTable, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)


def _list_batch(
    database: Database, table: CopiedTable, columns: Iterable[str], after: tuple[Any, ...] | None
) -> list[Row]:
    keys, marks = ", ".join(table.key), ", ".join("?" * len(table.key))
    start = "" if after is None else f"WHERE ({keys}) > ({marks})"
    statement = f"SELECT {', '.join(columns)} FROM {table.name} {start} ORDER BY {keys} LIMIT {_BATCH}"  # noqa: S608

    def work() -> Queries[list[Row]]:
        result = yield Query(statement, after or (), is_alone=True)
        return [_read_row(columns, row) for row in result.rows]

    return database.run(work, writes=False)


def _find(
    database: Database, table: CopiedTable, columns: Iterable[str], rows: Sequence[Row]
) -> dict[tuple[Any, ...], Row]:
    if not rows:
        return {}
    one = " AND ".join(f"{name} = ?" for name in table.key)
    any_of = " OR ".join(f"({one})" for _ in rows)
    statement = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {any_of}"  # noqa: S608
    values = tuple(value for row in rows for value in _read_key(table, row))

    def work() -> Queries[list[Row]]:
        result = yield Query(statement, values, is_alone=True)
        return [_read_row(columns, row) for row in result.rows]

    return {_read_key(table, row): row for row in database.run(work, writes=False)}


def _read_row(columns: Iterable[str], row: Sequence[Any]) -> Row:
    return {name: read_value(value) for name, value in zip(columns, row, strict=True)}


def _write(table: CopiedTable, columns: Mapping[str, Column], rows: Sequence[Row]) -> Queries[None]:
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
    """The greater of two values, of which one may be NULL, in SQL that both engines know."""
    return (
        f"CASE WHEN {table}.{name} IS NULL OR excluded.{name} > {table}.{name} THEN excluded.{name} "
        f"ELSE {table}.{name} END"
    )
