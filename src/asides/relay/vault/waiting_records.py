"""Records that wait to be written, so that those who come while others are written are written together. Some only wait
to be confirmed, and nobody waits for these.

`ThreadWrites` is for a store that keeps its caller waiting: threads write themselves, and event loops hand their
records to one thread. `LoopWrites` is for a store that event loops talk to themselves. Not here: the stores.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from asides.flows.steps import StoredRecord, UnconfirmedRecord

MOST_TOGETHER = 200
"""The records that are written at once."""
_IDLE_SECONDS = 5.0
"""After so long without a record the thread ends. The next record starts another one."""


class WaitingRecord:
    """A record that waits to be written, and what became of it. `done`: the one who waits in an event loop."""

    __slots__ = ("_came", "done", "is_done", "problem", "record", "tenant")

    def __init__(
        self, tenant: str, record: StoredRecord | UnconfirmedRecord, done: asyncio.Future[None] | None = None
    ) -> None:
        self.tenant = tenant
        self.record = record
        self.done = done
        self.is_done = False
        self.problem: Exception | None = None
        self._came = time.monotonic()

    def age(self, record: StoredRecord) -> StoredRecord:
        """The record as it is after the wait: its request came that much earlier."""
        if not record.pending:
            return record
        return msgspec.structs.replace(record, asked_ago=record.asked_ago + time.monotonic() - self._came)


class ThreadWrites:
    """Records of threads and of event loops. `write_together` writes some, and notes what became of each."""

    def __init__(self, write_together: Callable[[Sequence[WaitingRecord]], None]) -> None:
        self._write_together = write_together
        self._prepare_process()

    def _prepare_process(self) -> None:
        """After a fork, other threads' locks are held for ever, and their records are theirs."""
        self._process = os.getpid()
        self.waiting: list[WaitingRecord] = []
        self._queue, self._turn, self._wake = threading.Lock(), threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Write a record. The thread that comes first writes for all who wait."""
        if self._process != os.getpid():
            self._prepare_process()
        own = WaitingRecord(tenant, record)
        with self._queue:
            self.waiting.append(own)
        while not own.is_done:
            with self._turn:
                if not own.is_done:
                    self._write_some()
        if own.problem is not None:
            raise own.problem

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """Write a record. Whoever stops to wait for it does not stop it."""
        if self._process != os.getpid():
            self._prepare_process()
        own = WaitingRecord(tenant, record, asyncio.get_running_loop().create_future())
        self._hand_over(own)
        assert own.done is not None  # noqa: S101 - made above
        await own.done

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Confirm a record some time. Nobody waits for it."""
        if self._process != os.getpid():
            self._prepare_process()
        self._hand_over(WaitingRecord(record.tenant, record))

    def _hand_over(self, own: WaitingRecord) -> None:
        """Leave it to the thread."""
        with self._queue:
            self.waiting.append(own)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="asides-vault", daemon=True)
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        if self._process != os.getpid():
            self._prepare_process()
        with self._turn:
            while self.waiting:
                self._write_some()
            with self._queue:
                self._thread = None
        self._wake.set()

    def _run(self) -> None:
        while True:
            was_woken = self._wake.wait(_IDLE_SECONDS)
            self._wake.clear()
            while self.waiting:
                with self._turn:
                    self._write_some()
            with self._queue:
                if self._thread is not threading.current_thread():
                    return
                if not was_woken and not self.waiting:
                    self._thread = None
                    return

    def _write_some(self) -> None:
        """Write what waits, for whoever has the turn."""
        with self._queue:
            together, self.waiting = self.waiting[:MOST_TOGETHER], self.waiting[MOST_TOGETHER:]
        if not together:
            return
        try:
            self._write_together(together)
        except Exception as problem:  # noqa: BLE001 - raised where the record is from
            for each in together:
                each.problem = problem
        by_loop: dict[asyncio.AbstractEventLoop, list[WaitingRecord]] = {}
        for each in together:
            each.is_done = True
            if each.done is not None:
                by_loop.setdefault(each.done.get_loop(), []).append(each)
        for loop, some in by_loop.items():
            try:
                loop.call_soon_threadsafe(_finish, some)
            except RuntimeError:  # It is closed, and nobody waits.
                continue


class LoopWrites:
    """Records of event loops, each of which writes its own: one task for all that wait."""

    def __init__(self, write_together: Callable[[Sequence[WaitingRecord]], Awaitable[None]]) -> None:
        self._write_together = write_together
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = weakref.WeakKeyDictionary()

    async def write(self, tenant: str, record: StoredRecord) -> None:
        """Write a record. Whoever stops to wait for it does not stop it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._hand_over(WaitingRecord(tenant, record, done), loop)
        await done

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Confirm a record some time. Nobody waits for it."""
        self._hand_over(WaitingRecord(record.tenant, record), asyncio.get_running_loop())

    def _hand_over(self, own: WaitingRecord, loop: asyncio.AbstractEventLoop) -> None:
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _LoopQueue()
        queue.waiting.append(own)
        if queue.task is None or queue.task.done():
            queue.task = loop.create_task(self._run(queue))

    async def close(self) -> None:
        """Wait until what waits in this event loop is written."""
        queue = self._queues.pop(asyncio.get_running_loop(), None)
        if queue is not None and queue.task is not None:
            await asyncio.wait({queue.task})

    async def _run(self, queue: _LoopQueue) -> None:
        together: list[WaitingRecord] = []
        try:
            while queue.waiting:
                together, queue.waiting = queue.waiting[:MOST_TOGETHER], queue.waiting[MOST_TOGETHER:]
                try:
                    await self._write_together(together)
                except Exception as problem:  # noqa: BLE001 - raised where the record is from
                    for each in together:
                        each.problem = problem
                _finish(together)
        except BaseException:
            # The event loop ends.
            for each in (*together, *queue.waiting):
                if each.done is not None and not each.done.done():
                    each.done.cancel()
            queue.waiting = []
            raise


class _LoopQueue:
    """The records that wait in one event loop, and the task that writes them."""

    __slots__ = ("__weakref__", "task", "waiting")

    def __init__(self) -> None:
        self.waiting: list[WaitingRecord] = []
        self.task: asyncio.Task[None] | None = None


def _finish(together: Sequence[WaitingRecord]) -> None:
    """Tell those who wait in this event loop."""
    for each in together:
        if each.done is None or each.done.done():
            continue
        if each.problem is None:
            each.done.set_result(None)
        else:
            each.done.set_exception(each.problem)
