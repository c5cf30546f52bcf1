"""Work on a connection: whole or not at all, in few round trips, and with nothing that a connection has to keep."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from asides.database import Queries, Query, QueryMany
from asides.database.postgres import PostgresDatabase


def insert(*names: bytes) -> Queries[list[tuple[Any, ...]]]:
    first = yield Query("INSERT INTO vault_tenants (name) VALUES (?) RETURNING name", (names[0],))
    many = yield QueryMany("INSERT INTO vault_tenants (name) VALUES (?)", [(name,) for name in names[1:]])
    assert many.changed == len(names) - 1
    return [*first.rows, *(yield Query("SELECT count(*), '100%' FROM vault_tenants")).rows]


def read_settings() -> Queries[tuple[Any, ...] | None]:
    query = (
        "SELECT current_setting('search_path'), current_setting('synchronous_commit'), "
        "(SELECT count(*) FROM pg_prepared_statements), ?"
    )
    return (yield Query(query, ("a%b",), is_alone=True)).first


@pytest.mark.parametrize("pooler", ["", "?pgbouncer=true"])
async def test_both_forms_do_the_same(postgres_url: str, pooler: str) -> None:
    database = PostgresDatabase(postgres_url + pooler)
    assert database.run(lambda: insert(b"a", b"b", b"c")) == [(b"a",), (3, "100%")]
    assert await database.run_async(lambda: insert(b"d", b"e")) == [(b"d",), (5, "100%")]
    for durable in (True, False):
        prepared = 0
        for _ in range(12):
            commit = "on" if durable else "off"
            found = database.run(read_settings, durable=durable)
            assert found is not None
            assert (found[:2], found[3]) == (("asides", commit), "a%b")
            found = await database.run_async(read_settings, durable=durable, writes=False)
            assert found is not None
            assert (found[:2], found[3]) == (("asides", commit), "a%b")
            prepared = found[2]
        # Behind a pooler, the next transaction may be on another connection, which has none of ours.
        assert bool(prepared) == (not pooler)
    await database.close_async()


@pytest.mark.parametrize("pooler", ["", "?pgbouncer=true"])
async def test_settings_of_a_transaction_end_with_it(postgres_url: str, pooler: str) -> None:
    database = PostgresDatabase(postgres_url + pooler, most_connections=2)
    await database.run_async(read_settings, durable=False)
    pool = next(iter(database._async_pools.values()))[False]
    async with pool.connection() as connection:
        cursor = await connection.execute("SHOW synchronous_commit")
        assert await cursor.fetchone() == (("on",) if pooler else ("off",))
    await database.close_async()


@pytest.mark.parametrize("fails_at", [1, 2])
async def test_work_that_fails_leaves_nothing(postgres_url: str, fails_at: int) -> None:
    def fail() -> Queries[None]:
        for number in range(fails_at):
            yield Query("INSERT INTO vault_tenants (name) VALUES (?)", (b"%d" % number,))
        raise KeyError("mine")

    def wrong() -> Queries[None]:
        yield Query("INSERT INTO vault_tenants (name) VALUES (?)", (b"x",))
        yield Query("SELECT 1 / 0")

    database = PostgresDatabase(postgres_url)
    for work, kind in ((fail, "mine"), (wrong, "division by zero")):
        with pytest.raises(Exception, match=kind):
            database.run(work)
        with pytest.raises(Exception, match=kind):
            await database.run_async(work)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM asides.vault_tenants").fetchone() == (0,)
    await database.close_async()


def test_a_query_that_is_alone_is_followed_by_none(postgres_url: str) -> None:
    def work() -> Queries[None]:
        yield Query("SELECT 1", is_alone=True)
        yield Query("SELECT 2")

    database = PostgresDatabase(postgres_url)
    with pytest.raises(RuntimeError, match="is the only one of its work"):
        database.run(work)
    database.close()
