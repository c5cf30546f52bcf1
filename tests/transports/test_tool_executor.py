"""Jobs run in parallel, from sync and from async code: outcomes, timeouts, the limit, and an early end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from asides.agents.tools.executor import Job, JobOutcome, Raised, Returned, TimedOut
from asides.transports.tool_executor import run_jobs, run_jobs_async
from asides.values.messages import ToolCall

Run: TypeAlias = Callable[..., list[tuple[int, JobOutcome]]]


class Function(msgspec.Struct, frozen=True):
    """Runs a function without arguments; a blocking one may still return an awaitable."""

    function: Callable[[], Any]
    blocking: bool = True
    fatal: tuple[type[BaseException], ...] = ()

    def run(self, call: ToolCall) -> Any:
        del call
        return self.function()


def job(function: Callable[[], Any], timeout: float | None = None, **options: Any) -> Job:
    return Job(ToolCall("call_1", "made"), Function(function, **options), timeout)


def run_sync(*jobs: Job, max_parallel: int = 8) -> list[tuple[int, JobOutcome]]:
    return list(run_jobs(jobs, max_parallel, threading.Event()))


def run_async(*jobs: Job, max_parallel: int = 8) -> list[tuple[int, JobOutcome]]:
    async def run() -> list[tuple[int, JobOutcome]]:
        return [each async for each in run_jobs_async(jobs, max_parallel, asyncio.Event())]

    return asyncio.run(run())


both = pytest.mark.parametrize("run", [run_sync, run_async])


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def fail() -> None:
    raise ValueError("no such city")


@both
def test_each_job_has_its_number_and_its_outcome(run: Run) -> None:
    jobs = (job(lambda: "one"), job(fail), job(lambda: wait(0), blocking=False))
    outcomes = dict(run(*jobs))
    assert isinstance(outcomes[0], Returned)
    assert isinstance(outcomes[1], Raised)
    assert isinstance(outcomes[2], Returned)
    assert (outcomes[0].value, str(outcomes[1].error), outcomes[2].value) == ("one", "no such city", "waited")


@both
def test_a_blocking_function_may_return_an_awaitable(run: Run) -> None:
    ((number, outcome),) = run(job(lambda: wait(0)))
    assert isinstance(outcome, Returned)
    assert (number, outcome.value) == (0, "waited")


@both
def test_outcomes_come_as_the_jobs_end(run: Run) -> None:
    second_ends = threading.Event()

    def end_first() -> None:
        assert second_ends.wait(20)
        time.sleep(0.2)  # Until the outcome of the second has arrived.

    assert [number for number, _ in run(job(end_first), job(second_ends.set))] == [1, 0]


@both
@pytest.mark.parametrize("blocking", [True, False])
def test_a_job_that_takes_too_long_times_out_and_the_others_do_not(run: Run, blocking: bool) -> None:
    released = threading.Event()
    slow: Callable[[], Any] = (lambda: released.wait(20)) if blocking else (lambda: wait(20))
    outcomes = dict(run(job(slow, 0.05, blocking=blocking), job(lambda: "quick")))
    released.set()
    assert isinstance(outcomes[0], TimedOut)
    assert 0.04 < outcomes[0].seconds < 10
    assert isinstance(outcomes[1], Returned)


@both
def test_no_more_jobs_than_allowed_run_at_once(run: Run) -> None:
    lock = threading.Lock()
    running: list[int] = [0, 0]

    def count() -> None:
        with lock:
            running[0] += 1
            running[1] = max(running)
        time.sleep(0.01)
        with lock:
            running[0] -= 1

    assert len(run(*(job(count) for _ in range(6)), max_parallel=2)) == 6
    assert running == [0, 2]


@both
def test_jobs_see_the_context_of_the_caller(run: Run) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    token = variable.set("set")
    try:
        outcomes = run(job(variable.get), job(variable.get))
    finally:
        variable.reset(token)
    assert {outcome.value for _, outcome in outcomes if isinstance(outcome, Returned)} == {"set"}


def test_a_single_job_without_a_timeout_runs_in_the_callers_thread() -> None:
    ((_, outcome),) = run_sync(job(threading.get_ident))
    assert isinstance(outcome, Returned)
    assert outcome.value == threading.get_ident()


class OfAFramework(BaseException):
    """Such as the one with which a test framework fails a test."""


def raising(error: BaseException, kind: str) -> tuple[Callable[[], Any], bool]:
    """A function that raises, and whether it blocks."""

    def function() -> None:
        raise error

    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise error

    return {"blocking": (function, True), "async": (coroutine, False), "awaitable": (coroutine, True)}[kind]


each_way = pytest.mark.parametrize("kind", ["blocking", "async", "awaitable"])
each_number = pytest.mark.parametrize("others", [0, 1])
each_timeout = pytest.mark.parametrize("timeout", [None, 30.0])


@both
@each_way
@each_number
@each_timeout
@pytest.mark.parametrize(
    "error", [SystemExit(2), SystemExit("no"), GeneratorExit(), asyncio.CancelledError(), ValueError("no")], ids=repr
)
def test_an_exit_ends_only_its_job_however_it_runs(
    run: Run, error: BaseException, kind: str, others: int, timeout: float | None
) -> None:
    function, blocking = raising(error, kind)
    outcomes = dict(run(job(function, timeout, blocking=blocking), *[job(lambda: "fine")] * others))
    assert isinstance(outcomes[0], Raised)
    assert type(outcomes[0].error) is type(error)
    assert len(outcomes) == 1 + others
    assert all(isinstance(outcomes[number], Returned) for number in range(1, 1 + others))


@both
@each_way
@each_number
@each_timeout
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OfAFramework("stop")], ids=repr)
def test_ctrl_c_ends_the_program_however_the_job_runs_unless_the_tool_calls_it_fatal(
    run: Run, error: BaseException, kind: str, others: int, timeout: float | None
) -> None:
    function, blocking = raising(error, kind)
    fine = [job(lambda: "fine")] * others
    with pytest.raises(type(error)):
        run(job(function, timeout, blocking=blocking), *fine)
    outcomes = dict(run(job(function, timeout, blocking=blocking, fatal=(type(error),)), *fine))
    assert isinstance(outcomes[0], Raised)


class Handler(Function, frozen=True):
    may_exit: bool = True


@both
@each_way
def test_an_approval_handler_may_end_the_program(run: Run, kind: str) -> None:
    function, blocking = raising(SystemExit(3), kind)
    with pytest.raises(SystemExit):
        run(Job(ToolCall("call_1", "made"), Handler(function, blocking=blocking)))


def test_a_closed_stream_ends_the_jobs_early() -> None:
    closed, released = threading.Event(), threading.Event()
    outcomes = run_jobs((job(lambda: "quick"), job(lambda: released.wait(20))), 2, closed)
    assert next(outcomes)[0] == 0
    closed.set()
    assert list(outcomes) == []
    released.set()


async def test_a_closed_async_stream_cancels_the_jobs() -> None:
    closed, cancelled = asyncio.Event(), asyncio.Event()

    async def wait_for_cancellation() -> None:
        try:
            await asyncio.sleep(20)
        finally:
            cancelled.set()

    outcomes = run_jobs_async((job(lambda: "quick"), job(wait_for_cancellation, blocking=False)), 2, closed)
    assert (await anext(outcomes))[0] == 0
    closed.set()
    assert [each async for each in outcomes] == []
    assert cancelled.is_set()


async def test_a_job_that_cancels_itself_does_not_cancel_the_caller() -> None:
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    outcomes = [each async for each in run_jobs_async((job(cancel_itself, blocking=False),), 1, asyncio.Event())]
    assert isinstance(outcomes[0][1], Raised)
