"""The work of a vault on its tables: what it asks of PostgreSQL uses its indexes."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import psycopg
import pytest

from asides.database import Queries, Query
from asides.database.postgres import PostgresDatabase
from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault import vault_queries as queries


def test_names_of_tenants_are_digests() -> None:
    assert len({queries.digest_name(name) for name in ("", "a", "ü", "\ud800")}) == 4
    assert len(queries.digest_name("a" * 10_000)) == 16


@pytest.fixture
def database(postgres_url: str) -> Any:
    made = PostgresDatabase(postgres_url)
    for tenant in range(5):
        made.run(partial(queries.add_tenants, [queries.digest_name(f"t{tenant}")]))
        named = [StoredRecord(f"r{number}", (f"k{number}", f"l{number}"), b"x" * 200) for number in range(400)]
        assert made.run(partial(queries.add_on_server, [(f"t{tenant}", each) for each in named], 1000.0)) == []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    yield made
    made.close()


def explain(database: PostgresDatabase, work: Queries[Any]) -> str:
    query = next(work)
    assert isinstance(query, Query)

    def ask() -> Queries[str]:
        rows = (yield Query(f"EXPLAIN {query.sql}", query.values)).rows
        return "\n".join(row[0] for row in rows)

    return database.run(ask)


def test_reads_and_writes_look_at_no_whole_table(database: PostgresDatabase) -> None:
    read = explain(database, queries.read_on_server("t1", ["k1", "k2"], 0.0))
    assert "Seq Scan on vault_records" not in read
    assert "Seq Scan on vault_keys" not in read
    pending = [("t1", StoredRecord(f"new{number}", ("k1", "pending-k1"), b"")) for number in range(3)]
    confirmed = [UnconfirmedRecord("t1", "r1", "pending-k1"), UnconfirmedRecord("t2", "r2", "pending-k2")]
    for work in (
        queries.add_on_server(pending[:1], 1100.0),
        queries.add_on_server(pending, 1100.0),
        queries.confirm_on_server(confirmed),
    ):
        planned = explain(database, work)
        assert "Seq Scan on vault_records" not in planned
        assert "Seq Scan on vault_keys" not in planned
    sweep = queries.sweep_on_server(500.0)
    next(sweep)
    query: Any = sweep.send(queries_result((True,)))
    planned = database.run(lambda: explain_query(query))
    assert "Seq Scan on vault_records" not in planned


def queries_result(row: tuple[Any, ...]) -> Any:
    from asides.database import QueryResult

    return QueryResult([row], 1)


def explain_query(query: Query) -> Queries[str]:
    rows = (yield Query(f"EXPLAIN {query.sql}", query.values)).rows
    return "\n".join(row[0] for row in rows)


def test_a_plan_from_when_the_tables_were_small_reads_few_rows(database: PostgresDatabase) -> None:
    """A tenant with many keys, and a plan that knows nothing of them."""
    query = next(queries.read_on_server("t1", ["k1", "k2"], 0.0))
    assert isinstance(query, Query)
    statement = query.sql
    for number in range(1, 4):
        statement = statement.replace("?", f"${number}", 1)

    def ask() -> Queries[str]:
        yield Query("SET LOCAL plan_cache_mode = force_generic_plan")
        yield Query(f"PREPARE reading (text, bytea, double precision) AS {statement}")
        name = queries.digest_name("t1").hex()
        rows = (yield Query(f"EXPLAIN EXECUTE reading ('k1', '\\x{name}'::bytea, 0)")).rows
        yield Query("DEALLOCATE reading")
        return "\n".join(row[0] for row in rows)

    assert "(key = wanted.key))" in database.run(ask)


def test_a_plan_from_when_the_tables_were_empty_confirms_few_rows(postgres_url: str) -> None:
    """A plan that is kept for long is looked at before there is anything to count."""
    query = next(queries.confirm_on_server([UnconfirmedRecord("t1", "r1", "pending-k1")]))
    assert isinstance(query, Query)
    statement = query.sql
    for number in range(1, 1 + len(query.values)):
        statement = statement.replace("?", f"${number}", 1)
    nothing = ", ".join(["'{}'"] * len(query.values))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET search_path = asides")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE confirming AS {statement}".encode())
        rows = connection.execute(f"EXPLAIN EXECUTE confirming ({nothing})".encode()).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "Seq Scan on vault" not in plan, plan


def test_unknown_tenants_are_told_and_the_others_are_stored(database: PostgresDatabase) -> None:
    records = [("new", StoredRecord("a", ("k",), b"1")), ("t1", StoredRecord("b", ("k",), b"2"))]
    for _ in range(2):
        assert database.run(lambda: queries.add_on_server(records, 1.0)) == [queries.digest_name("new")]
    found = database.run(lambda: queries.read_on_server("t1", ["k"], 0.0), writes=False)
    assert [(each.used, each.record) for each in found] == [(1.0, records[1][1])]


def test_writers_do_not_wait_for_whoever_counts(database: PostgresDatabase) -> None:
    counting = queries.drop_excess("t1", VaultLimits())
    lock = next(counting)
    assert isinstance(lock, Query)

    def hold() -> Queries[int]:
        yield lock
        record = [("t1", StoredRecord("meanwhile", ("m",), b""))]
        # In another transaction, while the first one holds its lock.
        return len(database.run(lambda: queries.add_on_server(record, 2.0), patience=3.0))

    assert database.run(hold) == 0
    assert database.run(lambda: queries.drop_excess("t1", VaultLimits(records=100))) == 301


def test_whoever_confirms_a_record_keeps_it(postgres_url: str, database: PostgresDatabase) -> None:
    """A second attempt comes while the first one is being confirmed: neither waits for the other, and both stay."""
    first = StoredRecord("first", ("w", "pending-w"), b"")
    second = StoredRecord("second", ("w", "pending-w"), b"")
    database.run(partial(queries.add_on_server, [("t1", first)], 1000.0))
    other = PostgresDatabase(postgres_url)

    def confirm() -> Queries[None]:
        for query in queries.confirm_on_server([UnconfirmedRecord("t1", "first", "pending-w")]):
            assert isinstance(query, Query)
            yield msgspec.structs.replace(query, is_alone=False)
        other.run(partial(queries.add_on_server, [("t1", second)], 1010.0))

    database.run(confirm)
    other.close()
    found = database.run(partial(queries.read_on_server, "t1", ["w"], 0.0), writes=False)
    assert [(each.record.id, each.record.pending) for each in found] == [("first", ""), ("second", "pending-w")]
