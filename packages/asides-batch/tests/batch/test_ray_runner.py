"""Batches on a real Ray cluster of two nodes on this machine: an actor killed, the driver killed, stopped, refused."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from asides.database import Queries, Query
from asides_batch import leases
from asides_batch.leases import has_ended, name_machine
from asides_stage.stage import Fail, OpenStage
from tests.batch.test_live_runner import Command, Counting, wait_until
from tests.batch.two_ray_nodes import RAY_ENVIRONMENT, TwoNodes, open_two_nodes
from tests.cli.children import MODEL, command, environment
from tests.servers import find_free_port

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs asides[ray]"),
]


@pytest.fixture(scope="module")
def nodes(_nobodys_settings: Path) -> Iterator[TwoNodes]:
    with open_two_nodes() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in RAY_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def on(nodes: TwoNodes, *options: str) -> list[str]:
    return ["--via", "ray", "--ray-address", nodes.address, *options]


def list_claims(run: Command) -> dict[int, set[str]]:
    """The processes that have claimed something now, with the rows."""
    batch = run.open()
    query = Query(
        "SELECT owner, request FROM batch_requests WHERE batch = ? AND state = 'claimed'", (batch._ledger.name,)
    )

    def ask() -> Queries[Any]:
        return (yield query).rows

    try:
        found: dict[int, set[str]] = {}
        for owner, request in batch._database.run(ask, writes=False):
            found.setdefault(int(owner.split("|")[1]), set()).add(json.loads(request)["prompt"])
        return found
    finally:
        batch.close()


def end(child: subprocess.Popen[bytes]) -> str:
    _, err = child.communicate(timeout=3000)
    assert child.returncode == 0, err.decode()
    return err.decode()


def kill_an_actor(run: Command, counting: Counting) -> set[str]:
    """Kill one of two actors in the middle of a batch. Returns the rows that were asked again."""
    child = run.start()
    try:
        wait_until(lambda: sum(counting.asked.values()) > run.rows // 10, 300)
        wait_until(lambda: len(list_claims(run)) == 2, 300)
        victim = random.choice(sorted(list_claims(run)))
        assert victim != child.pid
        os.kill(victim, signal.SIGSTOP)
        time.sleep(0.2)  # What it had sent to the ledger arrives.
        held = list_claims(run)[victim]
        answered = run.list_answered()
        asked = {text: counting.asked[text] for text in answered}
        assert 0 < len(answered) < run.rows
        os.kill(victim, signal.SIGKILL)
        end(child)
    finally:
        child.kill()
    assert {text: counting.asked[text] for text in answered} == asked
    assert set(counting.asked) == {f"row {n}" for n in range(run.rows)}
    twice = {text for text, count in counting.asked.items() if count > 1}
    assert twice <= held
    assert sum(counting.asked.values()) - run.rows == len(twice)
    run.check_output()
    return twice


def test_an_actor_is_killed_and_each_row_is_answered_once(
    nodes: TwoNodes, stage: OpenStage, tmp_path: Path, postgres_url: str
) -> None:
    counting = Counting(delay=0.1)
    run = Command(tmp_path, stage(counting), 1000, postgres_url, *on(nodes, "--concurrency", "4"))
    assert len(kill_an_actor(run, counting)) < 100


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_an_actor_is_killed_among_a_hundred_thousand_rows(
    nodes: TwoNodes, stage: OpenStage, tmp_path: Path, postgres_url: str
) -> None:
    counting = Counting()
    run = Command(tmp_path, stage(counting), 100_000, postgres_url, *on(nodes, "--concurrency", "32"))
    began = time.monotonic()
    twice = kill_an_actor(run, counting)
    seconds = counting.times[-1] - counting.times[0]
    sys.stderr.write(
        f"{time.monotonic() - began:.0f} s, {run.rows / seconds:.0f} rows a second from the first request to the last; "
        f"{len(twice)} asked again\n"
    )


def test_the_driver_is_killed_and_the_batch_goes_on(nodes: TwoNodes, stage: OpenStage, tmp_path: Path) -> None:
    """Over a SQLite file: both nodes are on this machine. The rows and the output are Parquet."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    counting = Counting(delay=0.1)
    run = Command(tmp_path, stage(counting), 400, str(tmp_path / "ledger"), *on(nodes, "--concurrency", "4"))
    rows = [{"id": n, "prompt": f"row {n}", "note": None if n % 2 else f"note {n}"} for n in range(400)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "in.parquet")
    run.use_files("in.parquet", "out.parquet")
    child = run.start()
    wait_until(lambda: sum(counting.asked.values()) > 40, 300)
    child.kill()
    child.communicate()
    wait_until(lambda: not any(map(is_running, list_claims(run))), 60)
    answered = run.list_answered()
    asked = {text: counting.asked[text] for text in answered}
    assert 0 < len(answered) < 400
    ended = subprocess.run(
        command(["batch", "resume", str(run.output), "--ledger", run.ledger]),
        env=environment(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert {text: counting.asked[text] for text in answered} == asked
    written = parquet.read_table(run.output).to_pylist()
    assert [(row["index"], row["id"], row["text"]) for row in written] == [(n, n, f"re row {n}") for n in range(400)]
    assert [row["row"] for row in written[:2]] == [{"note": "note 0"}, None]
    assert written[0]["usage"]["output"] == 20


def is_running(pid: int) -> bool:
    return not has_ended("|".join((name_machine(), str(pid), leases._read_start(pid), "")))


def test_ctrl_c_finishes_what_is_under_way(nodes: TwoNodes, stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting(delay=0.5)
    run = Command(tmp_path, stage(counting), 500, str(tmp_path / "ledger"), *on(nodes, "--concurrency", "3"))
    child = run.start()
    wait_until(lambda: sum(counting.asked.values()) >= 6, 300)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err.decode()
    assert b"asides batch resume" in err
    written = run.output.read_text(encoding="utf-8").splitlines()
    assert len(written) == len(run.list_answered()) == sum(counting.asked.values()) < 500


def test_limits_hold_for_all_actors_together_and_no_secret_is_left_in_the_logs(
    nodes: TwoNodes, stage: OpenStage, tmp_path: Path, postgres_url: str
) -> None:
    counting = Counting(delay=0.1)
    secret, word = "sk-not-in-any-log-1234567890", "password-not-in-any-log"
    ledger = postgres_url.replace("://asides", f"://asides:{word}")
    assert word in ledger
    server = stage(counting)
    run = Command(tmp_path, server, 30, ledger, *on(nodes, "--concurrency", "2", "--rpm", "600"))
    script = f"""
import asides_batch
batch = asides_batch.Batch({[f"row {n}" for n in range(30)]!r}, output={str(run.output)!r}, model={MODEL!r}, via="ray",
    base_url={server.url!r}, ledger={ledger!r}, ray_address={nodes.address!r}, api_key={secret!r}, concurrency=2,
    rpm=600)
status = batch.run()
print(status.done, status.failed, batch)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.stdout.startswith("30 0 "), ended.stderr
    assert set(counting.asked.values()) == {1}
    assert max(counting.times) - min(counting.times) >= 29 * 0.1 - 0.5
    assert server.requests[0].headers["authorization"] == f"Bearer {secret}"
    logs = [path for path in nodes.session.rglob("*") if path.is_file()]
    assert logs
    for path in logs:
        content = path.read_bytes()
        assert secret.encode() not in content, path
        assert word.encode() not in content, path
    assert secret not in ended.stdout + ended.stderr
    assert word not in ended.stdout + ended.stderr


def test_a_key_that_is_refused_ends_the_run_and_fails_no_row(nodes: TwoNodes, stage: OpenStage, tmp_path: Path) -> None:
    server = stage(lambda _: Fail(status=401))
    run = Command(tmp_path, server, 200, str(tmp_path / "ledger"), *on(nodes, "--concurrency", "2"))
    child = run.start()
    _, err = child.communicate(timeout=300)
    assert child.returncode != 0
    assert b"AuthError" in err or b"401" in err, err.decode()
    batch = run.open()
    assert (batch.status.failed, batch.status.left, batch.status.running) == (0, 200, 0)
    batch.close()
    assert len(server.requests) <= 8


def test_a_cluster_that_is_not_there_is_named(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting()
    address = f"127.0.0.1:{find_free_port()}"
    run = Command(tmp_path, stage(counting), 3, str(tmp_path / "ledger"), "--via", "ray", "--ray-address", address)
    child = run.start()
    _, err = child.communicate(timeout=300)
    assert child.returncode == 2, err.decode()
    assert address in err.decode()
    assert re.search(r"\. [A-Z]", err.decode())
    assert not counting.asked


def test_without_an_address_a_cluster_is_started_here(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting()
    run = Command(tmp_path, stage(counting), 20, str(tmp_path / "ledger"), "--via", "ray", "--actors", "1")
    end(run.start())
    assert set(counting.asked.values()) == {1}
    run.check_output()
