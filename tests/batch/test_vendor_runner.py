"""Batches via a vendor on the stage: answers rejoined, errors, expiry, cancelling, limits, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides import AsyncClient, Settings
from asides.batch import vendor_runner
from asides.batch.batch_job import BatchJob
from asides.batch.ledger import Ledger
from asides.batch.ledger_tables import open_ledger_database
from asides.batch.ledger_values import RunLimits, Weight
from asides.database import Database
from asides.dialects.dialect import ServedRequest
from asides.providers import batch_facts
from asides.testing import BatchScript, Fail, Hang, OpenStage, Say, Scene, Stage
from tests.batch.vendor_jobs import (
    MODELS,
    NAME,
    QUICK,
    load_questions,
    make_job,
    plan_batch,
    read_rows,
    resume,
    run_batch,
)

for_each_model = pytest.mark.parametrize("kind", list(MODELS))
# Chat and Responses have the same form of batches.
for_each_vendor = pytest.mark.parametrize("kind", ["chat", "messages", "contents"])
_HERE = Path(__file__).parents[2]


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


def answer(served: ServedRequest) -> Scene:
    """Think and answer; a question with a word in it goes wrong."""
    question = served.prompt.messages[-1].text
    if "refuse" in question:
        return Fail(status=400, message="no such thing")
    if "busy" in question:
        return Fail(status=503, message="busy")
    if "hang" in question:
        return Hang()
    return Say(thinking=f"mull over {question}", text=f"answer to {question}")


def assert_answered(rows: list[tuple[str, dict[str, Any] | None]], questions: list[str]) -> None:
    texts = [None if result is None else result.get("text") for _, result in rows]
    assert texts == [f"answer to {question}" for question in questions]
    assert {state for state, _ in rows} <= {"done"}


def assert_paid_once(stage: Stage) -> None:
    """No request was answered in two batches."""
    paid = Counter(name for batch in stage.batches for name in batch.answered)
    assert [name for name, count in paid.items() if count > 1] == []


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


@for_each_vendor
def test_rows_that_fail_have_their_error_and_others_their_answer(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(99)]
    job = run_batch(ledger, load_questions(ledger, plan, [*questions, "refuse this"]), plan, own)
    rows = read_rows(ledger)
    assert_answered(rows[:-1], questions)
    state, result = rows[-1]
    assert (state, job.record.failed) == ("failed", 1)
    assert result is not None
    assert (result["error"]["type"], result["error"]["status"]) == ("BadRequest", 400)
    assert "no such thing" in result["error"]["message"]


def test_rows_that_failed_are_asked_again_alone(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["messages"], opened.url)
    run_batch(ledger, load_questions(ledger, plan, ["one", "two", "refuse this"]), plan, own)
    run_batch(ledger, resume(ledger), plan, own)
    assert [len(batch.rows) for batch in opened.batches] == [3, 1]


@for_each_vendor
def test_an_error_that_may_pass_is_tried_in_another_batch(stage: OpenStage, ledger: Database, kind: str) -> None:
    seen: Counter[str] = Counter()

    def busy_once(served: ServedRequest) -> Scene:
        question = served.prompt.messages[-1].text
        seen[question] += 1
        return Fail(status=503, message="busy") if "busy" in question and seen[question] == 1 else answer_plainly()

    def answer_plainly() -> Scene:
        return Say(text="fine")

    opened = stage(busy_once, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    run_batch(ledger, load_questions(ledger, plan, ["one", "busy"]), plan, own)
    assert [state for state, _ in read_rows(ledger)] == ["done", "done"]
    assert [len(batch.rows) for batch in opened.batches] == [2, 1]


def test_an_error_that_does_not_pass_is_given_up(stage: OpenStage, ledger: Database) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.02))
    plan, own = plan_batch(MODELS["chat"], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["busy"]), plan, own, retries=2)
    assert len(opened.batches) == 3
    assert job.record.failed == 1


@for_each_vendor
def test_rows_that_expire_are_asked_again(stage: OpenStage, ledger: Database, kind: str) -> None:
    seen: Counter[str] = Counter()

    def hang_once(served: ServedRequest) -> Scene:
        question = served.prompt.messages[-1].text
        seen[question] += 1
        return Hang() if "slow" in question and seen[question] == 1 else Say(text="fine")

    opened = stage(hang_once, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two", "slow"]), plan, own)
    assert [state for state, _ in read_rows(ledger)] == ["done"] * 3
    # A batch of contents that has expired has no results at all.
    assert [len(batch.rows) for batch in opened.batches] == [3, 3 if kind == "contents" else 1]
    assert (job.error, job.record.done) == (None, 3)


# --- limits -----------------------------------------------------------------------------------------------------------


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
    limits = RunLimits(rpm=1, tpm=1, max_cost=30, weigh=lambda _: Weight(1, 1, 10))
    job = run_batch(ledger, record, plan, own, limits=limits)
    # Each may cost 5. What has no known price gives nothing back.
    assert len(opened.batches[0].rows) == 6
    assert job.is_out_of_money or job.record.done == 10


def test_a_provider_without_batches_is_refused_with_what_to_do(ledger: Database) -> None:
    plan, own = plan_batch("groq:any", "http://127.0.0.1:9/v1")
    job = run_batch(ledger, load_questions(ledger, plan, ["one"]), plan, own)
    assert job.error is not None
    assert "groq has no batches" in str(job.error)
    assert "--via live" in str(job.error)
    assert read_rows(ledger)[0][0] == "waiting"


# --- what goes wrong --------------------------------------------------------------------------------------------------


@for_each_vendor
def test_a_lost_answer_to_the_creation_creates_no_second_batch(stage: OpenStage, database: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.2, lost_creations=1, list_seconds=0.1))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(database, load_questions(database, plan, ["one", "two"]), plan, own)
    assert job.error is None
    assert_answered(read_rows(database), ["one", "two"])
    assert len(opened.batches) == 1


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
    ours.close()
    theirs.close()


def _pretend_creation(database: Database, name: str) -> None:
    """Leave a ledger as a process does that ended before the vendor got its creation."""
    from asides.batch.vendor_ledger import VendorLedger

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
        from asides.database import Query

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
    command = [sys.executable, "-m", "tests.batch.vendor_jobs", str(path)]
    environment = {"PYTHONPATH": f"{_HERE / 'src'}:{_HERE}", "HOME": str(folder), "PATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, check=False, timeout=60, capture_output=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


@pytest.mark.parametrize("kind", list(_REQUESTS))
def test_a_process_that_is_killed_anywhere_pays_for_nothing_twice(stage: OpenStage, tmp_path: Path, kind: str) -> None:
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
    for point in points:
        assert run_process(tmp_path, **given, **point) == -signal.SIGKILL, point
    assert run_process(tmp_path, **given) == 0
    assert_answered(read_rows(database), questions)
    record = database.run(Ledger(NAME).find)
    assert record is not None
    assert (record.done, record.failed, record.reserved) == (450, 0, 0)
    assert [len(batch.rows) for batch in opened.batches] == [450]
    assert_paid_once(opened)
    database.close()
