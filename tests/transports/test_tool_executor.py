"""Jobs run in parallel, from sync and from async code: outcomes, timeouts, the limit, and an early end."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec
import pytest

from asides.agents.tools.executor import Job, JobOutcome, Raised, Returned, TimedOut
from asides.transports import tool_executor
from asides.transports.tool_executor import run_jobs, run_jobs_async
from asides.values.parts import ToolCall

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


# --- threads --------------------------------------------------------------------------------------------------------


def get_values(outcomes: list[tuple[int, JobOutcome]]) -> list[Any]:
    assert all(isinstance(outcome, Returned) for _, outcome in outcomes)
    return [outcome.value for _, outcome in sorted(outcomes, key=itemgetter(0)) if isinstance(outcome, Returned)]


@both
def test_jobs_one_after_the_other_use_the_same_threads(run: Run) -> None:
    threads: set[threading.Thread] = set()
    for _ in range(50):
        threads.update(get_values(run(*[job(threading.current_thread)] * 4)))
    assert len(threads) < 20


@both
def test_a_thread_that_hangs_gets_no_other_job(run: Run) -> None:
    released = threading.Event()
    hanging: list[threading.Thread] = []

    def hang() -> None:
        hanging.append(threading.current_thread())
        released.wait(20)

    for _ in range(3):
        outcomes = dict(run(job(hang, 0.02), job(lambda: "quick")))
        assert isinstance(outcomes[0], TimedOut)
    for _ in range(20):
        assert set(get_values(run(*[job(threading.current_thread)] * 4))).isdisjoint(hanging)
    released.set()
    assert len(set(hanging)) == 3


@both
def test_a_job_finds_nothing_that_an_earlier_job_left_in_its_thread(run: Run) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def leave_traces() -> str:
        found = variable.get()
        variable.set("left")
        with pytest.raises(RuntimeError):
            asyncio.get_event_loop()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.close()
        return found

    for _ in range(20):
        assert get_values(run(*[job(leave_traces)] * 3)) == ["unset"] * 3


class Large:
    """A value that can be watched."""


@both
def test_an_idle_thread_keeps_no_call_and_no_value_alive(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_executor, "_IDLE_SECONDS", 60.0)
    monkeypatch.setattr(tool_executor, "_idle", [])
    watched: list[weakref.ref[Large]] = []

    def make() -> Callable[[], Large]:
        argument = Large()
        watched.append(weakref.ref(argument))
        return lambda: argument

    def run_some() -> None:
        assert len(run(*[job(make()) for _ in range(4)])) == 4

    run_some()
    ends = time.monotonic() + 10
    while any(reference() is not None for reference in watched) and time.monotonic() < ends:
        gc.collect()
        time.sleep(0.01)
    assert [reference() for reference in watched] == [None] * 4


@both
def test_idle_threads_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_executor, "_IDLE_SECONDS", 0.02)
    threads = get_values(run(*[job(threading.current_thread)] * 4))
    for thread in set(threads):
        thread.join(10)
    # Those of earlier tests may still wait for their longer time.
    assert not any(thread.is_alive() for thread in threads)


def test_only_so_many_threads_stay_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_executor, "_idle", [])
    monkeypatch.setattr(tool_executor, "_MAX_IDLE", 2)
    monkeypatch.setattr(tool_executor, "_IDLE_SECONDS", 60.0)
    meet = threading.Barrier(12)

    def wait_for_all() -> threading.Thread:
        meet.wait(20)
        return threading.current_thread()

    threads = set(get_values(run_sync(*[job(wait_for_all)] * 12, max_parallel=12)))
    assert len(threads) == 12
    ends = time.monotonic() + 10
    while sum(thread.is_alive() for thread in threads) > 4 and time.monotonic() < ends:
        time.sleep(0.01)
    assert sum(thread.is_alive() for thread in threads) <= 4  # One that has just looked may still join the others.


def make_mixed_job(number: int, rng: random.Random, released: threading.Event) -> tuple[Job, str]:
    """A job of any kind, and what has to become of it."""

    def answer() -> int:
        return number

    async def answer_later() -> int:
        await asyncio.sleep(rng.choice([0, 0.0001]))
        return number

    def refuse() -> None:
        raise ValueError(number)

    def exit_early() -> None:
        raise SystemExit(number)

    kind = rng.choices(["returns", "awaits", "raises", "exits", "hangs"], [20, 2, 5, 2, 1])[0]
    match kind:
        case "returns":
            return job(answer, rng.choice([None, 30.0])), "returned"
        case "awaits":
            return job(answer_later, rng.choice([None, 30.0]), blocking=False), "returned"
        case "raises":
            return job(refuse, rng.choice([None, 30.0])), "raised"
        case "exits":
            return job(exit_early), "raised"
        case _:
            return job(lambda: released.wait(20), 0.001), "late"


def run_mixed_jobs(run: Run, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    for _ in range(rounds):
        released = threading.Event()
        made = [make_mixed_job(number, rng, released) for number in range(rng.randint(1, 12))]
        outcomes = run(*[each for each, _ in made], max_parallel=rng.choice([1, 3, 8]))
        released.set()
        assert sorted(number for number, _ in outcomes) == list(range(len(made)))
        for number, outcome in outcomes:
            match made[number][1], outcome:
                case "returned", Returned(value=value):
                    assert value == number
                case "raised", Raised(error=error):
                    assert error.args == (number,)
                case "late", TimedOut():
                    pass
                case expected:
                    raise AssertionError(expected)


@both
@pytest.mark.parametrize("idle_seconds", [5.0, 0.0005, 0.0])
def test_many_runs_at_once_get_their_own_outcomes(
    run: Run, idle_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With short times, threads are often taken at the moment in which they give up waiting.
    monkeypatch.setattr(tool_executor, "_IDLE_SECONDS", idle_seconds)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: run_mixed_jobs(run, seed, 20), range(16)))


# --- forks and exits ------------------------------------------------------------------------------------------------

forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    # A process with threads should not fork, and some do.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def run_in_child(check: Callable[[], bool]) -> bool:
    """Whether the check holds in a forked child, and the child ends within some seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return wait_for_exit(child) == 0


def wait_for_exit(child: int) -> int | None:
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class TestForks:
    pytestmark = forks

    @both
    def test_a_forked_child_starts_threads_of_its_own(self, run: Run) -> None:
        assert get_values(run(*[job(lambda: 1)] * 4)) == [1] * 4
        for _ in range(5):
            assert run_in_child(lambda: get_values(run(*[job(lambda: 2)] * 4)) == [2] * 4)
            assert get_values(run(*[job(lambda: 3)] * 4)) == [3] * 4

    def test_children_forked_while_other_threads_run_jobs_work_too(self) -> None:
        ended = threading.Event()

        def keep_running() -> None:
            while not ended.is_set():
                run_mixed_jobs(run_sync, 1, 1)

        others = [threading.Thread(target=keep_running) for _ in range(3)]
        for other in others:
            other.start()
        try:
            for _ in range(6):
                assert run_in_child(lambda: get_values(run_sync(*[job(lambda: 2)] * 4)) == [2] * 4)
        finally:
            ended.set()
            for other in others:
                other.join()

    def test_a_child_forked_in_the_middle_of_a_run_does_not_wait_for_the_threads_of_its_parent(self) -> None:
        released = threading.Event()
        outcomes = run_jobs(
            (job(lambda: "quick"), job(lambda: released.wait(20)), job(lambda: wait(20))), 3, threading.Event()
        )
        assert next(outcomes)[0] == 0

        def check() -> bool:
            return all(isinstance(outcome, Raised) for _, outcome in outcomes)

        assert run_in_child(check)
        released.set()
        number, outcome = next(outcomes)
        assert (number, isinstance(outcome, Returned)) == (1, True)
        outcomes.close()

    def test_the_child_of_a_tool_that_forks_and_returns_ends_with_its_thread(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tool_executor, "_idle", [])
        monkeypatch.setattr(tool_executor, "_IDLE_SECONDS", 60.0)
        children = get_values(run_sync(job(os.fork), job(lambda: 0)))
        assert wait_for_exit(children[0]) == 0

    @pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux has on_exit")
    @both
    def test_such_a_child_finishes_its_threads_and_runs_no_exit_handlers_of_the_parent(self, run: Run) -> None:
        program = (
            "import ctypes, os, threading, time\n"
            "from tests.transports.test_tool_executor import job, run_async, run_sync\n"
            "libc = ctypes.CDLL(None)\n"
            "libc.on_exit(libc.abort, None)\n"
            "def fork():\n"
            "    if (child := os.fork()) == 0:\n"
            "        say = lambda: (time.sleep(0.1), os.write(1, b'child\\n'))\n"
            "        threading.Thread(target=say, daemon=False).start()\n"
            "    return child\n"
            f"child = dict({run.__name__}(job(fork), job(lambda: 0)))[0].value\n"
            "os.write(1, b'%d\\n' % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
            "os._exit(0)\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=40, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "child\n0\n", "")


@both
def test_threads_do_not_keep_the_interpreter_from_exiting(run: Run) -> None:
    program = (
        "import sys, threading, time\n"
        "from tests.transports.test_tool_executor import job, run_async, run_sync\n"
        f"{run.__name__}(job(lambda: time.sleep(60), 0.05), *[job(lambda: 1)] * 4)\n"
        "print(sum(each.name == 'asides-tool' for each in threading.enumerate()) > 1)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=40, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
