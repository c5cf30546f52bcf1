"""A gateway in several processes: one port, one vault, one end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.worker_processes import run_workers
from asides_stage import Say, Stage
from tests.gateway.served import (
    KEY,
    PATIENCE,
    Served,
    ask_first,
    ask_second,
    find_thinking,
    is_alive,
    play_turns,
    serve,
    stream_many,
    write_settings,
)


def _count_requests(served: Served) -> float:
    """The requests that all workers have counted. Whichever worker answers, it answers for all of them."""
    _, text = served.get("/metrics", authorization=f"Bearer {KEY}")
    found = re.findall(r"^asides_requests_total\{.*\} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def _wait_for_workers(served: Served, count: int, without: int) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while True:
        workers = served.find_workers()
        if len(workers) == count and without not in workers:
            return workers
        assert time.monotonic() < deadline, served.log
        time.sleep(0.05)


def _can_connect(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


def test_two_workers_are_one_gateway(tmp_path: Path) -> None:
    with Stage(play_turns()) as stage:
        settings = write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2", env={"ASIDES_GATEWAY_KEY": KEY}) as served:
            workers = served.find_workers()
            assert len(workers) == 2
            # Each request has its own connection, which the system gives to one of the workers.
            for number in range(8):
                first = ask_first(number)
                status, answer = served.post("/v1/chat/completions", first, authorization=f"Bearer {KEY}")
                assert status == 200, answer
                second = ask_second(first, answer["choices"][0]["message"])
                assert served.post("/v1/chat/completions", second, authorization=f"Bearer {KEY}")[0] == 200
                assert find_thinking(stage.requests[-1].json) == [f"plan of question {number}"]
                assert served.post("/v1/chat/completions", first)[0] == 401
            while _count_requests(served) < 24:  # What a client has got may be counted a moment later.
                time.sleep(0.02)
            assert _count_requests(served) == 24
            assert "asides_processes 2.0" in served.get("/metrics", authorization=f"Bearer {KEY}")[1]
            assert all(f"process {worker} serves" in served.log for worker in workers)

            settings.write_text(settings.read_text().replace("[routes.thinker]", "[routes.other]"))
            served.wait_for_log("the settings were reloaded", 2)
            served.process.send_signal(signal.SIGHUP)
            served.wait_for_log("the settings were reloaded", 4)

            # Two gateways on one port would each get some of the requests.
            port = str(urlsplit(served.url).port)
            with serve(tmp_path, "--port", port, "--workers", "2", waits=False) as taken:
                assert taken.process.wait(PATIENCE) == 2
            assert f"port {port} of 127.0.0.1 is in use" in served.log
            assert served.end() == 0
            assert not any(map(is_alive, workers))
        assert list(tmp_path.glob("asides-metrics-*")) == []
        assert KEY not in served.log
    assert [request.problem for request in stage.requests if request.problem] == []


def test_a_worker_that_dies_is_replaced_and_all_end_with_their_parent(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            for number in range(4):
                assert served.post("/v1/chat/completions", ask_first(number))[0] == 200
            while _count_requests(served) < 4:  # What a client has got may be counted a moment later.
                time.sleep(0.02)
            before = served.find_workers()
            os.kill(before[0], signal.SIGKILL)
            workers = _wait_for_workers(served, 2, before[0])
            assert before[1] in workers
            served.wait_for_log("worker 1 ended: killed by SIGKILL; it is restarted")
            served.wait_for_log(" serves http", 3)
            assert _count_requests(served) == 4, "what a dead worker has counted stays"
            assert "asides_processes 2.0" in served.get("/metrics")[1]

            served.process.kill()
            served.process.wait(PATIENCE)
            deadline = time.monotonic() + PATIENCE
            while any(map(is_alive, workers)):
                assert time.monotonic() < deadline, "a worker outlives its parent"
                time.sleep(0.02)
            address = urlsplit(served.url)
            # The last thread of a dead process closes its sockets.
            while _can_connect(address.hostname or "", address.port or 0):
                assert time.monotonic() < deadline, "the port is open, and nobody answers"
                time.sleep(0.02)
        assert list(tmp_path.glob("asides-metrics-*")) == []


def test_no_reply_of_a_worker_is_cut_when_the_gateway_ends(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(40))
    with Stage(Say(text=text, pause=0.05)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2", "--log", "off") as served:
            texts = asyncio.run(stream_many(served.url, 20, lambda: served.process.send_signal(signal.SIGINT)))
            assert served.process.wait(PATIENCE) == 0
    assert texts == [text] * 20


@pytest.mark.thorough
def test_what_clients_carry_is_read_by_every_worker_and_after_a_restart(tmp_path: Path) -> None:
    """A client of Responses gives its reasoning items back; no store has them."""
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        first: dict[str, Any] = {
            "model": "thinker",
            "input": "question 7",
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        first["tools"] = [{"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}]
        items: list[dict[str, object]] = []
        for _ in range(2):
            with serve(tmp_path, "--workers", "2", "--state", "carry-only") as served:
                if not items:
                    items = served.post("/v1/responses", first)[1]["output"]
                    assert any(item.get("encrypted_content") for item in items)
                (call,) = [item for item in items if item["type"] == "function_call"]
                result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
                question = {"role": "user", "content": "question 7"}
                for _ in range(6):
                    body = {**first, "input": [question, *items, result]}
                    assert served.post("/v1/responses", body)[0] == 200
                    assert find_thinking(stage.requests[-1].json) == ["plan of question 7"]
    assert not (tmp_path / "state" / "vault.db").exists()


@pytest.mark.thorough
def test_a_second_signal_ends_all_of_them_at_once(tmp_path: Path) -> None:
    with Stage(Say(text="a b c d e f g h", pause=1.0, piece=1)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            workers = served.find_workers()

            def end() -> None:
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("stops after", 2)
                served.process.send_signal(signal.SIGTERM)

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            assert isinstance(text, BaseException)
            assert served.process.wait(PATIENCE) == 128 + signal.SIGTERM
            assert not any(map(is_alive, workers))


def test_the_exit_code_of_a_worker_that_does_not_start_is_its_own() -> None:
    """Whoever signals a process that has just ended must not take its exit code from whoever waits for it."""
    command = [sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"]
    settings = GatewaySettings(port=0, workers=2)
    assert {run_workers(settings, print, command, {}) for _ in range(20)} == {3}


def test_what_stops_every_worker_is_told_once_and_ends_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "vault.db.key").write_text("no key at all")
    (tmp_path / "state" / "vault.db.key").chmod(0o600)
    with serve(tmp_path, "--workers", "2", waits=False) as served:
        assert served.process.wait(PATIENCE) == 2
        assert served.log.count("Make one with") == 1, served.log
        assert "Traceback" not in served.log
