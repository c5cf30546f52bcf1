"""Rate windows in a real Redis: the same decisions as in memory, shared by processes, and outages."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides_gateway.access import CountedRequest, KeyLimits
from asides_gateway.access import rate_windows as rates
from asides_gateway.access.memory_windows import MemoryWindows
from asides_gateway.access.redis_link import RedisLink, open_redis
from asides_gateway.access.redis_windows import RedisWindows, build_window_key
from tests.servers import RedisServer, find_free_port

_MOVES = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 499, 500, 9_000, 30_000, 59_999, 60_000, -700, -90_000)),
        st.integers(0, 60),
        st.one_of(st.none(), st.integers(0, 120)),
    ),
    max_size=40,
)


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer()
    server.start()
    yield server
    server.go_on()
    server.stop()


@settings(max_examples=120)
@given(_MOVES, st.one_of(st.none(), st.integers(0, 6)), st.one_of(st.none(), st.integers(1, 100)))
def test_redis_and_memory_decide_alike(
    redis_server: RedisServer, moves: list[tuple[int, int, int | None]], rpm: int | None, tpm: int | None
) -> None:
    redis_server.empty()
    limits = KeyLimits(rpm=rpm, tpm=tpm)
    now = 1_700_000_000_123

    async def run() -> None:
        nonlocal now
        own = MemoryWindows(lambda: now / 1000)
        shared = RedisWindows(RedisLink(redis_server.url), clock=lambda: now)
        try:
            for pause, tokens, used in moves:
                now += pause
                one, other = await own.take("k", limits, tokens), await shared.take("k", limits, tokens)
                if not isinstance(one, CountedRequest) or not isinstance(other, CountedRequest):
                    assert one == other
                    continue
                assert (one.requests_left, one.tokens_left, one.tokens) == (
                    other.requests_left,
                    other.tokens_left,
                    other.tokens,
                )
                if used is not None:
                    now += 1300
                    await own.correct("k", one, used)
                    await shared.correct("k", other, used)
        finally:
            await shared.close()

    asyncio.run(run())


def test_windows_slide_by_the_clock_of_the_server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of an instance plays no part: one that is an hour off decides alike.
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)

    async def run() -> None:
        one, other = RedisWindows(RedisLink(redis_url)), RedisWindows(RedisLink(redis_url))
        try:
            limits = KeyLimits(rpm=3)
            for windows in (one, other, one):
                assert isinstance(await windows.take("k", limits, 0), CountedRequest)
            wait = await other.take("k", limits, 0)
            assert isinstance(wait, float)
            assert 59 < wait <= 60
            with open_redis(redis_url, 2.0) as client:
                seconds, _ = client.time()
                values: Any = client.hvals(build_window_key("k"))
                value: str = values[-1]
                assert abs(int(value.split(":")[2]) / 1000 - seconds) < 2
                assert 0 < client.pttl(build_window_key("k")) <= 60_500
        finally:
            await one.close()
            await other.close()

    asyncio.run(run())


_PROCESS = """
import asyncio, sys, time
from asides_gateway.access import KeyLimits, CountedRequest, rate_windows
rate_windows.WINDOW_MS, rate_windows.BUCKET_MS = 1_000, 50
from asides_gateway.access.redis_link import RedisLink
from asides_gateway.access.redis_windows import RedisWindows

async def run():
    windows = RedisWindows(RedisLink(sys.argv[1]))
    end = time.monotonic() + 2.5
    async def ask():
        while time.monotonic() < end:
            taken = await windows.take("k", KeyLimits(rpm=50), 0)
            if isinstance(taken, CountedRequest):
                assert taken.shared_at is not None
                print(taken.shared_at)
            else:
                await asyncio.sleep(min(taken, 0.01))
    await asyncio.gather(*(ask() for _ in range(8)))
    await windows.close()
asyncio.run(run())
"""


def test_processes_together_never_pass_more_than_the_limit(redis_url: str) -> None:
    """Three processes with windows of one second, that ask as often as they can, by real clocks."""
    processes = [
        subprocess.Popen([sys.executable, "-c", _PROCESS, redis_url], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    passed = sorted(int(line) for process in processes for line in process.communicate(timeout=60)[0].split())
    assert [process.returncode for process in processes] == [0, 0, 0]
    for place in range(len(passed) - 50):
        assert passed[place + 50] - passed[place] > 1_000 - 1, "51 requests within a window"
    # And hardly less: 2.5 seconds hold the windows that begin at 0, 1 and 2 s, each at most a bucket late.
    assert len(passed) >= 100


def test_tokens_are_given_back_to_their_own_bucket(redis_url: str) -> None:
    now = 1_700_000_000_000

    async def run() -> None:
        nonlocal now
        windows = RedisWindows(RedisLink(redis_url), clock=lambda: now)
        limits = KeyLimits(tpm=100)
        try:
            first = await windows.take("k", limits, 80)
            assert isinstance(first, CountedRequest)
            now += 30_000
            assert isinstance(await windows.take("k", limits, 20), CountedRequest)
            assert isinstance(await windows.take("k", limits, 1), float)
            await windows.correct("k", first, 10)
            assert isinstance(await windows.take("k", limits, 70), CountedRequest)
            now += 30_000
            assert isinstance(await windows.take("k", limits, 11), float)
            last = await windows.take("k", limits, 10)
            assert isinstance(last, CountedRequest)
            await windows.correct("k", last, 500)
            now += 59_999
            assert await windows.take("k", limits, 1) == 0.001
        finally:
            await windows.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", [pytest.param("stop", marks=pytest.mark.thorough), "hang"])
def test_an_outage_under_load_is_counted_by_each_process_alone(own_server: RedisServer, how: str) -> None:
    """Two instances under load. During an outage each knows what itself let pass, and no request waits long."""
    failures = [0, 0]
    slowest = 0.0
    passed: list[list[bool]] = [[], []]
    limits = KeyLimits(rpm=400)

    def count(number: int) -> None:
        failures[number] += 1

    async def run() -> None:
        nonlocal slowest
        instances = [RedisWindows(RedisLink(own_server.url)) for _ in (0, 1)]
        for number, windows in enumerate(instances):
            windows.link.on_failure = partial(count, number)
        is_over = False

        async def ask(number: int) -> None:
            nonlocal slowest
            while not is_over:
                started = time.monotonic()
                taken = await instances[number].take("k", limits, 0)
                slowest = max(slowest, time.monotonic() - started)
                passed[number].append(isinstance(taken, CountedRequest))
                await asyncio.sleep(0.02)

        tasks = [asyncio.create_task(ask(number)) for number in (0, 1) for _ in range(10)]
        await asyncio.sleep(0.3)
        assert failures == [0, 0]
        before = [sum(each) for each in passed]
        own_server.stop() if how == "stop" else own_server.hang()
        await asyncio.sleep(1.5)
        assert all(failures)
        assert not any(windows.link.is_up for windows in instances)
        # Each has its own window now, and knows what it let pass before.
        assert all(before[number] < sum(passed[number]) <= 400 for number in (0, 1))
        own_server.start() if how == "stop" else own_server.go_on()
        async with asyncio.timeout(20):
            while not all(windows.link.is_up for windows in instances):
                await asyncio.sleep(0.05)
        counted = list(failures)
        await asyncio.sleep(0.3)
        assert failures == counted, "no check fails after the return"
        is_over = True
        await asyncio.gather(*tasks)
        for windows in instances:
            await windows.close()

    asyncio.run(run())
    assert slowest < 1.4, "nobody waits for the end of the outage"


def test_a_server_that_is_away_at_the_start_is_used_when_it_comes(own_server: RedisServer) -> None:
    own_server.stop()

    async def run() -> None:
        windows = RedisWindows(RedisLink(own_server.url))
        try:
            taken = await windows.take("k", KeyLimits(tpm=100), 60)
            assert isinstance(taken, CountedRequest)
            assert taken.shared_at is None
            assert isinstance(await windows.take("k", KeyLimits(tpm=100), 60), float)
            own_server.start()
            async with asyncio.timeout(20):
                while not windows.link.is_up:
                    await asyncio.sleep(0.05)
            # What was taken in the outage is not corrected where it was never counted.
            await windows.correct("k", taken, 100)
            after = await windows.take("k", KeyLimits(tpm=100), 100)
            assert isinstance(after, CountedRequest)
            assert after.shared_at is not None
        finally:
            await windows.close()

    asyncio.run(run())


@pytest.mark.thorough
def test_a_cluster_takes_the_scripts(tmp_path: Path) -> None:
    """One node that serves all slots: a script that touched keys of two slots, or undeclared ones, would be refused."""
    server = RedisServer("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--dir", str(tmp_path))
    while server.port > 55_000:  # Nodes talk to each other at a port 10,000 above.
        server.port = find_free_port()
    server.start()

    async def run() -> None:
        with open_redis(server.url, 2.0) as client:
            client.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
            for _ in range(100):
                state: Any = client.execute_command("CLUSTER INFO")
                if state["cluster_state"] == "ok":
                    break
                time.sleep(0.05)
        windows = RedisWindows(RedisLink(server.url))
        try:
            taken = await windows.take("k", KeyLimits(rpm=5, tpm=100), 60)
            assert isinstance(taken, CountedRequest)
            assert taken.shared_at is not None
            await windows.correct("k", taken, 100)
            await windows.correct("k", taken, 0)
            assert windows.link.is_up
        finally:
            await windows.close()

    try:
        asyncio.run(run())
    finally:
        server.stop()


def test_a_key_without_limits_asks_nobody() -> None:
    windows = RedisWindows(RedisLink("redis://127.0.0.1:1"))
    assert asyncio.run(windows.take("k", KeyLimits(), 5)) == CountedRequest()
    assert windows.link.is_up


async def test_what_somebody_else_wrote_there_is_removed_however_much_it_is(redis_url: str) -> None:
    """Limits would never be shared again for this key."""
    link = RedisLink(redis_url)
    with open_redis(redis_url, 5) as client:
        client.hset(build_window_key("odd"), mapping={f"field {number}": "junk" for number in range(20_000)})
        failures: list[int] = []
        link.on_failure = lambda: failures.append(1)
        taken = await RedisWindows(link).take("odd", KeyLimits(rpm=5), 1)
        assert isinstance(taken, CountedRequest)
        assert (taken.requests_left, failures, client.hlen(build_window_key("odd"))) == (4, [], 1)
        client.delete(build_window_key("odd"))
    await link.close()


def test_the_window_is_a_minute() -> None:
    assert (rates.WINDOW_MS, rates.BUCKET_MS) == (60_000, 500)


@pytest.mark.parametrize(
    "answer", [None, "OK", [], [0, 1, 2], [0, 1, 2, 3, 4], ["0", "1", "2", "3"], [-5, 1, 2, 3], [0, 1, 2, None], {}]
)
async def test_an_answer_that_is_none_of_the_script_counts_as_an_outage(
    answer: object, redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    link = RedisLink(redis_url)
    windows = RedisWindows(link)
    failures: list[int] = []
    link.on_failure = lambda: failures.append(1)

    async def run(*_: object) -> object:
        return answer

    monkeypatch.setattr(link, "run", run)
    limits = KeyLimits(rpm=1)
    assert isinstance(await windows.take("odd", limits, 5), CountedRequest)
    assert isinstance(await windows.take("odd", limits, 5), float), "the process counts for itself"
    assert len(failures) == 2
    assert caplog.text.count("an unexpected answer") == 1, "whoever runs it is told, once"
    await windows.close()
