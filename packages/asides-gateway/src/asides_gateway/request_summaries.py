"""Write one row to the database for each request: `RequestSummaries`, a watcher. A row says who asked which model, how
it ended, and its figures; never its content.

No request waits for its row: rows are collected in memory, and written every second, up to 500 together. While the
database is down, the last 20,000 are kept; older ones are dropped, and counted. Expired rows are deleted in small
portions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from asides.database import Database, StoreError
from asides.values.outage_log import OutageLog
from asides_gateway.request_record import RequestRecord
from asides_gateway.service import Service
from asides_gateway.summary_rows import build_row, delete_old, insert_rows
from asides_gateway.watcher import RequestWatcher

_log = logging.getLogger("asides.gateway")

BATCH_ROWS = 500
BATCH_SECONDS = 1.0
MOST_WAITING = 20_000
"""The rows that are kept while the database is down: some 20 MB."""
_LONGEST_PAUSE = 5.0
_END_SECONDS = 5.0
_SWEEP_SECONDS = 3600.0
_PORTION = 1000
"""How many rows one statement deletes."""
_PORTION_PAUSE = 0.2
_DAY = 86_400
_NOT_IN_ROWS: dict[str, Any] = {"details": None, "reply": None, "error": None, "notices": ()}
"""What a row does not need, and what would take much memory while rows wait."""


class RequestSummaries(RequestWatcher):
    """Writes the rows. It belongs to one event loop."""

    def __init__(
        self,
        database: Database,
        find_days: Callable[[], int],
        *,
        is_anonymous: Callable[[str], bool] = lambda _: False,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """`find_days`: reads from the settings how many days rows are kept; 0: none are written. `is_anonymous`:
        whether a tenant represents clients without a key; their requests get no row, so that strangers cannot fill the
        database.
        """
        self._database = database
        self._find_days = find_days
        self._is_anonymous = is_anonymous
        self._most = most_waiting
        self._instance = f"{socket.gethostname()[:60]}:{os.getpid()}"
        self._waiting: deque[RequestRecord] = deque()
        self._has_batch = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._outage = OutageLog(
            _log.warning,
            f"the summaries of requests cannot be written ({{reason}}): the last {most_waiting} are kept in memory "
            "until they can.",
            "the summaries of requests are written again.",
        )
        self.on_written: Callable[[int], None] = lambda _: None
        self.on_dropped: Callable[[int], None] = lambda _: None

    # --- as a watcher -------------------------------------------------------------------------------------------------

    def end(self, record: RequestRecord) -> None:  # noqa: D102 - as in RequestWatcher
        if self._is_anonymous(record.tenant) or not self._find_days():
            return
        waiting = self._waiting
        if len(waiting) >= self._most:
            waiting.popleft()
            self.on_dropped(1)
        waiting.append(msgspec.structs.replace(record, **_NOT_IN_ROWS))
        if len(waiting) == BATCH_ROWS:
            self._has_batch.set()

    # --- in the background --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write rows, and delete old ones, until it is closed."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._write_all()), loop.create_task(self._sweep_all())]

    async def _write_all(self) -> None:
        pause = BATCH_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._has_batch.wait()
            self._has_batch.clear()
            while self._waiting:
                if not await self._write_batch():
                    pause = min(pause * 2, _LONGEST_PAUSE)
                    self._has_batch.clear()
                    await asyncio.sleep(pause)
                    break
                pause = BATCH_SECONDS

    async def _write_batch(self) -> bool:
        """Write the oldest rows. Returns whether that worked; if not, they are kept."""
        waiting = self._waiting
        batch = [waiting.popleft() for _ in range(min(len(waiting), BATCH_ROWS))]
        try:
            # In a thread: looking up prices takes a moment, the first time more.
            rows = await asyncio.to_thread(lambda: [build_row(each, self._instance) for each in batch])
            await self._database.run_async(lambda: insert_rows(rows), repeatable=True)
        except asyncio.CancelledError:
            self._requeue(batch)
            raise
        except StoreError as problem:
            self._requeue(batch)
            self._outage.begin(problem)
            return False
        except Exception as problem:  # noqa: BLE001 - a bug of ours loses these rows only
            _log.error("%d summaries of requests are lost: %s", len(batch), type(problem).__name__)
            self.on_dropped(len(batch))
            return True
        self._outage.end()
        self.on_written(len(batch))
        return True

    def _requeue(self, batch: list[RequestRecord]) -> None:
        """Put rows that were not written back into the queue, as far as there is room."""
        room = max(self._most - len(self._waiting), 0)
        if (dropped := len(batch) - room) > 0:
            self.on_dropped(dropped)
            batch = batch[dropped:]
        self._waiting.extendleft(reversed(batch))

    async def _sweep_all(self) -> None:
        # Instances that start together do not sweep together.
        await asyncio.sleep(random.uniform(1, 30))
        while True:
            with suppress(StoreError):  # The task that writes rows logs it.
                await self.sweep()
            await asyncio.sleep(_SWEEP_SECONDS * random.uniform(0.9, 1.1))

    async def sweep(self) -> int:
        """Delete the rows that are too old, in small portions. Returns how many."""
        count = 0
        while True:
            before = time.time() - self._find_days() * _DAY
            deleted = await self._database.run_async(lambda: delete_old(before, _PORTION), durable=False)  # noqa: B023
            count += deleted
            if deleted < _PORTION:
                return count
            await asyncio.sleep(_PORTION_PAUSE)

    async def close(self) -> None:
        """Write the rows that are left, for five seconds at most."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                while self._waiting and await self._write_batch():
                    pass
        if lost := len(self._waiting):
            self._waiting.clear()
            self.on_dropped(lost)
            _log.warning("%d summaries of requests were not written: the database refused them.", lost)

    def __repr__(self) -> str:
        return f"RequestSummaries({len(self._waiting)} waiting)"


def open_summaries(service: Service) -> RequestSummaries:
    """Watch the requests of a service. Without a store or a folder no rows are written: nothing is kept then."""
    keeps = service.settings.store is not None or service.settings.folder is not None
    summaries = RequestSummaries(
        service.database,
        lambda: service.settings.summary_days if keeps else 0,
        is_anonymous=lambda tenant: not tenant and service.authenticator.needs_key,
    )
    service.watchers.append(summaries)
    return summaries
