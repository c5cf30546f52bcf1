"""One process of a gateway: it drains, it ends, and it loses no turn that it acknowledged, however it ends."""

from __future__ import annotations

import asyncio
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from asides_gateway.run_gateway import find_loop_factory
from asides_stage import Say, Stage
from tests.gateway.served import (
    PATIENCE,
    ask_first,
    ask_second,
    ask_until_killed,
    find_thinking,
    make_environment,
    play_turns,
    serve,
    stream_many,
    write_settings,
)

_WORDS = " ".join(f"word{number}" for number in range(60))


@pytest.mark.parametrize(
    ("number", "count"),
    [
        (signal.SIGTERM, 50),
        pytest.param(signal.SIGTERM, 200, marks=pytest.mark.thorough),
        pytest.param(signal.SIGINT, 20, marks=pytest.mark.thorough),
    ],
)
def test_no_reply_is_cut_when_the_gateway_ends(tmp_path: Path, number: int, count: int) -> None:
    with Stage(Say(text=_WORDS, pause=0.06)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--log", "off") as served:
            texts = asyncio.run(stream_many(served.url, count, lambda: served.process.send_signal(number)))
            # It waits for nobody: replies may take a minute.
            assert served.process.wait(PATIENCE) == 0
    assert texts == [_WORDS] * count


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, number: int) -> None:
    with Stage(Say(text=_WORDS, pause=0.5)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:

            def end() -> None:
                served.process.send_signal(number)
                served.wait_for_log("stops after open replies finish")
                served.process.send_signal(number)

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            assert isinstance(text, BaseException)
            assert served.process.wait(PATIENCE) == 128 + number


def test_hanging_up_reloads_and_a_terminal_that_is_gone_ends_it(tmp_path: Path) -> None:
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        leader, follower = pty.openpty()
        log = (tmp_path / "log.txt").open("wb")
        child = subprocess.Popen(
            [sys.executable, "-m", "asides", "serve", "--port", "0"],
            stdin=follower,
            stdout=subprocess.PIPE,
            stderr=log,
            env=make_environment(tmp_path),
            start_new_session=True,
        )
        os.close(follower)
        with child, log:
            try:
                assert child.stdout is not None
                assert child.stdout.readline().startswith(b"http://")
                child.send_signal(signal.SIGHUP)
                deadline = time.monotonic() + PATIENCE
                while b"reloaded" not in (tmp_path / "log.txt").read_bytes():
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                assert child.poll() is None
                os.close(leader)
                child.send_signal(signal.SIGHUP)
                assert child.wait(PATIENCE) == 0
            finally:
                child.kill()


def test_the_collector_spares_what_a_process_has_for_good() -> None:
    code = (
        "import gc\nfrom asides_gateway.run_gateway import _spare_the_collector\nbefore = gc.get_threshold()\n"
        "_spare_the_collector()\nassert gc.get_freeze_count() > 1000 and gc.isenabled()\n"
        "assert gc.get_threshold()[0] > before[0] and gc.get_threshold()[1:] == before[1:]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_uvloop_is_used_where_it_is_installed() -> None:
    pytest.importorskip("uvloop")
    factory = find_loop_factory()
    assert factory is not None
    loop = factory()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()


# --- kill -9 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.thorough)])
def test_no_turn_that_was_acknowledged_is_lost_by_a_kill(tmp_path: Path, kills: int) -> None:
    """Whenever it is killed: a client that got the end of a turn goes on with its thinking, after a new start."""
    acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = []
    cut = 0
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        for turn in range(kills):
            with serve(tmp_path, "--log", "off") as served:
                bodies = [ask_first(turn * 100 + number) for number in range(20)]
                whole = random.randint(1, 8)
                found = asyncio.run(ask_until_killed(served.url, bodies, served.process.kill, whole))
                served.process.kill()
                served.process.wait(PATIENCE)
            cut += found.count(None)
            acknowledged += [(body, message) for body, message in zip(bodies, found, strict=True) if message]
        assert acknowledged
        assert cut, "it was killed too late to say anything"
        with serve(tmp_path, "--log", "off") as served:
            for first, message in acknowledged:
                status, answer = served.post("/v1/chat/completions", ask_second(first, message))
                assert status == 200, answer
                assert answer["choices"][0]["message"]["content"] == "42"
                question = first["messages"][0]["content"]
                assert find_thinking(stage.requests[-1].json) == [f"plan of {question}"]
    assert [request.problem for request in stage.requests if request.problem] == []
