"""`PostgresVault`: the records of a relay in PostgreSQL, for many processes on many machines.

A read is one round trip, and so is a write; records that wait at the same time share it. If the server loses power, it
may lose the records of the last moments, which a client can do without. Nothing else is lost once `write` has returned.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

from asides.database import Database, Queries, StoreError, StoreUnavailable
from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits, measure_record
from asides.relay.vault import vault_queries as queries
from asides.relay.vault.database_vault import DatabaseVault, VaultFlow, VaultWork
from asides.relay.vault.vault_queries import FoundRecord
from asides.relay.vault.waiting_records import LoopWriter, ThreadWriter, WaitingRecord

_MOST_ATTEMPTS = 3
_MOST_TENANTS = 10_000
_CHECKS = 100
"""A tenant is counted each time it has added a hundredth of its limits. So each process that writes may let it exceed
them by as much."""
_SWEEPS = 2000
"""How often old records are looked for during the life of a record."""


class PostgresVault(DatabaseVault):
    """Records on a server. `owns`: whether closing the vault closes the database too."""

    def __init__(
        self,
        database: Database,
        limits: VaultLimits | None = None,
        *,
        owns: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(database, limits, clock)
        self._owns = owns
        self._meter = _Meter(self._limits)
        self._sweep_at = clock() + self._limits.seconds / _SWEEPS
        self._thread_writer = ThreadWriter(lambda group: self.run(self.begin_write_group(group)))
        self._loop_writer = LoopWriter(self._write_group_async)
        self._loop_confirmer = LoopWriter(self._write_group_async)
        """Separate from the writer, so that no reply waits for confirmations."""

    async def _write_group_async(self, group: Sequence[WaitingRecord]) -> None:
        await self.run_async(self.begin_write_group(group))

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays. The server has it when this returns."""
        self._thread_writer.write(tenant, record)

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """Async version of `write`."""
        await self._loop_writer.write(tenant, record)

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Note that the reply of this record was delivered, so that no other record replaces it. Does not wait."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._thread_writer.confirm(record)
        else:
            self._loop_confirmer.confirm(record)

    def close(self) -> None:
        """Close the connections of threads."""
        self._thread_writer.close()
        if self._owns:
            self._database.close()

    async def close_async(self) -> None:
        """Wait for records that are being written, and close the connections of this event loop and of threads."""
        await self._loop_writer.close()
        await self._loop_confirmer.close()
        self._thread_writer.close()
        if self._owns:
            await self._database.close_async()

    def __repr__(self) -> str:
        return f"PostgresVault({self._database!r})"

    # --- works --------------------------------------------------------------------------------------------------------

    def _begin_write(self, records: Sequence[tuple[str, StoredRecord]]) -> VaultFlow[None]:
        now = self._clock()
        unknown: list[bytes] = yield VaultWork(lambda: queries.add_on_server(records, now))
        for _ in range(_MOST_ATTEMPTS):
            if not unknown:
                break
            yield VaultWork(partial(queries.add_tenants, unknown))
            unknown = yield VaultWork(lambda: queries.add_on_server(records, now))
        if unknown:
            raise StoreError("a tenant of the vault is being deleted repeatedly. Try again.")
        for tenant in self._meter.count(records):
            yield VaultWork(partial(queries.drop_excess, tenant, self._limits), is_optional=True)
        if now >= self._sweep_at:
            self._sweep_at = now + self._limits.seconds / _SWEEPS
            has_more = yield VaultWork(lambda: queries.sweep_on_server(now - self._limits.seconds), is_optional=True)
            if has_more:
                # Soon, but not now: a reply waits for this.
                self._sweep_at = now + 1.0

    def _confirm(self, records: Sequence[UnconfirmedRecord]) -> Queries[None]:
        return queries.confirm_on_server(records)

    def _is_record_error(self, problem: Exception) -> bool:
        return not isinstance(problem, StoreUnavailable)

    def _read(self, tenant: str, keys: Sequence[str], since: float) -> Queries[list[FoundRecord]]:
        return queries.read_on_server(tenant, keys, since)

    def _touch(self, numbers: Sequence[int], now: float) -> Queries[None]:
        return queries.touch_on_server(numbers, now)

    def _delete(self, tenant: str, keys: Sequence[str]) -> Queries[int]:
        return queries.delete_on_server(tenant, keys)

    def _delete_tenant(self, tenant: str) -> Queries[int]:
        return queries.delete_tenant_on_server(tenant)


class _Meter:
    """How much tenants have added since they were last counted."""

    def __init__(self, limits: VaultLimits) -> None:
        self._most_records = max(1, limits.records // _CHECKS)
        self._most_size = max(1, limits.size // _CHECKS)
        self._added: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def count(self, records: Sequence[tuple[str, StoredRecord]]) -> list[str]:
        """Note what was added; returns the tenants that have to be counted now, among them those that are new here."""
        due: dict[str, None] = {}
        for tenant, record in records:
            number, size = self._added.get(tenant, (self._most_records, 0))
            number, size = number + 1, size + measure_record(record)
            if number >= self._most_records or size >= self._most_size:
                due[tenant] = None
                number, size = 0, 0
            self._added[tenant] = (number, size)
            self._added.move_to_end(tenant)
        while len(self._added) > _MOST_TENANTS:
            self._added.popitem(last=False)
        return list(due)
