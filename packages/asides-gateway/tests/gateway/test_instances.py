"""Several gateways on one store: killed, restarted and upgraded under load, no turn is lost and nothing is mixed up.

`-m thorough` also stops the servers; scripts/soak.py leads as many conversations as you like.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import psycopg
import pytest

from asides.database.migrate import list_migrations
from asides_stage.stage import Stage
from tests.gateway.soak import (
    TENANTS,
    Instance,
    Model,
    Talk,
    Tally,
    instances_running,
    lead_all,
    plan_talks,
    proxy_running,
    soak,
)
from tests.gateway.soak_budgets import REPLY, Spender, make_paid_keys, read_spent
from tests.servers import PostgresServer, RedisServer

_NEXT = """
SET search_path = asides;
CREATE TABLE of_the_next_version (id bigint PRIMARY KEY);
ALTER TABLE vault_records ADD COLUMN next_version text;
ALTER TABLE conversations ADD COLUMN next_version text NOT NULL DEFAULT 'x';
CREATE INDEX next_version ON vault_records (next_version);
"""


def test_conversations_survive_instances_that_are_killed(tmp_path: Path, postgres_url: str, redis_url: str) -> None:
    ended = soak(tmp_path, 40, postgres_url, redis_url)
    ended.check(40)
    assert ended.tally.turns == 200
    assert ended.tally.counts["kills"] >= 1
    with psycopg.connect(postgres_url) as connection:
        (tenants,) = connection.execute("SELECT count(*) FROM asides.vault_tenants").fetchone() or (0,)
    assert tenants == len(TENANTS) + 2  # and the keys with a budget that lead conversations


def test_the_next_version_migrates_while_this_one_runs(tmp_path: Path, postgres_url: str) -> None:
    """A step that only adds disturbs no instance of the version before; one that starts after it goes on too."""
    newest = max(step.number for step in list_migrations())

    def migrate() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(_NEXT.encode())
            connection.execute(
                "INSERT INTO asides.migrations (number, name, oldest) VALUES (%s, 'next', %s)", (newest + 1, newest)
            )

    def disturb(instances: list[Instance], tally: Tally) -> Callable[[threading.Event], None]:
        def run(_: threading.Event) -> None:
            time.sleep(0.5)
            migrate()
            tally.counts["migrated"] += 1
            assert instances[0].end(signal.SIGTERM) == 0
            instances[0].start()

        return run

    ended = soak(tmp_path, 8, postgres_url, None, at_once=4, disturb=disturb)
    ended.check(8)
    assert ended.tally.counts["migrated"] == 1


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_budget_is_never_overspent(tmp_path: Path, postgres_url: str) -> None:
    """Many ask at once, through instances that are killed. What was answered is settled; the rest is refused."""
    spender = Spender(*make_paid_keys(postgres_url, ("1",)))

    async def spend(url: str, instances: list[Instance]) -> None:
        async with aiohttp.ClientSession() as session, asyncio.timeout(60):
            spending = asyncio.create_task(spender.spend(session, url, 10))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(instances[0].end, signal.SIGKILL)
            await asyncio.to_thread(instances[0].start)
            await spending

    with (
        Stage(lambda _: REPLY) as stage,
        instances_running(tmp_path, stage.url, postgres_url, None) as instances,
        proxy_running(tmp_path, [instance.port for instance in instances]) as url,
    ):
        asyncio.run(spend(url, instances))
    spender.check(read_spent(postgres_url, spender.paid.id))
    assert spender.answers[200] >= 1
    assert spender.answers[429] > 0


# --- servers that stop ------------------------------------------------------------------------------------------------


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that a test may stop."""
    server = RedisServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _count(instances: list[Instance], name: str) -> float:
    """The sum of a figure over the instances."""
    lines = [line for instance in instances for line in instance.get("/metrics")[1].splitlines()]
    return sum(float(line.rpartition(" ")[2]) for line in lines if name in line and line[0] != "#")


def _ready(instance: Instance) -> dict[str, object]:
    status, body = instance.get("/readyz")
    assert status == 200, body
    found: dict[str, object] = json.loads(body)
    return found


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_postgres_may_stop_and_start(tmp_path: Path, own_postgres: PostgresServer) -> None:
    """Requests are answered meanwhile, without state, and counted. Once it is back, nothing is lost any more."""
    # Where a turn has no record, one of the same words that is the only one may be taken for it.
    model, tally, is_over = Model(0.005, says_who=True), Tally(), threading.Event()
    started: list[Talk] = []

    def talk() -> Iterator[Talk]:
        for each in plan_talks(10**6, 3):
            if is_over.is_set():
                return
            started.append(each)
            yield each

    with Stage(model.play) as stage:
        url = own_postgres.create_database("store")
        with (
            instances_running(tmp_path, stage.url, url, None) as instances,
            proxy_running(tmp_path, [instance.port for instance in instances]) as proxy,
        ):

            def disturb(_: threading.Event) -> None:
                try:
                    for mode in ("immediate", "fast"):
                        time.sleep(1)
                        own_postgres.stop(mode)
                        before = _count(instances, "store_failures_total")
                        _wait(lambda: all("degraded" in _ready(each) for each in instances))
                        # Requests meet the outage, and are counted.
                        _wait(lambda before=before: _count(instances, "store_failures_total") > before)  # type: ignore[misc]
                        own_postgres.start()
                        _wait(lambda: not any("degraded" in _ready(each) for each in instances))
                        tally.counts["outages"] += 1
                finally:
                    is_over.set()

            asyncio.run(lead_all(proxy, talk(), tally, at_once=8, disturb=disturb))
            assert tally.problems == []
            assert tally.finished == len(started) > 0
            assert model.mixed == []
            assert tally.counts["outages"] == 2
            assert tally.cuts == 0
            # It is whole again, by itself.
            model.lost.clear()
            asyncio.run(lead_all(proxy, plan_talks(40, 4, first=10**6), tally, at_once=8))
            assert model.lost == [], instances[0].log[-3000:] + instances[1].log[-3000:]
            logs = "".join(instance.log for instance in instances)
    assert "Traceback" not in logs
    # Told once per outage and instance, not for each request.
    assert logs.count("works again") <= 2 * 2 * 2


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_redis_may_stop_and_start(tmp_path: Path, postgres_url: str, own_redis: RedisServer) -> None:
    """Nothing needs it to be correct: no request fails, and no turn is lost."""

    def disturb(_: list[Instance], tally: Tally) -> Callable[[threading.Event], None]:
        def run(__: threading.Event) -> None:
            for _ in range(2):
                time.sleep(0.5)
                own_redis.stop()
                time.sleep(1.5)
                own_redis.start()
                tally.counts["stopped"] += 1

        return run

    ended = soak(tmp_path, 80, postgres_url, own_redis.url, disturb=disturb)
    ended.check(80)
    assert ended.tally.counts["stopped"] == 2
    assert ended.tally.cuts == 0


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
