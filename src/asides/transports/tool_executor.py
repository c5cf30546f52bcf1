"""Runs tool calls in parallel, each with its timeout, for the sync and the async driver.

A thread cannot be stopped: if its job times out or the stream is closed, it is abandoned and ends with the process.
Not here: what happens with the outcomes (flows/tool_turn).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

import msgspec

from asides.agents.tools.executor import Job, JobOutcome, Raised, Returned, TimedOut
from asides.values.messages import ToolCall

# How often to check, in seconds, whether another thread has closed the stream.
_POLL_SECONDS = 0.1


def run_jobs(
    jobs: tuple[Job, ...], max_parallel: int, closed: threading.Event
) -> Generator[tuple[int, JobOutcome], None, None]:
    """Yield the number and outcome of each job as it ends. If `closed` is set, stop early."""
    if len(jobs) == 1 and jobs[0].timeout is None and jobs[0].runnable.blocking:
        # In the caller's own thread, so that Ctrl-C, prompts at a terminal and a debugger work.
        outcome = _run_here(jobs[0])
        if not isinstance(outcome, Returned) or not inspect.isawaitable(outcome.value):
            yield 0, _check_outcome(outcome, jobs[0])
            return
        asked = jobs[0].runnable
        started = _Started(outcome.value, getattr(asked, "fatal", ()), getattr(asked, "may_exit", False))
        jobs = (Job(jobs[0].call, started),)
    ended: queue.SimpleQueue[tuple[int, JobOutcome]] = queue.SimpleQueue()
    waiting = deque(enumerate(jobs))
    running: dict[int, _Worker] = {}
    try:
        while (waiting or running) and not closed.is_set():
            while waiting and len(running) < max_parallel:
                number, job = waiting.popleft()
                running[number] = _Worker(number, job, ended)
            try:
                number, outcome = ended.get(timeout=_compute_wait(running))
            except queue.Empty:
                for number, worker in [(number, worker) for number, worker in running.items() if worker.is_late]:
                    worker.abandon()
                    del running[number]
                    yield number, TimedOut(worker.seconds)
            else:
                # A job that was abandoned may still end.
                if (ended_worker := running.pop(number, None)) is not None:
                    yield number, _check_outcome(outcome, ended_worker.job)
    finally:
        for worker in running.values():
            worker.abandon()
        for _, job in waiting:
            if isinstance(job.runnable, _Started):
                _discard(job.runnable.value)


def _compute_wait(running: dict[int, _Worker]) -> float:
    return max(min([_POLL_SECONDS, *(worker.seconds_left for worker in running.values())]), 0.0)


class _Worker:
    """One job in its own thread, with an event loop if it returns an awaitable."""

    def __init__(self, number: int, job: Job, ended: queue.SimpleQueue[tuple[int, JobOutcome]]) -> None:
        self._number = number
        self.job = job
        self._ended = ended
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._abandoned = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        _start_thread(self._work)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float:
        return float("inf") if self.job.timeout is None else self.job.timeout - self.seconds

    @property
    def is_late(self) -> bool:
        return self.seconds_left <= 0

    def abandon(self) -> None:
        """Stop waiting for the job. What it awaits is cancelled; a blocking function runs to its end."""
        with self._lock:
            self._abandoned = True
            if self._task is not None:
                loop, task = self._task
                with suppress(RuntimeError):  # It has just ended.
                    loop.call_soon_threadsafe(task.cancel)

    def _work(self) -> None:
        outcome: JobOutcome
        try:
            value = self.job.runnable.run(self.job.call)
            if inspect.isawaitable(value):
                value = asyncio.run(self._await_value(value))
            if isinstance(value, _Failure):
                outcome = Raised(value.error, self.seconds)
            else:
                outcome = Returned(value, self.seconds)
        except BaseException as error:  # noqa: BLE001 - nothing else catches it in this thread
            outcome = Raised(error, self.seconds)
        self._ended.put((self._number, outcome))

    async def _await_value(self, value: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            try:
                return await value
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001 - some would end the loop
                return _Failure(error)

        task = asyncio.create_task(wait())
        with self._lock:
            self._task = asyncio.get_running_loop(), task
            if self._abandoned:
                task.cancel()
        try:
            return await task
        finally:
            _discard(value)  # A task that was cancelled before its first turn has not awaited it.


def _discard(value: Any) -> None:
    """Close a coroutine that nothing will await, since Python would warn about it. On an ended one it does nothing."""
    if inspect.iscoroutine(value):
        value.close()


class _Started(msgspec.Struct, frozen=True):
    """A job that returned an awaitable; the caller's thread may have a running event loop already."""

    value: Awaitable[Any]
    fatal: tuple[type[BaseException], ...] = ()
    may_exit: bool = False
    blocking: bool = False

    def run(self, call: ToolCall) -> Awaitable[Any]:
        del call
        return self.value


def _run_here(job: Job) -> JobOutcome:
    began = time.monotonic()
    try:
        return Returned(job.runnable.run(job.call), time.monotonic() - began)
    except BaseException as error:  # noqa: BLE001 - `_check_outcome` raises it again
        return Raised(error, time.monotonic() - began)


def _check_outcome(outcome: JobOutcome, job: Job) -> JobOutcome:
    """Return the outcome. Raises an exception that ends more than the job: Ctrl-C, and those of other frameworks.

    SystemExit ends only the job, since a model must not be able to end the program with odd arguments. An approval
    handler is code of the program, and may end it.
    """
    if not isinstance(outcome, Raised):
        return outcome
    ends_job: tuple[type[BaseException], ...] = (Exception, asyncio.CancelledError, GeneratorExit)
    if not getattr(job.runnable, "may_exit", False) and not _is_of_signal(outcome.error):
        ends_job += (SystemExit,)
    if isinstance(outcome.error, (*ends_job, *getattr(job.runnable, "fatal", ()))):
        return outcome
    raise outcome.error


def _is_of_signal(error: BaseException) -> bool:
    """Whether a signal handler raised it: one of SIGTERM that exits does so inside of whatever is running."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers if callable(handler)} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


async def run_jobs_async(
    jobs: tuple[Job, ...], max_parallel: int, closed: asyncio.Event
) -> AsyncGenerator[tuple[int, JobOutcome], None]:
    """`run_jobs` on the event loop: blocking functions run in threads, the others as tasks."""
    gate = asyncio.Semaphore(max_parallel)
    tasks = [asyncio.create_task(_run_with_timeout(job, gate)) for job in jobs]
    watch = asyncio.create_task(closed.wait())
    left: set[asyncio.Task[Any]] = set(tasks)
    try:
        while left and not closed.is_set():
            done, _ = await asyncio.wait({*left, watch}, return_when=asyncio.FIRST_COMPLETED)
            for number, task in [(number, task) for number, task in enumerate(tasks) if task in done]:
                left.discard(task)
                yield number, _check_outcome(_read_outcome(task), jobs[number])
    finally:
        watch.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.wait({*tasks, watch})


def _read_outcome(task: asyncio.Task[JobOutcome]) -> JobOutcome:
    try:
        return task.result()
    except asyncio.CancelledError as error:
        # The tool cancelled itself, or something it awaited was cancelled. That does not end the run.
        return Raised(error)


async def _run_with_timeout(job: Job, gate: asyncio.Semaphore) -> JobOutcome:
    async with gate:
        began = time.monotonic()
        try:
            async with asyncio.timeout(job.timeout):
                return await _run_on_loop(job, began)
        except TimeoutError:
            return TimedOut(time.monotonic() - began)


async def _run_on_loop(job: Job, began: float) -> JobOutcome:
    try:
        value = await _run_in_thread(job) if job.runnable.blocking else job.runnable.run(job.call)
        if isinstance(value, _Failure):
            return Raised(value.error, time.monotonic() - began)
        if inspect.isawaitable(value):
            value = await value
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - some would end the loop
        return Raised(error, time.monotonic() - began)
    return Returned(value, time.monotonic() - began)


class _Failure(msgspec.Struct, frozen=True):
    """An exception of a job as a value: a future refuses some exceptions, and others would end the loop."""

    error: BaseException


async def _run_in_thread(job: Job) -> Any:
    """Return the value of the job, or its _Failure.

    Not `asyncio.to_thread`: its few threads also resolve host names, and the loop waits for them at its end.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any) -> None:
        if future.done():
            _discard(value)
        else:
            future.set_result(value)

    def work() -> None:
        value: Any
        try:
            value = job.runnable.run(job.call)
        except BaseException as error:  # noqa: BLE001 - nothing else catches it in this thread
            value = _Failure(error)
        try:
            loop.call_soon_threadsafe(settle, value)
        except RuntimeError:
            _discard(value)  # The loop has closed, so nothing awaits it.

    _start_thread(work)
    return await future


def _start_thread(work: Callable[[], None]) -> None:
    """Start a thread with a copy of the caller's context, as a task would have it."""
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), name="asides-tool", daemon=True).start()
