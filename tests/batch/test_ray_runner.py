"""Batches on a real Ray cluster of two nodes on this machine: an actor killed, the driver killed, stopped, refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import asides
from asides.database import Query
from asides.testing.stage import Fail, OpenStage, Say, Scene
from tests.batch.test_live_runner import Command, Counting, wait_until
from tests.cli.children import MODEL, asides as run_asides, command, environment

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs asides[ray]"),
]
_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Loopback alone.
    "RAY_USAGE_STATS_ENABLED": "0",
}


class TwoNodes(NamedTuple):
    """The cluster."""

    address: str
    session: Path
    """Where Ray keeps its logs."""


@pytest.fixture(scope="module")
def nodes(_nobodys_settings: Path) -> Iterator[TwoNodes]:
    script = Path(__file__).with_name("two_ray_nodes.py")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=pipe, stdout=pipe, env=environment(_ENVIRONMENT), text=True
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        address, session = cluster.stdout.readline().split()
        yield TwoNodes(address, Path(session))
        cluster.stdin.close()
        cluster.wait(60)


@pytest.fixture(autouse=True)
def _on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def on(nodes: TwoNodes, *options: str) -> list[str]:
    return ["--via", "ray", "--ray-address", nodes.address, *options]


def list_owners(run: Command) -> set[int]:
    """The processes that have claimed something now."""
    batch = run.open()
    try:
        core = batch._core
        query = Query("SELECT DISTINCT owner FROM batch_requests WHERE batch = ? AND state = 'claimed'", (core.ledger.name,))

        def ask():  # type: ignore[no-untyped-def]
            return (yield query).rows

        return {int(owner.split("|")[1]) for (owner,) in core.database.run(ask, writes=False)}
    finally:
        batch.close()


def end(child: subprocess.Popen[bytes]) -> str:
    _, err = child.communicate(timeout=500)
    assert child.returncode == 0, err.decode()
    return err.decode()


def kill_an_actor(nodes: TwoNodes, run: Command, counting: Counting, concurrency: int) -> int:
    """Kill one of two actors in the middle of a batch. Returns how many requests were asked again."""
    child = run.start()
    try:
        wait_until(lambda: sum(counting.asked.values()) > run.rows // 10, 200)
        wait_until(lambda: len(list_owners(run)) == 2, 200)
        victim = random.choice(sorted(list_owners(run)))
        assert victim != child.pid
        os.kill(victim, signal.SIGKILL)
        answered = run.list_answered()
        asked = {text: counting.asked[text] for text in answered}
        assert 0 < len(answered) < run.rows
        end(child)
    finally:
        child.kill()
    assert {text: counting.asked[text] for text in answered} == asked
    assert set(counting.asked) == {f"row {n}" for n in range(run.rows)}
    again = sum(counting.asked.values()) - run.rows
    assert again <= concurrency  # Those that were under way in it.
    run.check_output()
    return again


def test_an_actor_is_killed_and_each_row_is_answered_once(
    nodes: TwoNodes, stage: OpenStage, tmp_path: Path, postgres_url: str
) -> None:
    counting = Counting(delay=0.2)
    run = Command(tmp_path, stage(counting), 1000, postgres_url, *on(nodes, "--concurrency", "4"))
    kill_an_actor(nodes, run, counting, 4)
