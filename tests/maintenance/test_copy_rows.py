"""Keys and what they spent move between engines; sums only grow, and a revoked key stays revoked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asides.database import Queries, Query
from asides.gateway.gateway_database import open_gateway_file
from tests.maintenance.filled_stores import copy, fill_gateway


def _select(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    database = open_gateway_file(folder / "gateway.db")

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
    database = open_gateway_file(tmp_path / "gateway.db")

    def work() -> Queries[None]:
        yield Query("UPDATE gateway_keys SET rpm = 5")

    database.run(work)
    database.close()
    refused = copy(tmp_path, tmp_path / "to")["gateway"]
    assert (refused.different, refused.names) == (1, ["k1"])
    assert _select(tmp_path / "to", "SELECT rpm FROM gateway_keys") == [(None,)]
    assert copy(tmp_path, tmp_path / "to", replace=True)["gateway"].is_whole
    assert _select(tmp_path / "to", "SELECT rpm FROM gateway_keys") == [(5,)]
