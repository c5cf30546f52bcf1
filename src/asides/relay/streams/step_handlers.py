"""Handlers for the relay's steps, and the protocols of what they use: a store of records, and a meter of usage.

A store that fails does not fail the request: the flow continues without its records.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Protocol, cast

from asides.database import StoreUnavailable
from asides.relay.steps import (
    DeleteRecords,
    ReadRecords,
    RecordStep,
    ReserveUse,
    SettleUse,
    StoredRecord,
    UnconfirmedRecord,
    Use,
    WriteRecord,
)
from asides.transports.flow_state import StepHandlers
from asides.values.errors import AsidesError

# Counts and names only: never keys or payloads.
_log = logging.getLogger("asides")


class RecordStore(Protocol):
    """Keeps the records of a relay for each tenant. Used from many threads. Any error means that the store failed."""

    @property
    def is_instant(self) -> bool:
        """True if its methods never wait, so that an event loop can call them directly."""
        ...

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The records of the tenant that have one of these keys, each once. Reading extends their lifetime."""
        ...

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record. It survives the end of the process if the store does."""
        ...

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns their number."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """Async version of `read`."""
        ...

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """Async version of `write`. Cancelling the caller does not cancel the write."""
        ...

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        """Async version of `delete`."""
        ...


class ConfirmingStore(RecordStore, Protocol):
    """A store that tracks which replies were delivered. A record with a `pending` key replaces earlier ones with the
    same key, unless they were confirmed, or may still be on their way. Other stores keep both.
    """

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Delete the pending key of this record: its reply was delivered. Does not wait or raise."""
        ...


class UseMeter(Protocol):
    """Counts the usage of one relayed request, whose caller has limits. Belongs to the request's event loop."""

    async def reserve(self, step: ReserveUse) -> AsidesError | None:
        """Replace the reservation. Returns the error for the caller if it would exceed a limit."""
        ...

    async def settle(self, use: Use) -> None:
        """Replace the reservation with the actual usage. Raises nothing: the reply has arrived."""
        ...

    def leave(self) -> None:
        """Called at the end of a request. Settles an open reservation in the background."""
        ...


def handle_steps(store: RecordStore | None) -> StepHandlers[Any]:
    """Handlers for the sync driver. Usage is not metered: only a gateway has limits, and it runs in an event loop."""

    def carry_out_record(step: RecordStep) -> Any:
        return carry_out(step, store)

    return {
        ReadRecords: carry_out_record,
        WriteRecord: carry_out_record,
        DeleteRecords: carry_out_record,
        ReserveUse: lambda _: None,
        SettleUse: lambda _: None,
    }


def handle_steps_async(store: RecordStore | None, meter: UseMeter | None) -> StepHandlers[Awaitable[Any]]:
    """Handlers for the async driver. `meter`: None if the caller has no limits."""

    def carry_out_record(step: RecordStep) -> Awaitable[Any]:
        return carry_out_async(step, store)

    async def reserve(step: ReserveUse) -> AsidesError | None:
        return None if meter is None else await meter.reserve(step)

    async def settle(step: SettleUse) -> None:
        if meter is not None:
            await meter.settle(step.use)

    return {
        ReadRecords: carry_out_record,
        WriteRecord: carry_out_record,
        DeleteRecords: carry_out_record,
        ReserveUse: reserve,
        SettleUse: settle,
    }


def carry_out(step: RecordStep, store: RecordStore | None) -> Any:
    """The result of a step. Without a store, or if it failed: None, or False for a write."""
    if store is None:
        return _fail(step)
    try:
        if isinstance(step, ReadRecords):
            return tuple(store.read(step.tenant, step.keys))
        if isinstance(step, DeleteRecords):
            return store.delete(step.tenant, step.keys)
        store.write(step.tenant, step.record)
    except Exception as problem:  # noqa: BLE001 - the request continues, whatever a store raises
        return _fail(step, problem)
    return True


async def carry_out_async(step: RecordStep, store: RecordStore | None) -> Any:
    """Async version of `carry_out`."""
    if store is None or store.is_instant:
        return carry_out(step, store)
    try:
        if isinstance(step, ReadRecords):
            return tuple(await store.read_async(step.tenant, step.keys))
        if isinstance(step, DeleteRecords):
            return await store.delete_async(step.tenant, step.keys)
        await store.write_async(step.tenant, step.record)
    except Exception as problem:  # noqa: BLE001 - the request continues, whatever a store raises
        return _fail(step, problem)
    return True


def confirm_delivery(records: Iterable[UnconfirmedRecord], store: RecordStore | None) -> None:
    """Mark these records as confirmed, if the store supports it, without waiting."""
    if not hasattr(store, "confirm"):
        return
    for record in records:
        try:
            cast(ConfirmingStore, store).confirm(record)
        except Exception as problem:  # noqa: BLE001 - the reply has been delivered
            _log.warning("the store of the relay failed: %s", type(problem).__name__)


def _fail(step: RecordStep, problem: Exception | None = None) -> Any:
    # The connection logs an outage once; it is not logged for each request.
    if problem is not None and not isinstance(problem, StoreUnavailable):
        _log.warning("the store of the relay failed: %s", type(problem).__name__)
    return None if isinstance(step, (ReadRecords, DeleteRecords)) else False
