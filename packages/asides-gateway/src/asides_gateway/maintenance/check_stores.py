"""Check a store: `check_stores(stores)` says what is in each area, how old and how large it is, and what is wrong.

It only reads, and memory stays small.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import msgspec

from asides.database import Database, Queries, Query, StoreError
from asides.history.document import read_message
from asides.relay.state.relay_keys import KEY_VARIABLE
from asides.relay.vault import VaultLimits
from asides.relay.vault.open_vault import name_key_file
from asides.values.errors import ConfigError
from asides.values.usage import Usage
from asides_gateway.access.key_store import list_damaged_keys
from asides_gateway.maintenance.open_stores import BEFORE_ALL, LEDGER, Stores, list_tables, name_vault_tables

_BATCH = 500
_MESSAGES = 50
"""How many messages are read at once: some hold pictures."""
_MOST_NAMED = 10
_MOST_TICKS = 1 << 53
"""No store has had more changes than this. Guards against version overflow."""
_TYPES = {
    "INTEGER": ("integer",),
    "BIGINT": ("integer",),
    "REAL": ("integer", "real"),
    "DOUBLE PRECISION": ("integer", "real"),
    "TEXT": ("text",),
    "BLOB": ("blob",),
    "BYTEA": ("blob",),
}
"""What SQLite calls the values of a column, by the declared type of the column."""
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_TABLES: dict[str, tuple[str, ...]] = {
    "conversations": ("conversations", "messages", "page_conversations", "page_notes"),
    "gateway": ("gateway_keys", "gateway_spending", "gateway_reservations", "gateway_requests"),
    LEDGER: ("batches", "batch_rows", "batch_requests", "vendor_batches"),
}


class AreaCheck(msgspec.Struct):
    """What is in one area, and what is wrong with it."""

    area: str
    place: str
    counts: dict[str, int] = {}
    """The rows of each table."""
    size: int = 0
    """Bytes on the disk."""
    oldest: float | None = None
    """The seconds since the oldest record was last used."""
    problems: list[str] = []
    """What is damaged or missing, or what this user may not use."""
    notes: list[str] = []
    """Remarks that are not problems."""

    def add_problems(self, found: list[str], what: str) -> None:
        """Add what was found, the first of them by name."""
        if found:
            more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            self.problems.append(f"{what}: {', '.join(found[:_MOST_NAMED])}{more}")


def check_stores(stores: Stores) -> list[AreaCheck]:
    """Check every area of a store."""
    checks: list[AreaCheck] = []
    for area, database in stores.areas.items():
        if area not in _TABLES and area != "vault":
            continue
        path = stores.files.get(area)
        check = AreaCheck(area, stores.name if path is None else str(path))
        if path is not None:
            _check_file(check, path, database)
        try:
            _check_area(check, area, database)
        except StoreError as problem:
            if path is None:
                raise
            check.problems.append(str(problem))
        checks.append(check)
    return checks


def _check_area(check: AreaCheck, area: str, database: Database) -> None:
    tables = _TABLES.get(area)
    if tables is None:
        names = name_vault_tables(database)
        tables = (names.records, names.tenants, names.keys)
    known = list_tables(database)
    there = [table for table in tables if table in known]
    for table in there:
        check.counts[table] = _count(database, f"SELECT count(*) FROM {table}")  # noqa: S608
        if database.is_shared:
            check.size += _count(database, f"SELECT pg_total_relation_size('asides.{table}')")
            _check_rights(check, database, table)
        else:
            _check_types(check, database, table)
    if area == "conversations":
        _check_conversations(check, database, has_pages="page_notes" in there)
    elif area == "vault":
        _check_vault(check, database)
    elif "gateway_keys" in there:
        damaged = database.run(list_damaged_keys, writes=False)
        check.add_problems([_show(name) for name in damaged], "keys of the gateway that cannot be read")


def _count(database: Database, statement: str, *values: object) -> int:
    def work() -> Queries[int]:
        result = yield Query(statement, values, is_alone=True)
        return int(result.rows[0][0] or 0)

    return database.run(work, writes=False)


def _select(database: Database, statement: str, *values: object, postgres: str | None = None) -> list[tuple[Any, ...]]:
    def work() -> Queries[list[tuple[Any, ...]]]:
        result = yield Query(statement, values, postgres, is_alone=True)
        return result.rows

    return database.run(work, writes=False)


# --- files and rights -------------------------------------------------------------------------------------------------


def _check_file(check: AreaCheck, path: Path, database: Database) -> None:
    for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if name.exists():
            check.size += name.stat().st_size
    private = [path]
    if check.area == "vault":
        key = name_key_file(path)
        if key.exists():
            private.append(key)
        elif not os.environ.get(KEY_VARIABLE):
            check.problems.append(
                f"the key of the vault is neither in {key} nor in {KEY_VARIABLE}: its records cannot be read. "
                f"Set {KEY_VARIABLE}, or put the file back"
            )
    for file in private:
        if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
            check.problems.append(f"other users may read {file}. Run chmod 600 {file}")
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        check.problems.append(f"this user may not write to {path} or its folder. Allow it")
    try:
        found = [str(row[0]) for row in _select(database, "SELECT quick_check FROM pragma_quick_check(20)")]
    except StoreError as problem:
        found = [str(problem)]
    if found != ["ok"]:
        check.problems.append(f"SQLite finds damage: {found[0]}")


def _check_types(check: AreaCheck, database: Database, table: str) -> None:
    """Find values of a wrong type: SQLite takes any value for any column."""
    columns = _select(database, 'SELECT name, upper(type), "notnull" OR pk FROM pragma_table_info(?)', table)
    for name, kind, is_required in columns:
        if kind not in _TYPES:
            continue
        named = ", ".join(f"'{each}'" for each in (*_TYPES[kind], *(() if is_required else ("null",))))
        wrong = _count(database, f'SELECT count(*) FROM {table} WHERE typeof("{name}") NOT IN ({named})')  # noqa: S608
        if wrong:
            check.problems.append(f"values of a wrong type in the column {_show(name)} of {table}: {wrong}")


def _check_rights(check: AreaCheck, database: Database, table: str) -> None:
    allowed = " AND ".join(f"has_table_privilege('asides.{table}', '{right}')" for right in _RIGHTS)
    rows = _select(database, f"SELECT {allowed}")
    if not rows[0][0]:
        check.problems.append(
            f"this user may not read or write the table asides.{table}. Grant {', '.join(_RIGHTS)} on it"
        )
    if _select(database, f"SELECT row_security_active('asides.{table}')")[0][0]:
        check.problems.append(f"row-level security hides rows of the table asides.{table} from this user")


# --- conversations ----------------------------------------------------------------------------------------------------


def _check_conversations(check: AreaCheck, database: Database, *, has_pages: bool) -> None:
    heads, wrong = _find_damaged_heads(database)
    check.add_problems(heads, "conversations whose usage cannot be read")
    check.add_problems(wrong, "conversations with more or fewer messages than they say")
    check.add_problems(_find_damaged_messages(database), "messages that cannot be read")
    orphans = _count(database, "SELECT count(*) FROM messages WHERE conversation NOT IN (SELECT id FROM conversations)")
    if orphans:
        check.problems.append(f"messages of conversations that are gone: {orphans}")
    if has_pages:
        for table in ("page_conversations", "page_notes"):
            lost = f"SELECT count(*) FROM {table} WHERE conversation NOT IN (SELECT id FROM conversations)"  # noqa: S608
            if orphans := _count(database, lost):
                check.problems.append(f"rows of {table} whose conversations are gone: {orphans}")
    if not database.is_shared:
        ticks = _select(database, "SELECT ticks FROM clock")
        if len(ticks) != 1 or not isinstance(ticks[0][0], int) or ticks[0][0] > _MOST_TICKS:
            check.problems.append("the clock, which numbers the changes, is damaged")
    rows = _select(database, "SELECT min(updated) FROM conversations")
    if isinstance(rows[0][0], (int, float)):
        check.oldest = time.time() - rows[0][0]


def _find_damaged_heads(database: Database) -> tuple[list[str], list[str]]:
    damaged: list[str] = []
    wrong: list[str] = []
    after = BEFORE_ALL
    while rows := _select(
        database,
        "SELECT id, name, length, usage, (SELECT count(*) FROM messages WHERE conversation = conversations.id) "
        "FROM conversations WHERE id > ? ORDER BY id LIMIT ?",
        after,
        _BATCH,
    ):
        for key, name, length, usage, count in rows:
            after = key
            try:
                msgspec.json.decode(usage, type=Usage)
                is_damaged = not isinstance(name, str)
            except (msgspec.DecodeError, TypeError, UnicodeDecodeError):
                is_damaged = True
            if is_damaged:
                damaged.append(_show(name))
            if length != count:
                wrong.append(_show(name))
    return damaged, wrong


def _find_damaged_messages(database: Database) -> list[str]:
    damaged: list[str] = []
    after: tuple[int, int] = (BEFORE_ALL, BEFORE_ALL)
    while rows := _select(
        database,
        "SELECT conversation, place, message FROM messages WHERE (conversation, place) > (?, ?) "
        "ORDER BY conversation, place LIMIT ?",
        *after,
        _MESSAGES,
    ):
        for conversation, place, document in rows:
            after = (conversation, place)
            try:
                read_message(document)
            except (ConfigError, TypeError):
                named = _select(database, "SELECT name FROM conversations WHERE id = ?", conversation)
                damaged.append(f"{place} of {_show(named[0][0] if named else conversation)}")
    return damaged


def _show(name: object) -> str:
    text = str(name)
    return text if text.isprintable() else repr(text)


# --- the vault --------------------------------------------------------------------------------------------------------


def _check_vault(check: AreaCheck, database: Database) -> None:
    names = name_vault_tables(database)
    lost_keys = f"SELECT count(*) FROM {names.keys} WHERE record NOT IN (SELECT number FROM {names.records})"  # noqa: S608
    if orphans := _count(database, lost_keys):
        check.problems.append(f"keys of records that are gone: {orphans}")
    lost = f"SELECT count(*) FROM {names.records} WHERE tenant NOT IN (SELECT id FROM {names.tenants})"  # noqa: S608
    if orphans := _count(database, lost):
        check.problems.append(f"records of tenants that are gone: {orphans}")
    unfound = f"SELECT count(*) FROM {names.records} WHERE number NOT IN (SELECT record FROM {names.keys})"  # noqa: S608
    if orphans := _count(database, unfound):
        check.problems.append(f"records without a key, which cannot be found: {orphans}")
    # On a server they are counted only now and then, so that writers do not wait for each other.
    if not database.is_shared and _counts_records(database, names.tenants):
        miscounted = _count(
            database,
            f"SELECT count(*) FROM {names.tenants} AS tenant WHERE records <> (SELECT count(*) FROM {names.records} "  # noqa: S608
            "AS record WHERE record.tenant = tenant.id)",
        )
        if miscounted:
            check.problems.append(f"tenants whose records are miscounted: {miscounted}")
    rows = _select(database, f"SELECT min(used) FROM {names.records}")  # noqa: S608
    if isinstance(rows[0][0], (int, float)):
        check.oldest = time.time() - rows[0][0]
        limit = VaultLimits().seconds
        expired = _count(database, f"SELECT count(*) FROM {names.records} WHERE used < ?", time.time() - limit)  # noqa: S608
        if expired:
            check.notes.append(
                f"{expired} records were not used for {limit / 86400:g} days; the next write deletes them"
            )


def _counts_records(database: Database, tenants: str) -> bool:
    """Whether the tenants of a file have a count of their records. Older files have none."""
    found = _select(database, "SELECT count(*) FROM pragma_table_info(?) WHERE name = 'records'", tenants)
    return bool(found[0][0])
