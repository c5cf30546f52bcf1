"""Keys and what they spent move between engines; sums only grow, and a revoked key stays revoked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asides.database import Queries, Query
from asides_batch.ledger_tables import open_ledger_database
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.maintenance.copy_report import CopyReport
from asides_gateway.maintenance.copy_stores import copy_stores
from asides_gateway.maintenance.open_stores import open_stores, open_target
from tests.maintenance.filled_stores import copy, fill_gateway


def _select(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    database = open_database(GatewaySettings(folder=folder))

    def work() -> Queries[list[tuple[Any, ...]]]:
        return (yield Query(statement)).rows

    rows = database.run(work, writes=False)
    database.close()
    return rows


def test_there_and_back_is_the_same(tmp_path: Path, postgres_url: str) -> None:
    fill_gateway(tmp_path, spent=2**40)
    there = copy(tmp_path, postgres_url)["gateway"]
    assert (there.copied, there.checked, there.is_whole) == (2, 2, True)
    copy(postgres_url, tmp_path / "back")
    for table in ("gateway_keys", "gateway_spending"):
        assert _select(tmp_path / "back", f"SELECT * FROM {table}") == _select(tmp_path, f"SELECT * FROM {table}")


@pytest.mark.parametrize(("at_source", "expected"), [(9, 9), (3, 5)])
def test_the_greater_sum_counts(tmp_path: Path, at_source: int, expected: int) -> None:
    fill_gateway(tmp_path, spent=5)
    copy(tmp_path, tmp_path / "to")
    fill_gateway(tmp_path, spent=at_source)
    assert copy(tmp_path, tmp_path / "to")["gateway"].is_whole
    assert _select(tmp_path / "to", "SELECT spent FROM gateway_spending") == [(expected,)]


@pytest.mark.parametrize("there", [False, True])
def test_a_revoked_key_stays_revoked(tmp_path: Path, there: bool) -> None:
    fill_gateway(tmp_path)
    copy(tmp_path, tmp_path / "to")
    fill_gateway(tmp_path / "to" if there else tmp_path, revoked=7.0)
    assert copy(tmp_path, tmp_path / "to")["gateway"].is_whole
    assert _select(tmp_path / "to", "SELECT revoked FROM gateway_keys") == [(7.0,)]


def test_a_key_that_is_another_one_there_stays_unless_told(tmp_path: Path) -> None:
    fill_gateway(tmp_path)
    copy(tmp_path, tmp_path / "to")
    database = open_database(GatewaySettings(folder=tmp_path))

    def work() -> Queries[None]:
        yield Query("UPDATE gateway_keys SET rpm = 5")

    database.run(work)
    database.close()
    refused = copy(tmp_path, tmp_path / "to")["gateway"]
    assert (refused.different, refused.names) == (1, ["k1"])
    assert _select(tmp_path / "to", "SELECT rpm FROM gateway_keys") == [(None,)]
    assert copy(tmp_path, tmp_path / "to", replace=True)["gateway"].is_whole
    assert _select(tmp_path / "to", "SELECT rpm FROM gateway_keys") == [(5,)]


# --- the ledger of a batch --------------------------------------------------------------------------------------------

_BATCH = {
    "name": "b",
    "state": "open",
    "via": "live",
    "model": "m",
    "plan": b"{}",
    "plan_digest": "",
    "source": "in",
    "source_digest": "",
    "output": "out",
}


def _fill_ledger(path: Path, state: str, updated: float) -> None:
    """A batch of one row, whose request is in this state."""
    database = open_ledger_database(str(path))

    def work() -> Queries[None]:
        columns = [row[0] for row in (yield Query("SELECT name FROM pragma_table_info('batches')")).rows]
        values = {**dict.fromkeys(columns, 0), **_BATCH, "updated": updated}
        marks = ", ".join("?" * len(columns))
        yield Query("DELETE FROM batches")
        yield Query(
            f"INSERT INTO batches ({', '.join(columns)}) VALUES ({marks})", tuple(values[name] for name in columns)
        )
        yield Query(
            "INSERT INTO batch_requests (batch, hash, number, request, state, attempts, reserved, result) "
            "VALUES ('b', 'h', 0, ?, ?, 1, 0, ?)",
            (b"asked", state, b"answered" if state == "done" else None),
        )
        yield Query("INSERT INTO batch_rows (batch, place, hash) VALUES ('b', 0, 'h')")

    database.run(work)
    database.close()


def _copy_ledger(source: str | Path, target: str | Path, ledger: Path) -> CopyReport:
    with open_stores(str(source), ledger) as from_, open_target(str(target), ledger) as to:
        reports = copy_stores(from_, to, lambda *_: None, replace=False)
    return next(report for report in reports if report.area == "ledger")


def _read_result(path: Path) -> list[tuple[Any, ...]]:
    database = open_ledger_database(str(path))

    def work() -> Queries[list[tuple[Any, ...]]]:
        return (yield Query("SELECT state, result FROM batch_requests")).rows

    rows = database.run(work, writes=False)
    database.close()
    return rows


def test_a_ledger_goes_there_and_back_and_an_answer_is_never_lost(tmp_path: Path, postgres_url: str) -> None:
    ledger, back = tmp_path / "out.jsonl.ledger", tmp_path / "back.ledger"
    _fill_ledger(ledger, "claimed", 1.0)
    first = _copy_ledger(tmp_path, postgres_url, ledger)
    assert (first.copied, first.is_whole) == (3, True)
    _fill_ledger(ledger, "done", 2.0)
    again = _copy_ledger(tmp_path, postgres_url, ledger)
    assert (again.updated, again.same, again.is_whole) == (2, 1, True)
    assert _copy_ledger(postgres_url, tmp_path / "folder", back).is_whole
    assert _read_result(back) == [("done", b"answered")]
    # An older copy takes nothing back.
    _fill_ledger(ledger, "waiting", 1.5)
    assert _copy_ledger(tmp_path, postgres_url, ledger).is_whole
    assert _copy_ledger(postgres_url, tmp_path / "other", tmp_path / "other.ledger").is_whole
    assert _read_result(tmp_path / "other.ledger") == [("done", b"answered")]


def test_batches_of_a_server_are_not_forgotten_without_a_ledger(tmp_path: Path, postgres_url: str) -> None:
    _fill_ledger(tmp_path / "out.ledger", "done", 1.0)
    _copy_ledger(tmp_path, postgres_url, tmp_path / "out.ledger")
    reports = copy(postgres_url, tmp_path / "to")
    assert (reports["ledger"].left, reports["ledger"].is_whole) == (1, False)
