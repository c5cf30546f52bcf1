"""Tools at work, blocking and awaiting: jobs side by side, each with its time. Decides nothing about what they give.

A thread cannot be stopped. One whose job is out of time or not wanted any more is left to itself, and ends with the
process.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import suppress
from typing import Any

import msgspec

from asides.agents.tools.runnable import Job, JobOutcome, Raised, Returned, TimedOut
from asides.values.messages import ToolCall

# Somebody who closes the stream from another thread is noticed this often.
_LOOK_AGAIN = 0.1


def run_jobs(
    jobs: tuple[Job, ...], most: int, closed: threading.Event
) -> Generator[tuple[int, JobOutcome], None, None]:
    """The number and outcome of each job as it ends. A stream that is closed meanwhile ends it early."""
    if len(jobs) == 1 and jobs[0].timeout is None and jobs[0].runnable.blocking:
        # In the caller's own thread: Ctrl-C, prompts at a terminal and a debugger work there as anywhere.
        outcome = _tried(jobs[0])
        if not isinstance(outcome, Returned) or not inspect.isawaitable(outcome.value):
            yield 0, outcome
            return
        jobs = (Job(jobs[0].call, _Begun(outcome.value)),)
    ended: queue.SimpleQueue[tuple[int, JobOutcome]] = queue.SimpleQueue()
    waiting = deque(enumerate(jobs))
    working: dict[int, _Worker] = {}
    try:
        while (waiting or working) and not closed.is_set():
            while waiting and len(working) < most:
                number, job = waiting.popleft()
                working[number] = _Worker(number, job, ended)
            try:
                number, outcome = ended.get(timeout=_patience(working))
            except queue.Empty:
                for number, worker in [(number, worker) for number, worker in working.items() if worker.is_late]:
                    worker.abandon()
                    del working[number]
                    yield number, TimedOut(worker.seconds)
            else:
                # One that was given up may still come back.
                if working.pop(number, None) is not None:
                    yield number, outcome
    finally:
        for worker in working.values():
            worker.abandon()
        for _, job in waiting:
            if isinstance(job.runnable, _Begun):
                _drop(job.runnable.value)


def _patience(working: dict[int, _Worker]) -> float:
    return max(min([_LOOK_AGAIN, *(worker.left for worker in working.values())]), 0.0)


class _Worker:
    """One job in a thread of its own, with an event loop where it turns out to want one."""

    def __init__(self, number: int, job: Job, ended: queue.SimpleQueue[tuple[int, JobOutcome]]) -> None:
        self._number = number
        self._job = job
        self._ended = ended
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._abandoned = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        # With the caller's context, as a task would have it.
        work = contextvars.copy_context().run
        threading.Thread(target=work, args=(self._work,), name="asides-tool", daemon=True).start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        return float("inf") if self._job.timeout is None else self._job.timeout - self.seconds

    @property
    def is_late(self) -> bool:
        return self.left <= 0

    def abandon(self) -> None:
        """Nobody waits any more. What awaits something is cancelled; a thread that works goes on to its own end."""
        with self._lock:
            self._abandoned = True
            if self._task is not None:
                loop, task = self._task
                with suppress(RuntimeError):  # it has just ended by itself
                    loop.call_soon_threadsafe(task.cancel)

    def _work(self) -> None:
        outcome: JobOutcome
        try:
            value = self._job.runnable.run(self._job.call)
            if inspect.isawaitable(value):
                value = asyncio.run(self._awaited(value))
            outcome = Returned(value, self.seconds)
        except BaseException as problem:  # noqa: BLE001 - nobody else hears what happens in this thread
            outcome = Raised(problem, self.seconds)
        self._ended.put((self._number, outcome))

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await value

        task = asyncio.create_task(wait())
        with self._lock:
            self._task = asyncio.get_running_loop(), task
            if self._abandoned:
                task.cancel()
        try:
            return await task
        finally:
            _drop(value)  # cancelled before its first turn, the task has not touched it


def _drop(value: Any) -> None:
    """Nobody is going to await it; a coroutine that was not begun complains of that, at some other time, unless it is
    closed. One that has ended does not mind.
    """
    if inspect.iscoroutine(value):
        value.close()


class _Begun(msgspec.Struct, frozen=True):
    """A job that turned out to want an event loop, of which the caller's thread may have one already."""

    value: Awaitable[Any]
    blocking: bool = False

    def run(self, call: ToolCall) -> Awaitable[Any]:
        del call
        return self.value


def _tried(job: Job) -> JobOutcome:
    began = time.monotonic()
    try:
        return Returned(job.runnable.run(job.call), time.monotonic() - began)
    except BaseException as problem:
        if not _is_of_the_tool(problem, job):
            raise
        return Raised(problem, time.monotonic() - began)


def _is_of_the_tool(problem: BaseException, job: Job) -> bool:
    """Whether it ends the job, and not the program: Ctrl-C and what other signals raise come up in a tool as well."""
    return isinstance(problem, (Exception, asyncio.CancelledError, *getattr(job.runnable, "fatal", ())))


async def run_jobs_async(
    jobs: tuple[Job, ...], most: int, closed: asyncio.Event
) -> AsyncGenerator[tuple[int, JobOutcome], None]:
    """The same, on the event loop: functions that block are run in threads, the others as tasks of their own."""
    gate = asyncio.Semaphore(most)
    tasks = [asyncio.create_task(_waited(number, job, gate)) for number, job in enumerate(jobs)]
    watch = asyncio.create_task(closed.wait())
    left: set[asyncio.Task[Any]] = set(tasks)
    try:
        while left and not closed.is_set():
            done, _ = await asyncio.wait({*left, watch}, return_when=asyncio.FIRST_COMPLETED)
            for number, task in [(number, task) for number, task in enumerate(tasks) if task in done]:
                left.discard(task)
                yield _ended(number, task)
    finally:
        watch.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.wait({*tasks, watch})


def _ended(number: int, task: asyncio.Task[tuple[int, JobOutcome]]) -> tuple[int, JobOutcome]:
    try:
        return task.result()
    except asyncio.CancelledError as problem:
        # Nobody here has cancelled it: the tool did, or what it waited for was. That is not the end of the whole run.
        return number, Raised(problem)


async def _waited(number: int, job: Job, gate: asyncio.Semaphore) -> tuple[int, JobOutcome]:
    async with gate:
        began = time.monotonic()
        timeout = asyncio.timeout(job.timeout)
        try:
            async with timeout:
                outcome = await _outcome(job, began)
        except TimeoutError:
            outcome = TimedOut(time.monotonic() - began)
        return number, outcome


async def _outcome(job: Job, began: float) -> JobOutcome:
    try:
        value = await _in_a_thread(job) if job.runnable.blocking else job.runnable.run(job.call)
        if isinstance(value, _Problem):
            return Raised(value.raised, time.monotonic() - began)
        if inspect.isawaitable(value):
            value = await value
    except BaseException as problem:
        if isinstance(problem, asyncio.CancelledError) or not _is_of_the_tool(problem, job):
            raise
        return Raised(problem, time.monotonic() - began)
    return Returned(value, time.monotonic() - began)


class _Problem(msgspec.Struct, frozen=True):
    """What was raised in a thread, as a value: a future refuses to carry some, and others would end the whole loop."""

    raised: BaseException


async def _in_a_thread(job: Job) -> Any:
    """What the job gives, or its _Problem.

    Not `asyncio.to_thread`: its few threads are shared with name lookups, and the loop waits for them at its end.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any) -> None:
        if answer.done():
            _drop(value)
        else:
            answer.set_result(value)

    def work() -> None:
        value: Any
        try:
            value = job.runnable.run(job.call)
        except BaseException as raised:  # noqa: BLE001 - nobody else hears what happens in this thread
            value = _Problem(raised)
        try:
            loop.call_soon_threadsafe(settle, value)
        except RuntimeError:
            _drop(value)  # the loop is gone, and so is whoever waited

    work_in_context = contextvars.copy_context().run
    threading.Thread(target=work_in_context, args=(work,), name="asides-tool", daemon=True).start()
    return await answer
