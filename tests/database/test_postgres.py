"""`PostgresDatabase` on a real server: work is one transaction, for threads and for event loops alike."""

from __future__ import annotations

import pytest

from asides.database import Queries, Query, QueryMany, StoreError
from asides.database.postgres import PostgresDatabase
from asides.database.postgres_url import describe_url


def insert(*names: bytes) -> Queries[int]:
    for name in names[:1]:
        yield Query("INSERT INTO vault_tenants (name) VALUES (?)", (name,))
    yield QueryMany("INSERT INTO vault_tenants (name) VALUES (?)", [(name,) for name in names[1:]])
    return (yield Query("SELECT count(*) FROM vault_tenants")).rows[0][0]  # type: ignore[no-any-return]


def fail() -> Queries[None]:
    yield Query("INSERT INTO vault_tenants (name) VALUES (?)", (b"never",))
    raise KeyError("mine")


def count() -> Queries[int]:
    return (yield Query("SELECT count(*) FROM vault_tenants", is_alone=True)).rows[0][0]  # type: ignore[no-any-return]


def test_work_is_one_transaction(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    assert database.run(lambda: insert(b"a", b"b", b"c")) == 3
    with pytest.raises(KeyError):
        database.run(fail)
    assert database.run(count, writes=False) == 3
    database.close()


async def test_event_loops_run_the_same_work(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    assert await database.run_async(lambda: insert(b"a", b"b")) == 2
    with pytest.raises(KeyError):
        await database.run_async(fail, durable=False)
    assert await database.run_async(count, writes=False) == 2
    await database.close_async()


def divide(secret: str) -> Queries[None]:
    yield Query("SELECT 1 / 0, ?", (secret,))


def convert(secret: str) -> Queries[None]:
    yield Query("SELECT CAST(CAST(? AS text) AS integer)", (secret,))


def test_work_that_fails_is_explained_in_the_words_of_the_server_without_values(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    with pytest.raises(StoreError, match=r"failed: division by zero \(22012\)\. Check its log\."):
        database.run(lambda: divide("a secret"), writes=False)
    with pytest.raises(StoreError, match=r'failed: invalid input syntax for type integer: "…" \(22P02\)') as caught:
        database.run(lambda: convert("a secret"), writes=False)
    assert "secret" not in str(caught.value)
    database.close()


def test_a_name_without_user_and_password() -> None:
    assert describe_url("postgresql://me:secret@db.example.org:5433/asides?sslmode=require") == (
        "db.example.org:5433/asides"
    )
