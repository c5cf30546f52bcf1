"""`MemoryVault`: the records of a relay in the memory of this process. They end with it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits, find_replaced_span, measure_record


class _Tenant:
    """The records of one tenant, the least recently used first."""

    def __init__(self) -> None:
        self.records: OrderedDict[str, StoredRecord] = OrderedDict()
        self.used: dict[str, float] = {}
        self.by_key: dict[str, dict[str, None]] = {}
        """The ids of the records that have a key, in the order of their arrival."""
        self.size = 0

    def add(self, record: StoredRecord, now: float) -> None:
        if record.id in self.records:
            return
        if record.pending:
            self._remove_replaced(record, now)
        self.records[record.id] = record
        self.used[record.id] = now
        self.size += measure_record(record)
        for key in record.keys:
            self.by_key.setdefault(key, {})[record.id] = None

    def _remove_replaced(self, record: StoredRecord, now: float) -> None:
        """Remove the records of replies that were cut off and asked for again."""
        span = find_replaced_span(record, now)
        for old in list(self.by_key.get(record.pending, ())):
            if span.start <= self.used[old] <= span.end:
                self.remove(old)

    def confirm(self, record_id: str, pending: str) -> None:
        record = self.records.get(record_id)
        if record is None or record.pending != pending:
            return
        self.records[record_id] = msgspec.structs.replace(record, keys=record.keys[:-1])
        self.size -= len(pending)
        self._forget_key(pending, record_id)

    def touch(self, record_id: str, now: float) -> None:
        self.records.move_to_end(record_id)
        self.used[record_id] = now

    def remove(self, record_id: str) -> None:
        record = self.records.pop(record_id)
        del self.used[record_id]
        self.size -= measure_record(record)
        for key in record.keys:
            self._forget_key(key, record_id)

    def _forget_key(self, key: str, record_id: str) -> None:
        found = self.by_key[key]
        found.pop(record_id, None)
        if not found:
            del self.by_key[key]

    def drop_old(self, since: float) -> None:
        while self.records and self.used[first := next(iter(self.records))] < since:
            self.remove(first)

    def drop_excess(self, limits: VaultLimits) -> None:
        while self.records and (len(self.records) > limits.records or self.size > limits.size):
            self.remove(next(iter(self.records)))


class MemoryVault:
    """Records in memory, for any number of threads."""

    def __init__(self, limits: VaultLimits | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._limits = limits or VaultLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._tenants: dict[str, _Tenant] = {}
        self._swept = clock()

    @property
    def is_instant(self) -> bool:
        """It never waits."""
        return True

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The records of the tenant that have one of these keys, each once. Reading prolongs their life."""
        with self._lock:
            holder = self._find_tenant(tenant)
            if holder is None:
                return ()
            now = self._clock()
            ids = dict.fromkeys(record_id for key in keys for record_id in holder.by_key.get(key, ()))
            for record_id in ids:
                holder.touch(record_id, now)
            return tuple([holder.records[record_id] for record_id in ids])

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays."""
        with self._lock:
            now = self._clock()
            self._sweep(now)
            holder = self._tenants.setdefault(tenant, _Tenant())
            holder.drop_old(now - self._limits.seconds)
            holder.add(record, now)
            holder.drop_excess(self._limits)

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Note that the reply of this record was delivered, so that no other record replaces it."""
        with self._lock:
            holder = self._tenants.get(record.tenant)
            if holder is not None:
                holder.confirm(record.id, record.pending)

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns how many there were."""
        with self._lock:
            holder = self._find_tenant(tenant)
            if holder is None:
                return 0
            ids = {record_id for key in keys for record_id in holder.by_key.get(key, ())}
            for record_id in ids:
                holder.remove(record_id)
            return len(ids)

    def delete_tenant(self, tenant: str) -> int:
        """Delete all records of a tenant; returns how many there were."""
        with self._lock:
            holder = self._tenants.pop(tenant, None)
            return 0 if holder is None else len(holder.records)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tenants.clear()

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The same as `read`."""
        return self.read(tenant, keys)

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """The same as `write`."""
        self.write(tenant, record)

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        """The same as `delete`."""
        return self.delete(tenant, keys)

    async def close_async(self) -> None:
        """The same as `close`."""
        self.close()

    def __repr__(self) -> str:
        return f"MemoryVault({sum(len(holder.records) for holder in self._tenants.values())} records)"

    def _find_tenant(self, tenant: str) -> _Tenant | None:
        holder = self._tenants.get(tenant)
        if holder is not None:
            holder.drop_old(self._clock() - self._limits.seconds)
        return holder

    def _sweep(self, now: float) -> None:
        """Forget, now and then, old records of tenants that do not come back."""
        if now - self._swept < self._limits.seconds / 10:
            return
        self._swept = now
        for name, holder in list(self._tenants.items()):
            holder.drop_old(now - self._limits.seconds)
            if not holder.records:
                del self._tenants[name]
