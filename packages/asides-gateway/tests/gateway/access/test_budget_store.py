"""Budgets: what is settled and what is reserved is never more than the budget, whoever is killed when."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from asides.database import Database, Queries, Query
from asides_gateway.access.budget_store import (
    BudgetExceeded,
    Reservation,
    Spending,
    find_reset,
    format_day,
    list_spending,
    make_reservation,
    renew,
    reserve,
    settle,
)
from asides_gateway.access.key_store import revoke_key
from tests.gateway.access.key_records import add_key, open_place
from tests.stores import list_import_folders

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
DOLLAR = 10**9


def count_rows() -> Queries[int]:
    return int((yield Query("SELECT count(*) FROM gateway_reservations", is_alone=True)).rows[0][0])


def test_days_and_months_are_those_of_utc() -> None:
    assert format_day(datetime(2026, 11, 16, 23, 59, 59, tzinfo=UTC).timestamp()) == "2026-11-16"
    assert datetime.fromtimestamp(find_reset("day", NOW), UTC) == datetime(2026, 11, 17, tzinfo=UTC)
    assert datetime.fromtimestamp(find_reset("month", NOW), UTC) == datetime(2026, 12, 1, tzinfo=UTC)
    december = datetime(2026, 12, 31, 23, 59, tzinfo=UTC).timestamp()
    assert datetime.fromtimestamp(find_reset("month", december), UTC) == datetime(2027, 1, 1, tzinfo=UTC)


def test_what_fits_is_reserved_and_what_does_not_says_how_much_is_left(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    first = make_reservation(key, 6 * DOLLAR // 10, NOW)
    assert database.run(lambda: reserve(first, NOW)) is True
    found = database.run(lambda: reserve(make_reservation(key, 5 * DOLLAR // 10, NOW), NOW))
    assert found == BudgetExceeded("day", DOLLAR, 4 * DOLLAR // 10, find_reset("day", NOW))
    assert database.run(lambda: reserve(make_reservation(key, 4 * DOLLAR // 10, NOW), NOW)) is True
    assert database.run(lambda: settle(first, DOLLAR // 10)) is True
    assert database.run(lambda: list_spending(NOW)) == {key: Spending(DOLLAR // 10, DOLLAR // 10, 4 * DOLLAR // 10)}
    assert database.run(lambda: reserve(make_reservation(key, 5 * DOLLAR // 10, NOW), NOW)) is True


def test_reserving_and_settling_again_changes_nothing(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    one = make_reservation(key, DOLLAR, NOW)
    assert [database.run(lambda: reserve(one, NOW)) for _ in range(3)] == [True] * 3
    assert [database.run(lambda: settle(one, DOLLAR)) for _ in range(3)] == [True, False, False]
    assert database.run(lambda: list_spending(NOW)) == {key: Spending(DOLLAR, DOLLAR, 0)}


def test_a_month_holds_over_its_days_and_is_what_is_said(database: Database) -> None:
    key = add_key(database, budget_day="1", budget_month="1.5").record.id
    for day in range(2):
        then = NOW + day * 86400
        one = make_reservation(key, DOLLAR // 2 + day * DOLLAR // 4, then)
        assert database.run(partial(reserve, one, then)) is True
        database.run(partial(settle, one, one.amount))
    later = NOW + 2 * 86400
    found = database.run(lambda: reserve(make_reservation(key, 2 * DOLLAR, later), later))
    assert isinstance(found, BudgetExceeded)
    assert (found.period, found.left) == ("month", DOLLAR // 4)
    next_month = datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC).timestamp()
    assert database.run(lambda: reserve(make_reservation(key, DOLLAR, next_month), next_month)) is True


def test_a_request_over_midnight_is_settled_on_the_day_that_it_began(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    before, after = NOW + 12 * 3600 - 5, NOW + 12 * 3600 + 5
    one = make_reservation(key, DOLLAR, before)
    database.run(lambda: reserve(one, before))
    assert database.run(lambda: reserve(make_reservation(key, DOLLAR, after), after)) is True
    database.run(lambda: settle(one, DOLLAR))
    assert database.run(lambda: list_spending(before))[key].day == DOLLAR
    assert database.run(lambda: list_spending(after))[key] == Spending(0, DOLLAR, DOLLAR)


def test_a_lease_ends_and_the_money_is_back(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    lost = make_reservation(key, DOLLAR, NOW)
    database.run(lambda: reserve(lost, NOW, lease=100))
    assert isinstance(database.run(lambda: reserve(make_reservation(key, 1, NOW), NOW + 99)), BudgetExceeded)
    database.run(lambda: renew([lost.id, "gone"], NOW + 50, lease=100))
    assert isinstance(database.run(lambda: reserve(make_reservation(key, 1, NOW), NOW + 149)), BudgetExceeded)
    assert database.run(lambda: reserve(make_reservation(key, DOLLAR, NOW), NOW + 151, lease=10)) is True
    # One that was only slow is settled in full: nothing that was spent is lost.
    assert database.run(lambda: settle(lost, DOLLAR)) is True
    assert isinstance(database.run(lambda: reserve(make_reservation(key, 1, NOW), NOW + 200)), BudgetExceeded)
    # Old ones are cleared away by those that come.
    other = make_reservation(key, 0, NOW)
    assert database.run(count_rows) == 1
    database.run(lambda: reserve(other, NOW + 90_000))
    assert database.run(count_rows) == 1


def test_a_reply_that_costs_more_is_settled_in_full_and_stops_the_next(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    one = make_reservation(key, DOLLAR // 2, NOW)
    database.run(lambda: reserve(one, NOW))
    database.run(lambda: settle(one, 3 * DOLLAR))
    found = database.run(lambda: reserve(make_reservation(key, 1, NOW), NOW))
    assert isinstance(found, BudgetExceeded)
    assert found.left == 0
    assert database.run(lambda: list_spending(NOW))[key].day == 3 * DOLLAR


def test_a_revoked_or_unknown_key_reserves_nothing(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id
    database.run(lambda: revoke_key(key, NOW))
    assert database.run(lambda: reserve(make_reservation(key, 1, NOW), NOW)) is False
    assert database.run(lambda: reserve(make_reservation("nobody", 1, NOW), NOW)) is False


def test_keys_do_not_share_a_budget(database: Database) -> None:
    one = add_key(database, "one", budget_day="1").record.id
    other = add_key(database, "other", budget_day="1").record.id
    assert database.run(lambda: reserve(make_reservation(one, DOLLAR, NOW), NOW)) is True
    assert database.run(lambda: reserve(make_reservation(other, DOLLAR, NOW), NOW)) is True


def test_of_many_at_once_as_many_get_through_as_fit(database: Database) -> None:
    key = add_key(database, budget_day="1").record.id

    def ask(_: int) -> bool:
        return database.run(lambda: reserve(make_reservation(key, DOLLAR // 10, NOW), NOW)) is True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10


async def test_of_many_in_an_event_loop_too(database: Database) -> None:
    key = (await asyncio.to_thread(add_key, database, budget_day="1")).record.id

    async def ask() -> bool:
        wanted = make_reservation(key, DOLLAR // 10, NOW)
        return await database.run_async(lambda: reserve(wanted, NOW)) is True

    assert sum(await asyncio.gather(*(ask() for _ in range(30)))) == 10
    await database.close_async()


# --- any order --------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 60)),
        st.tuples(st.just("settle"), st.integers(0, 100)),
        st.tuples(st.just("wait"), st.integers(1, 150)),
        st.tuples(st.just("renew"), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_in_any_order_no_more_is_spent_and_reserved_than_the_budget(steps: list[tuple[str, int]]) -> None:
    from asides_gateway.gateway_database import open_database
    from asides_gateway.gateway_settings import GatewaySettings

    database = open_database(GatewaySettings())
    key = add_key(database, budget_day="0.0000001").record.id  # 100 billionths
    now, spent = NOW, 0
    live: dict[str, tuple[Reservation, float]] = {}
    for what, number in steps:
        if what == "reserve":
            one = make_reservation(key, number, now)
            free = 100 - spent - sum(each.amount for each, ends in live.values() if ends > now)
            fits = database.run(partial(reserve, one, now, lease=100)) is True
            assert fits == (number <= free)
            if fits:
                live[one.id] = (one, now + 100)
        elif what == "settle" and live:
            name = min(live)
            one, ends = live.pop(name)
            if ends <= now:
                continue  # Its process was killed: nobody settles it.
            cost = one.amount * number // 100
            assert database.run(partial(settle, one, cost))
            spent += cost
        elif what == "wait":
            now += number
        elif what == "renew":
            names = [name for name, (_, ends) in live.items() if ends > now]
            database.run(partial(renew, names, now, lease=100))
            live |= {name: (live[name][0], now + 100) for name in names}
        found = database.run(partial(list_spending, now)).get(key, Spending())
        assert found.day == spent
        assert found.day + found.reserved <= 100
    database.close()


# --- processes that are killed ----------------------------------------------------------------------------------------

WORKER = """
import random, sys, time
from tests.gateway.access.key_records import open_place
from asides_gateway.access.budget_store import make_reservation, reserve, settle
place, key, lease = sys.argv[1], sys.argv[2], float(sys.argv[3])
database = open_place(place)
print("ready", flush=True)
while True:
    wanted = make_reservation(key, random.randint(1, 400_000_000))
    if database.run(lambda: reserve(wanted, time.time(), lease)) is True:
        time.sleep(random.random() * 0.01)
        cost = random.randint(0, wanted.amount // 20)
        database.run(lambda: settle(wanted, cost))
        print(cost, flush=True)
    else:
        time.sleep(0.002)
"""


def _run_workers(place: str, seconds: float, workers: int) -> None:
    """Processes reserve and settle, are killed at random and replaced; someone looks at the sums all the time."""
    database = open_place(place)
    key = add_key(database, budget_day="1").record.id
    environ = {**os.environ, "PYTHONPATH": list_import_folders()}

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WORKER, place, key, "1.5"]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    running, said, kills, looks, end = [start() for _ in range(workers)], 0, 0, 0, 0.0
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = database.run(lambda: list_spending(time.time()), writes=False).get(key, Spending())
            assert found.day + found.reserved <= DOLLAR, f"{found} after {kills} kills"
            looks += 1
            if random.random() < 0.05:
                place_of = random.randrange(workers)
                running[place_of].send_signal(signal.SIGKILL)
                said += _read_costs(running[place_of])
                running[place_of] = start()
                kills += 1
            time.sleep(0.005)
    finally:
        for process in running:
            process.kill()
            said += _read_costs(process)
    assert looks > 20
    found = database.run(lambda: list_spending(time.time()), writes=False).get(key, Spending())
    assert found.day >= said, "what someone was told is settled"
    until = time.monotonic() + 20  # The leases of those that were killed end.
    while database.run(lambda: list_spending(time.time()), writes=False).get(key, Spending()).reserved:
        assert time.monotonic() < until
        time.sleep(0.05)
    rest = make_reservation(key, DOLLAR - found.day, time.time())
    assert database.run(lambda: reserve(rest, time.time())) is True, "all that was not spent is back"
    database.close()


def _read_costs(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    with process.stdout:
        costs = sum(int(line) for line in process.stdout.read().split() if line.isdigit())
    process.wait()
    return costs


def test_killed_processes_neither_overspend_nor_lose_money(place: str) -> None:
    _run_workers(place, 2.0, 3)


@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_many_killed_processes_neither_overspend_nor_lose_money(place: str) -> None:
    _run_workers(place, 40.0, 8)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_server_with_another_isolation_reserves_no_more_than_the_budget(postgres_url: str, isolation: str) -> None:
    """The second one waits for the first, and has to see what that one has reserved."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        change = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}")
        connection.execute(change.format(sql.Identifier(name), sql.Literal(isolation)))
    database = open_place(postgres_url)
    key = add_key(database, budget_day="1").record.id
    has_first, is_second_waiting = threading.Event(), threading.Event()

    def reserve_slowly() -> Queries[BudgetExceeded | bool]:
        work = reserve(make_reservation(key, 6 * DOLLAR // 10, NOW), NOW)
        result = yield next(work)
        has_first.set()
        assert is_second_waiting.wait(20)
        while True:
            try:
                query = work.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            result = yield query

    def reserve_second() -> BudgetExceeded | bool:
        assert has_first.wait(20)
        return database.run(lambda: reserve(make_reservation(key, 6 * DOLLAR // 10, NOW), NOW))

    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url, autocommit=True) as connection:
        both = [pool.submit(lambda: database.run(reserve_slowly)), pool.submit(reserve_second)]
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        until = time.monotonic() + 20
        while connection.execute(waits, (name,)).fetchone() == (0,):
            assert time.monotonic() < until
            time.sleep(0.01)
        is_second_waiting.set()
        found = [each.result() for each in both]
    database.close()
    assert found[0] is True
    assert isinstance(found[1], BudgetExceeded)
