"""Publish revoked keys to all instances through Redis: `publish_revocation`, `Revocations(link, on_revoked)`.

A revoked key is published, and kept in a sorted set for as long as an instance may trust the key without its database.
An instance reads the set when it connects, and every five seconds, so that a missed message is not lost. Without Redis
the cache of keys finds revocations in the database.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asides.database import StoreUnavailable
from asides_gateway.access.redis_errors import describe_problem, is_outage
from asides_gateway.access.redis_link import (
    PREFIX,
    RedisLink,
    Script,
    check_redis_url,
    describe_redis,
    open_async_redis,
    open_redis,
)

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

_log = logging.getLogger("asides.gateway")

CHANNEL = f"{PREFIX}revoked"
REVOKED_KEY = f"{PREFIX}{{revoked}}"
KEEP_SECONDS = 86_400
"""How long a revocation is kept: longer than an instance trusts keys while its database is down."""
_LOOK_SECONDS = 5.0
"""The pause between two reads of the set, and between two pings."""
_ANSWER_SECONDS = 1.0
_REFUSED_SECONDS = 10.0
_PATIENCE = 3.0
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_REVOKE = Script("""
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('PUBLISH', ARGV[3], ARGV[1])
""")


def publish_revocation(redis_url: str, key_id: str) -> int:
    """Publish that a key is revoked. Returns how many instances received it; others read it when they connect.

    Raises StoreUnavailable if Redis does not take it, and ConfigError for a wrong URL, or without the package redis.
    """
    check_redis_url(redis_url)
    from redis.exceptions import RedisError

    client = open_redis(redis_url, _PATIENCE)
    try:
        listeners: Any = client.eval(_REVOKE.text, 1, REVOKED_KEY, key_id, str(KEEP_SECONDS), CHANNEL)
        return int(listeners)
    except (RedisError, OSError) as problem:
        raise StoreUnavailable(
            f"Redis at {describe_redis(redis_url)} did not receive the revocation: {describe_problem(problem)}. "
            "Instances refuse the key when they next read their keys. Check that server, and gateway.redis."
        ) from None
    finally:
        with suppress(RedisError, OSError):
            client.close()


def listen(link: RedisLink | None, on_revoked: Callable[[str], None], *, has_others: bool) -> asyncio.Task[None] | None:
    """Listen for revoked keys in a task of its own; None without Redis. `has_others`: whether other processes serve the
    same keys; then a warning says what they do not share."""
    if link is not None:
        return asyncio.get_running_loop().create_task(Revocations(link, on_revoked).run())
    if has_others:
        _log.warning(
            "Redis is not configured: each process counts key limits separately, and a revoked key works until "
            "the keys are next read, within seconds. Set gateway.redis to share limits and revocations."
        )
    return None


class Revocations:
    """Listens for revoked keys. It belongs to one event loop."""

    def __init__(self, link: RedisLink, on_revoked: Callable[[str], None]) -> None:
        """`on_revoked` is called with the id of each key, perhaps more than once."""
        self._link = link
        self._on_revoked = on_revoked
        self._known: set[str] = set()
        """The ids in the set as it was last read, and those that were published since."""
        self._may_reconnect = True
        """Whether to reconnect immediately after a failure: only the first time since a connection worked."""

    async def run(self) -> None:
        """Listen until it is cancelled. The link logs an outage, once."""
        from redis.exceptions import RedisError

        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as problem:
                await self._wait(problem)

    async def _wait(self, problem: Exception) -> None:
        """Wait until another attempt is worth it."""
        if not is_outage(problem):
            reason = describe_problem(problem)
            self._link.report_once(f"{reason}. A revoked key works until the keys are next read")
            await asyncio.sleep(_REFUSED_SECONDS)
        elif self._may_reconnect:
            # A closed connection need not be an outage: retry immediately.
            self._may_reconnect = False
        else:
            self._link.note_down(describe_problem(problem))
            await self._link.wait_until_up()

    async def _listen(self) -> None:
        client = open_async_redis(self._link.url, _ANSWER_SECONDS)
        listener = client.pubsub()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await listener.subscribe(CHANNEL)
                await _await_message(listener, "subscribe")
            # What is published from now on arrives as a message; what was published before is in the set.
            while True:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    found: Any = await client.zrange(REVOKED_KEY, 0, -1)
                self._report_all(found)
                self._may_reconnect = True
                await self._read_messages(listener, time.monotonic() + _LOOK_SECONDS)
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await listener.ping()
                    for each in await _await_message(listener, "pong"):
                        self._report(each)
        finally:
            with suppress(Exception):
                await listener.aclose()  # type: ignore[no-untyped-call]
            with suppress(Exception):
                await client.aclose()

    async def _read_messages(self, listener: PubSub, until: float) -> None:
        while (seconds := until - time.monotonic()) > 0:
            message: Any = await listener.get_message(ignore_subscribe_messages=True, timeout=seconds)
            if message is not None and message["type"] == "message":
                self._report(message["data"])

    def _report_all(self, found: list[str]) -> None:
        for each in found:
            self._report(each)
        self._known = set(found)

    def _report(self, key_id: Any) -> None:
        # Any client of Redis may publish there, so the id is checked.
        if isinstance(key_id, str) and key_id not in self._known and _ID.fullmatch(key_id):
            self._known.add(key_id)
            self._on_revoked(key_id)

    def __repr__(self) -> str:
        return f"Revocations({self._link!r})"


async def _await_message(listener: PubSub, kind: str) -> list[Any]:
    """Wait for a message of a kind. Returns the ids that were published before it."""
    published: list[Any] = []
    while True:
        message: Any = await listener.get_message(timeout=_ANSWER_SECONDS)
        if message is None:
            raise TimeoutError
        if message["type"] == kind:
            return published
        if message["type"] == "message":
            published.append(message["data"])
