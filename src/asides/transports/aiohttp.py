"""The transport of `AsyncClient`: aiohttp. It is loaded with the first request, not with the import.

Not here: when to try again and what a response means (flows), and which proxy and certificates (proxy_and_tls).
"""

from __future__ import annotations

import asyncio
import time
from io import BytesIO
from typing import TYPE_CHECKING, Any

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.options import Timeout
from asides.transports import transport_errors
from asides.transports.protocols import AsyncResponse
from asides.transports.proxy_and_tls import build_tls_context, find_proxy
from asides.values.errors import AsidesError, ConfigError

if TYPE_CHECKING:
    import ssl

    import aiohttp

_LOOP_TURNS_TO_CLOSE = 3
_KEEP_ALIVE_SECONDS = 60.0
_LARGE_BODY = 512 * 1024
_CHECK_INTERVAL = 1.0
# A timer that fires slightly too early must not spin.
_SHORTEST_INTERVAL = 0.001


class AiohttpTransport:
    """The default transport of an `AsyncClient`. It keeps one session for each event loop, made when first used."""

    def __init__(self) -> None:
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._tls: ssl.SSLContext | None = None

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request; `head` of the response sends it."""
        return _AiohttpResponse(self, request, timeout)

    async def close(self) -> None:
        """Close the session of this event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
            # asyncio closes a socket a turn or two later. Without these turns the loop may be closed before.
            for _ in range(_LOOP_TURNS_TO_CLOSE):
                await asyncio.sleep(0)

    def get_session(self) -> aiohttp.ClientSession:
        """The session of this event loop."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            import aiohttp

            # A session of a closed loop cannot be closed any more, only dropped.
            self._sessions = {
                owner: its_session for owner, its_session in self._sessions.items() if not owner.is_closed()
            }
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept-Encoding"),
                trace_configs=[_build_trace_config()],
            )
        return session

    def get_tls_context(self) -> ssl.SSLContext:
        """The trusted certificates, loaded once."""
        if self._tls is None:
            self._tls = build_tls_context()
        return self._tls


def _build_trace_config() -> aiohttp.TraceConfig:
    import aiohttp

    async def report(_: aiohttp.ClientSession, context: Any, __: object) -> None:
        context.trace_request_ctx.extend_opening()

    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(report)
    trace.on_request_chunk_sent.append(report)
    return trace


class _AiohttpResponse:
    """One request through aiohttp. Its redirects are off; `_check_wait` replaces its read timeouts."""

    def __init__(self, transport: AiohttpTransport, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._deadline = _add(asyncio.get_running_loop().time(), timeout.total)
        self._proxy: str | None = None
        self._opening: asyncio.Timeout | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._failures: tuple[type[Exception], ...] = (OSError,)
        self._lost: AsidesError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None
        self._has_data = False
        self._timed_out = False
        self._closed = False

    async def head(self) -> Head:
        import aiohttp
        from yarl import URL

        request, timeout = self._request, self._timeout
        self._failures = (aiohttp.ClientError, OSError)
        self._proxy = None if request.direct else find_proxy(request.url)
        secure = request.url.lower().startswith("https:") or (self._proxy or "").startswith("https:")
        # aiohttp writes bytes in one go and warns when they are many. It writes a file in pieces.
        body = (request.body or None) if len(request.body) < _LARGE_BODY else BytesIO(request.body)
        try:
            async with asyncio.timeout(self._limit(_add(timeout.connect, timeout.first_byte))) as self._opening:
                response = await self._transport.get_session().request(
                    request.method,
                    URL(request.url, encoded=True),
                    data=body,
                    headers=request.headers,
                    proxy=self._proxy,
                    ssl=self._transport.get_tls_context() if secure else True,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=self._limit(timeout.connect)),
                    trace_request_ctx=self,
                )
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._translate(problem) from None
        finally:
            self._opening = None
        self._response = response
        return Head(response.status, {name.lower(): value for name, value in response.headers.items()}, time.time())

    def extend_opening(self) -> None:
        """Restart the timeout of the first byte, since the request has just been sent."""
        if self._opening is not None and not self._closed and not self._opening.expired():
            allowed = self._limit(self._timeout.first_byte)
            self._opening.reschedule(_add(asyncio.get_running_loop().time(), allowed))

    async def read(self, patience: float | None = None) -> bytes:
        if patience is not None:
            return await self._read_briefly(patience)
        response = self._response
        if response is None:
            return b""
        if self._lost is not None:
            raise self._lost
        loop = asyncio.get_running_loop()
        self._waiting_since = loop.time()
        if self._timer is None:
            self._check_wait()
        try:
            data = await response.content.readany()
        except self._failures as problem:
            self._lost = self._translate(problem)
            # When the connection fails, aiohttp withholds the bytes that it had received. Read them.
            response.content.set_exception(None)  # type: ignore[arg-type]
            data = response.content.read_nowait()
            if not data:
                raise self._lost from None
        finally:
            self._waiting_since = None
        if not self._has_data:
            self._has_data = True
            self._stop_timer()
        return data

    async def _read_briefly(self, patience: float) -> bytes:
        try:
            async with asyncio.timeout(patience):
                return await self.read()
        except TimeoutError:
            return b""

    def close(self) -> None:
        self._closed = True
        self._stop_timer()
        if self._opening is not None:
            self._opening.reschedule(0.0)
        if self._response is not None:
            connection = self._response.connection
            # Closing TLS waits for the peer, and the loop may not live that long.
            if connection is not None and isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()
            # This does nothing when the body was read to its end: the connection is back in the pool.
            self._response.close()

    def _check_wait(self) -> None:
        """Close the response if a read waits too long. One timer serves all reads, since one for each costs more."""
        self._stop_timer()
        loop = asyncio.get_running_loop()
        now, since = loop.time(), self._waiting_since
        allowed = self._timeout.idle if self._has_data else self._timeout.first_byte
        due = _find_earliest(_add(now if since is None else since, allowed), self._deadline)
        if since is not None and (due <= now or self._is_dead()):
            self._timed_out = due <= now
            self.close()
        else:
            self._timer = loop.call_at(max(min(due, now + _CHECK_INTERVAL), now + _SHORTEST_INTERVAL), self._check_wait)

    def _is_dead(self) -> bool:
        """Whether the connection is closed. aiohttp closes it when a body breaks its framing, and wakes no reader."""
        connection = None if self._response is None else self._response.connection
        return connection is not None and (connection.transport is None or connection.transport.is_closing())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limit(self, seconds: float | None) -> float | None:
        """These seconds, or the time left for the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = max(self._deadline - asyncio.get_running_loop().time(), 0.0)
        return left if seconds is None else min(seconds, left)

    def _translate(self, problem: Exception) -> AsidesError:
        """Our error for an error of aiohttp, whose text may hold the whole address."""
        import aiohttp
        from aiohttp.http_exceptions import ContentEncodingError

        host = transport_errors.get_host(self._request.url)
        if self._closed and not self._timed_out:
            return transport_errors.connection_lost(host, has_data=self._has_data)
        if self._timed_out or isinstance(problem, TimeoutError):
            if self._deadline is not None and self._deadline <= asyncio.get_running_loop().time():
                return transport_errors.total_timeout(host, self._timeout.total)
            if isinstance(problem, aiohttp.ConnectionTimeoutError):
                return transport_errors.connect_timeout(host, self._timeout)
            return transport_errors.idle_timeout(host, self._timeout, has_data=self._has_data)
        if isinstance(problem, aiohttp.ClientHttpProxyError) and self._proxy is not None:
            return transport_errors.proxy_error(self._proxy, host, f"it answered {problem.status}")
        if isinstance(problem, aiohttp.ClientResponseError):
            return transport_errors.not_http(host)
        if isinstance(problem, aiohttp.ClientConnectorError):
            by_proxy = isinstance(problem, aiohttp.ClientProxyConnectionError)
            return transport_errors.no_connection(
                host, _find_os_error(problem), proxy=self._proxy if by_proxy else None
            )
        if isinstance(problem, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError)):
            return ConfigError(f"{host} is not a valid address. To do: correct base_url=.")
        if isinstance(problem.__cause__, ContentEncodingError):
            return transport_errors.bad_encoding(host)
        return transport_errors.connection_lost(host, has_data=self._has_data)


def _find_os_error(problem: aiohttp.ClientConnectorError) -> OSError:
    """The system's error. Where several addresses were tried, the error that all of them gave."""
    cause: OSError = problem.os_error
    inner = getattr(cause, "__cause__", None)
    return inner if isinstance(inner, OSError) else cause


def _find_earliest(*moments: float | None) -> float:
    return min((moment for moment in moments if moment is not None), default=float("inf"))


def _add(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right
