"""Servers that end, by themselves or because they are closed: what callers get, and that nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from asides.agents.mcp.mcp_server import McpServer
from asides.agents.mcp.session import ConnectionLost, _await_future
from tests.agents.mcp.running import (
    OLD,
    answer_as_old_server,
    at_loopback,
    describe_child,
    expect_no_thread_left,
    is_alive,
    official,
    old,
    run_call,
    start_call,
    wait_until,
    wait_until_async,
)
from tests.loopback import serving

GONE = "ended before it answered; whether it ran the tool is not known"


def test_a_closed_server_leaves_no_process_and_no_thread() -> None:
    with expect_no_thread_left():
        with official() as server:
            pid = int(run_call(server, "process").text)
            assert is_alive(pid)
        assert not is_alive(pid)


async def test_a_server_closed_from_async_code_leaves_no_process_and_no_thread() -> None:
    with expect_no_thread_left():
        async with old() as server:
            pid = (await asyncio.to_thread(describe_child, server))["pid"]
            assert is_alive(pid)
        assert not is_alive(pid)
        await server.aclose()


def test_a_child_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.1)
    with expect_no_thread_left():
        with old("stubborn") as server:
            pid = describe_child(server)["pid"]
        assert not is_alive(pid)


async def test_opening_and_closing_do_not_block_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.1)
    server = old("stubborn")
    for step in (server.aopen, server.aclose):
        taking = asyncio.create_task(step())
        await asyncio.sleep(0)
        assert not taking.done()
        await taking


async def test_a_server_that_is_killed_during_a_call_fails_that_call_and_is_started_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with expect_no_thread_left():
        async with official(name="s") as server:
            pid = int((await start_call(server, "process")).text)
            waiting = asyncio.create_task(start_call(server, "slow", seconds=60, mark=str(mark)))
            await wait_until_async(mark.with_suffix(".started").exists, "the tool starts")
            os.kill(pid, signal.SIGKILL)
            result = await waiting
            assert (result.is_error, result.text) == (True, f"the server s {GONE}")
            assert len(server.tools) == 12
            assert (await start_call(server, "add", a=1, b=1)).content == "2"


def test_a_server_that_ended_between_two_calls_fails_the_next_and_is_started_again() -> None:
    with old(name="o") as server:
        pid = describe_child(server)["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "the child is gone")
        assert run_call(server, "one").text == f"the server o {GONE}"
        assert describe_child(server)["pid"] != pid


def test_a_child_that_closes_its_output_and_stays_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.5)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.5)
    with expect_no_thread_left():
        with old("mute", name="o") as server:
            first = describe_child(server)["pid"]
            assert run_call(server, "three").text == f"the server o {GONE}"
            second = describe_child(server)["pid"]
        assert (is_alive(first), is_alive(second)) == (False, False)


def test_a_server_that_cannot_be_started_again_is_gone(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(OLD.read_text(encoding="utf-8"), encoding="utf-8")
    with expect_no_thread_left(), McpServer.stdio(sys.executable, program, name="o") as server:
        os.kill(describe_child(server)["pid"], signal.SIGKILL)
        program.unlink()
        assert run_call(server, "one").text == f"the server o {GONE}"
        for _ in range(2):
            result = run_call(server, "one")
            assert (result.is_error, result.text) == (True, "the server o ended, and could not be opened again")
        assert len(server.tools) == 6
        program.write_text(OLD.read_text(encoding="utf-8"), encoding="utf-8")
        assert len(server.refresh()) == 6
        assert not run_call(server, "one").is_error


async def test_an_address_that_dies_during_a_call_fails_it_and_the_next() -> None:
    with expect_no_thread_left(), at_loopback() as (url, process):
        async with McpServer.http(url, name="s") as server:
            assert (await start_call(server, "die")).text == f"the server s {GONE}"
            await asyncio.to_thread(process.wait, 20)
            assert (
                await start_call(server, "add", a=1, b=1)
            ).text == "the server s ended, and could not be opened again"


async def test_calls_that_wait_when_a_server_is_closed_get_an_error() -> None:
    server = await old(name="o").aopen()
    waiting = [asyncio.create_task(start_call(server, "three")) for _ in range(3)]
    await asyncio.sleep(0.05)
    await server.aclose()
    assert {(await task).text for task in waiting} == {f"the server o {GONE}"}


async def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    with expect_no_thread_left():
        silent = McpServer.stdio(sys.executable, "-c", "import sys; sys.stdin.read()")
        opening = asyncio.create_task(silent.aopen())
        await wait_until_async(
            lambda: any(thread.name == "asides-mcp-stderr" for thread in threading.enumerate()), "a child"
        )
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening


def test_a_server_that_is_garbage_collected_ends() -> None:
    server = old().open()
    pid = describe_child(server)["pid"]
    del server
    gc.collect()
    wait_until(lambda: not is_alive(pid), "the child is gone")


def run(program: str) -> str:
    """Return the output of a program that ends in time and without an error."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{program}"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_program_that_forgets_to_close_ends_with_its_child() -> None:
    pid = int(
        run("from tests.agents.mcp.running import describe_child, old\nprint(describe_child(old().open())['pid'])")
    )
    assert not is_alive(pid)


def test_a_program_that_fails_inside_with_ends_with_its_child() -> None:
    program = (
        "from tests.agents.mcp.running import describe_child, old\n"
        "try:\n"
        "    with old() as server: print(describe_child(server)['pid']); raise KeyboardInterrupt\n"
        "except KeyboardInterrupt: pass\n"
    )
    assert not is_alive(int(run(program)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_starts_its_own_child_and_ends() -> None:
    program = (
        "import os, sys, warnings\n"
        "from tests.agents.mcp.running import describe_child, old\n"
        "warnings.simplefilter('ignore')\n"  # Newer Pythons warn of forks in a process with threads.
        "server = old().open()\n"
        "print(describe_child(server)['pid'], flush=True)\n"
        "fork = os.fork()\n"
        "if fork: os.waitpid(fork, 0)\n"
        "print(describe_child(server)['pid'], flush=True)\n"
    )
    first, in_fork, again = map(int, run(program).split())
    assert first == again != in_fork
    assert not is_alive(first)
    assert not is_alive(in_fork)


def test_a_goodbye_that_the_server_ignores_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.agents.mcp.session._CLOSE_SECONDS", 0.2)
    with serving(answer_as_old_server(b"")) as host:
        with expect_no_thread_left(), McpServer.http(host.url) as server:
            assert (server.name, len(server.tools)) == ("deaf", 1)
        assert [heard.line.partition(" ")[0] for heard in host.heard][-1] == "DELETE"


async def test_a_request_that_the_session_cancels_is_lost_and_its_caller_is_not_cancelled() -> None:
    request: Future[str] = Future()
    waiting = asyncio.create_task(_await_future(request))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(ConnectionLost):
        await waiting
    assert not waiting.cancelled()


async def test_a_caller_that_is_cancelled_is_cancelled_and_so_is_the_request() -> None:
    request: Future[str] = Future()
    waiting = asyncio.create_task(_await_future(request))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert request.cancelled()
