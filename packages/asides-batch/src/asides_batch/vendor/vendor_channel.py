"""`VendorChannel`: how a run of vendor batches reaches its ledger and its vendor: work, requests, leases and waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any, TypeVar, cast

import msgspec

from asides.database import Queries
from asides.flows.call import Call
from asides.flows.steps import Flow
from asides.transports.flow_state import FlowState
from asides_batch.batch_job import BatchJob, wait_for_store
from asides_batch.leases import RENEW_SECONDS
from asides_batch.ledger_values import BatchRecord, Claim
from asides_batch.vendor.vendor_ledger import VendorLedger
from asides_batch.vendor.vendor_requests import VendorTarget, find_target

_T = TypeVar("_T")


class Pace(msgspec.Struct, frozen=True):
    """The times of a run, in seconds."""

    first: float = 1.0
    """The wait before a batch is looked at for the first time. It grows by half each time."""
    longest: float = 60.0
    settle: float = 30.0
    """How long a batch may be missing in the vendor's list after its creation was sent."""
    blocked: float = 60.0
    """The wait after the vendor refused a batch since too much was waiting there already."""


class VendorChannel:
    """The ledger and the vendor of one run."""

    def __init__(self, job: BatchJob, pace: Pace) -> None:
        self.job = job
        self.pace = pace
        self.ledger = VendorLedger(job.ledger.name)
        # A batch has no streams. The replies go into the output, not their documents.
        self._own = job.setup.own.copy()
        self._own["stream"] = self._own["keep_raw"] = False
        self._targets: dict[str, VendorTarget] = {}

    async def store(self, work: Callable[[VendorLedger], Queries[_T]]) -> _T:
        """Do work on the ledger. Waits for a database that is restarted."""
        return await wait_for_store(lambda: self.job.database.run_async(lambda: work(self.ledger)))

    async def write(self, work: Callable[[VendorLedger], Queries[BatchRecord]]) -> None:
        """Do work that changes the counts of the batch, and report them."""
        await self.store(work)
        await self.job.exchange([], 0)

    async def send(self, target: VendorTarget, flow: Flow[_T]) -> _T:
        """Carry out a flow to its result."""
        state = FlowState[Any](target.bare, lambda: flow)
        async with aclosing(self.job.client.drive(state)) as emitted:
            async for _ in emitted:
                pass
        return cast("_T", state.whole)

    async def receive(self, target: VendorTarget, flow: Flow[Any]) -> AsyncIterator[list[bytes]]:
        """Carry out a flow; yields what it emits."""
        async with aclosing(self.job.client.drive(FlowState[Any](target.bare, lambda: flow))) as emitted:
            async for lines in emitted:
                yield lines

    def build(self, claim: Claim) -> Call:
        """The call of a request, as a live run would make it. Raises before anything is sent."""
        question = self.job.read(claim)
        return self.job.client.build(lambda builder: self.job.plan.build(builder, question, self._own))

    async def find_target(self, marker: str) -> VendorTarget | None:
        """Where a batch is, from one of its requests; None if the ledger has none of them any more."""
        if marker not in self._targets:
            example = await self.store(lambda ledger: ledger.find_example(marker))
            if example is None:
                return None
            self._targets[marker] = find_target(self.build(example), example.hash)
        return self._targets[marker]

    async def keep_leases(self) -> None:
        """Renew the leases of this run until it is cancelled: an upload may take long."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            await self.store(lambda ledger: ledger.renew(self.job.owner))

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the run is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.job.stop.wait()
