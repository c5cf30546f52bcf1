"""`run(job)`: answers a batch with batches of the vendors, which take up to a day and cost half.

`run` creates batches of what waits, watches them, and writes their results. It may be ended at any point and run again,
here or elsewhere: the ledger knows every batch.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from functools import partial

import msgspec

from asides.providers.batch_facts import BATCH_PRICE
from asides.values.errors import (
    AsidesError,
    NotFound,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
    TransportError,
)
from asides_batch.batch_job import BatchJob
from asides_batch.batch_status import VendorBatchStatus
from asides_batch.ledger_values import RequestEstimate, RunLimits
from asides_batch.vendor.create_vendor_batch import BatchCreator
from asides_batch.vendor.forms import VendorStatus
from asides_batch.vendor.vendor_channel import Pace, VendorChannel
from asides_batch.vendor.vendor_ledger import VendorBatch
from asides_batch.vendor.vendor_requests import VendorTarget, send
from asides_batch.vendor.write_vendor_results import fail_all, read_outcomes, write_results

_log = logging.getLogger("asides")
PACE = Pace()
"""The times of every run."""
# A vendor that does not answer for so long is not waited for any more.
_MOST_FAILURES = 60
# So often in a row, what is said about a batch may be no description of it: a proxy may answer in the vendor's place.
_MOST_UNREADABLE = 10
# A batch that is older than its time by this much has surely ended. Clocks differ.
_GRACE_SECONDS = 3600.0


async def run(job: BatchJob) -> None:
    """Answer what waits in the ledger. A batch that was cancelled is cancelled at the vendor; what it has answered is
    kept.
    """
    job.limits = _fit_limits(job.limits)
    channel = VendorChannel(job, PACE)
    leases = asyncio.ensure_future(channel.keep_leases())
    try:
        await VendorRun(channel).run()
    except AsidesError as error:
        job.error = error
    finally:
        leases.cancel()
        await asyncio.shield(_end(channel))


async def _end(channel: VendorChannel) -> None:
    """Let others go on with what this run has claimed, and with batches that it has not finished creating."""
    await channel.store(lambda ledger: ledger.release_batches(channel.job.owner))
    await channel.job.release()


def _fit_limits(limits: RunLimits) -> RunLimits:
    """The limits of a vendor run: none by the minute, and costs at the price of a batch."""
    estimate = None if limits.estimate is None or limits.max_cost is None else partial(_discount, limits.estimate)
    return msgspec.structs.replace(limits, rpm=None, tpm=None, estimate=estimate)


def _discount(estimate: Callable[[bytes], RequestEstimate], request: bytes) -> RequestEstimate:
    live = estimate(request)
    return msgspec.structs.replace(live, most_cost=math.ceil(live.most_cost * BATCH_PRICE))


class VendorRun:
    """One run: the batches that it watches, and when it looks at each again."""

    def __init__(self, channel: VendorChannel) -> None:
        self._job = channel.job
        self._pace = channel.pace
        self._channel = channel
        self._creator = BatchCreator(self._channel)
        self._waits: dict[str, float] = {}
        self._cancelled: set[str] = set()
        self._failures = 0
        self._unreadable: dict[str, int] = {}
        """How often in a row each batch could not be read."""
        self._ended: set[str] = set()
        """The batches that the vendor reports as ended."""
        self._is_blocked = False
        self._is_idle = False

    async def run(self) -> None:
        """Create, watch and write, until nothing is left."""
        while not self._job.stop.is_set() and not self._job.is_changed:
            created = False
            if not self._is_blocked:
                created = await self._creator.create_all()
            claimed = await self._job.release_ended()
            batches = await self._list_batches()
            await self._job.exchange([], 0)  # Was it cancelled?
            if not batches and not created and not claimed and not self._is_blocked:
                is_over = (
                    not self._job.record.left or self._job.record.state != "open" or self._job.has_reached_max_cost
                )
                if is_over or self._is_idle:
                    return
                # Another process has just ended a batch. Look once more for what it gave back.
                self._is_idle = True
                continue
            self._is_idle = False
            if self._job.record.state == "cancelled" and all(batch.state == "searching" for batch in batches):
                return  # They may be unrelated batches, which must not be cancelled.
            has_ended = False
            for batch in batches:
                if self._job.stop.is_set():
                    return
                has_ended |= await self._look_at(batch)
            if has_ended:
                self._is_blocked = False
            elif self._is_blocked and not batches:
                await self._channel.sleep(self._pace.blocked)
                self._is_blocked = False
            elif not self._job.stop.is_set():
                await self._channel.sleep(self._find_wait(batches))

    async def _list_batches(self) -> list[VendorBatch]:
        """The batches that have not ended. They are reported too."""
        batches = await self._channel.store(lambda ledger: ledger.list_open())
        shown: list[VendorBatchStatus] = []
        for batch in batches:
            target = await self._channel.find_target(batch.marker)
            shown.append(batch.describe("" if target is None else target.call.target.provider.name))
        self._job.show_vendor_batches(tuple(shown))
        return batches

    def _find_wait(self, batches: list[VendorBatch]) -> float:
        """The wait until the first of these is looked at again: longer each time, and never at the same moment."""
        waits = [self._waits.get(batch.marker, self._pace.first) for batch in batches] or [self._pace.first]
        for batch in batches:
            grown = self._waits.get(batch.marker, self._pace.first) * 1.5
            self._waits[batch.marker] = min(grown, self._pace.longest)
        return min(waits) * (1 - random.random() / 4)

    async def _look_at(self, batch: VendorBatch) -> bool:
        """Go on with a batch; returns whether it has ended."""
        if batch.state in ("intended", "creating"):
            await self._creator.take_over(batch)
            return False
        target = await self._channel.find_target(batch.marker)
        if target is None:
            await self._channel.write(lambda ledger: ledger.close(batch.marker, "ended"))
            return True
        try:
            ended = await (self._look_for(batch, target) if batch.state == "searching" else self._watch(batch, target))
        except (TransportError, RateLimited, Overloaded) as error:
            self._failures += 1
            if self._failures > _MOST_FAILURES:
                raise
            _log.warning("%s does not answer now: %s", target.call.target.provider.name, type(error).__name__)
            return False
        except ProtocolError as problem:
            return await self._note_unreadable(batch, target, problem)
        self._failures = 0
        self._unreadable.pop(batch.marker, None)
        return ended

    async def _note_unreadable(self, batch: VendorBatch, target: VendorTarget, problem: ProtocolError) -> bool:
        """A batch, or its results, cannot be read. Retry some times. Then its rows fail if waiting cannot help;
        otherwise the run ends with the error, and a later run may succeed. Returns whether the batch has ended.
        """
        name = target.call.target.provider.name
        looks = self._unreadable[batch.marker] = self._unreadable.get(batch.marker, 0) + 1
        if looks < _MOST_UNREADABLE:
            _log.warning("%s: a batch cannot be read now: %s", name, problem)
            return False
        what = f"{name}: the batch {batch.vendor_id or 'that may be ours'} cannot be read, {looks} times in a row: "
        now = await self._channel.store(lambda ledger: ledger.read_now())
        is_over = (
            batch.marker in self._ended
            or batch.requests <= target.form.most_inline_rows
            or self._job.record.state == "cancelled"
            or now > (batch.sent or now) + target.facts.hours * 3600 + _GRACE_SECONDS
        )
        if not is_over:
            raise ProtocolError(
                f"{what}{problem} Resume later, which looks again; or cancel the batch, which gives it up."
            ) from problem
        lost = ProtocolError(f"{what}{problem} Resume the batch, which asks again.")
        await fail_all(self._channel, batch.marker, lost)
        return True

    async def _watch(self, batch: VendorBatch, target: VendorTarget) -> bool:
        form, vendor_id = target.form, batch.vendor_id or ""
        if self._job.record.state == "cancelled" and batch.marker not in self._cancelled:
            await self._cancel(batch, target)
        try:
            status = await self._channel.send(
                target, send(target, form.show(target.row, vendor_id), form.read_status, "state")
            )
        except NotFound as error:
            lost = ProviderError(
                f"{target.call.target.provider.name} no longer knows the batch {vendor_id}: {error}",
                status=error.status,
                code="batch_lost",
            )
            await fail_all(self._channel, batch.marker, lost)
            return True
        if (status.state, status.done) != (batch.vendor_state, batch.done):
            await self._channel.store(lambda ledger: ledger.note(batch.marker, status.state, status.done))
            await self._list_batches()
        if not status.is_ended:
            return False
        self._ended.add(batch.marker)
        self._is_blocked |= status.is_limit
        await write_results(self._channel, batch.marker, target, status)
        return not status.is_limit

    async def _cancel(self, batch: VendorBatch, target: VendorTarget) -> None:
        """Cancel a batch at the vendor. One that has ended meanwhile cannot be, and need not."""
        request = target.form.cancel(target.row, batch.vendor_id or "")
        try:
            await self._channel.send(target, send(target, request, lambda _: True, "cancellation", once=True))
        except (TransportError, ProviderError) as error:
            # Status 409 is not a temporary conflict here: the batch has ended.
            if isinstance(error, (TransportError, RateLimited, Overloaded)) and getattr(error, "status", None) != 409:
                raise
            _log.info("the batch is not cancelled: %s", error)
        self._cancelled.add(batch.marker)

    async def _look_for(self, batch: VendorBatch, target: VendorTarget) -> bool:
        """Find out which of the candidate batches is ours, by the ids in the results of ended ones."""
        form, left = target.form, list(batch.candidates)
        for candidate in batch.candidates:
            try:
                status = await self._channel.send(
                    target, send(target, form.show(target.row, candidate), form.read_status, "state")
                )
            except NotFound:
                left.remove(candidate)
                continue
            if not status.is_ended:
                continue
            if status.has_results and await self._is_ours(batch, target, status):
                await self._channel.store(lambda ledger: ledger.store_id(batch.marker, status.id))  # noqa: B023
                return False
            left.remove(candidate)
        if not left:
            await self._channel.write(lambda ledger: ledger.close(batch.marker, "dropped"))
            return True
        if len(left) != len(batch.candidates):
            await self._channel.store(lambda ledger: ledger.watch(batch.marker, left))
        return False

    async def _is_ours(self, batch: VendorBatch, target: VendorTarget, status: VendorStatus) -> bool:
        sent = await self._channel.store(lambda ledger: ledger.list_sent(batch.marker))
        problems: list[ProtocolError] = []
        async for group in read_outcomes(self._channel, target, status, problems.append):
            return any(outcome.custom_id in sent for outcome in group)
        if problems:
            raise problems[0]  # It may be ours.
        return False
