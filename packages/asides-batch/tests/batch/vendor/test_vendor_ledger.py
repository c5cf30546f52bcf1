"""The work of a vendor's batch on the ledger, on both engines: each step is written once, also if it is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asides.database import Database
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import Outcome, RequestEstimate, RunLimits
from asides_batch.vendor.vendor_ledger import VendorBatch, VendorLedger
from tests.batch.vendor.vendor_jobs import NAME, load_questions, plan_batch

LIMITS = RunLimits(max_cost=1000, estimate=lambda _: RequestEstimate(1, 1, 10))
LEDGER = VendorLedger(NAME)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place = str(tmp_path / "ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_ledger_database(place)
    plan, _ = plan_batch("openai:gpt-4.1", "http://127.0.0.1:9/v1")
    load_questions(opened, plan, ["one", "two", "three"])
    yield opened
    opened.close()


def claim(database: Database, owner: str = "me") -> list[str]:
    record = database.run(LEDGER.find)
    assert record is not None
    exchange = database.run(lambda: LEDGER.exchange(owner, [], 10, LIMITS, version=record.version))
    return [each.hash for each in exchange.claims]


def intend(database: Database, marker: str = "m1", owner: str = "me") -> list[str]:
    hashes = claim(database, owner)
    return database.run(lambda: LEDGER.intend(owner, marker, hashes))


def read_open(database: Database) -> list[VendorBatch]:
    return database.run(LEDGER.list_open)


def read_state(database: Database) -> dict[str, Any]:
    record = database.run(LEDGER.find)
    assert record is not None
    return {"done": record.done, "failed": record.failed, "reserved": record.reserved, "cost": record.cost}


def test_requests_of_a_batch_are_nobodys_to_claim(database: Database) -> None:
    assert len(intend(database)) == 3
    assert claim(database, "another") == []
    (batch,) = read_open(database)
    assert (batch.marker, batch.state, batch.requests, batch.sent) == ("m1", "intended", 3, None)
    assert read_state(database)["reserved"] == 30


def test_only_claims_of_the_owner_are_put_into_its_batch(database: Database) -> None:
    hashes = claim(database)
    assert database.run(lambda: LEDGER.intend("another", "m1", hashes)) == []
    assert read_open(database) == []


def test_the_id_is_stored_and_the_batch_is_anybodys_to_watch(database: Database) -> None:
    intend(database)
    assert database.run(lambda: LEDGER.begin_creation("m1", "another")) is None
    assert database.run(lambda: LEDGER.begin_creation("m1", "me")) is not None
    database.run(lambda: LEDGER.store_id("m1", "batch_1"))
    (batch,) = read_open(database)
    assert (batch.state, batch.vendor_id, batch.owner) == ("created", "batch_1", None)
    assert database.run(LEDGER.list_ids) == {"batch_1"}
    database.run(lambda: LEDGER.note("m1", "in_progress", 2))
    (batch,) = read_open(database)
    assert (batch.vendor_state, batch.done) == ("in_progress", 2)


def test_a_batch_is_taken_over_only_when_its_owner_has_ended_or_let_go(database: Database) -> None:
    intend(database)
    assert database.run(lambda: LEDGER.adopt("m1", "another", lambda _: False)) is None
    found = database.run(lambda: LEDGER.adopt("m1", "another", lambda owner: owner == "me"))
    assert found is not None
    assert found.state == "intended"
    assert database.run(lambda: LEDGER.begin_creation("m1", "me")) is None
    database.run(lambda: LEDGER.release_batches("another"))
    assert database.run(lambda: LEDGER.adopt("m1", "third", lambda _: False)) is not None


def test_leases_are_renewed(database: Database) -> None:
    intend(database)
    (before,) = read_open(database)
    database.run(lambda: LEDGER.renew("me"))
    (after,) = read_open(database)
    assert (after.lease or 0) > (before.lease or 0)


def test_a_result_is_written_once(database: Database) -> None:
    first, second, third = intend(database)
    done = [Outcome(first, True, b'{"text": "a"}', 1, 2, 0, 4)]
    failed = [Outcome(second, False, b'{"error": {}}')]
    returned = [Outcome(third, False, b'{"error": {}}')]
    for _ in range(2):
        database.run(lambda: LEDGER.settle("m1", [*done, *failed], returned, LIMITS))
    assert read_state(database) == {"done": 1, "failed": 1, "reserved": 0, "cost": 4}
    assert database.run(lambda: LEDGER.list_sent("m1")) == {}
    assert claim(database) == [third]


def test_a_result_of_an_earlier_batch_changes_nothing_in_a_later_one(database: Database) -> None:
    hashes = intend(database)
    database.run(lambda: LEDGER.close("m1", "dropped"))
    assert len(intend(database, "m2")) == 3
    database.run(lambda: LEDGER.settle("m1", [Outcome(hashes[0], False, b"{}")], [], LIMITS))
    assert read_state(database) == {"done": 0, "failed": 0, "reserved": 30, "cost": 0}
    assert len(database.run(lambda: LEDGER.list_sent("m2"))) == 3


def test_a_batch_that_was_dropped_is_no_attempt(database: Database) -> None:
    intend(database)
    database.run(lambda: LEDGER.close("m1", "dropped"))
    assert read_open(database) == []
    intend(database, "m2")
    assert set(database.run(lambda: LEDGER.list_sent("m2")).values()) == {1}
    database.run(lambda: LEDGER.close("m2", "ended"))
    intend(database, "m3")
    assert set(database.run(lambda: LEDGER.list_sent("m3")).values()) == {2}


def test_candidates_are_stored(database: Database) -> None:
    intend(database)
    database.run(lambda: LEDGER.watch("m1", ["b1", "b2"]))
    (batch,) = read_open(database)
    assert (batch.state, batch.candidates) == ("searching", ("b1", "b2"))
    example = database.run(lambda: LEDGER.find_example("m1"))
    assert example is not None
    assert example.hash in database.run(lambda: LEDGER.read_requests([example.hash]))
    assert database.run(lambda: LEDGER.find_example("none")) is None
