"""Runs of vendors' batches for tests: a ledger with questions, a job over it, and what became of each question.

As a program (`python -m tests.batch.vendor.vendor_jobs`) it runs a batch of a ledger that exists, and ends itself with
kill -9 at a given point.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from asides import AsyncClient, Settings
from asides.batch_rows import read_row
from asides.database import Database
from asides.dialects.dialect import ServedRequest
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.transports.http_async import AsyncHttpTransport
from asides.values.errors import ConnectionLost
from asides_batch.batch_job import BatchJob, JobSetup
from asides_batch.batch_plan import BatchPlan, RunSettings, encode_plan, encode_request, read_plan
from asides_batch.leases import has_ended
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import BatchRecord, LoadedRow, RunLimits, create_record
from asides_batch.vendor import vendor_runner
from asides_batch.vendor.vendor_channel import Pace
from asides_stage import Fail, Hang, Say, Scene, Stage

QUICK = Pace(first=0.03, longest=0.1, settle=0.3, blocked=0.2)
NAME = "test"
MODELS = {
    "chat": "openai:gpt-4.1",
    "responses": "openai:gpt-5.2",
    "messages": "anthropic:claude-opus-5-5",
    "contents": "google:gemini-3-flash-preview",
}


def plan_batch(model: str, url: str, **options: Any) -> tuple[BatchPlan, Options]:
    given: dict[str, Any] = {"base_url": url, "api_key": "sk-made-up", **options}
    return read_plan(model, cast("Options", given), CallBuilder(settings=Settings()))


def load_questions(database: Database, plan: BatchPlan, rows: Sequence[Any]) -> BatchRecord:
    """Put questions into a ledger."""
    ledger = Ledger(NAME)
    wanted = create_record(NAME, via="vendor", plan_digest=plan.digest, source_digest=str(len(rows)))
    version = database.run(lambda: ledger.begin(wanted, has_ended)).version
    loaded: list[LoadedRow] = []
    for place, row in enumerate(rows):
        question = read_row(row, place, f"row {place}")
        loaded.append(LoadedRow(place, plan.compute_hash(question), None, None, encode_request(question)))
    for start in range(0, len(loaded), 5000):
        database.run(lambda: ledger.load(loaded[start : start + 5000], version))  # noqa: B023 - run here
    return database.run(lambda: ledger.finish_loading(len(loaded), version))


def resume(database: Database) -> BatchRecord:
    return database.run(lambda: Ledger(NAME).resume(has_ended))


def make_job(
    database: Database, record: BatchRecord, plan: BatchPlan, own: Options, client: AsyncClient, **options: Any
) -> BatchJob:
    limits = options.pop("limits", RunLimits())
    record = msgspec.structs.replace(record, plan=encode_plan(plan, RunSettings(**options)))
    job = BatchJob(JobSetup("", NAME, record.version, Settings(), own=own), database, record, client)
    job.limits = limits
    return job


def run_batch(
    database: Database,
    record: BatchRecord,
    plan: BatchPlan,
    own: Options,
    *,
    during: Callable[[BatchJob], Any] | None = None,
    transport: Any = None,
    runner: Any = vendor_runner,
    **options: Any,
) -> BatchJob:
    """Run a batch to its end; `during` gets the job and runs beside it."""

    async def run() -> BatchJob:
        async with AsyncClient(settings=Settings(), transport=transport) as client:
            job = make_job(database, record, plan, own, client, **options)
            beside = None if during is None else asyncio.ensure_future(during(job))
            async with asyncio.timeout(60):
                await runner.run(job)
            if beside is not None:
                await beside
            return job

    return asyncio.run(run())


def read_rows(database: Database) -> list[tuple[str, dict[str, Any] | None]]:
    """The state and the result of each row, in order."""
    joined = database.run(lambda: Ledger(NAME).join(0, 1_000_000), writes=False)
    return [(row.state, None if row.result is None else json.loads(row.result)) for row in joined]


# --- scripts and checks ---------------------------------------------------------------------------------------------


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


# --- a process that ends at a point ---------------------------------------------------------------------------------


class KillingTransport(AsyncHttpTransport):
    """Ends the process before, after or while the first request with this method and a path like this; or breaks its
    connection.
    """

    def __init__(self, method: str, pattern: str, when: str) -> None:
        super().__init__()
        self._point = (method, pattern, when)

    def open(self, request: Any, timeout: Any) -> Any:
        method, pattern, when = self._point
        path = request.url.partition("?")[0]
        if request.method != method or re.search(pattern, path) is None:
            return super().open(request, timeout)
        if when == "before":
            _die()
        self._point = (method, pattern, "") if when == "break" else self._point
        return _KillingResponse(super().open(request, timeout), when)


class _KillingResponse:
    """Ends the process after the head of a response, or after some of its body."""

    def __init__(self, response: Any, when: str) -> None:
        self._response, self._when = response, when

    async def head(self) -> Any:
        head = await self._response.head()
        if self._when == "after":
            _die()
        return head

    async def read(self, patience: float | None = None) -> bytes:
        data: bytes = await self._response.read(patience)
        if self._when == "while":
            _die()
        if self._when == "break" and data:
            self._when = "broken"
        elif self._when == "broken":
            raise ConnectionLost("the connection is lost")
        return data

    def close(self) -> None:
        self._response.close()


class ChangingTransport(AsyncHttpTransport):
    """Changes the bodies of responses to GET requests with a path like this."""

    def __init__(self, pattern: str, change: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._pattern, self._change = pattern, change

    def open(self, request: Any, timeout: Any) -> Any:
        response = super().open(request, timeout)
        path = request.url.partition("?")[0]
        if request.method != "GET" or re.search(self._pattern, path) is None:
            return response
        return _ChangedResponse(response, self._change)


def cut_a_line(body: bytes) -> bytes:
    """Cut off a line in the middle."""
    lines = body.splitlines(keepends=True)
    if lines:
        middle = len(lines) // 2
        lines[middle] = lines[middle][: len(lines[middle]) // 2] + b"\n"
    return b"".join(lines)


class _ChangedResponse:
    """A response whose body is another one."""

    def __init__(self, response: Any, change: Callable[[bytes], bytes]) -> None:
        self._response, self._change = response, change
        self._is_read = False

    async def head(self) -> Any:
        return await self._response.head()

    async def read(self, patience: float | None = None) -> bytes:
        body = b""
        while data := await self._response.read(patience):
            body += data
        if self._is_read:
            return b""
        self._is_read = True
        return self._change(body)

    def close(self) -> None:
        self._response.close()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(given: dict[str, Any]) -> None:
    vendor_runner.PACE = msgspec.convert(given["pace"], Pace)
    place = given["ledger"]
    database = open_ledger_database(place)
    plan, own = plan_batch(given["model"], given["url"])
    if (writes := given.get("writes")) is not None:
        _die_after_writes(writes)
    point = given.get("point")
    transport = None if point is None else KillingTransport(*point)
    job = run_batch(database, resume(database), plan, own, transport=transport)
    if job.error is not None:
        raise job.error


def _die_after_writes(number: int) -> None:
    """End the process after so many writes of results."""
    from asides_batch.vendor.vendor_ledger import VendorLedger

    whole, count = VendorLedger.settle, 0

    def settle(self: Any, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count > number:
            _die()
        return (yield from whole(self, *arguments))

    cast("Any", VendorLedger).settle = settle


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
