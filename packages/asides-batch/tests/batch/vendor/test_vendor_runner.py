"""Batches via a vendor on the stage: answers rejoined, errors, expiry, cancelling, limits, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
import asides_batch
from asides import AsyncClient, Settings
from asides.database import Database
from asides_batch import live_runner
from asides_batch.batch_job import BatchJob
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.vendor import vendor_runner
from asides_stage import BatchScript, OpenStage, Stage
from tests.batch.vendor.vendor_jobs import (
    MODELS,
    NAME,
    QUICK,
    answer,
    assert_answered,
    assert_paid_once,
    load_questions,
    make_job,
    plan_batch,
    read_rows,
    resume,
    run_batch,
)
from tests.stores import list_import_folders

for_each_model = pytest.mark.parametrize("kind", list(MODELS))
# Chat and Responses have the same form of batches.
for_each_vendor = pytest.mark.parametrize("kind", ["chat", "messages", "contents"])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_runner, "PACE", QUICK)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place = str(tmp_path / "ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_ledger_database(place)
    yield opened
    opened.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Database]:
    opened = open_ledger_database(str(tmp_path / "ledger"))
    yield opened
    opened.close()


# --- answers ----------------------------------------------------------------------------------------------------------


@for_each_model
def test_answers_come_back_to_their_questions(stage: OpenStage, database: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.1))
    stage.expect_no_refusals()
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(30)]
    job = run_batch(database, load_questions(database, plan, questions), plan, own)
    assert job.error is None
    assert_answered(read_rows(database), questions)
    assert (job.record.done, job.record.failed, job.record.reserved) == (30, 0, 0)
    assert len(opened.batches) == 1
    assert_paid_once(opened)


@for_each_model
def test_thinking_is_apart(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    run_batch(ledger, load_questions(ledger, plan, ["why"]), plan, own)
    ((_, result),) = read_rows(ledger)
    assert result is not None
    assert result["text"] == "answer to why"
    assert "mull" not in json.dumps(result)
    assert result["thinking_type"] is not None or kind in ("chat", "messages")


def test_a_stopped_run_goes_on_later_with_the_same_batch(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.3))
    plan, own = plan_batch(MODELS["contents"], opened.url)

    async def stop_soon(job: BatchJob) -> None:
        while not opened.batches:
            await asyncio.sleep(0.02)
        job.stop.set()

    record = load_questions(ledger, plan, ["one", "two"])
    run_batch(ledger, record, plan, own, during=stop_soon)
    assert [state for state, _ in read_rows(ledger)] == ["sent", "sent"]
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), ["one", "two"])
    assert len(opened.batches) == 1


def test_a_live_run_leaves_what_is_at_a_vendor_and_says_so(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=5))
    plan, own = plan_batch(MODELS["messages"], opened.url)

    async def stop_soon(job: BatchJob) -> None:
        while not opened.batches:
            await asyncio.sleep(0.02)
        job.stop.set()

    record = load_questions(ledger, plan, ["one", "two"])
    run_batch(ledger, record, plan, own, during=stop_soon)
    job = run_batch(ledger, resume(ledger), plan, own, runner=live_runner)
    assert "2 requests are in batches of a vendor" in str(job.error)
    assert "--via vendor" in str(job.error)
    assert [state for state, _ in read_rows(ledger)] == ["sent", "sent"]


@for_each_vendor
def test_two_processes_share_the_work(stage: OpenStage, database: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.2))
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(40)]
    record = load_questions(database, plan, questions)

    async def run_both() -> list[BatchJob]:
        async with AsyncClient(settings=Settings()) as client:
            jobs = [make_job(database, msgspec.structs.replace(record), plan, own, client) for _ in range(2)]
            async with asyncio.timeout(30):
                await asyncio.gather(*(vendor_runner.run(job) for job in jobs))
            return jobs

    jobs = asyncio.run(run_both())
    assert [job.error for job in jobs] == [None, None]
    assert_answered(read_rows(database), questions)
    # A reply has eight tokens: four of thinking, four of text. Each counts once.
    assert [job.record.output_tokens for job in jobs] == [320, 320]
    assert_paid_once(opened)


# --- cancelling -------------------------------------------------------------------------------------------------------


@for_each_vendor
def test_cancelling_cancels_at_the_vendor_and_keeps_what_was_answered(
    stage: OpenStage, ledger: Database, kind: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.8, cancel_seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(40)]

    async def cancel_soon(job: BatchJob) -> None:
        while not (opened.batches and opened.batches[0].answered):
            await asyncio.sleep(0.02)
        await job.database.run_async(lambda: Ledger(NAME).cancel())

    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own, during=cancel_soon)
    assert job.error is None
    (batch,) = opened.batches
    assert batch.cancelled_at is not None
    states = Counter(state for state, _ in read_rows(ledger))
    kept = 0 if kind == "contents" else len(batch.answered)
    assert states == Counter(done=kept, waiting=40 - kept)
    if kind != "contents":
        run_batch(ledger, resume(ledger), plan, own)
        assert_answered(read_rows(ledger), questions)
        assert_paid_once(opened)


@for_each_vendor
def test_cancelling_a_batch_that_has_ended_meanwhile_keeps_its_answers(
    stage: OpenStage, ledger: Database, kind: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.1))
    plan, own = plan_batch(MODELS[kind], opened.url)

    async def stop_soon(job: BatchJob) -> None:
        while not opened.batches:
            await asyncio.sleep(0.02)
        job.stop.set()

    run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own, during=stop_soon)
    while opened.batches[0].advance() != "ended":
        time.sleep(0.02)
    cancelled = ledger.run(lambda: Ledger(NAME).cancel())
    job = run_batch(ledger, cancelled, plan, own)
    assert (job.error, job.record.done, job.record.left) == (None, 2, 0)
    assert_answered(read_rows(ledger), ["one", "two"])


def test_a_batch_that_was_cancelled_elsewhere_is_not_paid_for_again_unasked(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=1.0))
    plan, own = plan_batch(MODELS["messages"], opened.url)

    async def cancel_at_the_vendor(_: BatchJob) -> None:
        while not opened.batches:
            await asyncio.sleep(0.02)
        opened.batches[0].cancel()

    record = load_questions(ledger, plan, [f"question {number}" for number in range(10)])
    job = run_batch(ledger, record, plan, own, during=cancel_at_the_vendor)
    assert len(opened.batches) == 1
    assert job.record.failed >= 5
    assert job.record.left == 0


# --- kill -9 ----------------------------------------------------------------------------------------------------------

# The requests that create a batch, ask for its state, and fetch its results.
_REQUESTS = {
    "chat": (("POST", "/batches$"), ("GET", r"/batches/batch_\w+$"), ("GET", "/content$")),
    "messages": (("POST", "/batches$"), ("GET", r"/batches/msgbatch_\w+$"), ("GET", "/results$")),
    "contents": (("POST", ":batchGenerateContent$"), ("GET", r"/batches/\w+$"), ("GET", ":download$")),
}


def run_process(folder: Path, **given: Any) -> int:
    """Run a batch in a process of its own; returns its exit code."""
    path = folder / "given.json"
    path.write_text(json.dumps({**given, "pace": msgspec.structs.asdict(QUICK)}), encoding="utf-8")
    command = [sys.executable, "-m", "tests.batch.vendor.vendor_jobs", str(path)]
    environment = {"PYTHONPATH": list_import_folders(), "HOME": str(folder), "PATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, check=False, timeout=60, capture_output=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


_ALL_POINTS = [pytest.param(kind, range(6), marks=pytest.mark.thorough) for kind in ("messages", "chat", "contents")]


@pytest.mark.parametrize(("kind", "chosen"), [("messages", (1, 4, 5)), *_ALL_POINTS])
def test_a_process_that_is_killed_anywhere_pays_for_nothing_twice(
    stage: OpenStage, tmp_path: Path, kind: str, chosen: Iterable[int]
) -> None:
    """Killed before the creation, after it, while watching, while fetching and while writing; then run to the end."""
    opened = stage(answer, batches=BatchScript(seconds=0.1))
    plan, _ = plan_batch(MODELS[kind], opened.url)
    place = str(tmp_path / "ledger")
    database = open_ledger_database(place)
    # So many that a batch of contents has a file, and results are written in several groups.
    questions = [f"question {number}" for number in range(450)]
    load_questions(database, plan, questions)
    given = {"ledger": place, "model": MODELS[kind], "url": opened.url}
    create, show, fetch = _REQUESTS[kind]
    points: list[dict[str, Any]] = [
        {"point": (*create, "before")},
        {"point": (*create, "after")},
        {"point": (*show, "while")},
        {"point": (*fetch, "before")},
        {"point": (*fetch, "while")},
        {"writes": 1},
    ]
    for number in chosen:
        assert run_process(tmp_path, **given, **points[number]) == -signal.SIGKILL, points[number]
    assert run_process(tmp_path, **given) == 0
    assert_answered(read_rows(database), questions)
    record = database.run(Ledger(NAME).find)
    assert record is not None
    assert (record.done, record.failed, record.reserved) == (450, 0, 0)
    assert [len(batch.rows) for batch in opened.batches] == [450]
    assert_paid_once(opened)
    database.close()


# --- Batch ------------------------------------------------------------------------------------------------------------


def make_batch(stage: Stage, folder: Path, rows: list[str] | None, kind: str = "messages") -> asides_batch.Batch:
    return asides_batch.Batch(
        rows,
        output=folder / "out.jsonl",
        model=MODELS[kind],
        via="vendor",
        settings=Settings(),
        base_url=stage.url,
        api_key="sk-made-up",
    )


@for_each_vendor
def test_a_batch_is_run_via_a_vendor(stage: OpenStage, tmp_path: Path, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.1))
    batch = make_batch(opened, tmp_path, ["one", "two", "one"], kind)
    status = batch.run()
    assert (status.state, status.via, status.done, status.vendor_batches) == ("finished", "vendor", 2, ())
    assert [result.text for result in batch] == ["answer to one", "answer to two", "answer to one"]
    assert len((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    assert "sk-made-up" not in (tmp_path / "out.jsonl.ledger").read_bytes().decode("latin-1")
    batch.close()


def test_cancelling_a_batch_that_nobody_runs_cancels_at_the_vendor(stage: OpenStage, tmp_path: Path) -> None:
    opened = stage(answer, batches=BatchScript(seconds=60, cancel_seconds=0.05))
    questions = [f"question {number}" for number in range(20)]

    async def run_a_while() -> None:
        batch = asides_batch.AsyncBatch(
            questions,
            output=tmp_path / "out.jsonl",
            model=MODELS["chat"],
            via="vendor",
            settings=Settings(),
            base_url=opened.url,
            api_key="sk-made-up",
        )
        task = asyncio.ensure_future(batch.run())
        while not opened.batches:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        shown = await batch.status()
        assert [(one.id, one.requests) for one in shown.vendor_batches] == [(opened.batches[0].id, 20)]
        batch.stop()
        assert (await task).state == "running"
        await batch.close()

    asyncio.run(run_a_while())
    batch = make_batch(opened, tmp_path, None, "chat")
    status = batch.cancel()
    assert (status.state, status.left, status.vendor_batches) == ("cancelled", 20, ())
    assert opened.batches[0].cancelled_at is not None
    batch.close()


def test_a_batch_at_a_provider_without_batches_makes_no_ledger(tmp_path: Path) -> None:
    batch = asides_batch.Batch(
        ["one"],
        output=tmp_path / "out.jsonl",
        model="groq:any",
        via="vendor",
        settings=Settings(),
        api_key="sk-made-up",
    )
    with pytest.raises(asides.Unsupported, match="--via live"):
        batch.run()
    assert list(tmp_path.iterdir()) == []


def test_a_check_counts_half_the_price(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    costs = [
        asides_batch.Batch(
            ["one"],
            output=tmp_path / "out.jsonl",
            model="anthropic:claude-opus-5-5",
            via=via,
            settings=Settings(),
            max_tokens=100,
        )
        .check()
        .most_cost
        for via in ("live", "vendor")
    ]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0] == costs[1] * 2 > 0
