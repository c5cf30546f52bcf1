"""Servers that stop, hang, refuse or take no changes: nobody waits long, the log is told once, and it comes back."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from functools import partial
from typing import Any

import psycopg
import pytest

from asides.database import Queries, Query, StoreError, StoreUnavailable
from asides.database.migrate import migrate
from asides.database.postgres import PostgresDatabase
from asides.database.postgres_outage import READ_ONLY, explain_failure
from tests.servers import PostgresServer, find_free_port


def insert(name: bytes) -> Queries[int]:
    return (
        yield Query("INSERT INTO vault_tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (name,), is_alone=True)
    ).changed


def insert_in_steps(name: bytes) -> Queries[int]:
    yield Query("INSERT INTO vault_tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    return (yield Query("SELECT count(*) FROM vault_tenants")).rows[0][0]  # type: ignore[no-any-return]


def count() -> Queries[int]:
    return (yield Query("SELECT count(*) FROM vault_tenants", is_alone=True)).rows[0][0]  # type: ignore[no-any-return]


@pytest.fixture
def server(own_postgres: PostgresServer) -> PostgresServer:
    """A server that tests here stop and start. It has a database `own` with all tables."""
    with suppress(psycopg.errors.DuplicateDatabase):  # made by a test before
        migrate(own_postgres.create_database("own"))
    return own_postgres


def wait_until_well(database: PostgresDatabase) -> None:
    until = time.monotonic() + 30
    while database.problem is not None and time.monotonic() < until:
        time.sleep(0.02)
    assert database.problem is None


def measure(work: Any) -> float:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"\. [A-Z]"):
        work()
    return time.monotonic() - began


@pytest.mark.parametrize("how", ["fast", "immediate", "hung"])
def test_after_the_first_nobody_waits_for_a_server_that_is_out(
    server: PostgresServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = PostgresDatabase(server.make_url("own"))
    database.run(lambda: insert(b"before"))
    server.suspend() if how == "hung" else server.stop(how)
    assert measure(lambda: database.run(count, writes=False, patience=0.8)) < 4.5
    assert sum(measure(lambda: database.run(lambda: insert(b"x"))) for _ in range(50)) < 4.5
    reason = database.problem
    assert reason is not None
    server.start_again()
    wait_until_well(database)
    assert database.run(count, writes=False) >= 1
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2, told
    assert reason in told[0]
    assert "works again" in told[1]
    database.close()


@pytest.mark.parametrize("how", ["fast", "immediate", "hung"])
async def test_event_loops_do_not_wait_either(server: PostgresServer, how: str) -> None:
    database = PostgresDatabase(server.make_url("own"))
    await asyncio.gather(*(database.run_async(count, writes=False) for _ in range(8)))
    # In a thread: a connection that the loop has begun holds the server up until the loop goes on.
    await asyncio.to_thread(server.suspend if how == "hung" else partial(server.stop, how))
    began = time.monotonic()
    together = [database.run_async(count, writes=False, patience=0.8) for _ in range(30)]
    assert all(isinstance(each, StoreUnavailable) for each in await asyncio.gather(*together, return_exceptions=True))
    assert time.monotonic() - began < 10
    await asyncio.to_thread(server.start_again)
    await asyncio.to_thread(wait_until_well, database)
    assert await database.run_async(count, writes=False) >= 0
    await database.close_async()


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_restart_that_nobody_saw_is_no_error_for_anyone(
    server: PostgresServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = PostgresDatabase(server.make_url("own"))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: database.run(lambda: insert_in_steps(b"%d" % number)), range(8)))
    await asyncio.gather(*(database.run_async(lambda: insert(b"a%d")) for _ in range(8)))
    await asyncio.to_thread(server.stop, how)
    await asyncio.to_thread(server.start_again)
    began = time.monotonic()
    # Not repeatable: a connection that has ended is not used at all.
    await asyncio.gather(*(database.run_async(lambda: insert(b"again")) for _ in range(8)))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: database.run(lambda: insert(b"and%d" % number)), range(8)))
    assert time.monotonic() - began < 10
    assert database.problem is None
    assert caplog.records == []
    await database.close_async()


def test_a_change_whose_end_nobody_knows_is_told_unless_it_may_be_made_twice(server: PostgresServer) -> None:
    database = PostgresDatabase(server.make_url("own"))
    tries: list[bytes] = []

    def make(name: bytes, sleep: float) -> Queries[int]:
        tries.append(name)
        query = (
            "WITH slept AS (SELECT pg_sleep(?)) INSERT INTO vault_tenants (name) SELECT ? FROM slept "
            "ON CONFLICT DO NOTHING"
        )
        return (yield Query(query, (sleep if len(tries) == 1 else 0.0, name), is_alone=True)).changed

    def end_session() -> None:
        until = time.monotonic() + 10
        while not server.count_sessions("pg_sleep") and time.monotonic() < until:
            time.sleep(0.01)
        server._command(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE '%WITH slept%' AND pid <> pg_backend_pid()"
        )

    for repeatable in (False, True):
        tries.clear()
        thread = threading.Thread(target=end_session)
        thread.start()
        if repeatable:
            assert database.run(lambda: make(b"twice", 20.0), repeatable=True, patience=10.0) == 1
            assert len(tries) >= 2
        else:
            with pytest.raises(StoreUnavailable, match="may or may not"):
                database.run(lambda: make(b"once", 20.0), patience=10.0)
            assert len(tries) == 1
        thread.join()
        wait_until_well(database)
    database.close()


def test_one_who_is_turned_away_hears_why_and_at_once(server: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    cases = {
        f"postgresql://me:sesame@127.0.0.1:{find_free_port()}/own": "does not answer",
        server.make_url("nothing").replace("asides@", "asides:sesame@"): 'says: database "…" does not exist. ',
        server.make_url("own").replace("asides@", "stranger:sesame@"): 'says: role "…" does not exist. Check',
        server.make_url("own") + "?sslmode=verify-full&sslrootcert=system": "server does not support SSL, but SSL was",
        server.make_url("own") + "?sslmode=full": 'invalid sslmode value: "…". .* the URL of the store',
    }
    for url, words in cases.items():
        database = PostgresDatabase(url)
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=words) as caught:
            database.run(count, writes=False)
        assert time.monotonic() - began < 4.5
        assert "sesame" not in f"{caught.value} {database!r} {database.name}"
        assert "stranger" not in str(caught.value)
        database.close()
    assert "sesame" not in caplog.text
    assert all(record.name.startswith("asides") for record in caplog.records)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("failed to resolve host 'sesame@db': [Errno -2] unknown", r"does not answer: .*'…': \[Errno -2\] unknown\. "),
        ('connection is bad: invalid integer value "sesame" for "port"', 'invalid integer value "…" for "…"'),
        ("connection timeout expired", "does not answer: connection timeout expired. Check that server"),
        ("fe_sendauth: no password supplied", "no password supplied"),
        ('root certificate file "/sesame.pem" does not exist', 'root certificate file "…" does not exist'),
        (
            'FATAL:  no pg_hba.conf entry for host "sesame", no encryption',
            'no pg_hba.conf entry for host "…", no',
        ),
        ("FATAL:  sorry, too many clients already", "has no connection left. Raise its max_connections"),
        ("", "does not answer. Start it"),
        ("x" * 9000, "does not answer: x{300}. [A-Z]"),
    ],
)
def test_the_words_of_the_server_and_of_libpq_are_repeated_without_values(words: str, expected: str) -> None:
    problem = explain_failure("db/own", OSError(words))
    assert re.search(f"the database db/own .*{expected}", str(problem))
    assert "sesame" not in str(problem)


async def test_a_server_that_is_out_of_reach(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody takes the connection and says nothing, as a firewall does that drops packets."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        database = PostgresDatabase(f"postgresql://asides@127.0.0.1:{listener.getsockname()[1]}/own")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await database.run_async(count, writes=False, patience=0.7)
        with pytest.raises(StoreUnavailable):
            await database.run_async(count, writes=False)
        assert time.monotonic() - began < 5
        await database.close_async()
    assert len(caplog.records) == 1


def test_nobody_asks_for_a_database_that_is_gone() -> None:
    """Neither closed nor used any more: the thread that asks for its server ends with it."""
    before = set(threading.enumerate())
    database = PostgresDatabase(f"postgresql://me@127.0.0.1:{find_free_port()}/none", patience=0.2)
    with suppress(StoreUnavailable):
        database.run(count)
    (probing,) = [thread for thread in set(threading.enumerate()) - before if thread.name == "asides-store-probe"]
    assert database.problem is not None
    time.sleep(0.5)
    assert probing.is_alive()
    del database
    gc.collect()
    probing.join(20)
    assert not probing.is_alive()


def test_a_server_with_no_connection_left(server: PostgresServer) -> None:
    server._command("ALTER DATABASE own CONNECTION LIMIT 1")
    server._command("CREATE ROLE guest LOGIN")
    server._command("GRANT ALL ON DATABASE own TO guest")
    url = server.make_url("own")
    try:
        with closing(PostgresDatabase(url.replace("asides@", "guest@"))) as holder:
            with pytest.raises(StoreError):  # It may not read the tables, and holds its connection.
                holder.run(count)
            with closing(PostgresDatabase(url.replace("asides@", "guest@"))) as other:
                with pytest.raises(StoreUnavailable, match="no connection left"):
                    other.run(count, patience=0.5)
                holder.close()
                wait_until_well(other)
    finally:
        server._command("ALTER DATABASE own CONNECTION LIMIT -1")
        server._command("REVOKE ALL ON DATABASE own FROM guest")
        server._command("DROP ROLE guest")


def test_a_server_that_takes_no_changes_is_read_and_left_alone_until_it_does(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    database = PostgresDatabase(server.make_url("own"))
    database.run(lambda: insert(b"before"))
    server._command("ALTER DATABASE own SET default_transaction_read_only = on")
    database.close()
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="read-only"):
            database.run(lambda: insert(b"never"))
    assert database.problem == READ_ONLY
    assert database.run(count, writes=False) >= 1
    server._command("ALTER DATABASE own RESET default_transaction_read_only")
    wait_until_well(database)
    # The connection from before takes none for ever, and is not used again.
    assert database.run(lambda: insert(b"after")) == 1
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 2
    database.close()


@pytest.mark.parametrize("cuts", [True, False], ids=["we are first", "the server is first"])
def test_statements_that_take_too_long_end_here_and_in_the_server(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, cuts: bool
) -> None:
    """Either may end them first: on a busy machine the server does, and keeps the connection."""
    with closing(PostgresDatabase(server.make_url("own"), patience=0.5)) as database:
        if not cuts:
            monkeypatch.setattr(database._deadlines, "watch", lambda *_: nullcontext())

        def sleep() -> Queries[None]:
            yield Query("SELECT pg_sleep(30)", is_alone=True)

        assert measure(lambda: database.run(sleep, writes=False)) < 15
        wait_until_well(database)
        until = time.monotonic() + 10
        while server.count_sessions("pg_sleep") and time.monotonic() < until:
            time.sleep(0.05)
        assert server.count_sessions("pg_sleep") == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_fork_has_connections_of_its_own(server: PostgresServer) -> None:
    database = PostgresDatabase(server.make_url("own"))
    database.run(lambda: insert(b"parent"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            database.run(lambda: insert(b"child"))
            database.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    for _ in range(3):
        assert database.run(lambda: insert(b"child")) == 0
    database.close()


def test_nothing_is_opened_before_it_is_needed_and_nothing_stays(server: PostgresServer) -> None:
    url = server.create_database("unused", template="own")
    before = set(threading.enumerate())
    database = PostgresDatabase(url)
    assert set(threading.enumerate()) <= before
    assert server.count_sessions("", "unused") == 0
    database.run(count)
    assert server.count_sessions("", "unused") == 1
    database.close()
    until = time.monotonic() + 10
    while server.count_sessions("", "unused") and time.monotonic() < until:
        time.sleep(0.02)
    assert server.count_sessions("", "unused") == 0
    server.drop_database("unused")
    assert not [thread.name for thread in threading.enumerate() if "asides-w" in thread.name]


async def test_whoever_leaves_leaves_the_connection_to_others(server: PostgresServer) -> None:
    database = PostgresDatabase(server.make_url("own"), most_connections=2)

    def sleep() -> Queries[None]:
        yield Query("SELECT pg_sleep(30)", is_alone=True)

    for _ in range(3):
        task = asyncio.create_task(database.run_async(sleep, writes=False))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await database.run_async(count, writes=False) >= 0
    assert database.problem is None
    await database.close_async()


_LEFT_BEHIND = """
import asyncio, sys, time
from asides.database import Query
from asides.database.postgres import PostgresDatabase

def count():
    return (yield Query("SELECT count(*) FROM vault_tenants", is_alone=True)).rows[0][0]

async def main():
    database = PostgresDatabase(sys.argv[1])
    await asyncio.gather(*(database.run_async(count, writes=False) for _ in range(8)))
    print("stop", flush=True)
    sys.stdin.readline()
    raise SystemExit(7)

asyncio.run(main())
"""


def test_a_loop_ends_while_a_connection_is_being_opened(server: PostgresServer) -> None:
    """A program that fails before it closes its database ends, though the server does not answer."""
    child = subprocess.Popen(
        [sys.executable, "-c", _LEFT_BEHIND, server.make_url("own")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        try:
            assert child.stdout.readline() == b"stop\n"
            # The loop reads its input, while the connections that it has begun wait for it.
            server.suspend()
            child.stdin.write(b"\n")
            child.stdin.flush()
            assert child.wait(20) == 7
        finally:
            child.kill()
