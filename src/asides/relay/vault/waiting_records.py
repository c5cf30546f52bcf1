"""Groups records for writing: records that arrive during a write form the next group, written together.
Confirmations wait in the same queue; no caller waits for them.

`ThreadWriter` is for a store that blocks: threads write themselves, and event loops hand their records to one thread.
`LoopWriter` is for a store with an async interface.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.values.fork_guard import call_in_children

MOST_IN_GROUP = 200
"""The most records of one group."""
_IDLE_SECONDS = 5.0
"""Idle timeout of the thread. The next record starts another one."""


class WaitingRecord:
    """A record that waits to be written, and its error if that fails. `done`: the future of a waiting event loop."""

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
        """The record with the wait added to the age of its request."""
        if not record.pending:
            return record
        return msgspec.structs.replace(record, asked_ago=record.asked_ago + time.monotonic() - self._came)


class ThreadWriter:
    """Writes records of threads and event loops. `write_group` sets the `problem` of each record that fails."""

    def __init__(self, write_group: Callable[[Sequence[WaitingRecord]], None]) -> None:
        self._write_group = write_group
        self._prepare_process()
        call_in_children(self._prepare_process)

    def _prepare_process(self) -> None:
        """Reset after a fork: locks that other threads held stay locked, and the parent writes their records."""
        self.waiting: list[WaitingRecord] = []
        self._queue, self._turn, self._wake = threading.Lock(), threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Write a record. The thread that comes first writes for all who wait."""
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
        """Write a record. If the caller is cancelled, it is written all the same."""
        own = WaitingRecord(tenant, record, asyncio.get_running_loop().create_future())
        self._hand_over(own)
        assert own.done is not None  # noqa: S101 - made above
        await own.done

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Confirm a record. Does not wait."""
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
        """Write the next group. The caller holds `_turn`."""
        with self._queue:
            group, self.waiting = self.waiting[:MOST_IN_GROUP], self.waiting[MOST_IN_GROUP:]
        if not group:
            return
        try:
            self._write_group(group)
        except Exception as problem:  # noqa: BLE001 - raised to the caller that waits for the record
            for each in group:
                each.problem = problem
        by_loop: dict[asyncio.AbstractEventLoop, list[WaitingRecord]] = {}
        for each in group:
            each.is_done = True
            if each.done is not None:
                by_loop.setdefault(each.done.get_loop(), []).append(each)
        for loop, some in by_loop.items():
            try:
                loop.call_soon_threadsafe(_finish, some)
            except RuntimeError:  # The loop is closed: no caller waits.
                continue


class LoopWriter:
    """Writes the records of event loops: each loop has one task for all records that wait there."""

    def __init__(self, write_group: Callable[[Sequence[WaitingRecord]], Awaitable[None]]) -> None:
        self._write_group = write_group
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = weakref.WeakKeyDictionary()

    async def write(self, tenant: str, record: StoredRecord) -> None:
        """Write a record. If the caller is cancelled, it is written all the same."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._hand_over(WaitingRecord(tenant, record, done), loop)
        await done

    def confirm(self, record: UnconfirmedRecord) -> None:
        """Confirm a record. Does not wait."""
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
        group: list[WaitingRecord] = []
        try:
            while queue.waiting:
                group, queue.waiting = queue.waiting[:MOST_IN_GROUP], queue.waiting[MOST_IN_GROUP:]
                try:
                    await self._write_group(group)
                except Exception as problem:  # noqa: BLE001 - raised to the caller that waits for the record
                    for each in group:
                        each.problem = problem
                _finish(group)
        except BaseException:
            # The event loop ends.
            for each in (*group, *queue.waiting):
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


def _finish(group: Sequence[WaitingRecord]) -> None:
    """Wake those who wait for these records in this event loop."""
    for each in group:
        if each.done is None or each.done.done():
            continue
        if each.problem is None:
            each.done.set_result(None)
        else:
            each.done.set_exception(each.problem)
