"""Both engines tell their columns."""

from __future__ import annotations

from pathlib import Path

from asides.maintenance.open_stores import open_stores
from asides.maintenance.table_columns import has_table, list_columns
from tests.maintenance.filled_stores import fill_gateway


def test_both_engines_tell_the_same_columns(tmp_path: Path, postgres_url: str) -> None:
    fill_gateway(tmp_path)
    with open_stores(str(tmp_path)) as files, open_stores(postgres_url) as server:
        expected = ["key", "day", "spent", "requests"]
        for stores in (files, server):
            assert list_columns(stores.areas["gateway"], "gateway_spending") == expected
            assert not has_table(stores.areas["gateway"], "no_such_table")
