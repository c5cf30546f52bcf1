"""The transport of `AsyncClient`: aiohttp. It is loaded with the first request, not with the import.

Not here: when to try again and what a response means (flows), and which proxy and certificates (proxy_and_tls).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from contextvars import ContextVar
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from asides.dialects.dialect import HttpRequest
from asides.flows.retry import NO_HEAD
from asides.flows.steps import Head
from asides.options import Timeout
from asides.transports import transport_errors
from asides.transports.http_response import BadEncoding, BrokenBody, BrokenHead, HttpResponseReader
from asides.transports.protocols import MOST_PATIENCE, AsyncResponse
from asides.transports.proxy_and_tls import build_tls_context, find_proxy
from asides.values.errors import AsidesError, ConfigError

if TYPE_CHECKING:
    import ssl

    import aiohttp

_LOOP_TURNS_TO_CLOSE = 3
_KEEP_ALIVE_SECONDS = 60.0
_LARGE_BODY = 64 * 1024
_CHECK_INTERVAL = 1.0
# A timer that fires slightly too early must not spin.
_SHORTEST_INTERVAL = 0.001
_READ_SIZE = 64 * 1024
# A server that sends faster than the caller reads has to wait.
_MOST_BUFFERED = 256 * 1024

# What aiohttp sees of a response. The status tells it only whether a proxy has opened a tunnel.
_SEEN_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_SEEN_REFUSAL = b"HTTP/1.1 400 Refused\r\nTransfer-Encoding: chunked\r\n\r\n"
_SEEN_END = b"0\r\n\r\n"

_current: ContextVar[_AiohttpResponse | None] = ContextVar("_current", default=None)
"""The response that a task is opening. The connection that aiohttp picks brings its bytes to it."""


class AiohttpTransport:
    """The default transport of an `AsyncClient`. It keeps one session for each event loop, made when first used."""

    def __init__(self) -> None:
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._tls: ssl.SSLContext | None = None
        finalize(self, _drop_forgotten_sessions, self._sessions)

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request; `head` of the response sends it."""
        return _AiohttpResponse(self, request, timeout)

    async def close(self) -> None:
        """Close the session of this event loop, and what is left of closed loops."""
        self._drop_closed_loops()
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

            self._drop_closed_loops()
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=_build_connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept-Encoding"),
            )
        return session

    def _drop_closed_loops(self) -> None:
        for loop in [loop for loop in self._sessions if loop.is_closed()]:
            _drop_session(self._sessions.pop(loop))

    def get_tls_context(self) -> ssl.SSLContext:
        """The trusted certificates, loaded once."""
        if self._tls is None:
            self._tls = build_tls_context()
        return self._tls


# A finalizer keeps sessions and connections alive until it has run, so that the collector never finds one unclosed.


def _drop_forgotten_sessions(sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession]) -> None:
    for loop, session in sessions.items():
        if loop.is_running():
            # Perhaps in another thread.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_drop_session, session)
        else:
            _drop_session(session)


def _drop_forgotten_connection(
    loop: asyncio.AbstractEventLoop, connection: Any, wire: asyncio.Transport | None
) -> None:
    if not loop.is_closed():
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(connection.close)
            return
    if wire is not None:
        _close_wire(wire)
    connection.close()


def _drop_session(session: aiohttp.ClientSession) -> None:
    """Close a session without waiting. If its loop is closed, nothing can be awaited there any more."""
    connector = session.connector
    session.detach()
    if connector is not None:
        for connection in list(getattr(connector, "connections_made", ())):
            if connection.transport is not None:
                _close_wire(connection.transport)
        # The rest of closing would only wait for the connections.
        with suppress(RuntimeError), closing(connector.close().__await__()) as waiting:
            next(waiting, None)


def _close_wire(wire: asyncio.BaseTransport) -> None:
    """Close a connection at once. If its loop is closed, close its socket, which nobody else does."""
    try:
        wire.abort()  # type: ignore[attr-defined]
    except RuntimeError:
        for layer in (wire, getattr(getattr(wire, "_ssl_protocol", None), "_transport", None)):
            if (source := getattr(layer, "_sock", None)) is not None:
                source.close()
                layer._sock = None  # type: ignore[union-attr]


class _WatchedBody(BytesIO):
    """A body that aiohttp reads in pieces: the next one when those before it are sent. It tells of each."""

    def __init__(self, body: bytes, report: Callable[[], object]) -> None:
        super().__init__(body)
        self._report = report

    def read(self, size: int | None = -1, /) -> bytes:
        self._report()
        return super().read(size)


def _build_connector() -> aiohttp.BaseConnector:
    """Build a connector whose connections leave the bytes of a response to it."""
    import aiohttp
    from aiohttp.client_proto import ResponseHandler

    class LendsBytes(ResponseHandler):
        """A connection whose bytes the current response reads. aiohttp sees only whether it can be used again."""

        _response: _AiohttpResponse | None = None
        _is_idle = False

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            connections.add(self)
            super().connection_made(transport)

        def set_response_params(self, **options: Any) -> None:
            self._response = _current.get()
            if self._response is not None:
                # For the request that opens a tunnel through a proxy, there is no timer.
                self._response.use_connection(self, is_tunnel="timer" not in options)
            super().set_response_params(**options)

        def data_received(self, data: bytes) -> None:
            response = self._response
            if response is not None:
                if seen := response.take_bytes(data):
                    if response.is_complete:
                        self._response, self._is_idle = None, True
                    super().data_received(seen)
            elif self._is_idle and self.transport is not None:
                # Nobody asked for it, so the next request must not take it for its response.
                self.transport.abort()
            else:
                super().data_received(data)

        def set_exception(self, *arguments: Any, **options: Any) -> None:
            self._read_what_is_left()
            super().set_exception(*arguments, **options)

        def connection_lost(self, exc: BaseException | None) -> None:
            self._read_what_is_left()
            if self._response is not None:
                self._response.take_end(is_clean=exc is None)
            super().connection_lost(exc)

        def _read_what_is_left(self) -> None:
            """Read what arrived before sending failed: a server may refuse a request that it does not read."""
            transport = self.transport
            if transport is None or self._response is None or not self._response.awaits_head:
                return
            if transport.get_extra_info("sslcontext") is None and (source := transport.get_extra_info("socket")):
                with suppress(OSError), source.dup() as copy:
                    copy.setblocking(False)
                    while data := copy.recv(_READ_SIZE):
                        self.data_received(data)

    connections: WeakSet[LendsBytes] = WeakSet()
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS)
    connector._factory = partial(LendsBytes, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    connector.connections_made = connections  # type: ignore[attr-defined]
    return connector


class _AiohttpResponse:
    """One request through aiohttp. aiohttp connects and sends; the bytes of the response come to `take_bytes`."""

    __slots__ = (
        "__weakref__", "_broken_head", "_closed", "_connection", "_deadline", "_finalizer", "_has_data",
        "_is_paused", "_is_sent", "_loop", "_opening", "_proxy", "_reader", "_reading", "_request", "_response",
        "_rest_end", "_timed_out", "_timeout", "_timer", "_transport", "_waiting_since", "_wire"
    )  # fmt: skip

    def __init__(self, transport: AiohttpTransport, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._deadline = _add(self._loop.time(), timeout.total)
        self._proxy: str | None = None
        self._opening: asyncio.Timeout | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._connection: Any = None
        self._wire: asyncio.Transport | None = None
        """What carries the bytes. aiohttp drops its own reference before everything is closed."""
        self._is_sent = False
        self._reader = HttpResponseReader()
        self._broken_head: BrokenHead | None = None
        self._is_paused = False
        self._reading: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None
        self._has_data = False
        self._rest_end = 0.0
        self._timed_out = False
        self._closed = False
        self._finalizer: finalize[..., _AiohttpResponse] | None = None

    async def head(self) -> Head:
        import aiohttp
        from yarl import URL

        request, timeout = self._request, self._timeout
        self._proxy = None if request.direct else find_proxy(request.url)
        secure = request.url.lower().startswith("https:") or (self._proxy or "").startswith("https:")
        # aiohttp writes bytes in one go and warns when they are many. It writes a file in pieces, perhaps in a thread.
        body: Any = request.body or None
        if len(request.body) >= _LARGE_BODY:
            body = _WatchedBody(request.body, partial(self._loop.call_soon_threadsafe, self.extend_opening))
        _current.set(self)
        try:
            async with asyncio.timeout(self._limit(_add(timeout.connect, timeout.first_byte))) as self._opening:
                self._response = response = await self._transport.get_session().request(
                    request.method,
                    URL(request.url, encoded=True),
                    data=body,
                    headers=request.headers,
                    proxy=self._proxy,
                    ssl=self._transport.get_tls_context() if secure else True,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=self._limit(timeout.connect)),
                )
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._translate(problem) from None
        finally:
            self._opening = None
            _current.set(None)
            # Timers of the session may hold this response, and a session must not hold its own transport.
            del self._transport
            if self._response is None:
                # aiohttp would wait until the rest of the request is sent.
                self._abort()
        if (connection := response.connection) is not None:
            self._finalizer = finalize(self, _drop_forgotten_connection, self._loop, connection, self._wire)
            self._finalizer.atexit = False
        return self._reader.head or NO_HEAD

    def extend_opening(self) -> None:
        """Restart the timeout of the first byte, since a piece of the request is being sent."""
        self._is_sent = True
        if self._opening is not None and not self._closed and not self._opening.expired():
            allowed = self._limit(self._timeout.first_byte)
            self._opening.reschedule(_add(self._loop.time(), allowed))

    async def read(self, patience: float | None = None) -> bytes:
        if patience is not None:
            self._rest_end = self._rest_end or self._loop.time() + MOST_PATIENCE * patience
            with suppress(TimeoutError):
                async with asyncio.timeout(min(patience, self._rest_end - self._loop.time())):
                    return await self.read()
            return b""
        if self._response is None:
            return b""
        loop = self._loop
        if asyncio.get_running_loop() is not loop:
            # The bytes would never come here.
            self.close()
        self._waiting_since = loop.time()
        if self._timer is None and not self._closed:
            self._check_wait()
        try:
            while (content := self._reader.take()) is None:
                if self._closed:
                    raise self._translate(BrokenBody())
                self._reading = loop.create_future()
                await self._reading
        except (BadEncoding, BrokenBody) as problem:
            raise self._translate(problem) from None
        finally:
            self._waiting_since = self._reading = None
        if not self._has_data:
            self._has_data = True
            self._stop_timer()
        if self._is_paused and self._wire is not None and not self._reader.size:
            self._is_paused = False
            self._wire.resume_reading()
        return content

    def close(self) -> None:
        self._closed = True
        if self._finalizer is not None:
            self._finalizer.detach()
        self._stop_timer()
        if not self._loop.is_closed():
            if self._opening is not None:
                self._opening.reschedule(0.0)
            self._wake()
        if self._response is not None:
            # There is none when the body was read to its end: it is back in the pool.
            if (connection := self._response.connection) is not None:
                # Closing TLS waits for the peer, and the loop may not live that long.
                self._abort()
                connection.close()
            self._response.close()

    # --- for the connection -------------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether the response has arrived to its end."""
        return self._reader.is_complete

    @property
    def awaits_head(self) -> bool:
        """Whether the head of the response has not arrived."""
        return self._reader.head is None and self._broken_head is None

    def use_connection(self, connection: Any, *, is_tunnel: bool) -> None:
        """Take the bytes of this connection from now on. `is_tunnel`: a proxy opens it; else the request leaves now."""
        if not is_tunnel:
            self.extend_opening()
        self._connection, self._wire = connection, connection.transport
        self._reader, self._broken_head = HttpResponseReader(), None

    def take_bytes(self, data: bytes) -> bytes:
        """Take bytes of the response. Returns what aiohttp has to see: a head, and the end of the body."""
        reader, seen = self._reader, b""
        body = reader.body
        try:
            reader.feed(data)
        except BrokenHead as problem:
            self._broken_head = problem
            self._abort()
        if body is None:
            body = reader.body
            if body is None or reader.head is None:
                return b""
            seen = _SEEN_HEAD if reader.head.status < 300 else _SEEN_REFUSAL
        if body.broken:
            self._abort()
        elif body.ended:
            seen += _SEEN_END
            if not body.reusable:
                self._connection.force_close()
        elif reader.size > _MOST_BUFFERED and not self._is_paused and self._wire is not None:
            self._is_paused = True
            self._wire.pause_reading()
        self._wake()
        return seen

    def take_end(self, *, is_clean: bool) -> None:
        """Take the end of the connection."""
        self._reader.finish(is_clean=is_clean)
        self._wake()

    def _abort(self) -> None:
        if self._wire is not None:
            _close_wire(self._wire)

    def _wake(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    # --- waits --------------------------------------------------------------------------------------------------------

    def _check_wait(self) -> None:
        """Close the response if a read waits too long. One timer serves all reads, since one for each costs more."""
        self._stop_timer()
        loop = self._loop
        now, since = loop.time(), self._waiting_since
        allowed = self._timeout.idle if self._has_data else self._timeout.first_byte
        due = _find_earliest(_add(now if since is None else since, allowed), self._deadline)
        if since is not None and due <= now:
            self._timed_out = True
            self.close()
        else:
            self._timer = loop.call_at(max(min(due, now + _CHECK_INTERVAL), now + _SHORTEST_INTERVAL), self._check_wait)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limit(self, seconds: float | None) -> float | None:
        """These seconds, or the time left for the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = max(self._deadline - self._loop.time(), 0.0)
        return left if seconds is None else min(seconds, left)

    def _translate(self, problem: Exception) -> AsidesError:
        """Our error for an error of aiohttp, whose text may hold the whole address."""
        import aiohttp

        host = transport_errors.get_host(self._request.url)
        if self._broken_head is not None:
            if not self._is_sent and self._proxy is not None:
                return transport_errors.proxy_error(self._proxy, host, str(self._broken_head))
            return transport_errors.unreadable(host, self._broken_head)
        if self._closed and not self._timed_out:
            return transport_errors.connection_lost(host, has_data=self._has_data)
        if self._timed_out or isinstance(problem, TimeoutError):
            is_over = self._deadline is not None and self._deadline <= self._loop.time()
            is_connected = not isinstance(problem, aiohttp.ConnectionTimeoutError)
            return transport_errors.timed_out(
                host, self._timeout, is_over=is_over, is_connected=is_connected, has_data=self._has_data
            )
        if isinstance(problem, BadEncoding):
            return transport_errors.unreadable(host, problem)
        if isinstance(problem, aiohttp.ClientHttpProxyError) and self._proxy is not None:
            status = problem.status if self._reader.head is None else self._reader.head.status
            return transport_errors.proxy_error(self._proxy, host, f"it answered {status}")
        if isinstance(problem, aiohttp.ClientConnectorError):
            by_proxy = isinstance(problem, aiohttp.ClientProxyConnectionError)
            return transport_errors.no_connection(
                host, _find_os_error(problem), proxy=self._proxy if by_proxy else None
            )
        if isinstance(problem, ValueError) and not isinstance(problem, BrokenBody):
            return ConfigError(f"{host} is not a valid address. To do: correct base_url=.")
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
