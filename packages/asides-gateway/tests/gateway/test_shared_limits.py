"""Two gateways with one PostgreSQL and one Redis: limits, revocations and rows of requests are those of both."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides_stage import Say, Stage
from tests.gateway.served import KEY, ROUTE, Served, make_environment, serve, write_settings
from tests.servers import RedisServer

RELAY_KEY = "0123456789abcdef" * 4


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer()
    server.start()
    yield server
    server.go_on()
    server.stop()


class _Team:
    """Two gateways that run, and the command line beside them."""

    def __init__(self, folder: Path, env: dict[str, str], one: Served, other: Served) -> None:
        self._folder = folder
        self._env = env
        self.both = (one, other)

    def run(self, *words: str) -> str:
        """Run a command, as whoever runs the gateways does."""
        done = subprocess.run(
            [sys.executable, "-m", "asides", *words],
            env=make_environment(self._folder, self._env),
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make_key(self, *words: str) -> tuple[str, str]:
        """A new key, and its id."""
        made = json.loads(self.run("gateway", "key", "create", "--name", f"k{time.time_ns()}", "--json", *words))
        return made["key"], made["id"]

    def ask(self, number: int, key: str) -> int:
        """Ask one of the gateways in turn. Returns the status."""
        body = {"model": ROUTE, "messages": [{"role": "user", "content": "hi"}]}
        return self.both[number % 2].post("/v1/chat/completions", body, authorization=f"Bearer {key}")[0]

    def ask_many(self, count: int, key: str) -> list[int]:
        """Ask both at once. Returns the statuses."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda number: self.ask(number, key), range(count)))

    def failures(self, act: Callable[[], object]) -> float:
        """How often Redis failed while something was done."""
        before = self.count("asides_redis_failures_total")
        act()
        return self.count("asides_redis_failures_total") - before

    def count(self, name: str) -> float:
        """A figure of both, which no key of a tenant may read."""
        total = 0.0
        for each in self.both:
            _, text = each.get("/metrics", authorization=f"Bearer {KEY}")
            total += sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))
        return total


def _until(holds: Callable[[], bool], seconds: float = 30.0) -> float:
    started = time.monotonic()
    while not holds():
        time.sleep(0.05)
        assert time.monotonic() - started < seconds
    return time.monotonic() - started


def test_two_gateways_are_one_for_the_limits_of_a_key(
    tmp_path: Path, postgres_url: str, own_redis: RedisServer
) -> None:
    env = {"ASIDES_STORE": postgres_url, "ASIDES_GATEWAY_REDIS": own_redis.url, "ASIDES_RELAY_KEY": RELAY_KEY}
    env["ASIDES_GATEWAY_KEY"] = KEY
    with Stage(Say(text="hello")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, env=env) as one, serve(tmp_path, env=env) as other:
            team = _Team(tmp_path, env, one, other)
            key, key_id = team.make_key("--rpm", "6")
            # On a busy machine Redis may not answer in time at first.
            warm, _ = team.make_key("--rpm", "10000")
            _until(lambda: team.failures(lambda: team.ask_many(4, warm)) == 0)
            failed = one.log.count("fails: it did not answer in time")
            returned = one.log.count("is back: the limits")
            statuses = team.ask_many(16, key)
            assert sorted(statuses) == [200] * 6 + [429] * 10, (sorted(statuses), one.log[-3000:])
            assert team.count('asides_limited_requests_total{limit="rate"}') == 10

            # Redis goes away: each counts for itself, and knows what it let pass.
            own_redis.hang()
            started = time.monotonic()
            statuses = team.ask_many(16, key)
            assert time.monotonic() - started < 30
            assert statuses.count(200) <= 6, "each had some of its own six left"
            assert set(statuses) <= {200, 429}
            assert team.count("asides_redis_failures_total") >= 16
            own_redis.go_on()
            # Both write into one file, each once.
            _until(lambda: one.log.count("is back: the limits") == returned + 2)
            assert one.log.count("fails: it did not answer in time") == failed + 2

            # A revoked key is refused by both at once.
            spare, spare_id = team.make_key()
            assert team.ask_many(4, spare) == [200] * 4
            team.run("gateway", "key", "revoke", spare_id, "--yes")
            # Without the message of Redis it would take until the next look at the keys, three seconds or more.
            assert _until(lambda: team.ask_many(2, spare) == [401, 401]) < 2.9

            assert [served.end() for served in team.both] == [0, 0]
            used = json.loads(team.run("gateway", "usage", "--json"))
    by_key = {group["key"]: group for group in used["groups"]}
    assert by_key[spare_id]["requests"] >= 4
    assert by_key[key_id]["requests"] == 32
    assert by_key[key_id]["failed"] == 32 - 6 - statuses.count(200)
    assert key not in one.log
