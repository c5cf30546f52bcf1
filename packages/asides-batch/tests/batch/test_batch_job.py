"""What every way to answer a batch relies on: a ledger that is away for a while, and the results it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import asides
from asides.database import Database, StoreUnavailable
from asides.settings import Settings
from asides_batch import batch_job
from asides_batch.batch_job import BatchJob, JobSetup, find_runner, wait_for_store
from asides_batch.batch_plan import BatchPlan, RunSettings, encode_plan
from asides_batch.leases import has_ended
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import LoadedRow, create_record


class Shaky:
    """A database whose answers get lost: the work counts, and the caller hears that the server is away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.losses = 0

    async def run_async(self, work: Any, **options: Any) -> Any:
        result = await self._database.run_async(work, **options)
        if self.losses:
            self.losses -= 1
            raise StoreUnavailable("away")
        return result


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_ledger_database(str(tmp_path / "ledger"))


def open_job(database: Database, shaky: Any, settings: Settings | None = None) -> BatchJob:
    ledger = Ledger("b")
    database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    rows = [LoadedRow(place, f"h{place}", None, None, b'{"prompt":"?"}') for place in range(4)]
    database.run(lambda: ledger.load(rows, 0))
    record = database.run(lambda: ledger.finish_loading(4, 0))
    record = msgspec.structs.replace(record, plan=encode_plan(BatchPlan(("groq:m",)), RunSettings()))
    return BatchJob(JobSetup("", "b", record.version, settings or Settings()), shaky, record, cast("Any", None))


async def test_lost_news_counts_once_and_loses_no_claim(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_job, "_FIRST_PAUSE", 0.01)
    shaky = Shaky(database)
    job = open_job(database, shaky)
    (claim,) = (await job.exchange([], 1)).claims
    shaky.losses = 1
    exchange = await job.exchange([job.encode(claim, asides.Reply())], 1, held=())
    assert (exchange.record.failed, exchange.record.done, len(exchange.claims)) == (1, 0, 1)
    # Only the one that this run knows of is claimed.
    assert database.run(lambda: job.ledger.count_running(has_ended), writes=False) == 1
    database.close()


async def test_a_server_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_job, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(batch_job, "_OUTAGE_SECONDS", 0.05)

    async def fail() -> None:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await wait_for_store(fail)


async def test_thinking_is_kept_by_the_settings(database: Database) -> None:
    reply = asides.Reply(parts=(asides.Thought("canary"), asides.Text("yes")))
    job = open_job(database, database)
    (claim,) = (await job.exchange([], 1)).claims
    fields = json.loads(job.encode(claim, reply).result)
    assert (fields["text"], "thinking" in fields) == ("yes", False)
    assert "response_id" in fields
    assert "id" not in fields
    for settings, shown in (
        (Settings(show_reasoning_thinking=True), "canary"),
        (Settings(show_reasoning_thinking=True, reasoning_allowed_models=("none",)), None),
    ):
        shows = open_job(database, database, settings)
        assert json.loads(shows.encode(claim, reply).result).get("thinking") == shown
    database.close()


def test_unknown_ways_are_told() -> None:
    with pytest.raises(asides.ConfigError, match=r"[Uu]se live, vendor, ray"):
        find_runner("pigeon")
    assert find_runner("live").run is not None
