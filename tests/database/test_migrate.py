"""`migrate` and `check`: the tables in PostgreSQL, created once, whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

import asides
from asides.database import Queries, Query, StoreError, StoreUnavailable
from asides.database import migrate as module
from asides.database.migrate import MigratedPostgres, Migration, check, list_migrations, migrate
from asides.values.errors import ConfigError
from tests.servers import PostgresServer, find_free_port

LOCK = 0x61736964


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"test_{secrets.token_hex(6)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def execute(url: str, *statements: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(cast("Any", statement))
        return cursor.fetchall() if cursor.description else []


def count_tables(url: str) -> int:
    ((count,),) = execute(url, "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('asides')::oid")
    return int(count)


def use_steps(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    known = (*list_migrations(), *more)
    monkeypatch.setattr(module, "list_migrations", lambda: known)


def test_every_step_once_and_in_order(empty_url: str) -> None:
    numbers = [migration.number for migration in list_migrations()]
    assert numbers == sorted(set(numbers))
    assert [step.number for step in check(empty_url).missing] == numbers
    assert count_tables(empty_url) == 0, "a check changes nothing"
    assert [migration.number for migration in migrate(empty_url)] == numbers
    assert migrate(empty_url) == []
    assert check(empty_url) == module.TablesState((), ())
    assert execute(empty_url, "SELECT number FROM asides.migrations ORDER BY number") == [(n,) for n in numbers]


def test_only_what_is_missing_is_added(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(empty_url)
    use_steps(monkeypatch, Migration(9001, "more", "CREATE TABLE more (id bigint)", 7))
    assert not check(empty_url).is_current
    assert [step.name for step in migrate(empty_url)] == ["more"]
    assert execute(empty_url, "SELECT name, oldest FROM asides.migrations WHERE number = 9001") == [("more", 7)]
    assert execute(empty_url, "SELECT count(*) FROM asides.more") == [(0,)]


def test_a_step_that_fails_leaves_nothing_of_any(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_steps(monkeypatch, Migration(9001, "bad", "CREATE TABLE half (id bigint); SELECT 1/0"))
    with pytest.raises(StoreError, match=r"DivisionByZero"):
        migrate(empty_url)
    assert count_tables(empty_url) == 0


def test_processes_that_migrate_at_once_do_it_once(empty_url: str) -> None:
    program = "import sys; from asides.database.migrate import migrate; print(len(migrate(sys.argv[1])))"
    environ = {**os.environ, "PYTHONPATH": str(Path(asides.__file__).parent.parent)}
    started = [
        subprocess.Popen([sys.executable, "-c", program, empty_url], env=environ, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    counts = sorted(int(process.communicate(timeout=50)[0]) for process in started)
    assert counts == [0, 0, len(list_migrations())]


def test_another_that_never_ends_is_told(empty_url: str) -> None:
    with psycopg.connect(empty_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        with pytest.raises(StoreError, match=r"another process has been .* for 0\.3 seconds"):
            migrate(empty_url, patience=0.3)
        waiting = threading.Thread(target=migrate, args=(empty_url,))
        waiting.start()
        time.sleep(0.2)
        assert waiting.is_alive()
        other.rollback()
        waiting.join(20)
    assert check(empty_url).is_current


def test_a_table_that_is_in_use_for_ever_is_told(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_steps(monkeypatch, Migration(9001, "wider", "ALTER TABLE messages ADD COLUMN more text"))
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT count(*) FROM asides.messages")
        with pytest.raises(StoreError, match=r"locked by a long-running transaction"):
            migrate(postgres_url, patience=0.3)
    assert [step.name for step in migrate(postgres_url)] == ["wider"]


# --- versions ---------------------------------------------------------------------------------------------------------


def test_newer_tables_are_fine_as_long_as_they_say_so(postgres_url: str) -> None:
    last = max(step.number for step in list_migrations())
    execute(postgres_url, f"INSERT INTO asides.migrations (number, name, oldest) VALUES (9001, 'later', {last})")
    state = check(postgres_url)
    assert (state.is_current, state.newer) == (True, ("9001_later",))
    assert migrate(postgres_url) == []
    execute(postgres_url, f"UPDATE asides.migrations SET oldest = {last + 1} WHERE number = 9001")
    for use in (check, migrate, use_database):
        with pytest.raises(StoreError, match=r"by a newer asides: its step 9001_later .* Upgrade asides"):
            use(postgres_url)


def use_database(url: str) -> int:
    def count() -> Queries[int]:
        found = yield Query("SELECT count(*) FROM conversations", is_alone=True)
        return int(found.rows[0][0])

    database = MigratedPostgres(url)
    try:
        return database.run(count)
    finally:
        database.close()


def test_the_oldest_code_stands_in_the_first_line_of_a_step() -> None:
    assert module._OLDEST.match("-- oldest: 12\nCREATE TABLE x (y text)")
    assert not module._OLDEST.match("-- The oldest: 12\n")
    assert all(step.oldest <= step.number for step in list_migrations())


# --- wrong databases --------------------------------------------------------------------------------------------------


def test_tables_of_another_program_stay_as_they_are(empty_url: str) -> None:
    execute(empty_url, "CREATE SCHEMA asides", "CREATE TABLE asides.conversations (mine text)")
    with pytest.raises(StoreError, match=r"tables of another program"):
        migrate(empty_url)
    execute(empty_url, "CREATE TABLE asides.migrations (id text)")
    with pytest.raises(StoreError, match=r"tables of another program"):
        check(empty_url)
    assert count_tables(empty_url) == 2


def test_a_user_without_the_right_to_create_tables_uses_those_that_are_there(
    empty_url: str, postgres_server: PostgresServer
) -> None:
    user = f"user_{secrets.token_hex(4)}"
    execute(empty_url, f"CREATE USER {user}")
    theirs = empty_url.replace("//asides@", f"//{user}@")
    try:
        with pytest.raises(StoreError, match=r"may not create or use the tables .* `asides store migrate`"):
            migrate(theirs)
        migrate(empty_url)
        with pytest.raises(StoreError, match="may not create or use the tables"):
            check(theirs)
        execute(
            empty_url,
            f"GRANT USAGE ON SCHEMA asides TO {user}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA asides TO {user}",
        )
        assert migrate(theirs) == []
        assert use_database(theirs) == 0
    finally:
        execute(empty_url, f"DROP OWNED BY {user}", f"DROP USER {user}")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_an_encoding_that_cannot_hold_every_text_is_refused(postgres_server: PostgresServer, encoding: str) -> None:
    name = f"test_{secrets.token_hex(6)}"
    execute(
        postgres_server.make_url("postgres"),
        f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0",
    )
    with pytest.raises(StoreError, match=f"has the encoding {encoding}, which"):
        migrate(postgres_server.make_url(name))
    postgres_server.drop_database(name)


@pytest.mark.parametrize("use", [check, migrate, use_database])
def test_errors_tell_what_is_wrong_and_no_password(postgres_server: PostgresServer, use: Any) -> None:
    near = f"127.0.0.1:{postgres_server.port}"
    for url, said in {
        f"postgresql://me:canary@127.0.0.1:{find_free_port()}/asides": "does not answer: .*Connection refused",
        f"postgresql://me:canary@{near}/asides": 'role "me" does not exist. ',
        f"postgresql://asides:canary@{near}/nowhere": 'database "nowhere" does not exist. ',
        f"postgresql://asides:canary@{near}/asides?sslmode=require": "server does not support SSL",
    }.items():
        with pytest.raises(StoreUnavailable, match=said) as caught:
            use(url)
        assert "canary" not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(StoreError, match=r"not a PostgreSQL URL.*%40 for @") as wrong:
        use("postgresql://me:canary@127.0.0.1/asides?sslmoode=1")
    assert "canary" not in str(wrong.value)


@pytest.mark.parametrize("use", [check, migrate, use_database])
def test_without_psycopg_it_says_what_to_install(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.database.postgres.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'asides\[postgres\]'"):
        use("postgresql://127.0.0.1/asides")


# --- a database that is migrated when it is first needed --------------------------------------------------------------


def test_the_first_use_creates_the_tables(empty_url: str) -> None:
    database = MigratedPostgres(empty_url)
    assert count_tables(empty_url) == 0, "nothing is opened before it is needed"
    database.prepare()
    assert check(empty_url).is_current


async def test_a_server_that_comes_back_is_migrated_then(own_postgres: PostgresServer, own_postgres_url: str) -> None:
    own_postgres.stop()
    database = MigratedPostgres(own_postgres_url)

    def count() -> Queries[int]:
        found = yield Query("SELECT count(*) FROM conversations", is_alone=True)
        return int(found.rows[0][0])

    with pytest.raises(StoreUnavailable):
        await database.run_async(count)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await database.run_async(count)
    assert time.monotonic() - started < 3, "for a moment nobody waits for it"
    own_postgres.start()
    for _ in range(100):
        try:
            assert await database.run_async(count) == 0
            break
        except StoreUnavailable:
            await asyncio.sleep(0.1)
    else:
        pytest.fail("it did not come back")
    await database.close_async()
