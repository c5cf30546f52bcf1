"""`RedisLink`: a Redis or Valkey server that may go away: its scripts, its outages, and its return.

A command gets a quarter of a second. After one that failed nobody waits for the server any more; a task asks it every
half second, and the first answer ends the outage. Each outage is told once. No password is in an error, a log or a
repr. Not here: what is kept there (redis_windows, revocations).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

_log = logging.getLogger("asides.gateway")

COMMAND_SECONDS = 0.25
"""How long anyone waits for an answer."""
PROBE_SECONDS = 0.5
_MOST_CONNECTIONS = 64
PREFIX = "asides:"
"""The beginning of all our keys. What stands in braces in them decides about the node of a cluster."""
_SCHEMES = ("redis", "rediss", "unix")
_REASONS = {
    "AuthenticationError": "it refuses the user or the password of the URL",
    "AuthenticationWrongNumberOfArgsError": "it refuses the user or the password of the URL",
    "NoPermissionError": "its user may not do what is needed: EVALSHA, EVAL, and the keys and channels asides:*",
    "ReadOnlyError": "it is a replica that only reads",
    "OutOfMemoryError": "it has no memory left",
    "BusyLoadingError": "it is still loading its data",
    "TimeoutError": f"it did not answer within {COMMAND_SECONDS:g} s",
    "ConnectionError": "it cannot be reached",
    "MovedError": "it is one node of a cluster, and the key belongs to another one",
    "ClusterDownError": "its cluster is down",
}


class RedisDown(Exception):
    """The server did not answer, or could not do what it was asked. The message holds no URL."""


class Script:
    """A Lua script, sent once and named by its digest from then on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_PROBE = Script("redis.call('SET', KEYS[1], '', 'PX', 1000) return 1")
_PROBE_KEY = f"{PREFIX}{{probe}}"


class RedisLink:
    """A server, connected to when it is first needed. It belongs to one event loop."""

    def __init__(self, url: str) -> None:
        check_redis_url(url)
        self._url = url
        self.name = describe_redis(url)
        """The server, without user and password."""
        self.is_up = True
        """Whether it answered the last time; True before the first."""
        self._client: AsyncRedis | None = None
        self._probing: asyncio.Task[None] | None = None
        self._when_back: list[Callable[[], None]] = []

    def call_when_back(self, function: Callable[[], None]) -> None:
        """Call a function whenever the server is back after an outage."""
        self._when_back.append(function)

    async def run(self, script: Script, key: str, *values: str | int) -> Any:
        """Run a script that uses one key. Raises RedisDown, at once during an outage."""
        if not self.is_up:
            raise RedisDown("an outage is under way")
        return await self._try(script, key, *values)

    async def _try(self, script: Script, key: str, *values: str | int) -> Any:
        from redis.exceptions import NoScriptError, RedisError

        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                client = self.find_client()
                try:
                    return await client.evalsha(script.digest, 1, key, *values)
                except NoScriptError:
                    return await client.eval(script.text, 1, key, *values)
        except (RedisError, OSError) as problem:  # TimeoutError is an OSError
            reason = describe_problem(problem)
            self._note_down(reason)
            raise RedisDown(reason) from None

    def find_client(self) -> AsyncRedis:
        """The client, for what is no script."""
        if self._client is None:
            from redis.asyncio import Redis as AsyncRedis

            self._client = AsyncRedis.from_url(
                self._url, max_connections=_MOST_CONNECTIONS, **_list_settings(COMMAND_SECONDS, is_async=True)
            )
        return self._client

    # --- outages ------------------------------------------------------------------------------------------------------

    def _note_down(self, reason: str) -> None:
        if not self.is_up:
            return
        self.is_up = False
        _log.warning(
            "Redis at %s fails: %s. Until it is back, each process counts the limits of keys for itself, and a revoked "
            "key is refused when the keys are read again.",
            self.name,
            reason,
        )
        self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                # It has to take a write: a replica answers too, and so does a server without memory.
                await self._try(_PROBE, _PROBE_KEY)
            except RedisDown:
                continue
            self.is_up = True
            _log.warning("Redis at %s is back: the limits of keys are shared again.", self.name)
            for function in self._when_back:
                function()
            return

    async def close(self) -> None:
        """Close the connections."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)
            self._probing = None
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def __repr__(self) -> str:
        return f"RedisLink({self.name!r}, {'up' if self.is_up else 'down'})"


def open_redis(url: str, seconds: float) -> Redis:
    """A client for a command of a person, who waits longer. Raises ConfigError for a URL that cannot be one."""
    check_redis_url(url)
    from redis import Redis

    client: Redis = Redis.from_url(url, **_list_settings(seconds, is_async=False))
    return client


def _list_settings(seconds: float, *, is_async: bool) -> dict[str, Any]:
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.retry import Retry

    # A connection that was closed while nobody used it is no outage: another one is tried at once.
    kind = AsyncRetry if is_async else Retry
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": kind(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        "client_name": "asides",
        "protocol": 2,
        "decode_responses": True,
    }


def describe_problem(problem: BaseException) -> str:
    """Why a command failed, without the words of the server, which may repeat what it was sent."""
    for kind in type(problem).__mro__:
        if kind.__name__ in _REASONS:
            return _REASONS[kind.__name__]
    return f"{type(problem).__name__}"


def check_redis_url(url: str) -> None:
    """Raise a ConfigError for what cannot be the URL of a server, and if the package is missing."""
    if find_spec("redis") is None:
        raise ConfigError("Redis needs the package redis, which is not installed. To do: pip install 'asides[redis]'.")
    from redis.connection import parse_url

    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in _SCHEMES and (parts.port is None or parts.port > 0)
        is_sound = is_sound and bool(parts.path if parts.scheme == "unix" else parts.hostname)
        if parts.scheme != "unix":
            is_sound = is_sound and (parts.path in ("", "/") or parts.path[1:].isdecimal())
        if is_sound:
            parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ConfigError(
            "the setting gateway.redis is no URL of a Redis server. To do: write it as redis://host:6379/0, or "
            "rediss://user:password@host:6380/0 for TLS; marks such as @ or / in a password as %40 and %2F."
        )


def describe_redis(url: str) -> str:
    """The server of a URL, without user, password and options."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    host = parts.hostname or "localhost"
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or 6379}{parts.path.rstrip('/')}"
