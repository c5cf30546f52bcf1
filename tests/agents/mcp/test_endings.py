"""Servers that end, by themselves or because they are closed: what callers hear, and that nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asides.agents.mcp.server import McpServer
from tests.agents.mcp.running import (
    OLD,
    asked,
    at_loopback,
    auntil,
    called,
    child_of,
    is_alive,
    no_thread_is_left,
    official,
    old,
    until,
)

GONE = "has gone before it answered; whether it did what it was asked is not known"


def test_a_closed_server_leaves_no_process_and_no_thread() -> None:
    with no_thread_is_left():
        with official() as server:
            pid = int(called(server, "process").text)
            assert is_alive(pid)
        assert not is_alive(pid)


async def test_a_server_closed_by_awaiting_leaves_no_process_and_no_thread() -> None:
    with no_thread_is_left():
        async with old() as server:
            pid = (await asyncio.to_thread(child_of, server))["pid"]
            assert is_alive(pid)
        assert not is_alive(pid)
        await server.aclose()


def test_a_child_that_does_not_want_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.1)
    with no_thread_is_left():
        with old("stubborn") as server:
            pid = child_of(server)["pid"]
        assert not is_alive(pid)


async def test_opening_and_closing_by_awaiting_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
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
    with no_thread_is_left():
        async with official(name="s") as server:
            pid = int((await asked(server, "process")).text)
            waiting = asyncio.create_task(asked(server, "slow", seconds=60, mark=str(mark)))
            await auntil(mark.with_suffix(".started").exists, "the tool starts")
            os.kill(pid, signal.SIGKILL)
            result = await waiting
            assert (result.is_error, result.text) == (True, f"the server s {GONE}")
            assert len(server.tools) == 12
            assert (await asked(server, "add", a=1, b=1)).content == "2"


def test_a_server_that_ended_between_two_calls_fails_the_next_and_is_started_again() -> None:
    with old(name="o") as server:
        pid = child_of(server)["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid), "the child is gone")
        assert called(server, "one").text == f"the server o {GONE}"
        assert child_of(server)["pid"] != pid


def test_a_child_that_falls_silent_and_stays_is_ended_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.5)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.5)
    with no_thread_is_left():
        with old("mute", name="o") as server:
            first = child_of(server)["pid"]
            assert called(server, "three").text == f"the server o {GONE}"
            second = child_of(server)["pid"]
        assert (is_alive(first), is_alive(second)) == (False, False)


def test_a_server_that_cannot_be_started_again_is_gone(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(OLD.read_text(encoding="utf-8"), encoding="utf-8")
    with no_thread_is_left(), McpServer.stdio(sys.executable, program, name="o") as server:
        os.kill(child_of(server)["pid"], signal.SIGKILL)
        program.unlink()
        assert called(server, "one").text == f"the server o {GONE}"
        for _ in range(2):
            result = called(server, "one")
            assert (result.is_error, result.text) == (True, "the server o has gone, and could not be opened again")
        assert len(server.tools) == 6
        program.write_text(OLD.read_text(encoding="utf-8"), encoding="utf-8")
        assert len(server.refresh()) == 6
        assert not called(server, "one").is_error


async def test_an_address_that_dies_during_a_call_fails_it_and_the_next() -> None:
    with no_thread_is_left(), at_loopback() as (url, process):
        async with McpServer.http(url, name="s") as server:
            assert (await asked(server, "die")).text == f"the server s {GONE}"
            await asyncio.to_thread(process.wait, 20)
            assert (await asked(server, "add", a=1, b=1)).text == "the server s has gone, and could not be opened again"


async def test_calls_that_wait_when_a_server_is_closed_hear_that_it_is_gone() -> None:
    server = await old(name="o").aopen()
    waiting = [asyncio.create_task(asked(server, "three")) for _ in range(3)]
    await asyncio.sleep(0.05)
    await server.aclose()
    assert {(await task).text for task in waiting} == {f"the server o {GONE}"}


async def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    with no_thread_is_left():
        silent = McpServer.stdio(sys.executable, "-c", "import sys; sys.stdin.read()")
        opening = asyncio.create_task(silent.aopen())
        await auntil(lambda: any(thread.name == "asides-mcp-stderr" for thread in threading.enumerate()), "a child")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening


def test_a_server_that_nobody_holds_any_more_ends() -> None:
    server = old().open()
    pid = child_of(server)["pid"]
    del server
    gc.collect()
    until(lambda: not is_alive(pid), "the child is gone")


def run(program: str) -> str:
    """What a program prints that ends by itself, in time and without a complaint."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{program}"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_program_that_forgets_to_close_ends_with_its_child() -> None:
    pid = int(run("from tests.agents.mcp.running import child_of, old\nprint(child_of(old().open())['pid'])"))
    assert not is_alive(pid)


def test_a_program_that_fails_inside_of_with_ends_with_its_child() -> None:
    program = (
        "from tests.agents.mcp.running import child_of, old\n"
        "try:\n"
        "    with old() as server: print(child_of(server)['pid']); raise KeyboardInterrupt\n"
        "except KeyboardInterrupt: pass\n"
    )
    assert not is_alive(int(run(program)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_a_child_of_its_own_and_ends() -> None:
    program = (
        "import os, sys, warnings\n"
        "from tests.agents.mcp.running import child_of, old\n"
        "warnings.simplefilter('ignore')\n"  # Newer Pythons warn of forks in a process with threads.
        "server = old().open()\n"
        "print(child_of(server)['pid'], flush=True)\n"
        "fork = os.fork()\n"
        "if fork: os.waitpid(fork, 0)\n"
        "print(child_of(server)['pid'], flush=True)\n"
    )
    first, in_fork, again = map(int, run(program).split())
    assert first == again != in_fork
    assert not is_alive(first)
    assert not is_alive(in_fork)
