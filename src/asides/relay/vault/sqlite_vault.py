"""`SqliteVault`: the records of a relay in one SQLite file, for many threads and processes.

Not here: connections, waiting and errors of SQLite (database/sqlite_file).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from asides.database import StoreError
from asides.database.sqlite_file import READ, WRITE, SqliteFile
from asides.flows.steps import StoredRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault.memory_vault import measure_record

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1
"""The version of the tables. A file with a later version is refused."""
_APPLICATION = 0x61736476
"""Marks the file as a vault of asides: "asdv"."""

_TABLES = """
CREATE TABLE tenants (
    id      INTEGER PRIMARY KEY,
    name    BLOB    NOT NULL UNIQUE,
    records INTEGER NOT NULL DEFAULT 0,
    size    INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE records (
    number  INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL,
    tenant  INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    keys    TEXT    NOT NULL,
    payload BLOB    NOT NULL,
    size    INTEGER NOT NULL,
    used    REAL    NOT NULL,
    UNIQUE (tenant, id)
);
CREATE INDEX records_used ON records (tenant, used);
CREATE INDEX records_age ON records (used);
CREATE TABLE keys (
    tenant INTEGER NOT NULL,
    key    TEXT    NOT NULL,
    record INTEGER NOT NULL REFERENCES records (number) ON DELETE CASCADE,
    PRIMARY KEY (tenant, key, record)
) WITHOUT ROWID;
CREATE INDEX keys_of_record ON keys (record)
"""

# Older versions of SQLite take at most 999 values in one statement.
_MOST_KEYS = 500
_MOST_DELETED = 200
"""How many old records one write deletes, so that none takes long."""


class _Waiting:
    """A record that waits to be written, and what became of it."""

    __slots__ = ("is_done", "problem", "record", "tenant")

    def __init__(self, tenant: str, record: StoredRecord) -> None:
        self.tenant = tenant
        self.record = record
        self.is_done = False
        self.problem: Exception | None = None


class SqliteVault:
    """Records in one file. A new file can be read by its owner only; its folder must exist.

    A record is in the file when `write` returns, even if the process is killed right after. `patience` is the seconds
    to wait for other writers: a caller waits for them too, so they are few. Names of tenants are stored as digests.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: VaultLimits | None = None,
        *,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits or VaultLimits()
        self._clock = clock
        # What is lost with the power is what a client can do without, and a reply does not wait for the disk.
        self._file = SqliteFile(path, _has_tables, _create, patience=patience, synchronous="NORMAL")
        self._waiting: list[_Waiting] = []
        self._queue, self._turn, self._process = threading.Lock(), threading.Lock(), os.getpid()

    @property
    def is_instant(self) -> bool:
        """It may wait for the disk."""
        return False

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The records of the tenant that have one of these keys, each once. Reading prolongs their life."""
        now = self._clock()
        found = self._file.transact(
            READ, lambda connection: _read(connection, tenant, keys, now - self._limits.seconds)
        )
        # A record that was used lately is not marked again: then a read is no write.
        faded = [number for number, used, _ in found if used < now - self._limits.seconds / 50]
        if faded:
            self._file.transact(WRITE, lambda connection: _touch(connection, faded, now))
        return tuple(record for _, _, record in found)

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays. Records that wait at the same time are one transaction."""
        if self._process != os.getpid():
            # After a fork, other threads' locks are held for ever, and their records are theirs.
            self._queue, self._turn, self._process = threading.Lock(), threading.Lock(), os.getpid()
            self._waiting = []
        own = _Waiting(tenant, record)
        with self._queue:
            self._waiting.append(own)
        with self._turn:
            if not own.is_done:
                with self._queue:
                    together, self._waiting = self._waiting, []
                self._write_together(together)
        if own.problem is not None:
            raise own.problem

    def _write_together(self, together: Sequence[_Waiting]) -> None:
        """Write the records of several threads. One that cannot be written costs the others nothing."""

        def write(connection: sqlite3.Connection) -> None:
            for each in together:
                _write(connection, each.tenant, each.record, self._clock(), self._limits)

        try:
            self._file.transact(WRITE, write)
        except Exception as problem:  # noqa: BLE001 - raised where the record is from
            if len(together) > 1 and not isinstance(problem, StoreError):
                for each in together:
                    self._write_together((each,))
                return
            for each in together:
                # A file that fails has failed for all: nobody waits for it again.
                each.problem = problem
        for each in together:
            each.is_done = True

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns how many there were."""
        deleted = self._file.transact(WRITE, lambda connection: _delete(connection, tenant, keys))
        if deleted:
            self._file.empty_log()
        return deleted

    def delete_tenant(self, tenant: str) -> int:
        """Delete all records of a tenant; returns how many there were."""
        deleted = self._file.transact(WRITE, lambda connection: _delete_tenant(connection, tenant))
        if deleted:
            self._file.empty_log()
        return deleted

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqliteVault({self._file.path!r})"


# --- the tables; the caller begins and ends the transactions --------------------------------------------------------


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == _APPLICATION:
        if version > FORMAT:
            raise StoreError(
                f"the vault {path} was written by a newer asides (its format is {version}, this one knows up to "
                f"{FORMAT}). To do: upgrade asides, or use another file."
            )
        return True
    if application or version or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is another database, not the vault of a relay. To do: use another file.")
    return False


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _digest_name(tenant: str) -> bytes:
    return hashlib.blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=16, person=b"asides tenant").digest()


def _find_tenant(connection: sqlite3.Connection, tenant: str) -> int | None:
    found = connection.execute("SELECT id FROM tenants WHERE name = ?", (_digest_name(tenant),)).fetchone()
    return None if found is None else int(found[0])


def _find_numbers(connection: sqlite3.Connection, tenant: int, keys: Sequence[str]) -> list[int]:
    """The records that have one of the keys."""
    numbers: dict[int, None] = {}
    for start in range(0, len(keys), _MOST_KEYS):
        some = keys[start : start + _MOST_KEYS]
        marks = ", ".join("?" * len(some))
        query = f"SELECT record FROM keys WHERE tenant = ? AND key IN ({marks})"  # noqa: S608 - question marks only
        rows = connection.execute(query, (tenant, *some))
        numbers |= dict.fromkeys(row[0] for row in rows)
    return sorted(numbers)


def _read(
    connection: sqlite3.Connection, tenant: str, keys: Sequence[str], since: float
) -> list[tuple[int, float, StoredRecord]]:
    holder = _find_tenant(connection, tenant)
    if holder is None:
        return []
    found: list[tuple[int, float, StoredRecord]] = []
    for number in _find_numbers(connection, holder, keys):
        row = connection.execute(
            "SELECT id, keys, payload, used FROM records WHERE number = ? AND used >= ?", (number, since)
        ).fetchone()
        if row is not None:
            found.append((number, row[3], StoredRecord(row[0], tuple(row[1].split()), bytes(row[2]))))
    return found


def _touch(connection: sqlite3.Connection, numbers: Sequence[int], now: float) -> None:
    connection.executemany("UPDATE records SET used = ? WHERE number = ?", [(now, number) for number in numbers])


def _write(connection: sqlite3.Connection, tenant: str, record: StoredRecord, now: float, limits: VaultLimits) -> None:
    name = _digest_name(tenant)
    connection.execute("INSERT INTO tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    (holder,) = connection.execute("SELECT id FROM tenants WHERE name = ?", (name,)).fetchone()
    size = measure_record(record)
    added = connection.execute(
        "INSERT INTO records (id, tenant, keys, payload, size, used) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (record.id, holder, " ".join(record.keys), record.payload, size, now),
    )
    if added.rowcount:
        number = added.lastrowid
        connection.executemany(
            "INSERT INTO keys (tenant, key, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(holder, key, number) for key in record.keys],
        )
        connection.execute("UPDATE tenants SET records = records + 1, size = size + ? WHERE id = ?", (size, holder))
    old = connection.execute(
        "SELECT number FROM records WHERE used < ? ORDER BY used LIMIT ?", (now - limits.seconds, _MOST_DELETED)
    ).fetchall()
    _remove(connection, [row[0] for row in old])
    _remove_excess(connection, holder, limits)


def _remove_excess(connection: sqlite3.Connection, tenant: int, limits: VaultLimits) -> None:
    records, size = connection.execute("SELECT records, size FROM tenants WHERE id = ?", (tenant,)).fetchone()
    excess: list[int] = []
    if records > limits.records or size > limits.size:
        oldest = connection.execute(
            "SELECT number, size FROM records WHERE tenant = ? ORDER BY used, number", (tenant,)
        )
        for number, each in oldest:
            if records <= limits.records and size <= limits.size:
                break
            excess.append(number)
            records, size = records - 1, size - each
        oldest.close()
    _remove(connection, excess)


def _remove(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    for number in numbers:
        row = connection.execute("SELECT size, tenant FROM records WHERE number = ?", (number,)).fetchone()
        if row is not None:
            connection.execute("DELETE FROM records WHERE number = ?", (number,))
            connection.execute("UPDATE tenants SET records = records - 1, size = size - ? WHERE id = ?", row)


def _delete(connection: sqlite3.Connection, tenant: str, keys: Sequence[str]) -> int:
    holder = _find_tenant(connection, tenant)
    numbers = [] if holder is None else _find_numbers(connection, holder, keys)
    _remove(connection, numbers)
    return len(numbers)


def _delete_tenant(connection: sqlite3.Connection, tenant: str) -> int:
    holder = _find_tenant(connection, tenant)
    if holder is None:
        return 0
    (records,) = connection.execute("SELECT count(*) FROM records WHERE tenant = ?", (holder,)).fetchone()
    connection.execute("DELETE FROM tenants WHERE id = ?", (holder,))
    return int(records)
