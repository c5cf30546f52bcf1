"""Rate windows of one process."""

from __future__ import annotations

import asyncio

from asides_gateway.access import CountedRequest, KeyLimits
from asides_gateway.access.memory_windows import MemoryWindows


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_keys_are_counted_apart_and_told_what_is_left() -> None:
    async def run() -> None:
        windows = MemoryWindows(_Clock())
        limits = KeyLimits(rpm=2, tpm=100)
        first = await windows.take("a", limits, 60)
        assert isinstance(first, CountedRequest)
        assert (first.requests_left, first.tokens_left, first.tokens) == (1, 40, 60)
        assert await windows.take("a", limits, 41) == 60.0
        await windows.correct("a", first, 59)
        assert isinstance(await windows.take("a", limits, 41), CountedRequest)
        assert await windows.take("a", limits, 0) == 60.0
        assert isinstance(await windows.take("b", limits, 100), CountedRequest)
        await windows.close()

    asyncio.run(run())


def test_a_key_without_limits_is_not_counted() -> None:
    windows = MemoryWindows()
    assert windows.take_now("a", KeyLimits(), 10**9) == CountedRequest()
    assert "0 keys" in repr(windows)


def test_keys_that_no_longer_ask_are_forgotten() -> None:
    clock = _Clock()
    windows = MemoryWindows(clock)
    limits = KeyLimits(rpm=1)
    for number in range(3000):
        windows.take_now(f"key{number}", limits, 0)
    clock.now += 61
    for _ in range(20_000):
        windows.take_now("last", limits, 0)
    assert "1 keys" in repr(windows)


def test_what_passed_elsewhere_counts_here_too() -> None:
    clock = _Clock()
    windows = MemoryWindows(clock)
    windows.note("a", 50)
    assert windows.take_now("a", KeyLimits(rpm=1), 0) == 60.0
    assert windows.take_now("a", KeyLimits(tpm=60), 11) == 60.0
    clock.now += 60
    assert isinstance(windows.take_now("a", KeyLimits(rpm=1), 0), CountedRequest)
