"""The database of a gateway: a file of its own or a server, whose tables come at the start or as soon as they can."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from asides.database import Queries, Query, StoreError, StoreUnavailable
from asides.database.migrate import Migration
from asides_gateway import gateway_database
from asides_gateway.gateway_database import GATEWAY_FILE, open_database, prepare_database
from asides_gateway.gateway_settings import GatewaySettings
from tests.servers import PostgresServer, find_free_port

FIRST = Migration(
    3, "gateway_one", "-- A comment; with a mark.\nCREATE TABLE one (number bigint);\nCREATE INDEX i ON one (number);"
)
SECOND = Migration(4, "gateway_two", "CREATE TABLE two (number bigint);")


def count(table: str) -> Queries[int]:
    return (yield Query(f"SELECT count(*) FROM {table}", is_alone=True)).rows[0][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("is_file", [True, False])
def test_tables_of_the_file_come_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool) -> None:
    settings = GatewaySettings(folder=tmp_path if is_file else None)
    monkeypatch.setattr(gateway_database, "list_steps", lambda: (FIRST,))
    database = open_database(settings)
    assert list(tmp_path.iterdir()) == []
    assert database.run(lambda: count("one")) == 0
    if is_file:
        database.close()
        monkeypatch.setattr(gateway_database, "list_steps", lambda: (FIRST, SECOND))
        database = open_database(settings)
        assert [database.run(lambda: count("one")), database.run(lambda: count("two"))] == [0, 0]
        # A version that knows fewer steps goes on with it.
        monkeypatch.setattr(gateway_database, "list_steps", lambda: (FIRST,))
        assert open_database(settings).run(lambda: count("one")) == 0
    assert not database.is_shared
    database.close()


def list_columns(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def test_the_file_has_the_columns_of_postgresql_and_is_private(tmp_path: Path, postgres_url: str) -> None:
    open_database(GatewaySettings(folder=tmp_path)).run(lambda: count("gateway_keys"), writes=False)
    assert stat.S_IMODE((tmp_path / GATEWAY_FILE).stat().st_mode) == 0o600
    server = open_database(GatewaySettings(store=postgres_url))

    def list_there() -> Queries[dict[str, list[str]]]:
        found: dict[str, list[str]] = {}
        result = yield Query(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'asides' AND "
            "position('gateway_' in table_name) = 1 ORDER BY table_name, ordinal_position"
        )
        for table, column in result.rows:
            found.setdefault(table, []).append(column)
        return found

    try:
        columns = server.run(list_there, writes=False)
    finally:
        server.close()
    own = list_columns(tmp_path / GATEWAY_FILE)
    assert columns == {table: names for table, names in own.items() if table.startswith("gateway_")}
    assert "gateway_reservations" in columns


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    def count_keys(_: int) -> int:
        return open_database(GatewaySettings(folder=tmp_path)).run(lambda: count("gateway_keys"), writes=False)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count_keys, range(16))) == [0] * 16


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / GATEWAY_FILE)) as other:
        other.execute("CREATE TABLE one (number INTEGER)")
        other.commit()
    with pytest.raises(StoreError, match="database of another program"):
        open_database(GatewaySettings(folder=tmp_path)).run(lambda: count("one"))


async def test_tables_of_the_server_are_there_after_the_start(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("fresh")
    assert await prepare_database(url) is None
    database = open_database(GatewaySettings(store=url))
    assert database.is_shared
    assert await database.run_async(lambda: count("vault_records")) == 0
    await database.close_async()
    postgres_server.drop_database("fresh")


async def test_a_server_that_is_down_is_waited_for_behind_the_gateways_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_database, "_SECONDS_BETWEEN_ATTEMPTS", 0.05)
    done: list[str] = []

    def migrate(url: str) -> None:
        done.append(url)
        if len(done) < 3:
            raise StoreUnavailable("it does not answer.")

    monkeypatch.setattr("asides.database.migrate.migrate", migrate)
    caplog.set_level(logging.INFO)
    task = await prepare_database("postgresql://me:secret@127.0.0.1:1/x")
    assert task is not None
    await asyncio.wait_for(task, 10)
    assert len(done) == 3
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "secret" not in caplog.text


async def test_a_port_where_nobody_listens_does_not_stop_a_start() -> None:
    task = await prepare_database(f"postgresql://127.0.0.1:{find_free_port()}/x")
    assert task is not None
    task.cancel()


async def test_a_server_that_refuses_the_tables_stops_a_start(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("guarded")
    postgres_server._command("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(StoreError, match="may not create"):
            await prepare_database(url.replace("asides@", "guest@"))
    finally:
        postgres_server.drop_database("guarded")
        postgres_server._command("DROP ROLE guest")
