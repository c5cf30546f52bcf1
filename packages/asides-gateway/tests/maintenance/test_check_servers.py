"""The servers of the settings: those that work, are away, or are silent. No password is shown."""

from __future__ import annotations

import socket
import sys
import time

import pytest

from asides_gateway.maintenance.check_servers import check_servers
from tests.servers import PostgresServer

AWAY = "postgresql://me:hunter2@127.0.0.1:1/none", "redis://:hunter2@127.0.0.1:1/0"


def test_what_is_not_set_is_not_asked() -> None:
    assert check_servers(None, None) == []


def test_servers_that_work(postgres_url: str, redis_url: str) -> None:
    store, redis = check_servers(postgres_url, redis_url)
    assert (store.name, store.is_sound, redis.name, redis.is_sound) == ("store", True, "gateway.redis", True)
    assert store.text.startswith(f"{store.place} answered in ")
    assert store.text.endswith(" ms, and has all tables")
    assert redis.text.endswith(" ms, and takes scripts that write")


def test_a_database_without_tables(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("check_servers_empty")
    try:
        (store,) = check_servers(url, None)
    finally:
        postgres_server.drop_database("check_servers_empty")
    assert not store.is_sound
    assert "answers, but steps of its tables are missing: 0001_" in store.text
    assert store.text.endswith("Run `asides store migrate`.")


def test_servers_that_are_away() -> None:
    store, redis = checks = check_servers(*AWAY)
    assert "the database 127.0.0.1:1/none does not answer: " in store.text
    assert "Redis at 127.0.0.1:1/0 cannot be used: it cannot be reached. " in redis.text
    assert not any(each.is_sound for each in checks)
    assert "hunter2" not in repr(checks)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis", "redis.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    (redis,) = check_servers(None, AWAY[1])
    assert (redis.is_sound, "pip install 'asides[redis]'" in redis.text) == (False, True)


def test_addresses_that_are_none() -> None:
    store, redis = checks = check_servers("mysql://me:hunter2@db/x", "redis://:hunter2@host:port/0")
    assert "store (ASIDES_STORE) begins with mysql://, and is not a PostgreSQL database. " in store.text
    assert "gateway.redis is not a Redis URL. " in redis.text
    assert "hunter2" not in repr(checks)


def test_silent_servers_hold_nobody_up() -> None:
    """They accept a connection and say nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        checks = check_servers(f"postgresql://me@127.0.0.1:{port}/x", f"redis://127.0.0.1:{port}/0", seconds=0.5)
        # The two would take five and three seconds.
        assert time.monotonic() - began < 2.5
    assert [each.is_sound for each in checks] == [False, False]
    assert checks[0].text == f"127.0.0.1:{port}/x did not answer within 0.5 seconds. Check that server."
