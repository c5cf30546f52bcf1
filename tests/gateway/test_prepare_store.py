"""The tables of a shared store: there at the start of a gateway, or as soon as the server answers."""

from __future__ import annotations

import asyncio
import logging

import pytest

from asides.database import Queries, Query, StoreError, StoreUnavailable
from asides.database.postgres import PostgresDatabase
from asides.gateway import prepare_store as module
from asides.gateway.prepare_store import prepare_store
from tests.servers import PostgresServer, find_free_port


def count(table: str) -> Queries[int]:
    return (yield Query(f"SELECT count(*) FROM {table}", is_all=True)).rows[0][0]  # type: ignore[no-any-return]


async def test_tables_of_the_server_are_there_after_the_start(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("fresh")
    assert await prepare_store(url) is None
    database = PostgresDatabase(url)
    assert await database.run_async(lambda: count("vault_records")) == 0
    await database.close_async()
    postgres_server.drop_database("fresh")


async def test_a_server_that_is_down_is_waited_for_behind_the_gateways_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_ATTEMPTS", 0.05)
    done: list[str] = []

    def migrate(url: str) -> None:
        done.append(url)
        if len(done) < 3:
            raise StoreUnavailable("it does not answer.")

    monkeypatch.setattr("asides.database.migrate.migrate", migrate)
    caplog.set_level(logging.INFO)
    task = await prepare_store("postgresql://me:secret@127.0.0.1:1/x")
    assert task is not None
    await asyncio.wait_for(task, 10)
    assert len(done) == 3
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "secret" not in caplog.text


async def test_a_port_where_nobody_listens_does_not_stop_a_start() -> None:
    task = await prepare_store(f"postgresql://127.0.0.1:{find_free_port()}/x")
    assert task is not None
    task.cancel()


async def test_a_server_that_refuses_the_tables_stops_a_start(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("guarded")
    postgres_server._command("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(StoreError, match="may not create"):
            await prepare_store(url.replace("asides@", "guest@"))
    finally:
        postgres_server.drop_database("guarded")
        postgres_server._command("DROP ROLE guest")
