"""Count what requests of keys with limits use: `Meters` for a gateway, `KeyMeter` for one request.

Before a provider is asked, a request is counted in the windows of its key, and its money is reserved. Before its reply
ends, what it used replaces both. Reservations are renewed while their requests run.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from asides.database import LEASE_SECONDS, Database, StoreError, StoreUnavailable
from asides.flows.cost_bounds import forget_prices, load_prices
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_request import CallerLimits
from asides.relay.steps import ReserveUse, Use
from asides.values.errors import AsidesError
from asides.values.money import format_billionths, to_billionths
from asides.values.outage_log import OutageLog
from asides_gateway.access import CountedRequest, KeyRecord, RateWindows
from asides_gateway.access.budget_store import (
    MOST_SPENT,
    BudgetExceeded,
    Reservation,
    make_reservation,
    renew,
    reserve,
    settle,
)
from asides_gateway.access.unsettled_files import UnsettledFiles, UnsettledUse

_log = logging.getLogger("asides.gateway")

_RETRY_SECONDS = 2.0
"""The longest pause between two attempts to settle what could not be settled."""
_MOST_UNSETTLED = 100_000
_END_SECONDS = 5.0
_OUTAGE_RETRY_AFTER = 5
"""The seconds in `retry-after` of a request that is refused because the database does not answer."""
_MOST_AT_ONCE = 2
"""How many requests of one key reserve at once: the lock on its row makes the others wait anyway, and other keys need
connections too."""
_WAIT_SECONDS = 5.0
"""How long a request waits for earlier requests of its key to reserve."""


class Meters:
    """What the meters of a gateway share. It belongs to one event loop."""

    def __init__(
        self,
        database: Database,
        windows: RateWindows,
        *,
        folder: Path | None = None,
        on_revoked: Callable[[str], None] = lambda _: None,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`folder`: where to keep what could not be settled; None: only in memory. `on_revoked` gets the id of a key
        that turns out to be revoked.
        """
        self.database = database
        self.windows = windows
        self.on_revoked = on_revoked
        self.lease = lease_seconds
        self.clock = clock
        """The time of day. Spans are measured by a monotonic clock."""
        self.reserved: dict[str, Reservation] = {}
        """What requests under way have reserved."""
        self._unsettled: dict[str, UnsettledUse] = {}
        self._files = UnsettledFiles(folder)
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_prices = False
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.outage = OutageLog(
            _log.warning,
            "budgets cannot be reserved or settled now ({reason}): keys with a budget get 503 until they can, and what "
            "is used meanwhile is settled then",
            "budgets are reserved and settled again",
        )

    def open(self, record: KeyRecord | None) -> KeyMeter | None:
        """The meter of one request; None if its key has no rate limit and no budget."""
        if record is None or not (record.limits.has_rate or record.limits.has_budget):
            return None
        return KeyMeter(self, record)

    def find_semaphore(self, key_id: str) -> asyncio.Semaphore:
        """The semaphore that limits how many requests of a key reserve at once."""
        semaphore = self._semaphores.get(key_id)
        if semaphore is None:
            semaphore = self._semaphores[key_id] = asyncio.Semaphore(_MOST_AT_ONCE)
        return semaphore

    async def prepare(self, record: KeyRecord | None) -> None:
        """Load the table of prices in a thread, before the first request that needs one: it takes a moment."""
        if self._has_prices or record is None or not record.limits.has_budget:
            return
        await asyncio.to_thread(load_prices)
        self._has_prices = True

    async def run(self) -> None:
        """Renew reservations, and settle those that could not be settled, until the task is cancelled."""
        renewed = time.monotonic()
        self._unsettled |= {use.reservation.id: use for use in self._files.take_over()}
        while True:
            await asyncio.sleep(min(_RETRY_SECONDS, self.lease / 8))
            try:
                began = time.monotonic()
                # What could not be renewed is renewed as soon as the database answers.
                if began - renewed >= self.lease / 4 and await self.renew():
                    renewed = began
                if self._unsettled:
                    await self._settle_late()
            except Exception as problem:  # noqa: BLE001 - without this task every lease would end
                _log.error("reservations could not be renewed or settled: %s", type(problem).__name__)

    async def renew(self) -> bool:
        """Renew the reservations of requests under way. False if that has to be done again."""
        forget_prices()
        # Also those that wait to be settled: others must not spend that money.
        names = [*self.reserved, *self._unsettled]
        if not names:
            return True
        try:
            await self.database.run_async(lambda: renew(names, lease=self.lease), durable=False, repeatable=True)
        except StoreError as problem:
            self.outage.begin(problem)
            return False
        return True

    async def settle(self, reservation: Reservation, spent: int) -> None:
        """Replace a reservation with what was spent. If the database does not answer, that is done later."""
        self.reserved.pop(reservation.id, None)
        try:
            await self.database.run_async(lambda: settle(reservation, spent), repeatable=True)
        except StoreError as problem:
            self.outage.begin(problem)
            self._settle_later(UnsettledUse(reservation, spent))
        except asyncio.CancelledError:
            # Doing it twice changes nothing.
            self._settle_later(UnsettledUse(reservation, spent))
            raise

    def _settle_later(self, use: UnsettledUse) -> None:
        if len(self._unsettled) < _MOST_UNSETTLED:
            self._unsettled[use.reservation.id] = use
            self._files.add([use])

    async def _settle_late(self) -> None:
        """Settle what could not be settled. If the database refuses one, the others are settled all the same. It takes
        a part of a lease at most: others have to be renewed.
        """
        until = time.monotonic() + self.lease / 8
        for name, late in list(self._unsettled.items()):
            if time.monotonic() > until:
                break
            try:
                await self.database.run_async(partial(settle, late.reservation, late.spent), repeatable=True)
            except StoreUnavailable:
                return
            except StoreError as problem:
                _log.error(
                    "a reservation of the key %s cannot be settled: %s", late.reservation.key, type(problem).__name__
                )
            self._unsettled.pop(name, None)
        if not self._unsettled:
            self._files.clear()
        self.outage.end()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background, after its request has ended."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Settle what is left. What the database does not take is on the disk, for the next start."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_SECONDS)
        if self._unsettled:
            await self._settle_late()


class KeyMeter:
    """Counts what one request of a key uses."""

    def __init__(self, meters: Meters, record: KeyRecord) -> None:
        self._meters = meters
        self._record = record
        self._counted: CountedRequest | None = None
        self._reservation: Reservation | None = None
        self._find_used: Callable[[float], Use] = lambda _: Use()
        self._since = 0.0

    def __repr__(self) -> str:
        return f"KeyMeter({self._record.id})"

    async def reserve(self, step: ReserveUse) -> AsidesError | None:
        """Count the request, once, and reserve its money. Returns the refusal if that is not possible."""
        meters, limits = self._meters, self._record.limits
        self._find_used, self._since = step.find_used, time.monotonic()
        if self._counted is None and limits.has_rate:
            counted = await meters.windows.take(self._record.id, limits, step.tokens)
            if not isinstance(counted, CountedRequest):
                return _refuse_rate(counted, limits.rpm, limits.tpm)
            self._counted = counted
        if not limits.has_budget or step.cost == 0:
            return None
        problem = await self._reserve_money(step)
        if problem is not None:
            await self._correct(0)
        return problem

    async def _reserve_money(self, step: ReserveUse) -> AsidesError | None:
        meters = self._meters
        if self._reservation is not None:
            # The target before has failed, and another one is asked.
            before, self._reservation = self._reservation, None
            await meters.settle(before, to_billionths(step.lost))
        if step.cost is None:
            raise AssertionError("a model without a price was not refused")
        now = meters.clock()
        wanted = make_reservation(self._record.id, to_billionths(step.cost), now)
        semaphore = meters.find_semaphore(self._record.id)
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await semaphore.acquire()
        except TimeoutError:
            return _refuse_outage()
        try:
            found = await meters.database.run_async(lambda: reserve(wanted, lease=meters.lease), repeatable=True)
        except StoreError as problem:
            meters.outage.begin(problem)
            return _refuse_outage()
        except asyncio.CancelledError:
            # The reservation may have been stored.
            meters.spawn(meters.settle(wanted, 0))
            raise
        finally:
            semaphore.release()
        meters.outage.end()
        if isinstance(found, BudgetExceeded):
            return _refuse_budget(found, wanted, now)
        if not found:
            meters.on_revoked(self._record.id)
            return _refuse_revoked()
        self._reservation = meters.reserved[wanted.id] = wanted
        return None

    async def settle(self, use: Use) -> None:
        """Replace what is reserved with what was used."""
        await self._correct(use.tokens)
        reservation, self._reservation = self._reservation, None
        if reservation is None:
            return
        spent = reservation.amount if use.cost is None else _fit_cost(use.cost, reservation.amount)
        if spent > reservation.amount:
            _log.warning(
                "a reply for the key %s cost %s, more than the %s that were reserved: it is settled in full",
                self._record.id,
                format_billionths(spent),
                format_billionths(reservation.amount),
            )
        await self._meters.settle(reservation, spent)

    async def _correct(self, tokens: int) -> None:
        counted, self._counted = self._counted, None
        if counted is not None:
            await self._meters.windows.correct(self._record.id, counted, tokens)

    def leave(self) -> None:
        """Settle what is still reserved, after the request has ended."""
        if self._reservation is not None or self._counted is not None:
            self._meters.spawn(self.settle(self._find_used(time.monotonic() - self._since)))


def build_caller_limits(record: KeyRecord | None) -> CallerLimits | None:
    """The limits of a key as the relay needs them; None if it has none."""
    if record is None:
        return None
    limits = record.limits
    found = CallerLimits(limits.models, limits.has_rate, limits.tpm is not None, limits.has_budget)
    return None if found == CallerLimits() else found


def _fit_cost(cost: Decimal, reserved: int) -> int:
    """The cost that a reply is settled with, in billionths. A provider may report an absurd one."""
    if not cost.is_finite():
        return reserved
    return min(to_billionths(max(cost, Decimal())), max(reserved, MOST_SPENT))


# --- refusals ---------------------------------------------------------------------------------------------------------


def _refuse_rate(seconds: float, rpm: int | None, tpm: int | None) -> RelayRefusal:
    limits = [f"{rpm} requests" if rpm is not None else "", f"{tpm} tokens" if tpm is not None else ""]
    return RelayRefusal(
        f"this key may use {' and '.join(filter(None, limits))} in a minute, and has used them. Try again in "
        f"{max(1, math.ceil(seconds))} s.",
        status=429,
        code="rate_limit_exceeded",
        headers={
            "retry-after": str(max(1, math.ceil(seconds))),
            "retry-after-ms": str(max(1, math.ceil(seconds * 1000))),
        },
    )


def _refuse_budget(found: BudgetExceeded, wanted: Reservation, now: float) -> RelayRefusal:
    resets = datetime.fromtimestamp(found.resets, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    budget, left, cost = map(format_billionths, (found.budget, found.left, wanted.amount))
    words = (
        f"the budget of this key for the {found.period} is {budget}, and {left} of it is left; this request may cost "
        f"up to {cost}. "
    )
    advice = "Wait" if not found.left else "Ask for less, with a lower limit of output tokens, or wait"
    return RelayRefusal(
        f"{words}{advice} until {resets}, when the next {found.period} begins, or ask the operator "
        "of the gateway for more.",
        status=429,
        code="insufficient_quota",
        # Clients that retry by themselves would fail again.
        headers={"retry-after": str(max(1, math.ceil(found.resets - now))), "x-should-retry": "false"},
    )


def _refuse_outage() -> RelayRefusal:
    return RelayRefusal(
        "the budget of this key cannot be reserved now: the database of the gateway does not answer. Try again "
        "in a moment.",
        status=503,
        code="budget_unavailable",
        headers={"retry-after": str(_OUTAGE_RETRY_AFTER)},
    )


def _refuse_revoked() -> RelayRefusal:
    return RelayRefusal(
        "this key was revoked, or is unknown to this gateway. Ask the operator of the gateway for another.",
        status=401,
        code="invalid_api_key",
    )
