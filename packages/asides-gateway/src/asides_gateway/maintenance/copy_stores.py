"""Copy a store to another one: `copy_stores(source, target)`, from SQLite to PostgreSQL or back, or to the same engine.

It can be ended at any moment and run again: what is there already is left alone, so the rest is copied. The source is
only read, and may be in use; what changes meanwhile is copied by the next run.
"""

from __future__ import annotations

from collections.abc import Callable

from asides.database import StoreError
from asides_gateway.maintenance.copy_conversations import copy_conversations, verify_conversations
from asides_gateway.maintenance.copy_records import copy_records, verify_records
from asides_gateway.maintenance.copy_report import CopyReport, OnProgress
from asides_gateway.maintenance.copy_rows import CopiedTable, copy_rows, verify_rows
from asides_gateway.maintenance.open_stores import LEDGER, Stores
from asides_gateway.maintenance.table_columns import count_rows, hides_rows

# Reservations of requests under way are left out: they end where they began, and their cost is copied once it is known.
TABLES: dict[str, tuple[CopiedTable, ...]] = {
    "gateway": (
        CopiedTable("gateway_keys", ("id",), grows=("used", "revoked")),
        CopiedTable("gateway_spending", ("key", "day"), grows=("spent", "requests")),
        CopiedTable("gateway_requests", ("id",)),
    ),
    LEDGER: (
        CopiedTable("batches", ("name",), later="updated"),
        CopiedTable(
            "batch_requests",
            ("batch", "hash"),
            grows=("owner", "lease", "reserved", "attempts"),
            later="state",
            order=("waiting", "claimed", "sent", "failed", "done"),
        ),
        CopiedTable("batch_rows", ("batch", "place")),
        CopiedTable(
            "vendor_batches",
            ("batch", "marker"),
            grows=("owner", "lease", "sent", "candidates", "done"),
            later="state",
            order=("intended", "creating", "searching", "created", "dropped", "ended"),
        ),
    ),
}
"""The tables of each area that are copied row by row. Those that others refer to come first."""


def copy_stores(
    source: Stores, target: Stores, on_progress: Callable[[str, CopyReport], None], *, replace: bool
) -> list[CopyReport]:
    """Copy all areas of the source, then compare both sides. `on_progress` gets each step and its counts."""
    if _is_one_place(source, target):
        raise StoreError(f"{source.name} is the source and the target. To do: name two places.")
    _refuse_hidden_rows(source)
    reports: list[CopyReport] = []
    for area in source.areas:
        report = CopyReport(area)
        if area not in target.areas:
            # A folder has no place for the ledgers of batches, unless one is named.
            report.left = sum(count_rows(source.areas[area], table.name) for table in TABLES[area][:1])
            reports += [report] if report.left else []
            continue
        _copy_area(area, source, target, report, lambda made: on_progress("copied", made), replace=replace)
        _verify_area(area, source, target, report, lambda made: on_progress("compared", made))
        reports.append(report)
    return reports


def _refuse_hidden_rows(source: Stores) -> None:
    """Raise StoreError if the user may not see all rows: the copy would look complete, and would not be."""
    tables = ["conversations", "messages", "vault_records", *(each.name for area in TABLES.values() for each in area)]
    for table in tables if source.url is not None else ():
        if hides_rows(source.areas["conversations"], table):
            raise StoreError(
                f"row-level security hides rows of the table {table} from the user of {source.name}. To do: copy as "
                "its owner, or as a user with BYPASSRLS."
            )


def _is_one_place(source: Stores, target: Stores) -> bool:
    if source.url is not None or target.url is not None:
        return source.url == target.url
    return any(
        path.resolve() == target.files[area].resolve() for area, path in source.files.items() if area in target.files
    )


def _copy_area(
    area: str, source: Stores, target: Stores, report: CopyReport, on_progress: OnProgress, *, replace: bool
) -> None:
    from_, to = source.areas[area], target.areas[area]
    if area == "conversations":
        copy_conversations(from_, to, report, on_progress, replace=replace)
    elif area == "vault":
        copy_records(from_, to, report, on_progress, replace=replace)
    else:
        for table in TABLES[area]:
            copy_rows(from_, to, table, report, on_progress, replace=replace)


def _verify_area(area: str, source: Stores, target: Stores, report: CopyReport, on_progress: OnProgress) -> None:
    from_, to = source.areas[area], target.areas[area]
    if area == "conversations":
        verify_conversations(from_, to, report, on_progress)
    elif area == "vault":
        verify_records(from_, to, report, on_progress)
    else:
        for table in TABLES[area]:
            verify_rows(from_, to, table, report, on_progress)
