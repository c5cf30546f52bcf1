"""The results of a vendor's batch: each row has its reply or its error, and what may pass is tried again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.batch.ledger_tables import open_ledger_database
from asides.batch.vendor import vendor_runner, write_vendor_results
from asides.batch.vendor.forms import RowOutcome
from asides.database import Database
from asides.dialects.dialect import ServedRequest
from asides.testing import BatchScript, Fail, Hang, OpenStage, Say, Scene
from tests.batch.vendor.vendor_jobs import (
    MODELS,
    QUICK,
    KillingTransport,
    answer,
    assert_answered,
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


@for_each_vendor
def test_results_whose_connection_breaks_are_fetched_again(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(500)]
    pattern = {"chat": "/content$", "messages": "/results$", "contents": ":download$"}[kind]
    transport = KillingTransport("GET", pattern, "break")
    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own, transport=transport)
    assert job.error is None
    assert_answered(read_rows(ledger), questions)
    assert (job.record.done, job.record.output_tokens) == (500, 500 * 8)
    fetched = [request for request in opened.requests if re.search(pattern, request.path)]
    assert len(fetched) >= 2
    assert len(opened.batches) == 1


@for_each_vendor
def test_a_line_that_cannot_be_read_costs_its_own_row_only(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    questions = [f"question {number}" for number in range(500)]
    pattern = {"chat": "/content$", "messages": "/results$", "contents": ":download$"}[kind]
    transport = KillingTransport("GET", pattern, "damage")
    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own, transport=transport)
    assert (job.error, job.record.done, job.record.failed) == (None, 499, 1)
    assert len(opened.batches) == 1, "what may have been paid for is not asked again by itself"
    (failed,) = [result for state, result in read_rows(ledger) if state == "failed"]
    assert failed is not None
    assert failed["error"]["type"] == "ProtocolError"
    assert "1 line of the results" in failed["error"]["message"]
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), questions)


@for_each_vendor
def test_results_that_come_twice_or_belong_to_others_count_once_and_not_at_all(
    stage: OpenStage, ledger: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_odd(*given: Any) -> AsyncIterator[list[RowOutcome]]:
        async for group in read_outcomes(*given):
            others = [msgspec.structs.replace(one, custom_id=f"other {one.custom_id}") for one in group]
            yield [*group, *others, *group]
            yield group

    read_outcomes = write_vendor_results.read_outcomes
    monkeypatch.setattr(write_vendor_results, "read_outcomes", read_odd)
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own)
    assert_answered(read_rows(ledger), ["one", "two"])
    assert (job.record.done, job.record.failed) == (2, 0)
