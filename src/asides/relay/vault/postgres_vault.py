"""`PostgresVault`: the records of a relay in PostgreSQL, for many processes on many machines.

A read is one round trip, and so is a write; records that wait at the same time share it. What is lost with the power of
the server is what a client can do without; nothing else is lost once it was acknowledged. Not here: the SQL
(vault_queries).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

from asides.database import Database, Queries, StoreError, StoreUnavailable
from asides.flows.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault import vault_queries as queries
from asides.relay.vault.database_vault import DatabaseVault, VaultFlow, VaultWork
from asides.relay.vault.memory_vault import measure_record
from asides.relay.vault.vault_queries import FoundRecord
from asides.relay.vault.waiting_records import LoopWrites, ThreadWrites, WaitingRecord

_MOST_ATTEMPTS = 3
_MOST_TENANTS = 10_000
_CHECKS = 100
"""What a tenant has is counted after it has added this part of what it may have. So it may have that much more for
each process that writes."""
_SWEEPS = 2000
"""Old records are looked for this often within the life of one."""


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
        self._of_threads = ThreadWrites(lambda together: self.run(self.begin_write_together(together)))
        self._of_loops = LoopWrites(self._write_together_async)
        self._confirmed_in_loops = LoopWrites(self._write_together_async)
        """Beside the others, so that no reply waits for them."""

    async def _write_together_async(self, together: Sequence[WaitingRecord]) -> None:
        await self.run_async(self.begin_write_together(together))

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays. The server has it when this returns."""
        self._of_threads.write(tenant, record)

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """The same in an event loop."""
        await self._of_loops.write(tenant, record)

    def confirm(self, record: UnconfirmedRecord) -> None:
        """The reply of this record was delivered: no other takes its place. The server is told some time."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._of_threads.confirm(record)
        else:
            self._confirmed_in_loops.confirm(record)

    def close(self) -> None:
        """Close the connections of threads."""
        self._of_threads.close()
        if self._owns:
            self._database.close()

    async def close_async(self) -> None:
        """Wait for records that are being written, and close the connections of this event loop and of threads."""
        await self._of_loops.close()
        await self._confirmed_in_loops.close()
        self._of_threads.close()
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
            raise StoreError("a tenant of the vault is deleted again and again. To do: try again.")
        for tenant in self._meter.count(records):
            yield VaultWork(partial(queries.drop_excess, tenant, self._limits), is_optional=True)
        if now >= self._sweep_at:
            self._sweep_at = now + self._limits.seconds / _SWEEPS
            has_more = yield VaultWork(lambda: queries.sweep_on_server(now - self._limits.seconds), is_optional=True)
            if has_more:
                # Soon, and not now: somebody waits for this.
                self._sweep_at = now + 1.0

    def _confirm(self, records: Sequence[UnconfirmedRecord]) -> Queries[None]:
        return queries.confirm_on_server(records)

    def _is_of_one(self, problem: Exception) -> bool:
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
    """How much tenants have added since what they have was last counted."""

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
