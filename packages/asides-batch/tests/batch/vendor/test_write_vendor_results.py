"""The results of a vendor's batch: each row has its reply or its error, and what may pass is tried again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.database import Database, Queries, Query
from asides.dialects.dialect import ServedRequest
from asides.values.errors import ProtocolError
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.vendor import vendor_runner, write_vendor_results
from asides_batch.vendor.forms import RowOutcome
from asides_stage import BatchScript, Fail, Hang, OpenStage, Say, Scene
from tests.batch.vendor.vendor_jobs import (
    MODELS,
    NAME,
    QUICK,
    ChangingTransport,
    KillingTransport,
    answer,
    assert_answered,
    cut_a_line,
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
    transport = ChangingTransport(pattern, cut_a_line)
    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own, transport=transport)
    assert (job.error, job.record.done, job.record.failed) == (None, 499, 1)
    assert len(opened.batches) == 1, "what may have been paid for is not asked again by itself"
    (failed,) = [result for state, result in read_rows(ledger) if state == "failed"]
    assert failed is not None
    assert failed["error"]["type"] == "ProtocolError"
    assert "1 entry of the results" in failed["error"]["message"]
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), questions)


_RESULTS = {"chat": "/content$", "messages": "/results$", "contents": "/batches/[^/:]+$"}


def change_entry(body: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Change the second result in a description of a batch, in both places where it is."""
    shown = json.loads(body)
    for output in (shown["metadata"].get("output"), shown.get("response")):
        if output is not None:
            results = output["inlinedResponses"]["inlinedResponses"]
            results[1] = change(results[1])
    return json.dumps(shown).encode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: None, "1 entry of the results"),
        (lambda _: ["odd"], "1 entry of the results"),
        (lambda entry: {**entry, "metadata": {}}, "1 entry of the results"),
        (lambda entry: {**entry, "response": {"text": "\ud800"}}, "1 entry of the results"),
        (lambda entry: {**entry, "response": {"score": float("nan")}}, "1 entry of the results"),
        (lambda entry: {**entry, "response": 7}, "neither a response nor an error"),
        (lambda entry: {**entry, "response": {"candidates": "odd"}}, "google"),
    ],
)
def test_an_odd_entry_of_a_document_costs_its_own_row_only(
    stage: OpenStage, ledger: Database, change: Callable[[Any], Any], problem: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS["contents"], opened.url)
    questions = ["one", "two", "three"]
    transport = ChangingTransport(_RESULTS["contents"], lambda body: change_entry(body, change))
    job = run_batch(ledger, load_questions(ledger, plan, questions), plan, own, transport=transport)
    assert (job.error, job.record.done, job.record.failed) == (None, 2, 1)
    assert len(opened.batches) == 1, "what may have been paid for is not asked again by itself"
    (failed,) = [result for state, result in read_rows(ledger) if state == "failed"]
    assert failed is not None
    assert problem in failed["error"]["message"]
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), questions)


_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda body: body[: len(body) // 3],
    "page": lambda _: b"<html>\n<p>Please log in</p>\n</html>",
    "empty": lambda _: b"",
}
for_each_damage = pytest.mark.parametrize("damage", list(_DAMAGES))


@for_each_vendor
@for_each_damage
def test_results_that_cannot_be_read_at_all_fail_and_are_asked_again_by_resume(
    stage: OpenStage, ledger: Database, kind: str, damage: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    transport = ChangingTransport(_RESULTS[kind], _DAMAGES[damage])
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own, transport=transport)
    assert (job.error, job.record.done, job.record.failed, job.record.reserved) == (None, 0, 2, 0)
    for state, result in read_rows(ledger):
        assert state == "failed"
        assert result is not None
        assert "cannot be read, 10 times in a row" in result["error"]["message"]
        assert "Resume the batch, which asks again." in result["error"]["message"]
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), ["one", "two"])
    assert len(opened.batches) == 2


@for_each_vendor
@for_each_damage
def test_results_that_cannot_be_read_for_a_while_are_read_later(
    stage: OpenStage, ledger: Database, kind: str, damage: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    left = 8

    def damage_some(body: bytes) -> bytes:
        nonlocal left
        left -= 1
        return _DAMAGES[damage](body) if left >= 0 else body

    transport = ChangingTransport(_RESULTS[kind], damage_some)
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own, transport=transport)
    assert (job.error, left < 0, len(opened.batches)) == (None, True, 1)
    assert_answered(read_rows(ledger), ["one", "two"])


def make_older() -> Queries[None]:
    """The batches were sent more than a day ago."""
    yield Query("UPDATE vendor_batches SET sent = sent - 90000")


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_batch_whose_description_cannot_be_read_is_not_given_up_while_it_may_run(
    stage: OpenStage, ledger: Database, kind: str
) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    transport = ChangingTransport("/batches/[^/]+$", _DAMAGES["page"])
    job = run_batch(ledger, load_questions(ledger, plan, ["one", "two"]), plan, own, transport=transport)
    assert isinstance(job.error, ProtocolError)
    assert "Resume later, which looks again; or cancel the batch" in str(job.error)
    assert [state for state, _ in read_rows(ledger)] == ["sent", "sent"]
    # Its time is over.
    ledger.run(make_older)
    job = run_batch(ledger, resume(ledger), plan, own, transport=transport)
    assert (job.error, job.record.failed) == (None, 2)
    run_batch(ledger, resume(ledger), plan, own)
    assert_answered(read_rows(ledger), ["one", "two"])
    assert len(opened.batches) == 2


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_batch_that_cannot_be_read_can_be_cancelled(stage: OpenStage, ledger: Database, kind: str) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    plan, own = plan_batch(MODELS[kind], opened.url)
    transport = ChangingTransport("/batches/[^/]+$", _DAMAGES["page"])
    run_batch(ledger, load_questions(ledger, plan, ["one"]), plan, own, transport=transport)
    cancelled = ledger.run(lambda: Ledger(NAME).cancel())
    job = run_batch(ledger, cancelled, plan, own, transport=transport)
    assert (job.error, job.record.failed) == (None, 1)


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
