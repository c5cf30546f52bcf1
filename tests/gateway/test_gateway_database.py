"""The database of a gateway: a file with the tables of PostgreSQL."""

from __future__ import annotations

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides.database import Queries, Query, StoreError
from asides.database.migrate import list_migrations
from asides.database.postgres import PostgresDatabase
from asides.gateway import gateway_database
from asides.gateway.gateway_database import GATEWAY_FILE, open_gateway_database, open_gateway_file


def _count_keys() -> Queries[int]:
    result = yield Query("SELECT count(*) FROM gateway_keys")
    return int(result.rows[0][0])


def _list_columns(path: Path) -> dict[str, list[str]]:
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def test_a_new_file_has_the_tables_and_is_private(tmp_path: Path) -> None:
    database = open_gateway_database(None, tmp_path)
    assert database.run(_count_keys, writes=False) == 0
    database.close()
    assert stat.S_IMODE((tmp_path / GATEWAY_FILE).stat().st_mode) == 0o600


def test_the_file_has_the_columns_of_postgresql(tmp_path: Path, postgres_url: str) -> None:
    open_gateway_database(None, tmp_path).run(_count_keys, writes=False)
    server = PostgresDatabase(postgres_url)

    def list_columns() -> Queries[dict[str, list[str]]]:
        found: dict[str, list[str]] = {}
        result = yield Query(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'asides' AND "
            "position('gateway_' in table_name) = 1 ORDER BY table_name, ordinal_position"
        )
        for table, column in result.rows:
            found.setdefault(table, []).append(column)
        return found

    try:
        columns = server.run(list_columns, writes=False)
    finally:
        server.close()
    own = _list_columns(tmp_path / GATEWAY_FILE)
    assert columns == {table: names for table, names in own.items() if table.startswith("gateway_")}
    assert "gateway_reservations" in columns


def test_without_a_folder_it_is_in_memory() -> None:
    assert open_gateway_database(None, None).run(_count_keys, writes=False) == 0


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    def count(_: int) -> int:
        return open_gateway_file(tmp_path / GATEWAY_FILE).run(_count_keys, writes=False)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(16))) == [0] * 16


def test_a_file_of_an_earlier_version_gets_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = tuple(step for step in list_migrations() if step.name.startswith("gateway"))
    monkeypatch.setattr(gateway_database, "_list_steps", lambda: ())
    path = tmp_path / GATEWAY_FILE
    with pytest.raises(StoreError):
        open_gateway_file(path).run(_count_keys, writes=False)
    assert "gateway_keys" not in _list_columns(path)
    monkeypatch.setattr(gateway_database, "_list_steps", lambda: steps)
    assert open_gateway_file(path).run(_count_keys, writes=False) == 0


def test_a_file_of_another_kind_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / GATEWAY_FILE
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    with pytest.raises(StoreError, match="no file of a gateway"):
        open_gateway_file(path).run(_count_keys, writes=False)
    assert set(_list_columns(path)) == {"mine"}
