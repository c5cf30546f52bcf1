"""Runs tool calls in parallel, each with its timeout, for the sync and the async driver.

A thread cannot be stopped: if its job times out or the stream is closed, the job runs on, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import msgspec

from asides.agents.tools.executor import Job, JobOutcome, Raised, Returned, TimedOut
from asides.values.fork_guard import ForkGuard, call_in_children
from asides.values.parts import ToolCall

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
                for number, worker in [(number, worker) for number, worker in running.items() if worker.is_over]:
                    del running[number]
                    yield number, worker.give_up()
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
    deadlines = [worker.deadline for worker in running.values() if worker.deadline is not None]
    return min(_POLL_SECONDS, max(min(deadlines) - time.monotonic(), 0.0)) if deadlines else _POLL_SECONDS


class _Worker:
    """One job in its own thread, with an event loop if it returns an awaitable."""

    __slots__ = ("_abandoned", "_began", "_ended", "_forks", "_lock", "_number", "_task", "deadline", "job")

    def __init__(self, number: int, job: Job, ended: queue.SimpleQueue[tuple[int, JobOutcome]]) -> None:
        self._number = number
        self.job = job
        self._ended = ended
        self._began = time.monotonic()
        self.deadline = None if job.timeout is None else self._began + job.timeout
        self._forks = ForkGuard()
        self._lock = threading.Lock()
        self._abandoned = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        start_thread(self._work)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for: the job is late, or this is a forked child, without its thread."""
        return (self.deadline is not None and self.deadline <= time.monotonic()) or self._forks.is_in_child

    def give_up(self) -> JobOutcome:
        """Stop waiting for a finished job; return its outcome."""
        self.abandon()
        if self._forks.is_in_child:
            return Raised(RuntimeError("the process was forked while the tool ran, and only its parent has the thread"))
        return TimedOut(self.seconds)

    def abandon(self) -> None:
        """Stop waiting for the job. What it awaits is cancelled; a blocking function runs to its end."""
        if self._forks.is_in_child:
            return  # The lock may never be released, and the loop is the parent's.
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
    if isinstance(value, Coroutine):
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
    ended: list[int] = []
    wake = asyncio.Event()

    def note_end(number: int, _: object) -> None:
        ended.append(number)
        wake.set()

    tasks = [asyncio.create_task(_run_with_timeout(job, gate)) for job in jobs]
    for number, task in enumerate(tasks):
        task.add_done_callback(partial(note_end, number))
    watch = asyncio.create_task(closed.wait())
    watch.add_done_callback(lambda _: wake.set())
    left = len(jobs)
    try:
        while left and not closed.is_set():
            await wake.wait()
            wake.clear()
            batch, ended[:] = ended[:], []
            left -= len(batch)
            for number in sorted(batch):
                yield number, _check_outcome(_read_outcome(tasks[number]), jobs[number])
    finally:
        watch.cancel()
        pending = [task for task in tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)


def _read_outcome(task: asyncio.Task[JobOutcome]) -> JobOutcome:
    try:
        return task.result()
    except asyncio.CancelledError as error:
        # The tool cancelled itself, or something it awaited was cancelled. That does not end the run.
        return Raised(error)


async def _run_with_timeout(job: Job, gate: asyncio.Semaphore) -> JobOutcome:
    async with gate:
        began = time.monotonic()
        if job.timeout is None:
            return await _run_on_loop(job, began)
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

    start_thread(work)
    return await future


# --- threads --------------------------------------------------------------------------------------------------------

# Starting a thread costs several times what a short tool costs, so a thread that has ended its job takes the next one.
# A job never waits for a thread: only idle threads are taken, so one that hangs keeps no other job from running.
_IDLE_SECONDS = 5.0
_MAX_IDLE = 32
# The latest comes first, so that those beyond the usual number stay idle and end. One operation takes a thread out of
# the list, and no lock is held: a fork, Ctrl-C or a signal handler in between can block nothing.
_idle: list[_Thread] = []


class _Thread:
    """A thread that runs one function after the other. It does not keep the interpreter from exiting."""

    __slots__ = ("_inbox", "_peers")

    def __init__(self, work: Callable[[], object]) -> None:
        self._inbox: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._peers = _idle
        self._inbox.put(work)
        threading.Thread(target=self._serve, name="asides-tool", daemon=True).start()

    def take(self, work: Callable[[], object]) -> None:
        """Run this next. Only for a thread that was taken out of the idle ones."""
        self._inbox.put(work)

    def _serve(self) -> None:
        work: Callable[[], object] | None = self._inbox.get()
        while work is not None:
            work()
            work = None  # An idle thread keeps no arguments and no result alive.
            work = self._wait_for_next()

    def _wait_for_next(self) -> Callable[[], object] | None:
        """The next function; None when the thread has to end."""
        if self._peers is not _idle:
            _end_child()
        if len(_idle) >= _MAX_IDLE:
            return None
        # A job must not find the event loop that an earlier one left in this thread, perhaps closed.
        asyncio.set_event_loop(None)
        self._peers.append(self)
        with suppress(queue.Empty):
            return self._inbox.get(timeout=_IDLE_SECONDS)
        try:
            self._peers.remove(self)
        except ValueError:
            return self._inbox.get()  # It was taken just now, so the next function is on its way.
        return None


def start_thread(work: Callable[[], None]) -> None:
    """Run the function in an idle or a new thread with a copy of the caller's context, as a task would have it."""
    run = partial(contextvars.copy_context().run, work)
    try:
        thread = _idle.pop()
    except IndexError:
        _Thread(run)
    else:
        thread.take(run)


def _end_child() -> NoReturn:
    """End the child of a job that forked and returned in both processes; its own threads may finish first.

    Ending only this thread, the child's last, would run the exit handlers of C libraries. They belong to the parent,
    and without the parent's other threads some of them crash.
    """
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    os._exit(0)


def _forget_threads() -> None:
    """Begin with no idle threads: a forked child has none of its parent's."""
    global _idle  # noqa: PLW0603 - a thread that forked sees that it is not in the list
    _idle = []


call_in_children(_forget_threads)
