"""`SqliteVault`: the records of a relay in one SQLite file, for many threads and processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from asides.database import Queries, StoreError
from asides.database.sqlite_database import SqliteDatabase
from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault import vault_queries as queries
from asides.relay.vault.database_vault import DatabaseVault, VaultFlow, VaultWork
from asides.relay.vault.vault_queries import FoundRecord
from asides.relay.vault.waiting_records import ThreadWriter, WaitingRecord

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


class SqliteVault(DatabaseVault):
    """Records in one file. A new file can be read by its owner only; its folder must exist.

    A record is in the file when `write` returns, even if the process is killed right after. `patience` is the seconds
    to wait for other writers: a caller waits for them too, so they are few.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: VaultLimits | None = None,
        *,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # A reply does not wait for the disk. A loss of power may lose the last records, which a client can do without.
        self._file = SqliteDatabase(path, _has_tables, _create, patience=patience, synchronous="NORMAL")
        super().__init__(self._file, limits, clock)
        self._writer = ThreadWriter(self._write_group)

    def _write_group(self, group: Sequence[WaitingRecord]) -> None:
        self.run(self.begin_write_group(group))

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays. Records that wait at the same time are one transaction."""
        self._writer.write(tenant, record)

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Note that the reply of this record was delivered, so that no other record replaces it. Does not wait."""
        self._writer.confirm(record)

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns how many there were."""
        return self._empty_log_after(super().delete(tenant, keys))

    def delete_tenant(self, tenant: str) -> int:
        """Delete all records of a tenant; returns how many there were."""
        return self._empty_log_after(super().delete_tenant(tenant))

    def _empty_log_after(self, deleted: int) -> int:
        if deleted:
            self._file.empty_log()
        return deleted

    def close(self) -> None:
        """Write what waits, and close the file. A later call opens it again."""
        self._writer.close()
        self._file.close()

    # --- for event loops: one thread for all writes, and one for each other call --------------------------------------

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """Async version of `read`."""
        return await asyncio.to_thread(self.read, tenant, keys)

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """Async version of `write`."""
        await self._writer.write_async(tenant, record)

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        """Async version of `delete`."""
        return await asyncio.to_thread(self.delete, tenant, keys)

    async def close_async(self) -> None:
        """Async version of `close`."""
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"SqliteVault({self._file.path!r})"

    # --- works --------------------------------------------------------------------------------------------------------

    def _begin_write(self, records: Sequence[tuple[str, StoredRecord]]) -> VaultFlow[None]:
        yield VaultWork(lambda: queries.write_in_file(records, self._clock(), self._limits))

    def _confirm(self, records: Sequence[UnconfirmedRecord]) -> Queries[None]:
        return queries.confirm_in_file(records)

    def _is_record_error(self, problem: Exception) -> bool:
        # If the file fails, it fails for all of them.
        return not isinstance(problem, StoreError)

    def _read(self, tenant: str, keys: Sequence[str], since: float) -> Queries[list[FoundRecord]]:
        return queries.read_in_file(tenant, keys, since)

    def _touch(self, numbers: Sequence[int], now: float) -> Queries[None]:
        return queries.touch_in_file(numbers, now)

    def _delete(self, tenant: str, keys: Sequence[str]) -> Queries[int]:
        return queries.delete_in_file(tenant, keys)

    def _delete_tenant(self, tenant: str) -> Queries[int]:
        return queries.delete_tenant_in_file(tenant)


# --- the tables; the caller begins and ends the transactions --------------------------------------------------------


def _has_tables(connection: sqlite3.Connection, path: str) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == _APPLICATION:
        if version > FORMAT:
            raise StoreError(
                f"the vault {path} was written by a newer asides (its format is {version}, this one knows up to "
                f"{FORMAT}). Upgrade asides, or use another file."
            )
        return True
    if application or version or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is another database, not the vault of a relay. Use another file.")
    return False


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
