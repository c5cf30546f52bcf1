"""Copy the records of a vault with their keys: `copy_records`. Compare the copies: `verify_records`.

A record is known by its tenant and its id, and its content never changes. It is copied as it is, encrypted: reading it
takes the master key. A damaged record does not stop the others.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.database import Database, Queries, Query, QueryMany, StoreError, StoreUnavailable
from asides.relay.steps import PENDING
from asides_gateway.maintenance.copy_report import CopyReport, OnProgress
from asides_gateway.maintenance.open_stores import TableNames, name_vault_tables
from asides_gateway.maintenance.table_columns import BEFORE_ALL, can_hold, count_rows, read_columns, read_value

_BATCH_ROWS = 100
_BATCH_BYTES = 8 * 1024 * 1024
_OWN = ("number", "tenant")
"""Columns that each database numbers for itself."""
Place: TypeAlias = tuple[bytes, str]
"""The tenant and the id of a record, which identify it in every database."""


class CopiedRecord(msgspec.Struct, frozen=True):
    """A record, as it is copied."""

    number: int
    place: Place
    columns: dict[str, Any]
    keys: tuple[str, ...]

    def digest(self) -> bytes:
        """A digest of what never changes: not of when it was used, nor of whether its reply was delivered."""
        kept = [self.columns[name] for name in sorted(self.columns) if name not in ("used", "keys")]
        keys = sorted(key for key in self.keys if not key.startswith(PENDING))
        return hashlib.blake2b(repr((self.place, kept, keys)).encode(), digest_size=16).digest()


class VaultReader:
    """Reads the records of one side."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tables = name_vault_tables(database)
        columns = read_columns(database, self.tables.records)
        self._tenant_columns = read_columns(database, self.tables.tenants)
        self._key_columns = read_columns(database, self.tables.keys)
        self.columns = {name: column for name, column in columns.items() if name not in _OWN}

    def can_take(self, record: CopiedRecord) -> bool:
        """Whether the columns of this side can hold the values of a record from the other side."""
        tenant, id_ = record.place
        keys_fit = all(can_hold(self._key_columns, {"key": key}) for key in record.keys)
        named = can_hold(self._tenant_columns, {"name": tenant}) and can_hold(self.columns, {"id": id_})
        return named and keys_fit and can_hold(self.columns, record.columns)

    def list_batch(self, after: int, columns: Sequence[str]) -> list[CopiedRecord]:
        """The next records, as many as fit into a batch; one at least."""
        return self.database.run(lambda: _list_batch(self.tables, after, columns), writes=False)

    def find(self, places: Sequence[Place], columns: Sequence[str]) -> dict[Place, CopiedRecord]:
        """The records at these places, as far as they exist."""
        return self.database.run(lambda: _find(self.tables, places, columns), writes=False)


def copy_records(
    source: Database, target: Database, report: CopyReport, on_progress: OnProgress, *, replace: bool
) -> None:
    """Copy what the target lacks. A record that differs there stays as it is, unless `replace`."""
    from_, to = VaultReader(source), VaultReader(target)
    columns = [name for name in from_.columns if name in to.columns]
    after = BEFORE_ALL
    while batch := from_.list_batch(after, columns):
        after = batch[-1].number
        sound = [record for record in batch if to.can_take(record)]
        for record in batch:
            if not to.can_take(record):
                report.count("failed", record.place[1])
        found = to.find([record.place for record in sound], columns)
        different = [record for record in sound if record.place in found and not _is_same(record, found[record.place])]
        new = [record for record in sound if record.place not in found]
        report.count("same", "", len(sound) - len(new) - len(different))
        if not replace:
            for record in different:
                report.count("different", record.place[1])
        _write_each(to, [*new, *(different if replace else ())], found, columns, report)
        on_progress(report)


def _write_each(
    target: VaultReader,
    records: Sequence[CopiedRecord],
    found: dict[Place, CopiedRecord],
    columns: Sequence[str],
    report: CopyReport,
) -> None:
    """Write all records at once or, if the target cannot take one of them, each alone. They replace those found."""
    if not records:
        return
    removed = [found[record.place].number for record in records if record.place in found]
    try:
        target.database.run(lambda: _write(target.tables, records, removed, columns))
    except StoreUnavailable:
        raise
    except StoreError:
        if len(records) == 1:
            report.count("failed", records[0].place[1])
            return
        for record in records:
            _write_each(target, [record], found, columns, report)
    else:
        for record in records:
            outcome: Literal["copied", "updated"] = "updated" if record.place in found else "copied"
            report.count(outcome, "")


def verify_records(source: Database, target: Database, report: CopyReport, on_progress: OnProgress) -> None:
    """Read both sides again, and count what is not equal."""
    from_, to = VaultReader(source), VaultReader(target)
    columns = [name for name in from_.columns if name in to.columns]
    after = BEFORE_ALL
    while batch := from_.list_batch(after, columns):
        after = batch[-1].number
        found = to.find([record.place for record in batch if to.can_take(record)], columns)
        for record in batch:
            if to.can_take(record) and record.place in found and _is_same(record, found[record.place]):
                report.checked += 1
            else:
                report.note_missing(record.place[1])
        on_progress(report)
    report.others = max(count_rows(target, to.tables.records) - report.checked - report.missing, 0)


def _is_same(record: CopiedRecord, other: CopiedRecord) -> bool:
    return record.digest() == other.digest()


# --- queries ----------------------------------------------------------------------------------------------------------


def _select(tables: TableNames, columns: Sequence[str]) -> str:
    named = ", ".join(f"record.{name}" for name in columns)
    return (
        f"SELECT record.number, tenant.name, record.id, {named} FROM {tables.records} AS record "  # noqa: S608
        # A record whose tenant is gone is counted as one that cannot be copied, and not passed over.
        f"LEFT JOIN {tables.tenants} AS tenant ON tenant.id = record.tenant"
    )


def _list_batch(tables: TableNames, after: int, columns: Sequence[str]) -> Queries[list[CopiedRecord]]:
    sizes = yield Query(
        f"SELECT number, length(payload) FROM {tables.records} WHERE number > ? ORDER BY number LIMIT {_BATCH_ROWS}",  # noqa: S608
        (after,),
    )
    last, total = after, 0
    for number, size in sizes.rows:
        total += size or 0
        if last > after and total > _BATCH_BYTES:
            break
        last = number
    result = yield Query(
        f"{_select(tables, columns)} WHERE record.number > ? AND record.number <= ? ORDER BY record.number",
        (after, last),
    )
    return (yield from _add_keys(tables, result.rows, columns))


def _find(tables: TableNames, places: Sequence[Place], columns: Sequence[str]) -> Queries[dict[Place, CopiedRecord]]:
    if not places:
        return {}
    marks = ", ".join("?" * len(places))
    wanted = set(places)
    result = yield Query(
        f"{_select(tables, columns)} WHERE record.id IN ({marks}) AND record.tenant IN "  # noqa: S608
        f"(SELECT id FROM {tables.tenants} WHERE name IN ({marks}))",
        (*(place[1] for place in places), *(place[0] for place in places)),
    )
    rows = [row for row in result.rows if (read_value(row[1]), row[2]) in wanted]
    return {record.place: record for record in (yield from _add_keys(tables, rows, columns))}


def _add_keys(
    tables: TableNames, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]
) -> Queries[list[CopiedRecord]]:
    keys: dict[int, list[str]] = {row[0]: [] for row in rows}
    if keys:
        marks = ", ".join("?" * len(keys))
        result = yield Query(f"SELECT record, key FROM {tables.keys} WHERE record IN ({marks})", tuple(keys))  # noqa: S608
        for number, key in result.rows:
            keys[number].append(key)
    return [
        CopiedRecord(
            row[0],
            (read_value(row[1]), row[2]),
            dict(zip(columns, map(read_value, row[3:]), strict=True)),
            tuple(keys[row[0]]),
        )
        for row in rows
    ]


def _write(
    tables: TableNames, records: Sequence[CopiedRecord], removed: Sequence[int], columns: Sequence[str]
) -> Queries[None]:
    """Write records. One that another process wrote meanwhile stays."""
    names = sorted({record.place[0] for record in records})
    yield QueryMany(
        f"INSERT INTO {tables.tenants} (name) VALUES (?) ON CONFLICT DO NOTHING",  # noqa: S608
        [(name,) for name in names],
    )
    marks = ", ".join("?" * len(names))
    found = yield Query(f"SELECT name, id FROM {tables.tenants} WHERE name IN ({marks})", tuple(names))  # noqa: S608
    tenants: dict[bytes, int] = {bytes(name): number for name, number in found.rows}
    yield from _remove(tables, removed)
    row = ", ".join("?" * (len(columns) + 1))
    written = yield Query(
        f"INSERT INTO {tables.records} (tenant, {', '.join(columns)}) VALUES "  # noqa: S608
        + ", ".join(f"({row})" for _ in records)
        + " ON CONFLICT DO NOTHING RETURNING number, tenant, id, size",
        tuple(
            value
            for record in records
            for value in (tenants[record.place[0]], *(record.columns[name] for name in columns))
        ),
    )
    keys = {(tenants[record.place[0]], record.place[1]): record.keys for record in records}
    yield QueryMany(
        f"INSERT INTO {tables.keys} (tenant, key, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608
        [(tenant, key, number) for number, tenant, id_, _ in written.rows for key in keys[tenant, id_]],
    )
    yield from _count(tables, [(tenant, 1, size) for _, tenant, _, size in written.rows])


def _remove(tables: TableNames, numbers: Sequence[int]) -> Queries[None]:
    if numbers:
        marks = ", ".join("?" * len(numbers))
        result = yield Query(
            f"DELETE FROM {tables.records} WHERE number IN ({marks}) RETURNING tenant, size",  # noqa: S608
            tuple(numbers),
        )
        yield from _count(tables, [(tenant, -1, -size) for tenant, size in result.rows])


def _count(tables: TableNames, changes: Sequence[tuple[int, int, int]]) -> Queries[None]:
    """Add to the counts of each tenant: the number of its records, and their size."""
    counts, sizes = Counter[int](), Counter[int]()
    for tenant, count, size in changes:
        counts[tenant] += count
        sizes[tenant] += size
    yield QueryMany(
        f"UPDATE {tables.tenants} SET records = records + ?, size = size + ? WHERE id = ?",  # noqa: S608
        [(counts[tenant], sizes[tenant], tenant) for tenant in sorted(counts)],
    )
