"""Carry out the steps of a flow that need a store of records. If the store fails, the flow goes on without.

Not here: the stores (relay/vault).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, cast

from asides.database import StoreUnavailable
from asides.flows.steps import DeleteRecords, ReadRecords, RecordStep, UnconfirmedRecord
from asides.transports.protocols import ConfirmingStore, RecordStore

# Counts and names only: never keys or payloads.
_log = logging.getLogger("asides")


def carry_out(step: RecordStep, store: RecordStore | None) -> Any:
    """The result of a step: None, or False for a write, if there is no store or it failed."""
    if store is None:
        return _fail(step)
    try:
        if isinstance(step, ReadRecords):
            return tuple(store.read(step.tenant, step.keys))
        if isinstance(step, DeleteRecords):
            return store.delete(step.tenant, step.keys)
        store.write(step.tenant, step.record)
    except Exception as problem:  # noqa: BLE001 - whatever a store raises, the caller gets an answer
        return _fail(step, problem)
    return True


async def carry_out_async(step: RecordStep, store: RecordStore | None) -> Any:
    """The same in an event loop."""
    if store is None or store.is_instant:
        return carry_out(step, store)
    try:
        if isinstance(step, ReadRecords):
            return tuple(await store.read_async(step.tenant, step.keys))
        if isinstance(step, DeleteRecords):
            return await store.delete_async(step.tenant, step.keys)
        await store.write_async(step.tenant, step.record)
    except Exception as problem:  # noqa: BLE001 - whatever a store raises, the caller gets an answer
        return _fail(step, problem)
    return True


def confirm_delivery(records: Iterable[UnconfirmedRecord], store: RecordStore | None) -> None:
    """Tell a store that the replies of these records were delivered, if it wants to know. Nobody waits for it."""
    if not hasattr(store, "confirm"):
        return
    for record in records:
        try:
            cast(ConfirmingStore, store).confirm(record)
        except Exception as problem:  # noqa: BLE001 - the caller has its answer
            _log.warning("the store of the relay failed: %s", type(problem).__name__)


def _fail(step: RecordStep, problem: Exception | None = None) -> Any:
    # The part that talks to a server logs its outage once; it is not logged for each request.
    if problem is not None and not isinstance(problem, StoreUnavailable):
        _log.warning("the store of the relay failed: %s", type(problem).__name__)
    return None if isinstance(step, (ReadRecords, DeleteRecords)) else False
