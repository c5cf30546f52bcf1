"""Connections of a pool: those that have ended are not used, and what psycopg's pools tell is not in the log."""

from __future__ import annotations

import logging
import time

import pytest

from asides.database import StoreUnavailable
from asides.database.postgres_outage import Outage
from asides.database.postgres_pools import (
    make_async_pool,
    make_thread_pool,
    take_connection,
    take_connection_async,
    write_settings,
)
from asides.database.postgres_url import read_url
from tests.servers import PostgresServer, find_free_port

END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'asides'"


async def test_connections_that_have_ended_are_replaced(
    postgres_server: PostgresServer, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    url, outage = read_url(postgres_url), Outage(read_url(postgres_url))
    threads = make_thread_pool(url, outage, 5.0, 2, durable=True)
    loop = make_async_pool(url, outage, 5.0, 2, durable=True)
    threads.open()
    await loop.open()
    for _ in range(2):
        one = take_connection(threads, outage, time.monotonic() + 5)
        other = await take_connection_async(loop, outage, time.monotonic() + 5)
        assert one.execute("SHOW search_path").fetchone() == ("asides",)
        await other.execute("SELECT 1")
        threads.putconn(one)
        await loop.putconn(other)
        postgres_server._command(END)
        time.sleep(0.1)
    threads.close()
    await loop.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_connections_from_before_are_not_used(postgres_url: str) -> None:
    url, outage = read_url(postgres_url), Outage(read_url(postgres_url))
    pool = make_thread_pool(url, outage, 5.0, 2, durable=True)
    pool.open()
    one = take_connection(pool, outage, time.monotonic() + 5)
    pool.putconn(one)
    again = take_connection(pool, outage, time.monotonic() + 5)
    assert again is one
    pool.putconn(again)
    outage.stale_before = time.monotonic()
    new = take_connection(pool, outage, time.monotonic() + 5)
    assert new is not one
    pool.putconn(new)
    pool.close()


def test_nobody_waits_for_a_server_that_refuses(caplog: pytest.LogCaptureFixture) -> None:
    url = read_url(f"postgresql://me:sesame@127.0.0.1:{find_free_port()}/x")
    outage = Outage(url)
    pool = make_thread_pool(url, outage, 5.0, 2, durable=True)
    pool.open()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        take_connection(pool, outage, began + 5)
    assert time.monotonic() - began < 4.5
    pool.close()
    outage.close()
    assert [record.name for record in caplog.records] == ["asides.database"]


def test_pools_of_others_tell_what_they_tell(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "mine", "refused")
    logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "asides-store", "refused")
    assert [record.getMessage() for record in caplog.records] == ["error connecting in 'mine': refused"]


def test_settings_are_one_statement() -> None:
    local = write_settings(1.5, durable=False)
    assert local == (
        "SELECT set_config('search_path', 'asides', true), set_config('statement_timeout', '1500', true), "
        "set_config('synchronous_commit', 'off', true)"
    )
    assert "synchronous_commit" not in write_settings(1.5, durable=True)
