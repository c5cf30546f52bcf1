"""The ledger and the vendor of one run: calls without streams, targets from the ledger, and waits that end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides import AsyncClient, Settings
from asides.database import Database
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import Claim
from asides_batch.vendor.vendor_channel import Pace, VendorChannel
from tests.batch.vendor.vendor_jobs import load_questions, make_job, plan_batch


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Database]:
    opened = open_ledger_database(str(tmp_path / "ledger"))
    yield opened
    opened.close()


def open_channel(ledger: Database, client: AsyncClient) -> VendorChannel:
    plan, own = plan_batch("anthropic:claude-opus-5-5", "http://127.0.0.1:9/v1")
    own["stream"] = True
    record = load_questions(ledger, plan, ["one"])
    return VendorChannel(make_job(ledger, record, plan, own, client), Pace())


async def test_a_call_of_a_batch_never_streams(ledger: Database) -> None:
    async with AsyncClient(settings=Settings()) as client:
        channel = open_channel(ledger, client)
        call = channel.build(Claim("a", 0, b'{"prompt": "one"}', 0.0))
        assert call.prompt.stream is False


async def test_the_target_of_an_unknown_batch_is_none(ledger: Database) -> None:
    async with AsyncClient(settings=Settings()) as client:
        assert await open_channel(ledger, client).find_target("none") is None


async def test_a_wait_ends_when_the_run_is_stopped(ledger: Database) -> None:
    async with AsyncClient(settings=Settings()) as client:
        channel = open_channel(ledger, client)
        began = time.monotonic()
        await channel.sleep(0.01)
        asyncio.get_running_loop().call_later(0.05, channel.job.stop.set)
        await channel.sleep(30)
        assert time.monotonic() - began < 5
