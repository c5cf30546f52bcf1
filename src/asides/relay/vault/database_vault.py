"""`DatabaseVault`: the records of a relay in a database. Each operation is a flow of work on the database, which is run
in a thread or in an event loop.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Self, TypeAlias, TypeVar

import msgspec

from asides.database import Database, Queries, StoreError
from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault.vault_queries import FoundRecord
from asides.relay.vault.waiting_records import WaitingRecord

_Result = TypeVar("_Result")

PATIENCE = 5.0
"""The seconds that work may take. Only the first request of an outage waits this long, and only if the server
is silent: a refused connection is noticed immediately, and later requests do not wait. A busy machine or a new process
may need seconds. A record may wait as long again for earlier records."""
_MOST_UNCONFIRMED = 10_000
"""How many records whose confirmation failed are kept, to confirm them later."""
_MOST_TOUCHES = 50
"""How often reads write the time of last use during the life of a record, at most. So most reads write nothing."""


class VaultWork(msgspec.Struct, frozen=True):
    """One piece of work of a flow: one transaction."""

    work: Callable[[], Queries[Any]]
    writes: bool = True
    is_optional: bool = False
    """Whether the flow continues if it fails."""


VaultFlow: TypeAlias = Generator[VaultWork, Any, _Result]


class DatabaseVault:
    """Records in a database, for any number of threads and event loops. Names of tenants are stored as digests."""

    def __init__(self, database: Database, limits: VaultLimits | None, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._limits = limits or VaultLimits()
        self._clock = clock
        self._unconfirmed: deque[UnconfirmedRecord] = deque(maxlen=_MOST_UNCONFIRMED)
        """Records whose confirmation failed. They are confirmed before another record can replace them."""

    @property
    def is_instant(self) -> bool:
        """It may wait for the disk, or for a server."""
        return False

    # --- work on the tables, which differs between files and servers --------------------------------------------------

    def _read(self, tenant: str, keys: Sequence[str], since: float) -> Queries[list[FoundRecord]]:
        raise NotImplementedError

    def _touch(self, numbers: Sequence[int], now: float) -> Queries[None]:
        raise NotImplementedError

    def _delete(self, tenant: str, keys: Sequence[str]) -> Queries[int]:
        raise NotImplementedError

    def _delete_tenant(self, tenant: str) -> Queries[int]:
        raise NotImplementedError

    def _begin_write(self, records: Sequence[tuple[str, StoredRecord]]) -> VaultFlow[None]:
        raise NotImplementedError

    def _confirm(self, records: Sequence[UnconfirmedRecord]) -> Queries[None]:
        raise NotImplementedError

    def _is_record_error(self, problem: Exception) -> bool:
        """Whether one record may have caused the error, so that the others are worth another attempt."""
        raise NotImplementedError

    # --- flows --------------------------------------------------------------------------------------------------------

    def begin_read(self, tenant: str, keys: Sequence[str]) -> VaultFlow[tuple[StoredRecord, ...]]:
        """Find records, and prolong their life."""
        if not keys:
            return ()
        now = self._clock()
        since = now - self._limits.seconds
        found: list[FoundRecord] = yield VaultWork(lambda: self._read(tenant, keys, since), writes=False)
        due = [each.number for each in found if each.used < now - self._limits.seconds / _MOST_TOUCHES]
        if due:
            yield VaultWork(lambda: self._touch(due, now), is_optional=True)
        return tuple([each.record for each in found])

    def begin_write_group(self, group: Sequence[WaitingRecord]) -> VaultFlow[None]:
        """Confirm and write the records of a group. One that fails gets its error, and does not stop the others."""
        yield from self._begin_confirm([each.record for each in group if isinstance(each.record, UnconfirmedRecord)])
        written = [each for each in group if isinstance(each.record, StoredRecord)]
        if written:
            yield from self._begin_write_all(written)

    def _begin_write_all(self, group: Sequence[WaitingRecord]) -> VaultFlow[None]:
        try:
            yield from self._begin_write(
                [(each.tenant, each.age(each.record)) for each in group if isinstance(each.record, StoredRecord)]
            )
        except Exception as problem:  # noqa: BLE001 - raised to the caller that waits for the record
            if len(group) > 1 and self._is_record_error(problem):
                for each in group:
                    yield from self._begin_write_all((each,))
                return
            for each in group:
                # The store failed, so it fails for all of them: no second wait.
                each.problem = problem

    def _begin_confirm(self, records: list[UnconfirmedRecord]) -> VaultFlow[None]:
        while self._unconfirmed:
            records.append(self._unconfirmed.popleft())
        if not records:
            return
        try:
            yield VaultWork(lambda: self._confirm(records))
        except StoreError:
            self._unconfirmed.extend(records)

    # --- drivers ------------------------------------------------------------------------------------------------------

    def run(self, flow: VaultFlow[_Result]) -> _Result:
        """Carry out a flow in a thread."""
        try:
            work = next(flow)
            while True:
                try:
                    found = self._database.run(
                        work.work, writes=work.writes, durable=False, repeatable=True, patience=PATIENCE
                    )
                except Exception as problem:  # noqa: BLE001 - the flow decides
                    work = _report_failure(flow, work, problem)
                else:
                    work = flow.send(found)
        except StopIteration as end:
            result: _Result = end.value
            return result

    async def run_async(self, flow: VaultFlow[_Result]) -> _Result:
        """Async version of `run`."""
        try:
            work = next(flow)
            while True:
                try:
                    found = await self._database.run_async(
                        work.work, writes=work.writes, durable=False, repeatable=True, patience=PATIENCE
                    )
                except Exception as problem:  # noqa: BLE001 - the flow decides
                    work = _report_failure(flow, work, problem)
                else:
                    work = flow.send(found)
        except StopIteration as end:
            result: _Result = end.value
            return result

    # --- for threads --------------------------------------------------------------------------------------------------

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The records of the tenant that have one of these keys, each once. Reading prolongs their life."""
        return self.run(self.begin_read(tenant, keys))

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record; the first one of an id stays. Once this returns, the end of this process cannot lose it."""
        raise NotImplementedError

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Note that the reply of this record was delivered, so that no other record replaces it. Does not wait."""
        raise NotImplementedError

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns how many there were."""
        return self.run(_begin_one(lambda: self._delete(tenant, keys)))

    def delete_tenant(self, tenant: str) -> int:
        """Delete all records of a tenant; returns how many there were."""
        return self.run(_begin_one(lambda: self._delete_tenant(tenant)))

    def close(self) -> None:
        """Close the database. A later call opens it again."""
        self._database.close()

    # --- for event loops ----------------------------------------------------------------------------------------------

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """Async version of `read`."""
        return await self.run_async(self.begin_read(tenant, keys))

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """Async version of `write`."""
        raise NotImplementedError

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        """Async version of `delete`."""
        return await self.run_async(_begin_one(lambda: self._delete(tenant, keys)))

    async def close_async(self) -> None:
        """Close the database, also for this event loop."""
        await self._database.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _begin_one(work: Callable[[], Queries[int]]) -> VaultFlow[int]:
    deleted: int = yield VaultWork(work)
    return deleted


def _report_failure(flow: VaultFlow[Any], work: VaultWork, problem: Exception) -> VaultWork:
    """Report to a flow that its work has failed; returns its next work."""
    if work.is_optional and isinstance(problem, StoreError):
        return flow.send(None)
    return flow.throw(problem)
