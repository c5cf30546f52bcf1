"""A gateway in several processes: one port, one vault, one end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from asides.testing import Say, Stage
from tests.gateway.served import KEY, Served, ask_first, ask_second, is_alive, serve, write_settings
from tests.gateway.test_run_gateway import find_thinking, play_turns, stream_many


def _wait_for_workers(served: Served, count: int, without: set[int]) -> list[int]:
    deadline = time.monotonic() + 20
    while True:
        workers = served.find_workers()
        if len(workers) == count and without.isdisjoint(workers):
            return workers
        assert time.monotonic() < deadline, served.log
        time.sleep(0.05)


def test_two_workers_share_a_port_and_a_vault_and_count_together(tmp_path: Path) -> None:
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            workers = served.find_workers()
            assert len(workers) == 2
            # Each request has its own connection, which the system gives to one of the workers.
            for number in range(12):
                first = ask_first(number)
                status, answer = served.post("/v1/chat/completions", first)
                assert status == 200, answer
                status, _ = served.post("/v1/chat/completions", ask_second(first, answer["choices"][0]["message"]))
                assert status == 200
                assert find_thinking(stage.requests[-1].json) == [f"plan of question {number}"]
            figures = {served.get("/metrics")[1] for _ in range(6)}
            lines = {line for text in figures for line in text.splitlines() if line.startswith("asides_requests_total")}
            assert sum(float(line.rpartition(" ")[2]) for line in lines) == 24
            assert "asides_processes 2.0" in figures.pop()
            assert all(f"process {worker} serves" in served.log for worker in workers)
            assert served.end() == 0
            assert not any(map(is_alive, workers))
        assert list(tmp_path.glob("asides-metrics-*")) == []
    assert [request.problem for request in stage.requests if request.problem] == []


def test_a_worker_that_dies_is_replaced_and_its_figures_stay(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            for number in range(4):
                assert served.post("/v1/chat/completions", ask_first(number))[0] == 200
            before = served.find_workers()
            began = time.monotonic()
            os.kill(before[0], signal.SIGKILL)
            after = _wait_for_workers(served, 2, {before[0]})
            assert before[1] in after
            served.wait_for_log("worker 1 ended: killed by SIGKILL; it is started again")
            served.wait_for_log(" serves http", 3)
            print(f"restarted in {time.monotonic() - began:.2f} s")
            text = served.get("/metrics")[1]
            assert re.search(r"^asides_requests_total\{.*\} 4\.0$", text, re.MULTILINE)
            assert "asides_processes 2.0" in text
            assert served.end() == 0


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            workers = served.find_workers()
            served.process.kill()
            served.process.wait(5)
            deadline = time.monotonic() + 3
            while any(map(is_alive, workers)):
                assert time.monotonic() < deadline, "a worker outlives its parent"
                time.sleep(0.02)
            address = urlsplit(served.url)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address.hostname or "", address.port or 0), 2).close()
        assert list(tmp_path.glob("asides-metrics-*")) == []


def test_no_reply_of_a_worker_is_cut_when_the_gateway_ends(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(40))
    with Stage(Say(text=text, pause=0.05)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2", "--log", "off") as served:
            texts = asyncio.run(stream_many(served.url, 60, lambda: served.process.send_signal(signal.SIGINT)))
            assert served.process.wait(10) == 0
    assert texts == [text] * 60


def test_a_second_signal_ends_all_of_them_at_once(tmp_path: Path) -> None:
    with Stage(Say(text="a b c d e f g h", pause=1.0, piece=1)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            workers = served.find_workers()

            def end() -> None:
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("ends when", 2)
                served.process.send_signal(signal.SIGTERM)

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            assert isinstance(text, BaseException)
            assert served.process.wait(5) == 128 + signal.SIGTERM
            assert not any(map(is_alive, workers))


def test_what_stops_every_worker_is_told_once_and_ends_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "vault.db.key").write_text("no key at all")
    (tmp_path / "state" / "vault.db.key").chmod(0o600)
    with serve(tmp_path, "--workers", "3", waits=False) as served:
        assert served.process.wait(20) == 2
        assert served.log.count("To do") == 1, served.log
        assert "Traceback" not in served.log


def test_all_workers_reload(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        settings = write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            settings.write_text(settings.read_text().replace("[routes.thinker]", "[routes.other]"))
            served.wait_for_log("the settings were reloaded", 2)
            served.process.send_signal(signal.SIGHUP)
            served.wait_for_log("the settings were reloaded", 4)
            for _ in range(4):
                assert served.post("/v1/chat/completions", {**ask_first(), "model": "other"})[0] == 200
            assert served.end() == 0


def test_a_port_that_another_gateway_shares_is_in_use(tmp_path: Path) -> None:
    """Two gateways on one port would each get some of the requests."""
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2") as served:
            port = str(urlsplit(served.url).port)
            with serve(tmp_path, "--port", port, "--workers", "2", waits=False) as second:
                assert second.process.wait(20) == 2
            assert f"port {port} of 127.0.0.1 is in use" in served.log
            assert served.get("/healthz")[0] == 200


def test_several_processes_with_a_key_need_it_everywhere(tmp_path: Path) -> None:
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--workers", "2", env={"ASIDES_GATEWAY_KEY": KEY}) as served:
            for _ in range(4):
                assert served.get("/v1/models")[0] == 401
                assert served.get("/v1/models", authorization=f"Bearer {KEY}")[0] == 200
        assert KEY not in served.log
