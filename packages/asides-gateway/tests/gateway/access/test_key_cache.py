"""Keys in memory: found without the database, revoked within seconds, and what happens while it is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asides.database import Database, Queries, StoreUnavailable
from asides_gateway.access import key_cache
from asides_gateway.access.key_cache import KeyCache
from asides_gateway.access.key_store import digest_key, list_keys, make_key, revoke_key
from tests.gateway.access.key_records import add_key, open_place


class Watched:
    """A database whose work is counted, and that can be away."""

    is_shared = False
    problem = None

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_away = False
        self.runs = 0

    def was_down_since(self, moment: float) -> bool:
        return False

    def run(self, work: Callable[[], Queries[Any]], **how: Any) -> Any:
        self.runs += 1
        if self.is_away:
            raise StoreUnavailable("it is away.")
        return self._database.run(work, **how)

    async def run_async(self, work: Callable[[], Queries[Any]], **how: Any) -> Any:
        await asyncio.sleep(0)
        return self.run(work, **how)

    def close(self) -> None:
        self._database.close()

    async def close_async(self) -> None:
        self.close()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(open_place(str(tmp_path)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_keys_are_read_at_the_start_and_found_without_the_database(watched: Watched, clock: Clock) -> None:
    added = add_key(watched, created=1.0)
    cache = KeyCache(watched, clock=clock)
    assert cache.has_keys is None
    cache.load()
    before = watched.runs
    assert cache.has_keys is True
    assert cache.find(added.record.digest) == added.record
    assert cache.find(digest_key("another")) is None
    assert watched.runs == before
    assert added.key not in repr(cache)


async def test_a_new_key_is_looked_for_once_by_many_requests(watched: Watched, clock: Clock) -> None:
    cache = KeyCache(watched, clock=clock)
    cache.load()
    added = add_key(watched)
    before = watched.runs
    assert cache.find(added.record.digest) is None
    assert cache.can_look_up(added.record.digest)
    await asyncio.gather(*(cache.look_up(added.record.digest) for _ in range(20)))
    assert cache.find(added.record.digest) == added.record
    assert (watched.runs - before, cache.has_keys) == (1, True)


async def test_what_is_unknown_revoked_or_expired_is_looked_for_alike_and_then_not_for_a_while(
    watched: Watched, clock: Clock
) -> None:
    revoked, expired = add_key(watched, "revoked"), add_key(watched, "expired", expires=clock.now - 1)
    watched.run(lambda: revoke_key(revoked.record.id, clock.now))
    cache = KeyCache(watched, clock=clock)
    cache.load()
    digests = [revoked.record.digest, expired.record.digest, make_key().digest]
    for digest in digests:
        assert cache.can_look_up(digest)
        before = watched.runs
        await cache.look_up(digest)
        assert watched.runs == before + 1
        assert cache.find(digest) is None
        assert not cache.can_look_up(digest)
        assert not cache.is_unsure(digest)
    clock.now += 60
    assert all(cache.can_look_up(digest) for digest in digests)


async def test_unknown_keys_take_no_memory_without_end(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_MOST_UNKNOWN", 10)
    cache = KeyCache(watched, clock=clock)
    for _ in range(30):
        await cache.look_up(make_key().digest)
    assert len(cache._unknown) == 10
    assert cache._lookups == {}
    clock.now += 60
    await cache.refresh()
    assert cache._unknown == {}


async def test_more_than_a_number_of_strangers_do_not_wait_for_the_database(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_MOST_WAITING", 5)
    cache = KeyCache(watched, clock=clock)
    before = watched.runs
    await asyncio.gather(*(cache.look_up(make_key().digest) for _ in range(50)))
    assert watched.runs - before == 5


async def test_a_revoked_key_is_gone_with_the_next_look_or_at_once_if_someone_tells(
    watched: Watched, clock: Clock
) -> None:
    one, other, third = (add_key(watched, name) for name in ("one", "other", "third"))
    cache = KeyCache(watched, clock=clock)
    cache.load()
    watched.run(lambda: revoke_key(one.record.id, clock.now))
    assert cache.find(one.record.digest) is not None
    await cache.refresh()
    assert cache.find(one.record.digest) is None
    watched.run(lambda: revoke_key(other.record.id, clock.now))
    cache.on_revoked(other.record.id)
    assert cache.find(other.record.digest) is None
    assert cache.find(third.record.digest) == third.record
    await cache.look_up(other.record.digest)
    assert cache.find(other.record.digest) is None


async def test_a_revocation_by_a_clock_that_is_late_counts_too(watched: Watched, clock: Clock) -> None:
    added = add_key(watched)
    cache = KeyCache(watched, clock=clock)
    cache.load()
    watched.run(lambda: revoke_key(added.record.id, clock.now - 600))
    clock.now += 3
    await cache.refresh()
    assert cache.find(added.record.digest) is None
    other = add_key(watched, "other")
    await cache.look_up(other.record.digest)
    watched.run(lambda: revoke_key(other.record.id, clock.now - 6000))
    clock.now += 61
    await cache.refresh()
    assert cache.find(other.record.digest) is None, "now and then everything is read"


def test_a_key_expires_by_itself(watched: Watched, clock: Clock) -> None:
    added = add_key(watched, expires=clock.now + 10)
    cache = KeyCache(watched, clock=clock)
    cache.load()
    clock.now += 9
    assert cache.find(added.record.digest) is not None
    clock.now += 1
    assert cache.find(added.record.digest) is None


async def test_while_the_database_is_away_known_keys_go_on_for_a_while_and_nobody_is_sure_of_others(
    watched: Watched, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    known, new = add_key(watched, "known"), add_key(watched, "new")
    cache = KeyCache(watched, grace_seconds=100, clock=clock)
    cache.load()
    cache._drop({new.record.id})
    watched.is_away = True
    caplog.set_level(logging.INFO)
    for _ in range(3):
        await cache.refresh()
    await cache.look_up(new.record.digest)
    assert cache.is_down
    assert cache.is_unsure(new.record.digest)
    assert cache.find(known.record.digest) == known.record
    clock.now += 101
    assert cache.find(known.record.digest) is None
    assert cache.is_unsure(known.record.digest)
    watched.is_away = False
    await cache.refresh()
    assert cache.find(known.record.digest) == known.record
    assert cache.find(new.record.digest) == new.record
    assert not cache.is_unsure(b"0" * 32)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"], "told once for each outage"


async def test_a_database_that_is_away_at_the_start_leaves_open_whether_keys_are_needed(
    watched: Watched, clock: Clock
) -> None:
    watched.is_away = True
    cache = KeyCache(watched, clock=clock)
    changes: list[bool | None] = []
    cache.on_change = lambda: changes.append(cache.has_keys)
    cache.load()
    assert cache.has_keys is None
    watched.is_away = False
    await cache.refresh()
    assert cache.has_keys is False
    add_key(watched)
    await cache.refresh()
    assert changes == [False, True]


async def test_the_last_use_is_written_with_the_next_look_and_at_the_end(watched: Watched, clock: Clock) -> None:
    added = add_key(watched)
    cache = KeyCache(watched, clock=clock)
    cache.load()
    cache.find(added.record.digest)
    await cache.refresh()
    assert [each.used for each in watched.run(list_keys)] == [clock.now]
    clock.now += 5
    cache.find(added.record.digest)
    await cache.close()
    assert [each.used for each in watched.run(list_keys)] == [clock.now]


async def test_it_looks_by_itself_and_at_once_when_told(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_REFRESH_SECONDS", 30.0)
    cache = KeyCache(watched, clock=clock)
    cache.load()
    task = asyncio.create_task(cache.run())
    add_key(watched)
    cache.on_revoked("someone")
    async with asyncio.timeout(10):
        while cache.has_keys is not True:
            await asyncio.sleep(0.01)
    task.cancel()


async def test_an_error_of_ours_does_not_end_the_looks(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise no revocation would be seen any more."""
    monkeypatch.setattr(key_cache, "_REFRESH_SECONDS", 0.02)
    added = add_key(watched)
    cache = KeyCache(watched, clock=clock)
    cache.load()
    failures = iter([RuntimeError("a fault")] * 2)
    run = watched.run_async

    async def fail_first(work: Any, **how: Any) -> Any:
        if (problem := next(failures, None)) is not None:
            raise problem
        return await run(work, **how)

    monkeypatch.setattr(watched, "run_async", fail_first)
    task = asyncio.create_task(cache.run())
    watched.run(lambda: revoke_key(added.record.id, clock.now))
    async with asyncio.timeout(10):
        while cache.find(added.record.digest) is not None:
            await asyncio.sleep(0.01)
    assert "RuntimeError" in caplog.text
    task.cancel()
