"""The vault on a server: round trips, other processes, kill -9, restarts of the server, and what is in its tables.

What it shares with other vaults is in test_memory_vault; servers that are out are in tests/database and tests/gateway.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psycopg
import pytest

from asides.database import Queries, StoreError, StoreUnavailable
from asides.database.migrate import migrate
from asides.database.postgres import PostgresDatabase
from asides.relay.steps import StoredRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault.open_vault import open_vault
from asides.relay.vault.postgres_vault import PostgresVault
from tests.relay.relayed_turns import Caller
from tests.relay.vault.test_sqlite_vault import SECRETS, hear_secrets
from tests.servers import PostgresServer, find_free_port

_Result = TypeVar("_Result")
KEY = "0a" * 32


class Counting(PostgresDatabase):
    """Counts the queries of each work."""

    counted: list[list[str]]

    def _count(self, work: Callable[[], Queries[_Result]]) -> Callable[[], Queries[_Result]]:
        seen: list[str] = []
        self.counted.append(seen)

        def begin() -> Queries[_Result]:
            inner = work()
            result: Any = None
            try:
                query = next(inner)
                while True:
                    seen.append("alone" if getattr(query, "is_alone", False) else "more")
                    result = yield query
                    query = inner.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

        return begin

    def run(self, work: Callable[[], Queries[_Result]], **options: Any) -> _Result:
        return super().run(self._count(work), **options)

    async def run_async(self, work: Callable[[], Queries[_Result]], **options: Any) -> _Result:
        return await super().run_async(self._count(work), **options)


def open_counting(url: str, limits: VaultLimits | None = None) -> tuple[PostgresVault, list[list[str]]]:
    database = Counting(url)
    database.counted = []
    return PostgresVault(database, limits), database.counted


def record(name: str, *keys: str, size: int = 10) -> StoredRecord:
    return StoredRecord(name, keys or (name,), b"\0\xff" + b"x" * size)


async def test_a_read_is_one_round_trip_and_so_is_a_write(postgres_url: str) -> None:
    vault, counted = open_counting(postgres_url)
    await vault.write_async("a", record("first"))  # The tenant is new, and is counted.
    counted.clear()
    await vault.write_async("a", record("one", "k", "l"))
    await vault.read_async("a", ["k", "l", "none"])
    assert counted == [["alone"], ["alone"]]
    counted.clear()
    await asyncio.gather(*(vault.write_async("a", record(f"r{number}", "all")) for number in range(100)))
    assert len(counted) <= 3
    assert len(await vault.read_async("a", ["all"])) == 100
    await vault.close_async()


async def test_many_records_of_many_tenants_arrive_at_once(postgres_url: str) -> None:
    vaults = [PostgresVault(PostgresDatabase(postgres_url)) for _ in range(3)]
    writes = [
        vault.write_async(f"tenant {number % 7}", record(f"{place}-{number}", "all"))
        for number in range(60)
        for place, vault in enumerate(vaults)
    ]
    await asyncio.gather(*writes)
    found = [len(await vaults[0].read_async(f"tenant {number}", ["all"])) for number in range(7)]
    assert sum(found) == 180
    for vault in vaults:
        await vault.close_async()


async def test_a_record_that_cannot_be_stored_costs_the_others_nothing(postgres_url: str) -> None:
    vault = PostgresVault(PostgresDatabase(postgres_url))
    writes = [vault.write_async("a", record(f"r{number}" + "\0" * (number == 3), "all")) for number in range(6)]
    ended = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(each, StoreError) for each in ended] == [number == 3 for number in range(6)]
    assert len(await vault.read_async("a", ["all"])) == 5
    await vault.close_async()


def test_a_tenant_that_is_deleted_meanwhile_is_made_again(postgres_url: str) -> None:
    vault, other = (PostgresVault(PostgresDatabase(postgres_url)) for _ in range(2))
    for number in range(10):
        vault.write("a", record(f"r{number}", "all"))
        assert other.delete_tenant("a") == 1
    vault.write("a", record("last", "all"))
    assert [each.id for each in other.read("a", ["all"])] == ["last"]
    vault.close()
    other.close()


def test_limits_hold_for_all_processes_within_a_hundredth(postgres_url: str) -> None:
    limits = VaultLimits(records=200)
    one, other = (PostgresVault(PostgresDatabase(postgres_url), limits) for _ in range(2))
    for number in range(150):
        for name, vault in (("x", one), ("y", other)):
            vault.write("t", record(f"{name}{number}", "all"))
    assert 200 <= len(one.read("t", ["all"])) <= 200 + 2 * 2
    with psycopg.connect(postgres_url) as connection:
        counted = connection.execute("SELECT records, size FROM asides.vault_tenants").fetchone()
        assert counted is not None
        assert counted[0] == 200
    one.close()
    other.close()


def test_old_records_are_deleted_a_few_at_a_time_by_one_at_a_time(postgres_url: str) -> None:
    now = [1_000_000.0]
    limits = VaultLimits(seconds=1000.0)
    vault = PostgresVault(PostgresDatabase(postgres_url), limits, clock=lambda: now[0])
    for number in range(500):
        vault.write("t", record(f"r{number}", "all"))

    def count() -> int:
        with psycopg.connect(postgres_url) as connection:
            return int((connection.execute("SELECT count(*) FROM asides.vault_records").fetchone() or (0,))[0])

    now[0] += 2000.0
    with psycopg.connect(postgres_url) as connection:
        # Somebody else is at it.
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x61736476,))
        vault.write("t", record("new0", "new"))
        assert count() == 501
    left = []
    for number in range(1, 5):
        now[0] += 2.0
        vault.write("t", record(f"new{number}", "new"))
        left.append(count())
    assert left == [302, 103, 4, 5]
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM asides.vault_keys").fetchone() == (5,)
    vault.close()


def test_the_tables_show_nothing_and_the_key_has_to_be_given(postgres_url: str) -> None:
    vault = open_vault("store", postgres_url, key=KEY, environ={})
    assert isinstance(vault.store, PostgresVault)
    keys = vault.keys.find_tenant("secret-tenant")
    caller = Caller("openai_chat", mode="store", store=vault.store, keys=keys, strips=True)
    hear_secrets(caller)
    # Another machine has the same database and the same key.
    other = open_vault("store", postgres_url, environ={"ASIDES_RELAY_KEY": KEY})
    caller.store, caller.keys = other.store, other.keys.find_tenant("secret-tenant")
    restored = caller.restore()
    assert restored.from_vault == 1
    assert b"a secret seal" in msgspec.json.encode(restored.prompt.messages)
    caller.keys = other.keys.find_tenant("b")
    assert caller.restore().from_vault == 0
    dumped = b""
    with psycopg.connect(postgres_url) as connection:
        for table in ("vault_tenants", "vault_records", "vault_keys"):
            rows = connection.execute(f"SELECT * FROM asides.{table}").fetchall()
            dumped += b" ".join(each if isinstance(each, bytes) else str(each).encode() for row in rows for each in row)
    assert [secret for secret in (*SECRETS, b"question") if secret in dumped] == []
    vault.close()
    other.close()


WRITER = """
import asyncio, sys
from asides.database.postgres import PostgresDatabase
from asides.relay.vault.postgres_vault import PostgresVault
from asides.relay.steps import StoredRecord

async def write(name):
    for number in range(100_000):
        await vault.write_async("a", StoredRecord(f"{name}-{number}", (f"{name}-{number}", "all"), b"x" * 500))
        print(f"{name}-{number}", flush=True)

async def main():
    await asyncio.gather(*(write(f"{sys.argv[2]}-{each}") for each in range(5)))

vault = PostgresVault(PostgresDatabase(sys.argv[1]))
asyncio.run(main())
"""


def start_writer(url: str, name: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_processes_that_are_killed_lose_no_record_that_they_acknowledged(postgres_url: str) -> None:
    writers = [start_writer(postgres_url, name) for name in ("one", "two")]
    acknowledged: list[str] = []
    for writer in writers:
        assert writer.stdout is not None
        acknowledged += [writer.stdout.readline().strip() for _ in range(50)]
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        assert writer.stdout is not None
        # The last line may be cut: then nobody was told. `communicate` would leave out what `readline` read ahead.
        acknowledged += writer.stdout.read().split("\n")[:-1]
        writer.communicate(timeout=60)
    vault = PostgresVault(PostgresDatabase(postgres_url))
    found = vault.read("a", ["all"])
    assert set(acknowledged) <= {each.id for each in found}
    assert len(acknowledged) >= 100
    assert all(each.payload == b"x" * 500 for each in found)
    vault.close()


def test_a_server_that_is_stopped_loses_nothing_and_keeps_nobody_waiting(
    own_postgres: PostgresServer, own_postgres_url: str
) -> None:
    migrate(own_postgres_url)
    asyncio.run(_stop_and_start(own_postgres, own_postgres_url))


async def _stop_and_start(server: PostgresServer, url: str) -> None:
    vault = PostgresVault(PostgresDatabase(url))
    acknowledged: list[str] = []
    longest = failures = 0.0
    is_over = False

    async def write(name: str) -> None:
        nonlocal longest, failures
        number = 0
        while not is_over:
            number += 1
            began = time.monotonic()
            try:
                await vault.write_async("a", record(f"{name}-{number}", "all"))
                acknowledged.append(f"{name}-{number}")
            except StoreUnavailable:
                failures += 1
                await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - began)

    writers = [asyncio.create_task(write(str(each))) for each in range(8)]
    for _ in range(2):
        await asyncio.sleep(0.4)
        await asyncio.to_thread(server.stop, "fast")
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start_again)
        before = len(acknowledged)
        until = time.monotonic() + 30
        while len(acknowledged) == before and time.monotonic() < until:
            await asyncio.sleep(0.02)
        assert len(acknowledged) > before
    is_over = True
    await asyncio.gather(*writers)
    assert failures
    assert longest < 4.5
    assert set(acknowledged) <= {each.id for each in await vault.read_async("a", ["all"])}
    await vault.close_async()


def test_a_server_that_is_out_is_an_error_of_ours_and_soon() -> None:
    vault = PostgresVault(PostgresDatabase(f"postgresql://me:sesame@127.0.0.1:{find_free_port()}/x"))
    began = time.monotonic()
    for work in (lambda: vault.read("a", ["k"]), lambda: vault.write("a", record("r")), lambda: vault.delete("a", "k")):
        with pytest.raises(StoreUnavailable, match="does not answer") as caught:
            work()
        assert "sesame" not in f"{caught.value} {vault!r}"
    assert time.monotonic() - began < 4.5
    vault.close()


def test_a_database_of_others_stays_open(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    vault = PostgresVault(database, owns=False)
    vault.write("a", record("one"))
    pools = dict(database._pools)
    vault.close()
    asyncio.run(vault.close_async())
    assert database._pools == pools
    assert not any(pool.closed for pool in pools.values())
    database.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_fork_writes_too(postgres_url: str, tmp_path: Path) -> None:
    vault = PostgresVault(PostgresDatabase(postgres_url))
    vault.write("a", record("parent", "all"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            vault.write("a", record("child", "all"))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    vault.write("a", record("parent again", "all"))
    assert len(vault.read("a", ["all"])) == 3
    vault.close()


def test_threads_write_together(postgres_url: str) -> None:
    vault, counted = open_counting(postgres_url)
    vault.write("a", record("first"))
    counted.clear()
    barrier = threading.Barrier(12)

    def write(number: int) -> None:
        barrier.wait(20)
        vault.write("a", record(f"r{number}", "all"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(counted) < 12
    assert len(vault.read("a", ["all"])) == 12
    vault.close()
