"""Batches at a vendor are grouped, split to its limits, and created once, also where an answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.database import Database, Queries, Query
from asides.providers import batch_facts
from asides_batch.batch_job import BatchJob
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import RequestEstimate, RunLimits
from asides_batch.vendor import vendor_runner
from asides_stage import BatchScript, OpenStage
from tests.batch.vendor.vendor_jobs import (
    MODELS,
    QUICK,
    answer,
    assert_answered,
    assert_paid_once,
    load_questions,
    plan_batch,
    read_rows,
    resume,
    run_batch,
)

for_each_vendor = pytest.mark.parametrize("kind", ["chat", "messages", "contents"])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_runner, "PACE", QUICK)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Database]:
    opened = open_ledger_database(str(tmp_path / "ledger"))
    yield opened
    opened.close()


@for_each_vendor
def test_batches_are_split_to_the_limits(
    stage: OpenStage, ledger: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05, most_requests=10, most_bytes=30_000))
    plan, own = plan_batch(MODELS[kind], opened.url)
    name = MODELS[kind].partition(":")[0]
    facts = batch_facts._BY_PROVIDER[name]  # pyright: ignore[reportPrivateUsage]
    small = msgspec.structs.replace(facts, most_requests=10, most_bytes=30_000, most_inline_bytes=2_000)
    monkeypatch.setitem(batch_facts._BY_PROVIDER, name, small)  # pyright: ignore[reportPrivateUsage]
    questions = [f"question {number}" for number in range(25)] + [f"{number} {'long ' * 1500}" for number in range(5)]
    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own)
    assert job.error is None
    assert job.record.done == 30
    sizes = [len(batch.rows) for batch in opened.batches]
    assert max(sizes) <= 10
    assert sum(sizes) == 30
    assert len(sizes) >= 4
    assert_paid_once(opened)


def test_a_request_that_no_batch_takes_fails_alone(
    stage: OpenStage, ledger: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["chat"], opened.url)
    facts = batch_facts._BY_PROVIDER["openai"]  # pyright: ignore[reportPrivateUsage]
    small = msgspec.structs.replace(facts, most_bytes=20_000)
    monkeypatch.setitem(batch_facts._BY_PROVIDER, "openai", small)  # pyright: ignore[reportPrivateUsage]
    run_batch(ledger, load_questions(ledger, plan, ["short", "long " * 4000]), plan, own)
    (first, _), (second, result) = read_rows(ledger)
    assert (first, second) == ("done", "failed")
    assert result is not None
    assert "--via live" in result["error"]["message"]


@pytest.mark.parametrize("model", ["nowhere:m", "no such model", "groq:qwen/qwen3-32b"])
def test_a_row_with_a_model_that_has_no_batches_fails_alone(stage: OpenStage, ledger: Database, model: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["chat"], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", {"prompt": "two", "model": model}]), plan, own)
    assert (job.error, [state for state, _ in read_rows(ledger)]) == (None, ["done", "failed"])


def test_rows_of_several_models_go_into_batches_of_their_own(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch("openai:gpt-4.1", opened.url)
    rows = [{"prompt": "one"}, {"prompt": "two", "model": "openai:gpt-4.1-mini"}, {"prompt": "three"}]
    job = run_batch(ledger, load_questions(ledger, plan, rows), plan, own)
    assert job.error is None
    assert sorted(len(batch.rows) for batch in opened.batches) == [1, 2]
    assert_answered(read_rows(ledger), ["one", "two", "three"])


def test_a_limit_of_cost_counts_half_the_live_price(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["chat"], opened.url)
    record = load_questions(ledger, plan, [f"question {number}" for number in range(10)])
    limits = RunLimits(rpm=1, tpm=1, max_cost=30, estimate=lambda _: RequestEstimate(1, 1, 10))
    job = run_batch(ledger, record, plan, own, limits=limits)
    # Each may cost 5. What has no known price gives nothing back.
    assert len(opened.batches[0].rows) == 6
    assert job.has_reached_max_cost or job.record.done == 10


def test_a_provider_without_batches_is_refused_with_what_to_do(ledger: Database) -> None:
    plan, own = plan_batch("groq:any", "http://127.0.0.1:9/v1")
    job = run_batch(ledger, load_questions(ledger, plan, ["one"]), plan, own)
    assert job.error is not None
    assert "groq has no batches" in str(job.error)
    assert "--via live" in str(job.error)
    assert read_rows(ledger)[0][0] == "waiting"


@for_each_vendor
def test_a_lost_answer_to_the_creation_creates_no_second_batch(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.2, lost_creations=1, list_seconds=0.1))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own)
    assert job.error is None
    assert_answered(read_rows(ledger), ["one", "two"])
    assert len(opened.batches) == 1


@for_each_vendor
def test_a_creation_that_comes_too_soon_is_sent_again(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05, limited_creations=2))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own)
    assert job.error is None
    assert_answered(read_rows(ledger), ["one", "two"])
    assert len(opened.batches) == 1


def test_a_batch_waits_until_the_vendor_has_room(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05, crowded_batches=2))
    plan, own = plan_batch(MODELS["chat"], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own)
    assert job.error is None
    assert_answered(read_rows(ledger), ["one", "two"])
    assert [len(batch.answered) for batch in opened.batches] == [0, 0, 2]
    assert ledger.run(_read_attempts) == 1


def test_a_batch_of_others_of_the_same_size_is_not_taken_for_ours(stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.4))
    plan, own = plan_batch(MODELS["messages"], opened.url)
    theirs, ours = open_ledger_database(str(tmp_path / "theirs")), open_ledger_database(str(tmp_path / "ours"))

    async def stop_soon(job: BatchJob) -> None:
        while not opened.batches:
            await asyncio.sleep(0.02)
        job.stop.set()

    run_batch(theirs, load_questions(theirs, plan, ["their one", "their two"]), plan, own, during=stop_soon)
    record = load_questions(ours, plan, ["one", "two"])
    _pretend_creation(ours, record.name)
    job = run_batch(ours, resume(ours), plan, own)
    assert job.error is None
    assert_answered(read_rows(ours), ["one", "two"])
    assert [sorted(batch.custom_ids) == sorted(opened.batches[0].custom_ids) for batch in opened.batches] == [
        True,
        False,
    ]
    # The batch of others was no attempt at ours.
    assert ours.run(_read_attempts) == 1
    ours.close()
    theirs.close()


def test_a_batch_that_is_known_is_not_taken_for_one_that_is_missing(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["messages"], opened.url)
    run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own)
    record = load_questions(ledger, plan, ["one", "two", "three", "four"])
    _pretend_creation(ledger, record.name)
    job = run_batch(ledger, resume(ledger), plan, own)
    assert job.error is None
    assert_answered(read_rows(ledger), ["one", "two", "three", "four"])
    fetched = [request.path for request in opened.requests if request.path.endswith("/results")]
    assert len(fetched) == len(set(fetched)) == 2, "its results are not fetched again"


def _read_attempts() -> Queries[int]:
    attempts: int = (yield Query("SELECT max(attempts) FROM batch_requests")).rows[0][0]
    return attempts


def _pretend_creation(database: Database, name: str) -> None:
    """Leave a ledger as a process does that ended before the vendor got its creation."""
    from asides_batch.vendor.vendor_ledger import VendorLedger

    ledger = VendorLedger(name)
    record = database.run(ledger.find)
    assert record is not None
    claimed = database.run(
        lambda: ledger.exchange("gone|0|0|0", [], 10, RunLimits(), version=record.version),
    )
    hashes = [claim.hash for claim in claimed.claims]
    database.run(lambda: ledger.intend("gone|0|0|0", "asides-lost", hashes))
    database.run(lambda: ledger.begin_creation("asides-lost", "gone|0|0|0"))

    def expire() -> Any:
        yield Query("UPDATE vendor_batches SET lease = 0")

    database.run(expire)


@for_each_vendor
def test_a_wrong_key_ends_the_run_and_loses_nothing(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, key="another", batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one"]), plan, own)
    assert type(job.error).__name__ == "AuthError"
    assert "sk-made-up" not in str(job.error)
    assert [state for state, _ in read_rows(ledger)] == ["waiting"]
