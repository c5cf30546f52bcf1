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
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from asides.gateway.access.redis_errors import describe_problem, is_outage
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio.connection import AbstractConnection

_log = logging.getLogger("asides.gateway")

COMMAND_SECONDS = 0.25
"""How long anyone waits for an answer."""
PROBE_SECONDS = 0.5
_TURNS = 4
PREFIX = "asides:"
"""The beginning of all our keys. What stands in braces in them decides about the node of a cluster."""
_SCHEMES = ("redis", "rediss", "unix")


class RedisDown(Exception):
    """The server did not answer, or could not do what it was asked. The message holds no URL."""


class Script:
    """A Lua script, sent once and named by its digest from then on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_PROBE = Script("redis.call('SET', KEYS[1], '', 'PX', 1000) return 1")
_PROBE_KEY = f"{PREFIX}{{probe}}"


class _Order(NamedTuple):
    """A script that somebody waits for."""

    script: Script
    key: str
    values: tuple[str | int, ...]
    answer: asyncio.Future[Any]

    def name(self, *, as_text: bool = False) -> tuple[str | int, ...]:
        """The command; `as_text`: for a server that does not know the script."""
        if as_text:
            return ("EVAL", self.script.text, 1, self.key, *self.values)
        return ("EVALSHA", self.script.digest, 1, self.key, *self.values)


class RedisLink:
    """A server, connected to when it is first needed. It belongs to one event loop.

    Scripts that are wanted at the same time leave together, over one connection: a burst takes one way there and back.
    """

    def __init__(self, url: str) -> None:
        check_redis_url(url)
        self.url = url
        self.name = describe_redis(url)
        """The server, without user and password."""
        self.is_up = True
        """Whether it answered the last time; True before the first."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called for every check of a limit that a process had to make alone."""
        self._connection: AbstractConnection | None = None
        self._orders: list[_Order] = []
        self._sending: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._is_back = asyncio.Event()
        self._reported: set[str] = set()
        """The errors that are no outage: they belong to one key or one script, as if somebody else used its name."""

    async def run(self, script: Script, key: str, *values: str | int) -> Any:
        """Run a script that uses one key. Raises RedisDown, at once during an outage."""
        if not self.is_up:
            raise RedisDown("an outage is under way")
        return await self._order(script, key, *values)

    def _order(self, script: Script, key: str, *values: str | int) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._orders.append(_Order(script, key, values, answer))
        if self._sending is None or self._sending.done():
            self._sending = loop.create_task(self._send_all())
        return answer

    async def _send_all(self) -> None:
        """Send what is wanted, batch by batch, until nothing is."""
        while self._orders:
            batch, self._orders = self._orders, []
            exchange = asyncio.ensure_future(self._exchange(batch))
            try:
                await asyncio.wait({exchange}, timeout=COMMAND_SECONDS)
                for _ in range(_TURNS):
                    # An event loop that was held up sees the answer and the time at once.
                    if not exchange.done():
                        await asyncio.sleep(0)
                problem = _find_problem(exchange)
            except asyncio.CancelledError as left:
                await self._fail(left, batch)
                raise
            finally:
                exchange.cancel()
            if problem is not None:
                await self._fail(problem, batch)

    async def _exchange(self, batch: list[_Order]) -> None:
        """Send a batch and set its answers."""
        from redis.exceptions import ConnectionError as RedisConnectionError
        from redis.exceptions import NoScriptError, ResponseError

        connection = self._connection
        answers: list[Any] = []
        if connection is not None:
            try:
                answers = await _send(connection, [order.name() for order in batch])
            except (RedisConnectionError, OSError):
                # It was closed while nobody used it: that is no outage.
                connection = None
        if connection is None:
            connection = await self._connect()
            answers = await _send(connection, [order.name() for order in batch])
        if unknown := [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]:
            again = await _send(connection, [batch[place].name(as_text=True) for place in unknown])
            for place, answer in zip(unknown, again, strict=True):
                answers[place] = answer
        for order, answer in zip(batch, answers, strict=True):
            if order.answer.done():
                continue  # Whoever wanted it has left.
            if isinstance(answer, ResponseError):
                order.answer.set_exception(self.take_error(answer))
            else:
                order.answer.set_result(answer)

    async def _connect(self) -> AbstractConnection:
        await self._disconnect()
        from redis.asyncio import ConnectionPool

        pool = ConnectionPool.from_url(self.url, **_list_settings(COMMAND_SECONDS, is_async=True))
        connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    # --- errors -------------------------------------------------------------------------------------------------------

    def take_error(self, problem: Exception) -> RedisDown:
        """What is raised for an error that the server answered. It is told once."""
        reason = describe_problem(problem)
        if is_outage(problem):
            self.note_down(reason)
        elif reason not in self._reported:
            self._reported.add(reason)
            _log.warning("Redis at %s does not do what it is asked: %s. It is not told again.", self.name, reason)
        return RedisDown(reason)

    async def _fail(self, problem: BaseException, batch: list[_Order]) -> None:
        """Fail a batch that got no answers, and all that came since: nobody waits for a second time."""
        # What it still says would be taken for the answer to something else.
        await self._disconnect()
        orders, self._orders = self._orders, []
        reason = describe_problem(problem)
        if isinstance(problem, Exception):
            self.note_down(reason)
        for order in (*batch, *orders):
            if not order.answer.done():
                order.answer.set_exception(RedisDown(reason))

    # --- outages ------------------------------------------------------------------------------------------------------

    def note_down(self, reason: str) -> None:
        """The server does not answer: nobody waits for it until it does."""
        if not self.is_up:
            return
        self.is_up = False
        self._is_back.clear()
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
                await self._order(_PROBE, _PROBE_KEY)
            except RedisDown:
                continue
            self.is_up = True
            self._is_back.set()
            _log.warning("Redis at %s is back: the limits of keys are shared again.", self.name)
            return

    async def wait_until_up(self) -> None:
        """Wait for the end of an outage."""
        while not self.is_up:
            await self._is_back.wait()

    async def close(self) -> None:
        """Close the connection. Whoever still waits gets RedisDown."""
        for task in (self._probing, self._sending):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._fail(asyncio.CancelledError(), [])

    def __repr__(self) -> str:
        return f"RedisLink({self.name!r}, {'up' if self.is_up else 'down'})"


async def _send(connection: AbstractConnection, commands: list[tuple[str | int, ...]]) -> list[Any]:
    """The answers to commands; errors of the server among them."""
    from redis.exceptions import ResponseError

    await connection.send_packed_command(connection.pack_commands(commands))
    answers: list[Any] = []
    for _ in commands:
        try:
            answers.append(await connection.read_response())
        except ResponseError as problem:
            answers.append(problem)
    return answers


def _find_problem(exchange: asyncio.Future[None]) -> BaseException | None:
    """Why a batch got no answers; None if it got them."""
    if not exchange.done():
        return TimeoutError()
    return exchange.exception()


def open_redis(url: str, seconds: float) -> Redis:
    """A client for a command of a person, who waits longer. Raises ConfigError for a URL that cannot be one."""
    check_redis_url(url)
    from redis import Redis

    client: Redis = Redis.from_url(url, **_list_settings(seconds, is_async=False))
    return client


def open_async_redis(url: str, seconds: float) -> AsyncRedis:
    """A client for an event loop, for what is no script."""
    from redis.asyncio import Redis as AsyncRedis

    client: AsyncRedis = AsyncRedis.from_url(url, **_list_settings(seconds, is_async=True))
    return client


def _list_settings(seconds: float, *, is_async: bool) -> dict[str, Any]:
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.retry import Retry

    # A connection that was closed while nobody used it is no outage: another one is tried at once.
    kind = AsyncRetry if is_async else Retry
    return {
        # An event loop has one time for a whole batch.
        "socket_timeout": None if is_async else seconds,
        "socket_connect_timeout": seconds,
        "retry": kind(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        "client_name": "asides",
        "protocol": 2,
        "decode_responses": True,
    }


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
