"""What every vault promises, in memory, in SQLite and in PostgreSQL, for threads and for event loops alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.database.postgres import PostgresDatabase
from asides.relay.steps import PENDING, StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault.memory_vault import MemoryVault
from asides.relay.vault.postgres_vault import PostgresVault
from asides.relay.vault.sqlite_vault import SqliteVault

DAY = 24 * 60 * 60.0
Vault = MemoryVault | SqliteVault | PostgresVault


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """A vault, its clock, and how to make another one of its kind."""

    def __init__(self, kind: str, place: str) -> None:
        self.clock = Clock()
        self._kind = kind
        self._place = place
        self._opened: list[Vault] = []

    def open(self, limits: VaultLimits | None = None) -> Vault:
        if self._kind == "memory":
            vault: Vault = MemoryVault(limits, clock=self.clock)
        elif self._kind == "sqlite":
            vault = SqliteVault(f"{self._place}/vault{len(self._opened)}.db", limits, clock=self.clock)
        else:
            vault = PostgresVault(PostgresDatabase(self._place), limits, clock=self.clock)
        self._opened.append(vault)
        return vault

    def close(self) -> None:
        for vault in self._opened:
            vault.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    place = request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path)
    made = Rig(request.param, place)
    yield made
    made.close()


def record(name: str, *keys: str, size: int = 10) -> StoredRecord:
    return StoredRecord(name, keys or (f"key of {name}".replace(" ", "_"),), b"\0\xff" + b"x" * size)


def ids(vault: Vault, *keys: str, tenant: str = "a") -> list[str]:
    return [found.id for found in vault.read(tenant, keys)]


def test_a_record_is_found_under_each_of_its_keys_once_and_as_it_was(rig: Rig) -> None:
    vault = rig.open()
    one, two = record("one", "k1", "k2", "shared"), record("two", "k3", "shared")
    vault.write("a", one)
    vault.write("a", two)
    assert list(vault.read("a", ["k1"])) == [one]
    assert list(vault.read("a", ["k2", "k1"])) == [one]
    assert sorted(ids(vault, "shared")) == ["one", "two"]
    assert sorted(ids(vault, "k1", "k3", "shared", "none")) == ["one", "two"]
    assert ids(vault, "none") == []
    assert ids(vault) == []
    assert vault.is_instant == isinstance(vault, MemoryVault)


def test_tenants_share_nothing(rig: Rig) -> None:
    vault = rig.open()
    vault.write("a", record("one", "k"))
    vault.write("b", record("one", "k", size=3))
    assert len(vault.read("a", ["k"])[0].payload) == 12
    assert len(vault.read("b", ["k"])[0].payload) == 5
    assert ids(vault, "k", tenant="c") == []
    assert vault.delete("b", ["k"]) == 1
    assert ids(vault, "k") == ["one"]


def test_the_first_record_of_an_id_stays(rig: Rig) -> None:
    vault = rig.open()
    vault.write("a", record("one", "k"))
    vault.write("a", record("one", "other", size=99))
    assert vault.read("a", ["k"])[0] == record("one", "k")
    assert ids(vault, "other") == []


def test_records_are_deleted_by_key_and_by_tenant(rig: Rig) -> None:
    vault = rig.open()
    for name in ("one", "two", "three"):
        vault.write("a", record(name, name, "all" if name != "three" else "third"))
    vault.write("b", record("four", "all"))
    assert vault.delete("a", ["all", "one", "none"]) == 2
    assert ids(vault, "one", "two", "three") == ["three"]
    assert vault.delete("a", ["all"]) == 0
    assert vault.delete_tenant("a") == 1
    assert vault.delete_tenant("a") == 0
    assert ids(vault, "three") == []
    assert ids(vault, "all", tenant="b") == ["four"]
    vault.write("a", record("five", "again"))
    assert ids(vault, "again") == ["five"]


def test_a_record_ends_seven_days_after_its_last_use(rig: Rig) -> None:
    vault = rig.open()
    vault.write("a", record("used", "u"))
    vault.write("a", record("left", "l"))
    for _ in range(3):
        rig.clock.now += 5 * DAY
        assert ids(vault, "u") == ["used"]
    assert ids(vault, "l") == []
    rig.clock.now += 8 * DAY
    assert ids(vault, "u") == []
    vault.write("a", record("new", "n"))
    assert ids(vault, "n", "u", "l") == ["new"]


def test_a_tenant_has_a_number_of_records_and_the_least_used_go_first(rig: Rig) -> None:
    vault = rig.open(VaultLimits(records=3, seconds=100.0))
    for name in ("a", "b", "c"):
        vault.write("t", record(name, name))
        rig.clock.now += 10
    assert ids(vault, "a", tenant="t") == ["a"]  # used again, so b is next
    rig.clock.now += 10
    vault.write("t", record("d", "d"))
    vault.write("other", record("e", "e"))
    assert sorted(ids(vault, "a", "b", "c", "d", tenant="t")) == ["a", "c", "d"]
    assert ids(vault, "e", tenant="other") == ["e"]


def test_a_tenant_has_a_number_of_bytes(rig: Rig) -> None:
    vault = rig.open(VaultLimits(size=5000))
    for number in range(10):
        rig.clock.now += 1
        vault.write("t", record(str(number), f"k{number}", size=1000))
    assert sorted(ids(vault, *(f"k{number}" for number in range(10)), tenant="t")) == ["6", "7", "8", "9"]
    vault.write("t", record("large", "large", size=9000))
    assert ids(vault, "large", tenant="t") == []


def test_limits_hold_after_deletions(rig: Rig) -> None:
    vault = rig.open(VaultLimits(records=2))
    for number in range(6):
        rig.clock.now += 1
        vault.write("t", record(str(number), f"k{number}"))
        vault.delete("t", [f"k{number}"])
    vault.write("t", record("x", "x"))
    vault.write("t", record("y", "y"))
    assert sorted(ids(vault, "x", "y", tenant="t")) == ["x", "y"]


def test_a_thousand_keys_are_one_read(rig: Rig) -> None:
    vault = rig.open()
    for number in range(50):
        vault.write("a", record(str(number), f"k{number}"))
    assert len(ids(vault, *(f"k{number}" for number in range(1500)))) == 50


def test_many_threads_use_one_vault(rig: Rig) -> None:
    vault = rig.open()
    problems: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(20):
                vault.write(f"t{thread % 2}", record(f"{thread}-{number}", f"k{thread}-{number}", "shared"))
                assert ids(vault, f"k{thread}-{number}", tenant=f"t{thread % 2}") == [f"{thread}-{number}"]
        except BaseException as problem:  # noqa: BLE001 - it fails the test below
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(ids(vault, "shared", tenant="t0")) == 40


def test_names_and_keys_may_be_anything(rig: Rig) -> None:
    vault = rig.open()
    vault.write("", record("one", "k"))
    vault.write("ü\ud800", record("two", "k"))
    assert ids(vault, "k", tenant="") == ["one"]
    assert ids(vault, "k", tenant="ü\ud800") == ["two"]


def test_tenants_that_do_not_come_back_are_forgotten() -> None:
    clock = Clock()
    vault = MemoryVault(clock=clock)
    for number in range(100):
        vault.write(f"tenant {number}", record("one", "k"))
    clock.now += 8 * DAY
    vault.write("new", record("one", "k"))
    assert set(vault._tenants) == {"new"}
    assert repr(vault) == "MemoryVault(1 records)"
    vault.close()
    assert ids(vault, "k", tenant="new") == []


# --- event loops ------------------------------------------------------------------------------------------------------


async def test_event_loops_do_the_same(rig: Rig) -> None:
    vault = rig.open()
    one, two = record("one", "k1", "shared"), record("two", "k2", "shared")
    await asyncio.gather(*(vault.write_async("a", each) for each in (one, two, one)))
    assert list(await vault.read_async("a", ["k1"])) == [one]
    assert sorted(each.id for each in await vault.read_async("a", ["shared", "none"])) == ["one", "two"]
    assert list(await vault.read_async("b", ["shared"])) == []
    assert list(await vault.read_async("a", [])) == []
    # Threads see what event loops have written.
    assert await asyncio.to_thread(vault.read, "a", ["k2"]) == (two,)
    assert await vault.delete_async("a", ["k1"]) == 1
    assert await vault.delete_async("a", ["k1"]) == 0
    await vault.close_async()


async def test_event_loops_have_the_same_limits(rig: Rig) -> None:
    vault = rig.open(VaultLimits(records=3))
    for number in range(8):
        rig.clock.now += 1
        await vault.write_async("t", record(str(number), "all"))
    assert sorted(each.id for each in await vault.read_async("t", ["all"])) == ["5", "6", "7"]
    rig.clock.now += 8 * DAY
    assert list(await vault.read_async("t", ["all"])) == []
    await vault.close_async()


async def test_whoever_stops_to_wait_stops_no_record(rig: Rig) -> None:
    vault = rig.open()
    tasks = [asyncio.create_task(vault.write_async("a", record(f"r{number}", "all"))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(each is None for each in ended[1::2])
    await vault.write_async("a", record("last", "all"))
    assert len(await vault.read_async("a", ["all"])) == 21
    await vault.close_async()


def test_several_event_loops_use_one_vault(rig: Rig) -> None:
    vault = rig.open()

    async def work(name: str) -> None:
        for number in range(5):
            await asyncio.gather(
                *(vault.write_async("a", record(f"{name}-{number}-{each}", "all")) for each in range(5))
            )
        assert len(await vault.read_async("a", ["all"])) >= 25
        if isinstance(vault, PostgresVault):
            await vault._loop_writer.close()
            for pool in vault._database._async_pools.pop(asyncio.get_running_loop()).values():  # type: ignore[attr-defined]
                await pool.close()

    threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in ("x", "y", "z")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(vault.read("a", ["all"])) == 75


# --- replies that were cut off ----------------------------------------------------------------------------------------

MARK = f"{PENDING}of_the_words"


def attempt(name: str, *, asked_ago: float = 0.0) -> StoredRecord:
    return StoredRecord(name, ("words", MARK), b"x" * 100, asked_ago)


def confirm(vault: Vault, name: str, *, tenant: str = "a") -> None:
    vault.confirm(UnconfirmedRecord(tenant, name, MARK))
    vault.write("a", record(f"after {name}", "nothing"))  # Whoever writes takes along what waits.


def test_the_second_attempt_takes_the_place_of_one_that_was_cut_off(rig: Rig) -> None:
    vault = rig.open()
    for tenant in ("a", "b"):
        vault.write(tenant, attempt("first"))
    rig.clock.now += 10
    vault.write("a", attempt("second", asked_ago=3))
    assert ids(vault, "words") == ids(vault, MARK) == ["second"]
    assert ids(vault, "words", tenant="b") == ["first"]
    rig.clock.now += 10
    vault.write("a", record("without a mark", "words"))
    assert ids(vault, "words") == ["second", "without a mark"]


def test_a_reply_that_was_delivered_stays_beside_one_with_the_same_words(rig: Rig) -> None:
    vault = rig.open()
    vault.write("a", attempt("first"))
    confirm(vault, "first")
    assert ids(vault, MARK) == []
    assert vault.read("a", ["words"])[0].keys == ("words",)
    rig.clock.now += 10
    vault.write("a", attempt("second"))
    assert ids(vault, "words") == ["first", "second"]
    confirm(vault, "second", tenant="b")
    confirm(vault, "nobody")
    assert ids(vault, MARK) == ["second"]


@pytest.mark.parametrize(("later", "asked_ago"), [(0.02, 0.0), (5.0, 5.5), (2 * 60 * 60, 1.0)])
def test_requests_at_the_same_time_or_hours_apart_are_of_two_clients(rig: Rig, later: float, asked_ago: float) -> None:
    vault = rig.open()
    vault.write("a", attempt("first"))
    rig.clock.now += later
    vault.write("a", attempt("second", asked_ago=asked_ago))
    assert ids(vault, "words") == ["first", "second"]


def test_limits_hold_after_records_were_confirmed_and_replaced(rig: Rig) -> None:
    vault = rig.open(VaultLimits(size=5000))
    for number in range(30):
        vault.write("a", attempt(f"r{number}"))
        if number % 3 == 0:
            confirm(vault, f"r{number}")
        rig.clock.now += 10
    assert {"r0", "r3", "r27", "r29"} <= set(ids(vault, "words")) <= {f"r{number}" for number in (*range(0, 30, 3), 29)}
    assert vault.delete_tenant("a") == 10 + 1 + 10


async def test_event_loops_confirm_records_too(rig: Rig) -> None:
    vault = rig.open()
    for name in ("first", "second"):
        await vault.write_async("a", attempt(name))
        vault.confirm(UnconfirmedRecord("a", name, MARK))
        if not isinstance(vault, MemoryVault):
            await vault.close_async()  # It writes what waits.
        rig.clock.now += 10
    assert [found.id for found in await vault.read_async("a", ["words"])] == ["first", "second"]
    assert await vault.read_async("a", [MARK]) in ((), [])
    if not isinstance(vault, MemoryVault):
        await vault.close_async()
