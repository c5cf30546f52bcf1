"""What actors of Ray do, without Ray: the real coordinator, answerers and ledger, called as Ray calls them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import asides
import asides_batch
from asides.settings import Settings
from asides_batch.leases import has_ended, name_machine
from asides_batch.ledger_values import BatchRecord
from asides_batch.open_job import JobSetup
from asides_batch.ray_actor import DROP, FINISH, Coordinator, Invitation, take_share
from asides_stage.stage import Fail, OpenStage, Stage
from tests.batch.test_live_runner import Counting
from tests.cli.children import MODEL


class Handle:
    """Calls an object as a handle of Ray does: `handle.method.remote(...)` is awaited."""

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=getattr(self._target, name))


def begin(folder: Path, server: Stage, rows: int, **options: Any) -> tuple[JobSetup, BatchRecord]:
    """Load a batch, and ask nothing."""
    batch = asides_batch.Batch(
        [f"row {n}" for n in range(rows)], output=folder / "out.jsonl", model=MODEL, base_url=server.url, **options
    )
    core = batch._core
    record, own = core._begin()
    batch.close()
    return JobSetup(core.place, core.ledger.name, record.version, Settings(), (), own), record


def read_batch(folder: Path) -> asides_batch.BatchStatus:
    batch = asides_batch.Batch(output=folder / "out.jsonl")
    try:
        return batch.status
    finally:
        batch.close()


async def open_coordinator(setup: JobSetup, machine: str | None = None) -> tuple[Coordinator, Handle]:
    coordinator = Coordinator()
    await coordinator.open(Invitation(setup, name_machine() if machine is None else machine))
    return coordinator, Handle(coordinator)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.01)


async def test_two_shares_answer_each_row_once(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting(delay=0.01)
    setup, _ = begin(tmp_path, stage(counting), 60, concurrency=4)
    _, handle = await open_coordinator(setup)
    ends = await asyncio.gather(take_share(handle), take_share(handle))
    assert [(end.read_error(), end.has_reached_max_cost) for end in ends] == [(None, False)] * 2
    assert len(counting.asked) == sum(counting.asked.values()) == 60
    assert read_batch(tmp_path).is_finished


@pytest.mark.parametrize(("order", "answered"), [(FINISH, 3), (DROP, 0)])
async def test_an_order_finishes_or_drops_what_is_under_way(
    stage: OpenStage, tmp_path: Path, order: int, answered: int
) -> None:
    counting = Counting(delay=0.6)
    setup, _ = begin(tmp_path, stage(counting), 30, concurrency=3)
    coordinator, handle = await open_coordinator(setup)
    share = asyncio.ensure_future(take_share(handle))
    await wait_until(lambda: sum(counting.asked.values()) == 3)
    await coordinator.order(order)
    assert (await share).read_error() is None
    status = read_batch(tmp_path)
    assert (status.done, status.running, status.failed) == (answered, 0, 0)
    assert sum(counting.asked.values()) == 3
    assert await coordinator.join() is None
    await take_share(handle)  # A share that begins afterwards asks nothing.
    assert sum(counting.asked.values()) == 3


async def test_a_coordinator_that_is_gone_ends_the_share(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting(delay=30)
    setup, _ = begin(tmp_path, stage(counting), 5)

    class Gone(Coordinator):
        async def wait_for_order(self, known: int) -> int:
            await wait_until(lambda: sum(counting.asked.values()) == 5)
            raise RuntimeError("the actor died")

    coordinator = Gone()
    await coordinator.open(Invitation(setup, name_machine()))
    async with asyncio.timeout(10):
        await take_share(Handle(coordinator))
    assert (read_batch(tmp_path).running, read_batch(tmp_path).left) == (0, 5)


async def test_an_error_of_all_requests_comes_back_without_content(stage: OpenStage, tmp_path: Path) -> None:
    setup, _ = begin(tmp_path, stage(lambda _: Fail(status=401)), 5, concurrency=1)
    _, handle = await open_coordinator(setup)
    error = (await take_share(handle)).read_error()
    assert isinstance(error, asides.AuthError)
    assert error.partial is None
    assert error.status == 401


@pytest.mark.parametrize(
    ("change", "machine", "words"),
    [
        ({"program": "0.0.1"}, None, "the same version on every node"),
        ({"version": 7}, None, "other rows"),
        ({}, "another/machine", "Put the ledger into PostgreSQL"),
    ],
)
async def test_a_worker_that_cannot_take_part_says_why(
    stage: OpenStage, tmp_path: Path, change: dict[str, Any], machine: str | None, words: str
) -> None:
    counting = Counting()
    setup, _ = begin(tmp_path, stage(counting), 2)
    _, handle = await open_coordinator(msgspec.structs.replace(setup, **change), machine)
    error = (await take_share(handle)).read_error()
    assert isinstance(error, asides.ConfigError)
    assert words in str(error)
    assert re.search(r"\. [A-Z]", str(error))
    assert "on a worker of Ray" in str(error)
    assert not counting.asked


async def test_the_coordinator_tells_when_an_actor_takes_part(stage: OpenStage, tmp_path: Path) -> None:
    setup, _ = begin(tmp_path, stage(Counting()), 2)
    coordinator, handle = await open_coordinator(setup)
    waiting = asyncio.ensure_future(coordinator.wait_for_actor())
    await asyncio.sleep(0)
    assert not waiting.done()
    await take_share(handle)
    await waiting


def test_what_is_sent_shows_no_key(stage: OpenStage, tmp_path: Path) -> None:
    setup, record = begin(tmp_path, stage(Counting()), 1, api_key="sk-a-key-that-is-private")
    shown = repr(Invitation(setup.prepare_to_send(), "here"))
    assert setup.own.get("api_key") == "sk-a-key-that-is-private"
    assert "private" not in shown
    assert b"private" not in record.plan
    assert not has_ended("elsewhere|1|2|3")
