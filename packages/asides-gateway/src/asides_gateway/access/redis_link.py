"""`RedisLink`: runs scripts on a Redis or Valkey server, and notes when the server is down and when it is back.

A command gets a quarter of a second. After a failure, later commands fail immediately; a task probes the server
every half second, and the first answer ends the outage. Each outage is logged once. Errors, logs and reprs contain no
passwords.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from asides.values.errors import ConfigError
from asides.values.outage_log import OutageLog
from asides_gateway.access.redis_errors import describe_problem, is_outage, is_refusal

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio.connection import AbstractConnection

_log = logging.getLogger("asides.gateway")

COMMAND_SECONDS = 0.25
"""How long a caller waits for an answer."""
PROBE_SECONDS = 0.5
_LAST_CHECKS = 4
"""How many turns of the event loop an answer may still take when its time is up."""
PREFIX = "asides:"
"""The prefix of all our keys. The part of a key in braces is its hash tag, which decides its node in a cluster."""
_SCHEMES = ("redis", "rediss", "unix")


class RedisDown(Exception):
    """The server did not answer, or the command failed. The message contains no URL."""


class Script:
    """A Lua script, sent once and named by its digest from then on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_PROBE = Script("""
redis.call('TIME')
redis.call('HSET', KEYS[1], 'a', '')
redis.call('HGET', KEYS[1], 'a')
redis.call('HGETALL', KEYS[1])
redis.call('HDEL', KEYS[1], 'b')
redis.call('PEXPIRE', KEYS[1], 1000)
return 1
""")
"""Runs every command that our scripts of limits run, so that a user who lacks the right to one is noticed."""
_PROBE_KEY = f"{PREFIX}{{probe}}:all"


class _ScriptCall(NamedTuple):
    """A script to run, and the future of its answer."""

    script: Script
    key: str
    values: tuple[str | int, ...]
    answer: asyncio.Future[Any]

    def build_command(self, *, as_text: bool = False) -> tuple[str | int, ...]:
        """The command. `as_text`: with the whole script, for a server that does not know it."""
        if as_text:
            return ("EVAL", self.script.text, 1, self.key, *self.values)
        return ("EVALSHA", self.script.digest, 1, self.key, *self.values)


class RedisLink:
    """A server, connected to when it is first needed. It belongs to one event loop.

    Scripts that are asked for at the same time are sent together, over one connection: a burst takes one round trip.
    """

    def __init__(self, url: str) -> None:
        check_redis_url(url)
        self.url = url
        self.name = describe_redis(url)
        """The server, without user and password."""
        self._outage = OutageLog(
            _log.warning,
            f"Redis at {self.name} fails: {{reason}}. Until it is back, each process counts key limits "
            "separately, and a revoked key works until the keys are next read.",
            f"Redis at {self.name} is back: the limits of keys are shared again.",
        )
        self.on_failure: Callable[[], None] = lambda: None
        """Called for each check of a limit that Redis did not answer."""
        self._connection: AbstractConnection | None = None
        self._pending: list[_ScriptCall] = []
        self._sending: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._is_back = asyncio.Event()
        self._reported: set[str] = set()
        """Logged reasons that are not outages: they concern one key or one script."""

    @property
    def is_up(self) -> bool:
        """Whether it answered the last time; True before the first."""
        return not self._outage.is_down

    async def run(self, script: Script, key: str, *values: str | int) -> Any:
        """Run a script that uses one key. Raises RedisDown, immediately during an outage."""
        if not self.is_up:
            raise RedisDown("an outage is under way")
        return await self._enqueue(script, key, *values)

    def _enqueue(self, script: Script, key: str, *values: str | int) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._pending.append(_ScriptCall(script, key, values, answer))
        if self._sending is None or self._sending.done():
            self._sending = loop.create_task(self._send_all())
        return answer

    async def _send_all(self) -> None:
        """Send the pending scripts, batch by batch, until there are none."""
        while self._pending:
            batch, self._pending = self._pending, []
            exchange = asyncio.ensure_future(self._exchange(batch))
            try:
                await asyncio.wait({exchange}, timeout=COMMAND_SECONDS)
                for _ in range(_LAST_CHECKS):
                    # After a delay of the event loop, the answer and the timeout arrive together.
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

    async def _exchange(self, batch: list[_ScriptCall]) -> None:
        """Send a batch and set its answers."""
        from redis.exceptions import ConnectionError as RedisConnectionError
        from redis.exceptions import NoScriptError, ResponseError

        connection = self._connection
        answers: list[Any] = []
        if connection is not None:
            try:
                answers = await _send(connection, [call.build_command() for call in batch])
            except (RedisConnectionError, OSError):
                # It was closed while idle: not an outage.
                connection = None
        if connection is None:
            connection = await self._connect()
            answers = await _send(connection, [call.build_command() for call in batch])
        if unknown := [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]:
            again = await _send(connection, [batch[place].build_command(as_text=True) for place in unknown])
            for place, answer in zip(unknown, again, strict=True):
                answers[place] = answer
        for call, answer in zip(batch, answers, strict=True):
            if call.answer.done():
                continue  # The caller has left.
            if isinstance(answer, ResponseError):
                call.answer.set_exception(self.handle_error(answer))
            else:
                call.answer.set_result(answer)

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

    def handle_error(self, problem: Exception) -> RedisDown:
        """Log an error that the server answered to a script, once, and return what to raise for it."""
        reason = describe_problem(problem)
        # A user who may not run this script may not run the others.
        if is_outage(problem) or is_refusal(problem):
            self.note_down(reason)
        else:
            self.report_once(reason)
        return RedisDown(reason)

    def report_once(self, reason: str) -> None:
        """Log a refused command that is not an outage, once for each reason."""
        if reason not in self._reported:
            self._reported.add(reason)
            _log.warning("Redis at %s refuses a command: %s. This is logged once.", self.name, reason)

    async def _fail(self, problem: BaseException, batch: list[_ScriptCall]) -> None:
        """Fail a batch that got no answers, and all scripts since: no caller waits twice."""
        # A late answer would be read as the answer to the next script.
        await self._disconnect()
        later, self._pending = self._pending, []
        reason = describe_problem(problem)
        if isinstance(problem, Exception):
            self.note_down(reason)
        for call in (*batch, *later):
            if not call.answer.done():
                call.answer.set_exception(RedisDown(reason))

    # --- outages ------------------------------------------------------------------------------------------------------

    def note_down(self, reason: str) -> None:
        """Note an outage: later scripts fail immediately, until the server answers again."""
        if not self._outage.begin(reason):
            return
        self._is_back.clear()
        self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                # It has to take a write: a replica answers too, and so does a server without memory.
                await self._enqueue(_PROBE, _PROBE_KEY)
            except RedisDown:
                continue
            self._outage.end()
            self._is_back.set()
            return

    async def wait_until_up(self) -> None:
        """Wait for the end of an outage."""
        while not self.is_up:
            await self._is_back.wait()

    async def close(self) -> None:
        """Close the connection. Callers that still wait get RedisDown."""
        for task in (self._probing, self._sending):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._fail(asyncio.CancelledError(), [])

    def __repr__(self) -> str:
        return f"RedisLink({self.name!r}, {'up' if self.is_up else 'down'})"


async def _send(connection: AbstractConnection, commands: list[tuple[str | int, ...]]) -> list[Any]:
    """Send commands and return their answers. Errors of the server are among them."""
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
    """A blocking client, for the command line. Raises ConfigError for a wrong URL."""
    check_redis_url(url)
    from redis import Redis

    client: Redis = Redis.from_url(url, **_list_settings(seconds, is_async=False))
    return client


def check_redis(url: str, seconds: float) -> None:
    """Ask a server once for what a gateway needs, a script that writes. Raises RedisDown if it does not do it, and
    ConfigError for a URL that cannot be one, or without the package redis.
    """
    check_redis_url(url)
    from redis.exceptions import RedisError

    client = open_redis(url, seconds)
    try:
        client.eval(_PROBE.text, 1, _PROBE_KEY)
    except (RedisError, OSError) as problem:
        raise RedisDown(describe_problem(problem)) from None
    finally:
        with suppress(RedisError, OSError):
            client.close()


def open_async_redis(url: str, seconds: float) -> AsyncRedis:
    """A client for an event loop, for commands other than scripts."""
    from redis.asyncio import Redis as AsyncRedis

    client: AsyncRedis = AsyncRedis.from_url(url, **_list_settings(seconds, is_async=True))
    return client


def _list_settings(seconds: float, *, is_async: bool) -> dict[str, Any]:
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.retry import Retry

    # A connection closed while idle is not an outage: retry immediately with a new one.
    kind = AsyncRetry if is_async else Retry
    return {
        # In an event loop the timeout is that of a whole batch.
        "socket_timeout": None if is_async else seconds,
        "socket_connect_timeout": seconds,
        "retry": kind(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        "protocol": 2,
        "decode_responses": True,
    }


def check_redis_url(url: str) -> None:
    """Raise a ConfigError for a wrong URL, and if the package redis is not installed."""
    if find_spec("redis") is None:
        raise ConfigError("Redis needs the package redis, which is not installed. Run pip install 'asides[redis]'.")
    from redis.connection import parse_url

    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in _SCHEMES and (parts.port is None or parts.port > 0)
        is_valid = is_valid and bool(parts.path if parts.scheme == "unix" else parts.hostname)
        if parts.scheme != "unix":
            is_valid = is_valid and (parts.path in ("", "/") or parts.path[1:].isdecimal())
        if is_valid:
            parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigError(
            "the setting gateway.redis is not a Redis URL. Write it as redis://host:6379/0, or "
            "rediss://user:password@host:6380/0 for TLS, and @ or / in a password as %40 and %2F."
        )


def describe_redis(url: str) -> str:
    """The server of a URL, without user, password and options."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    host = parts.hostname or "localhost"
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or 6379}{parts.path.rstrip('/')}"
