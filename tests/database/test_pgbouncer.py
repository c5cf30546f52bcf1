"""PostgreSQL behind PgBouncer: each mode that can work works without a setting, and the others are told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from asides.database import Queries, Query, StoreUnavailable
from asides.database import migrate as migrations
from asides.database.migrate import check, migrate
from asides.database.postgres import PostgresDatabase
from tests.servers import NotInstalled, PgBouncer, PostgresServer

Open = Callable[..., PgBouncer]


@pytest.fixture
def open_pooler(postgres_server: PostgresServer) -> Iterator[Open]:
    """Starts a PgBouncer before the server."""
    opened: list[PgBouncer] = []

    def start(mode: str, server: PostgresServer = postgres_server, **settings: str | int) -> PgBouncer:
        try:
            opened.append(PgBouncer(server, mode, **settings))
        except NotInstalled as problem:
            pytest.skip(str(problem))
        opened[-1].start()
        return opened[-1]

    yield start
    for each in opened:
        each.remove()


def find_name(url: str) -> str:
    return url.rpartition("/")[2]


def insert(name: bytes) -> Queries[tuple[str, int]]:
    yield Query("INSERT INTO vault_tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    found = yield Query("SELECT current_setting('synchronous_commit'), count(*) FROM vault_tenants")
    return found.rows[0]


def count() -> Queries[int]:
    return (yield Query("SELECT count(*) FROM vault_tenants", is_alone=True)).rows[0][0]  # type: ignore[no-any-return]


def read_rest(url: str) -> set[tuple[str, str, int]]:
    """What the next clients find of ours on the connections of the server."""
    query = (
        "SELECT current_setting('synchronous_commit'), current_setting('search_path'), "
        "(SELECT count(*) FROM pg_prepared_statements)"
    )
    found: set[tuple[str, str, int]] = set()
    with psycopg.connect(url, prepare_threshold=None) as one, psycopg.connect(url, prepare_threshold=None) as other:
        for connection in (one, other):
            found.add(connection.execute(query).fetchone() or ("", "", 0))
    return found


@pytest.mark.parametrize(
    ("mode", "query"),
    [("session", ""), ("transaction", ""), ("transaction", "?pgbouncer=true"), ("session", "?pgbouncer=false")],
)
async def test_work_is_done_and_nothing_stays_for_the_next_client(
    open_pooler: Open, postgres_url: str, mode: str, query: str
) -> None:
    """In transaction mode two connections of the server serve all of ours, so that each statement meets another one."""
    pooler = open_pooler(mode, default_pool_size=2 if mode == "transaction" else 20)
    url = pooler.make_url(find_name(postgres_url), query)
    assert migrate(url) == []
    database = PostgresDatabase(url)
    try:
        with ThreadPoolExecutor(6) as threads:
            for durable in (True, False, True):
                run = [threads.submit(database.run, lambda: insert(b"a"), durable=durable) for _ in range(40)]
                assert {each.result() for each in run} == {("on" if durable else "off", 1)}
        for durable in (True, False, True):
            again = [database.run_async(lambda: insert(b"a"), durable=durable) for _ in range(40)]
            assert set(await asyncio.gather(*again)) == {("on" if durable else "off", 1)}
            assert await asyncio.gather(*(database.run_async(count, writes=False) for _ in range(40))) == [1] * 40
        if mode == "transaction":
            assert read_rest(url.partition("?")[0]) == {("on", '"$user", public', 0)}
    finally:
        await database.close_async()


def test_the_tables_are_created_through_a_pooler(open_pooler: Open, postgres_server: PostgresServer) -> None:
    pooler = open_pooler("transaction", default_pool_size=1)
    postgres_server.create_database("behind_a_pooler")
    try:
        url = pooler.make_url("behind_a_pooler")
        assert not check(url).is_current
        assert migrate(url)
        assert check(url).is_current
    finally:
        postgres_server.drop_database("behind_a_pooler")


def test_a_pooler_without_transactions_is_told(open_pooler: Open, postgres_url: str) -> None:
    url = open_pooler("statement").make_url(find_name(postgres_url))
    for use in (check, migrate):
        with pytest.raises(StoreUnavailable, match=r"says: .*statement pooling.*"):
            use(url)
    database = PostgresDatabase(url)
    try:
        with pytest.raises(StoreUnavailable):
            database.run(lambda: insert(b"a"))
        until = time.monotonic() + 20
        while "statement pooling" not in (database.problem or "") and time.monotonic() < until:
            time.sleep(0.02)
        assert "statement pooling" in (database.problem or ""), "it must not seem to work meanwhile"
    finally:
        database.close()


def test_a_pooler_whose_connections_others_hold_keeps_nobody_waiting(
    open_pooler: Open, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets clients in, and their first statement waits."""
    monkeypatch.setattr(migrations, "_CONNECT_SECONDS", 1)
    url = open_pooler("session", default_pool_size=1).make_url(find_name(postgres_url))
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1")
        for use in (check, migrate):
            with pytest.raises(StoreUnavailable, match=r"takes connections and does not answer on them. .* pool"):
                use(url)
        database = PostgresDatabase(url, patience=0.5)
        with pytest.raises(StoreUnavailable):
            database.run(count, writes=False)
    until = time.monotonic() + 20
    while database.problem is not None and time.monotonic() < until:
        time.sleep(0.02)
    assert database.run(count, writes=False) == 0
    database.close()


@pytest.mark.parametrize(
    ("query", "settings", "told"),
    [
        (
            "?options=-c%20work_mem%3D1MB",
            {},
            r"says: unsupported startup parameter.* Check",
        ),
        ("", {"max_client_conn": 1}, "has no connection left. .* limits of the pooler"),
    ],
)
def test_what_a_pooler_refuses_is_told(
    open_pooler: Open, postgres_url: str, query: str, settings: dict[str, str | int], told: str
) -> None:
    pooler = open_pooler("transaction", **settings)
    holder = psycopg.connect(pooler.make_url(find_name(postgres_url))) if "max_client_conn" in settings else None
    database = PostgresDatabase(pooler.make_url(find_name(postgres_url), query))
    try:
        with pytest.raises(StoreUnavailable, match=told):
            database.run(count, writes=False)
    finally:
        database.close()
        if holder is not None:
            holder.close()


def test_another_server_behind_the_pooler_is_found(
    open_pooler: Open, own_postgres: PostgresServer, own_postgres_url: str, postgres_server: PostgresServer
) -> None:
    """The first one ends, as before a failover."""
    name = find_name(own_postgres_url)
    migrate(own_postgres_url)
    migrate(postgres_server.create_database(name))
    pooler = open_pooler("transaction", own_postgres)
    database = PostgresDatabase(pooler.make_url(name))
    try:
        database.run(lambda: insert(b"first"))
        own_postgres.stop("immediate")
        with pytest.raises(StoreUnavailable, match=r"the database .* (says|does not answer)"):
            database.run(lambda: insert(b"lost"), patience=3.0)
        pooler.move(postgres_server)
        until = time.monotonic() + 20
        while database.problem is not None and time.monotonic() < until:
            time.sleep(0.02)
        assert database.run(lambda: insert(b"other")) == ("on", 1)
    finally:
        database.close()
        postgres_server.drop_database(name)


async def test_whoever_finds_no_connection_left_waits_for_those_that_others_use(
    open_pooler: Open, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Our second connection is refused. That is no outage: the first one serves all."""
    pooler = open_pooler("session", max_client_conn=1)
    database = PostgresDatabase(pooler.make_url(find_name(postgres_url)))

    def sleep() -> Queries[None]:
        yield Query("SELECT pg_sleep(0.1)")

    try:
        await asyncio.gather(*(database.run_async(sleep, writes=False) for _ in range(8)))
        assert database.problem is None
    finally:
        await database.close_async()
    assert caplog.records == []
