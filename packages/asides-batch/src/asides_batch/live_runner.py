"""`run(job)`: answers a batch with single requests, several in parallel, through an `AsyncClient`.

Replies are written to the ledger in groups; a request counts as answered from then on.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from contextlib import suppress
from typing import cast

from asides.batch_rows import Question
from asides.database import StoreError
from asides.flows.pace import Pace, RunEnded
from asides.options import Options
from asides.values.errors import AsidesError, ConfigError
from asides.values.reply import Reply
from asides_batch.batch_job import BatchJob, build_changed_error
from asides_batch.leases import RENEW_SECONDS
from asides_batch.ledger_values import Claim, Outcome

_GROUP = 200
_WRITE_SECONDS = 0.02
"""Outcomes are written when there are _GROUP of them, or after this time. Outcomes lost by a kill are asked again."""
_CLAIM_SECONDS = 0.1
"""How often to look for more requests to claim, at most."""
_MOST_AHEAD = 2000
_LOOK_SECONDS = 1.0
"""The pause between two checks whether requests of other processes are free again."""
_LONGEST_WAIT = 900.0
"""A provider that asks for a longer wait ends the run."""


async def run(job: BatchJob) -> None:
    """Answer what waits in the ledger. When cancelled, what is under way is dropped, and what was answered is kept."""
    await _LiveRun(job).run()


class _LiveRun:
    """One run: the claims that wait to be sent, those under way, and outcomes that are not written yet."""

    def __init__(self, job: BatchJob) -> None:
        self._job = job
        own = {"retries": job.retries, "max_wait": _LONGEST_WAIT, "keep_raw": False}
        self._own = cast("Options", {**job.setup.own, **own})
        self._loop = asyncio.get_running_loop()
        self._pace = Pace(job.concurrency, has_answers=job.record.done > 0)
        self._ready: deque[tuple[float, Claim]] = deque()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._finished: list[Outcome] = []
        self._writing = 0
        """How many outcomes are being written."""
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._shared_pause = 0.0
        """The pause that was written to the ledger: no process sends before this time."""
        self._rate = 0.0
        self._look_at = 0.0
        self._renewed = self._exchanged = self._loop.time()
        self._bug: BaseException | None = None

    async def run(self) -> None:
        try:
            while await self._step():
                pass
            if self._bug is not None:
                raise self._bug
        finally:
            if self._timer is not None:
                self._timer.cancel()
            # Also when this task is cancelled: what was answered is paid for.
            await asyncio.shield(self._end())

    async def _step(self) -> bool:
        """Write what is finished, claim what there is room for, and wait. Returns whether there is more to do."""
        now = self._loop.time()
        is_ending = self._is_ending
        if is_ending:
            self._pace.stop()
        released = self._take_back() if is_ending else []
        want = 0 if is_ending or now < self._look_at else self._count_wanted()
        renew = now - self._renewed > RENEW_SECONDS
        if self._finished or released or want or renew or self._shared_pause < self._pace.paused_until:
            if not await self._exchange(want, released, renew):
                return False
        elif not self._running and not self._ready and is_ending:
            return False
        self._fill()
        await self._wait()
        return True

    async def _exchange(self, want: int, released: list[str], renew: bool) -> bool:
        finished, self._finished = self._finished, []
        self._writing = len(finished)
        pause = self._count_pause() if self._shared_pause < self._pace.paused_until else 0.0
        self._shared_pause = self._pace.paused_until
        held = {*self._running, *(claim.hash for _, claim in self._ready)}
        try:
            exchange = await self._job.exchange(finished, want, held=held, released=released, pause=pause, renew=renew)
        except BaseException:
            self._finished[:0] = finished
            raise
        finally:
            self._writing = 0
        now = self._loop.time()
        if renew:
            self._renewed = now
        self._ready.extend((claim.start - exchange.now + now, claim) for claim in exchange.claims)
        elapsed, self._exchanged = now - self._exchanged, now
        self._rate = 0.7 * self._rate + 0.3 * len(finished) / max(elapsed, 0.001)
        if exchange.claims or not want:
            return self._has_more
        if self._running or self._ready or self._finished:
            self._look_at = now + (exchange.wait or _CLAIM_SECONDS)
            return True
        return await self._look_for_others(exchange.has_reached_max_cost, exchange.wait)

    async def _look_for_others(self, has_reached_max_cost: bool, wait: float) -> bool:
        """Nothing is under way here, and nothing could be claimed. Returns whether that may change."""
        record = self._job.record
        if not record.left or record.state != "open" or self._job.is_changed:
            if self._job.is_changed:
                self._job.error = build_changed_error()
            return False
        if wait:
            self._look_at = self._loop.time() + min(wait, 5.0)
            return True
        claimed = await self._job.release_ended()
        if has_reached_max_cost and not claimed:
            self._job.has_reached_max_cost = True
            return False
        if not claimed and (sent := await self._job.count_sent()):
            self._job.error = ConfigError(
                f"{sent} requests are in batches of a vendor and are paid for. Run the batch with --via vendor "
                '(via="vendor") to get their answers.'
            )
            return False
        self._look_at = self._loop.time() + (_LOOK_SECONDS if claimed else 0.0)
        return True

    @property
    def _is_ending(self) -> bool:
        return self._job.stop.is_set() or self._job.error is not None or self._bug is not None

    @property
    def _is_behind(self) -> bool:
        """Whether too many outcomes wait to be written, so that nothing more is sent: a kill would lose them."""
        return len(self._finished) + self._writing >= self._pace.limit

    @property
    def _has_more(self) -> bool:
        is_busy = bool(self._running or self._ready or self._finished)
        return is_busy or not (self._is_ending or self._job.record.state != "open" or not self._job.record.left)

    def _count_pause(self) -> float:
        """The seconds until requests may be sent again. Drivers read this clock, which event loops may not."""
        return max(self._pace.paused_until - time.monotonic(), 0.0)

    def _count_wanted(self) -> int:
        """How many more to claim: enough to send until the next exchange, and no more, since others may want them."""
        ahead = min(_MOST_AHEAD, math.ceil(self._rate * 5 * _CLAIM_SECONDS) + 1)
        missing = self._pace.limit + ahead - len(self._running) - len(self._ready)
        return missing if missing > 0 and len(self._ready) <= ahead // 2 else 0

    async def _wait(self) -> None:
        """Wait until outcomes have to be written, or claims have run out."""
        self._wake.clear()
        seconds = _WRITE_SECONDS
        if not self._finished and not self._running:
            now = self._loop.time()
            until = min([self._look_at, *(start for start, _ in self._ready)]) if self._ready else self._look_at
            seconds = min(max(until - now, 0.0), _LOOK_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    # --- one request --------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Send what may be sent now. Called again when a request ends, and when the next one may be sent."""
        now = self._loop.time()
        while self._ready and len(self._running) < self._pace.limit and not self._is_ending and not self._is_behind:
            start = max(self._ready[0][0], now + self._count_pause())
            if start > now:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._loop.call_at(start, self._fill)
                return
            _, claim = self._ready.popleft()
            self._running[claim.hash] = self._loop.create_task(self._answer(claim))
        is_idle = not self._ready and len(self._running) < self._pace.limit and now >= self._look_at
        has_many = self._is_behind or len(self._finished) >= _GROUP
        if has_many or (is_idle and self._job.record.left > len(self._finished)):
            self._wake.set()

    def _take_back(self) -> list[str]:
        waiting = [claim.hash for _, claim in self._ready]
        self._ready.clear()
        return waiting

    async def _answer(self, claim: Claim) -> None:
        try:
            try:
                question = self._job.read(claim)
            except AsidesError as error:
                self._finished.append(self._job.encode(claim, error))
                return
            outcome = await self._ask(question)
            if outcome is not None:
                self._finished.append(self._job.encode(claim, outcome, question))
        except asyncio.CancelledError:
            raise
        except BaseException as bug:  # noqa: BLE001 - a bug of ours ends the run
            self._bug = self._bug or bug
        finally:
            # A claim without an outcome is released at the end.
            self._running.pop(claim.hash, None)
            self._fill()
            if not self._running or self._is_ending:
                self._wake.set()

    async def _ask(self, question: Question) -> Reply | AsidesError | None:
        """The reply, or the error of this request; None when it has to be asked in a later run."""
        job, pace = self._job, self._pace
        try:
            return await job.client.answer(lambda builder: job.plan.build(builder, question, self._own), pace)
        except RunEnded:
            return None
        except AsidesError as error:
            pace.note_failure(error, has_own_model=question.model is not None)
            if pace.error is None or isinstance(pace.error, RunEnded):
                return error
            job.error = job.error or pace.error
            return None if type(error) is type(pace.error) else error

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Drop what is under way, write what is finished, and let the rest wait for another run."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._finished:
            group = self._finished[: 5 * _GROUP]
            try:
                await self._job.exchange(group, 0)
            except StoreError:
                if self._job.on_note is not None:
                    self._job.on_note(f"{len(self._finished)} answers are not in the ledger, and are asked for again")
                raise
            del self._finished[: len(group)]
        await self._job.release()
