"""Both engines tell their columns, and what belongs into them."""

from __future__ import annotations

from pathlib import Path

from asides_gateway.maintenance.open_stores import open_stores
from asides_gateway.maintenance.table_columns import can_hold, count_rows, read_columns
from tests.maintenance.filled_stores import fill_gateway


def test_both_engines_tell_the_same_columns(tmp_path: Path, postgres_url: str) -> None:
    fill_gateway(tmp_path)
    with open_stores(str(tmp_path)) as files, open_stores(postgres_url) as server:
        expected = ["key", "day", "spent", "requests"]
        for stores in (files, server):
            columns = read_columns(stores.areas["gateway"], "gateway_spending")
            assert list(columns) == expected
            assert can_hold(columns, {"key": "k", "day": "d", "spent": 1, "requests": 2})
            assert not can_hold(columns, {"key": b"k", "day": "d", "spent": 1, "requests": 2})
            assert not can_hold(columns, {"key": "k", "day": "d", "spent": "1", "requests": 2})
            assert not can_hold(columns, {"key": "k", "day": None, "spent": 1, "requests": 2})
            assert not read_columns(stores.areas["gateway"], "no_such_table")
            assert count_rows(stores.areas["gateway"], "no_such_table") == 0
        assert read_columns(files.areas["gateway"], "gateway_keys")["expires"].fits(None)
