"""The batches of a ledger, on both engines: each with its counts. Killed runs are in test_live_runner."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import LoadedRow, RunLimits, create_record
from asides_batch.read_status import list_statuses

NOBODY_ENDED = frozenset[str]().__contains__


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "shared.ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_all_batches_of_a_ledger_are_listed_the_latest_last(place: str) -> None:
    assert list_statuses(place) == []
    database = open_ledger_database(place)
    for ledger in (Ledger("b"), Ledger("a")):
        database.run(partial(ledger.begin, create_record(ledger.name), NOBODY_ENDED))
        database.run(partial(ledger.load, [LoadedRow(0, "h", None, None, b"{}")], 0))
        database.run(partial(ledger.finish_loading, 1, 0))
    database.run(lambda: Ledger("a").exchange("me", [], 1, RunLimits(), version=0))
    database.close()
    found = [(status.name, status.state, status.running, status.requests) for status in list_statuses(place)]
    assert found == [("b", "stopped", 0, 1), ("a", "running", 1, 1)]
