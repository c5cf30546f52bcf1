"""Revoked keys reach every instance at once, and none is lost in an outage."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from asides.database import StoreUnavailable
from asides.values.errors import ConfigError
from asides_gateway.access import revocations
from asides_gateway.access.redis_link import RedisLink, open_redis
from asides_gateway.access.revocations import CHANNEL, KEEP_SECONDS, REVOKED_KEY, Revocations, publish_revocation
from tests.servers import RedisServer

SECRET = "hush-hush-42"


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer("--requirepass", SECRET)
    server.start()
    yield server
    server.go_on()
    server.stop()


def _make_url(server: RedisServer) -> str:
    return f"redis://:{SECRET}@127.0.0.1:{server.port}/0"


@asynccontextmanager
async def _listening(url: str, heard: list[str]) -> AsyncGenerator[RedisLink]:
    link = RedisLink(url)
    task = asyncio.create_task(Revocations(link, heard.append).run())
    try:
        yield link
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await link.close()


async def _until(holds: Callable[[], bool], seconds: float = 20.0) -> float:
    started = time.monotonic()
    while not holds():
        await asyncio.sleep(0.01)
        assert time.monotonic() - started < seconds
    return time.monotonic() - started


async def _until_heard_by(url: str, number: int) -> None:
    with open_redis(url, 2.0) as client:
        await _until(lambda: client.pubsub_numsub(CHANNEL)[0][1] >= number)


def test_all_instances_hear_of_a_revocation_at_once(redis_url: str) -> None:
    async def run() -> None:
        heard: list[list[str]] = [[], [], []]
        async with _listening(redis_url, heard[0]), _listening(redis_url, heard[1]), _listening(redis_url, heard[2]):
            await _until_heard_by(redis_url, 3)
            assert await asyncio.to_thread(publish_revocation, redis_url, "key00001") == 3
            assert await _until(lambda: all(each == ["key00001"] for each in heard)) < 4, "before the next look"

    asyncio.run(run())


def test_an_instance_that_starts_later_reads_what_was_revoked(redis_url: str) -> None:
    assert publish_revocation(redis_url, "key00001") == 0
    with open_redis(redis_url, 2.0) as client:
        assert 0 < client.ttl(REVOKED_KEY) <= KEEP_SECONDS

    async def run() -> None:
        heard: list[str] = []
        async with _listening(redis_url, heard):
            await _until(lambda: heard == ["key00001"])

    asyncio.run(run())


def test_revocations_that_nobody_can_need_are_forgotten(redis_url: str) -> None:
    with open_redis(redis_url, 2.0) as client:
        client.zadd(REVOKED_KEY, {"old": time.time() - KEEP_SECONDS - 60, "new": time.time()})
        publish_revocation(redis_url, "key00001")
        assert sorted(client.zrange(REVOKED_KEY, 0, -1)) == ["key00001", "new"]


def test_a_message_that_nobody_heard_is_found_in_the_set(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "_LOOK_SECONDS", 0.2)

    async def run() -> None:
        heard: list[str] = []
        async with _listening(redis_url, heard):
            await _until_heard_by(redis_url, 1)
            with open_redis(redis_url, 2.0) as client:
                client.zadd(REVOKED_KEY, {"quiet": time.time()})
            await _until(lambda: heard == ["quiet"])
            await asyncio.sleep(0.6)
            assert heard == ["quiet"], "each is told once"

    asyncio.run(run())


@pytest.mark.parametrize("how", ["stop", "hang", "cut"])
def test_it_listens_again_after_an_outage(
    own_server: RedisServer, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(revocations, "_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(revocations, "_ANSWER_SECONDS", 1.0)
    url = _make_url(own_server)

    async def run() -> None:
        heard: list[str] = []
        async with _listening(url, heard) as link:
            await _until_heard_by(url, 1)
            if how == "cut":
                with open_redis(url, 2.0) as client:
                    client.client_kill_filter(_type="pubsub")
                    client.zadd(REVOKED_KEY, {"missed": time.time()})
            else:
                own_server.stop() if how == "stop" else own_server.hang()
                await _until(lambda: not link.is_up)
                await asyncio.sleep(0.7)
                own_server.start() if how == "stop" else own_server.go_on()
                with open_redis(url, 2.0) as client:
                    client.zadd(REVOKED_KEY, {"missed": time.time()})
            await _until(lambda: "missed" in heard)
            await _until_heard_by(url, 1)
            publish_revocation(url, "after")
            await _until(lambda: "after" in heard)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    told = [record.getMessage() for record in caplog.records if record.name == "asides.gateway"]
    assert len(told) == (0 if how == "cut" else 2), told
    assert SECRET not in caplog.text


def test_what_is_no_key_id_is_not_passed_on(redis_url: str) -> None:
    async def run() -> None:
        heard: list[str] = []
        async with _listening(redis_url, heard):
            await _until_heard_by(redis_url, 1)
            with open_redis(redis_url, 2.0) as client:
                for text in ("", "a b", "x" * 65, "é", "\x00", "good-ID_1"):
                    client.publish(CHANNEL, text)
            await _until(lambda: bool(heard))
            assert heard == ["good-ID_1"]

    asyncio.run(run())


def test_a_user_who_may_not_listen_is_told_once_and_limits_go_on(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(revocations, "_REFUSED_SECONDS", 0.1)
    with open_redis(_make_url(own_server), 2.0) as client:
        client.execute_command("ACL", "SETUSER", "mute", "on", f">{SECRET}", "~*", "+@all", "resetchannels")

    async def run() -> None:
        heard: list[str] = []
        async with _listening(f"redis://mute:{SECRET}@127.0.0.1:{own_server.port}", heard) as link:
            await asyncio.sleep(0.6)
            assert link.is_up

    asyncio.run(run())
    assert len([record for record in caplog.records if record.name == "asides.gateway"]) == 1
    assert SECRET not in caplog.text


def test_a_server_that_is_away_is_told_to_whoever_revokes(own_server: RedisServer) -> None:
    url = _make_url(own_server)
    own_server.stop()
    with pytest.raises(StoreUnavailable, match=r"\. [A-Z]") as caught:
        publish_revocation(url, "key00001")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigError):
        publish_revocation("http://host", "key00001")
