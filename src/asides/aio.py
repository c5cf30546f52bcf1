"""The awaiting shell: `AsyncClient`, and the HTTP library under it. Decides nothing; the flows do.

aiohttp is loaded with the first request, not with the import.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self, Unpack

from asides.dialects.dialect import HttpRequest
from asides.flows.build_call import CallBuilder
from asides.flows.list_models import listing
from asides.flows.steps import Head
from asides.options import ListOptions, Options, PromptLike, Timeout
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.transports import transport_errors as faults
from asides.transports.async_ import AsyncStream, carry_out
from asides.transports.protocols import AsyncResponse, AsyncTransport
from asides.transports.proxy_and_tls import proxy_for, tls_context
from asides.values.errors import AsidesError, ConfigError
from asides.values.model_info import ModelInfo
from asides.values.reply import Reply

if TYPE_CHECKING:
    import ssl

    import aiohttp

    from asides.transports.run_stream import AsyncRunStream, RunState
    from asides.values.result import Output

__all__ = ["AsyncClient", "AsyncStream", "ask", "run", "stream"]

_TURNS_TO_CLOSE = 3
_KEPT_SECONDS = 60.0
_LARGE = 512 * 1024
_LOOK_AGAIN = 1.0
# A timer that came a hair too early must not spin.
_SHORTEST_LOOK = 0.001


class AsyncClient:
    """Asks models, without blocking the loop. Keeps connections for the next question, for each event loop its own.

    Every option of `ask` may be given here as a default; what a call says wins. `providers` are rows of your own,
    `settings` is what `asides.toml` and the environment would otherwise say, `transport` carries the bytes.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: AsyncTransport | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        self._defaults = CallBuilder(defaults, providers=providers, settings=settings)
        self._transport: AsyncTransport = _Aiohttp() if transport is None else transport

    async def ask(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply:
        """The reply to a prompt. The answer is asked for in one piece; `stream=True` has it sent as it is made."""
        async with AsyncStream(self._defaults.call(model, prompt, options, stream=False), self._transport) as events:
            return await events.drain()

    def stream(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream:
        """The events of a reply, as they come. Nothing is sent before they are asked for."""
        return AsyncStream(self._defaults.call(model, prompt, options, stream=True), self._transport)

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
        """The events of a run that asks through this client; `begin` makes it. `AsyncAgent` calls this."""
        from asides.transports.run_stream import AsyncRunStream

        return AsyncRunStream(begin(self._defaults), self._transport)

    async def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, in its own words; what the rows know of them is not among those."""
        call = self._defaults.listing(provider, options)
        return await carry_out(call, lambda: listing(call), self._transport)

    async def close(self) -> None:
        """Close the connections that are kept for the next question. The client may still be used."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


# --- aiohttp ------------------------------------------------------------------------------------------------------


class _Aiohttp:
    """The transport of every client that was given no other. One session for each event loop, made when first used."""

    def __init__(self) -> None:
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._trust: ssl.SSLContext | None = None

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        return _AiohttpResponse(self, request, timeout)

    async def close(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
            # A transport closes its socket a turn or two later; the loop may be closed by then.
            for _ in range(_TURNS_TO_CLOSE):
                await asyncio.sleep(0)

    def session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            import aiohttp

            # Those of loops that are gone can only be forgotten.
            self._sessions = {known: kept for known, kept in self._sessions.items() if not known.is_closed()}
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept-Encoding"),
                trace_configs=[_watch()],
            )
        return session

    def trust(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = tls_context()
        return self._trust


def _watch() -> aiohttp.TraceConfig:
    import aiohttp

    async def sent(_: aiohttp.ClientSession, context: Any, __: object) -> None:
        context.trace_request_ctx.sent()

    watch = aiohttp.TraceConfig()
    watch.on_request_headers_sent.append(sent)
    watch.on_request_chunk_sent.append(sent)
    return watch


class _AiohttpResponse:
    """One request through aiohttp, whose redirects are off and whose clock we do not use: see `_look`."""

    def __init__(self, transport: _Aiohttp, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._deadline = _sum(asyncio.get_running_loop().time(), timeout.total)
        self._proxy: str | None = None
        self._opening: asyncio.Timeout | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._failures: tuple[type[Exception], ...] = (OSError,)
        self._lost: AsidesError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None
        self._begun = False
        self._late = False
        self._closed = False

    async def head(self) -> Head:
        import aiohttp
        from yarl import URL

        request, timeout = self._request, self._timeout
        self._failures = (aiohttp.ClientError, OSError)
        self._proxy = None if request.direct else proxy_for(request.url)
        secure = request.url.lower().startswith("https:") or (self._proxy or "").startswith("https:")
        # Bytes are written in one go, which aiohttp warns of when they are many; a file it writes in pieces.
        body = (request.body or None) if len(request.body) < _LARGE else BytesIO(request.body)
        try:
            async with asyncio.timeout(self._at_most(_sum(timeout.connect, timeout.first_byte))) as self._opening:
                response = await self._transport.session().request(
                    request.method,
                    URL(request.url, encoded=True),
                    data=body,
                    headers=request.headers,
                    proxy=self._proxy,
                    ssl=self._transport.trust() if secure else True,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=self._at_most(timeout.connect)),
                    trace_request_ctx=self,
                )
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._worded(problem) from None
        finally:
            self._opening = None
        self._response = response
        return Head(response.status, {name.lower(): value for name, value in response.headers.items()}, time.time())

    def sent(self) -> None:
        """The request is on its way: from here on the wait is for the first byte, however fast the connection was."""
        if self._opening is not None and not self._closed and not self._opening.expired():
            allowed = self._at_most(self._timeout.first_byte)
            self._opening.reschedule(_sum(asyncio.get_running_loop().time(), allowed))

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
            self._look()
        try:
            data = await response.content.readany()
        except self._failures as problem:
            self._lost = self._worded(problem)
            # aiohttp lets go of what it had received when the connection fails. It was received, and it counts.
            response.content.set_exception(None)  # type: ignore[arg-type]
            data = response.content.read_nowait()
            if not data:
                raise self._lost from None
        finally:
            self._waiting_since = None
        if not self._begun:
            self._begun = True
            self._stop_looking()
        return data

    async def _read_briefly(self, patience: float) -> bytes:
        try:
            async with asyncio.timeout(patience):
                return await self.read()
        except TimeoutError:
            return b""

    def close(self) -> None:
        self._closed = True
        self._stop_looking()
        if self._opening is not None:
            self._opening.reschedule(0.0)
        if self._response is not None:
            connection = self._response.connection
            # TLS says goodbye and waits for an answer, for which the loop may not live long enough.
            if connection is not None and isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()
            # No more than a formality when the body was read to its end: the connection has gone back by then.
            self._response.close()

    def _look(self) -> None:
        """See whether a waiting read waits in vain. One timer for all of them: one each costs more than the reading."""
        self._stop_looking()
        loop = asyncio.get_running_loop()
        now, since = loop.time(), self._waiting_since
        allowed = self._timeout.idle if self._begun else self._timeout.first_byte
        due = _earliest(_sum(now if since is None else since, allowed), self._deadline)
        if since is not None and (due <= now or self._is_dead()):
            self._late = due <= now
            self.close()
        else:
            self._timer = loop.call_at(max(min(due, now + _LOOK_AGAIN), now + _SHORTEST_LOOK), self._look)

    def _is_dead(self) -> bool:
        """aiohttp closes the connection when a body breaks its framing in the middle, and tells nobody who waits for
        it.
        """
        connection = None if self._response is None else self._response.connection
        return connection is not None and (connection.transport is None or connection.transport.is_closing())

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _at_most(self, seconds: float | None) -> float | None:
        """These seconds, or what is left of the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = max(self._deadline - asyncio.get_running_loop().time(), 0.0)
        return left if seconds is None else min(seconds, left)

    def _worded(self, problem: Exception) -> AsidesError:
        """What happened, in our words: aiohttp's may hold the whole address."""
        import aiohttp
        from aiohttp.http_exceptions import ContentEncodingError

        place = faults.place_of(self._request.url)
        if self._closed and not self._late:
            return faults.broken_off(place, begun=self._begun)
        if self._late or isinstance(problem, TimeoutError):
            if self._deadline is not None and self._deadline <= asyncio.get_running_loop().time():
                return faults.out_of_time(place, self._timeout.total)
            if isinstance(problem, aiohttp.ConnectionTimeoutError):
                return faults.connect_timed_out(place, self._timeout)
            return faults.fell_silent(place, self._timeout, begun=self._begun)
        if isinstance(problem, aiohttp.ClientHttpProxyError) and self._proxy is not None:
            return faults.proxy_failed(self._proxy, place, f"it answered {problem.status}")
        if isinstance(problem, aiohttp.ClientResponseError):
            return faults.not_http(place)
        if isinstance(problem, aiohttp.ClientConnectorError):
            by_proxy = isinstance(problem, aiohttp.ClientProxyConnectionError)
            return faults.not_connected(place, _cause_of(problem), proxy=self._proxy if by_proxy else None)
        if isinstance(problem, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError)):
            return ConfigError(f"{place} does not read as an address. To do: correct base_url=.")
        if isinstance(problem.__cause__, ContentEncodingError):
            return faults.undecodable(place)
        return faults.broken_off(place, begun=self._begun)


def _cause_of(problem: aiohttp.ClientConnectorError) -> OSError:
    """The system's error; where several addresses were tried, the one that all of them gave."""
    cause: OSError = problem.os_error
    inner = getattr(cause, "__cause__", None)
    return inner if isinstance(inner, OSError) else cause


def _earliest(*moments: float | None) -> float:
    return min((moment for moment in moments if moment is not None), default=float("inf"))


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


# --- without a client ---------------------------------------------------------------------------------------------


async def ask(model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply:
    """The reply to a prompt, by a client of its own that is closed behind it."""
    async with AsyncClient() as client:
        return await client.ask(model, prompt, **options)


def stream(model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream:
    """The events of a reply, by a client of their own that is closed with them: use it in an `async with`."""
    return AsyncStream(CallBuilder().call(model, prompt, options, stream=True), _Aiohttp(), ends_transport=True)


def run(begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
    """The events of a run, by a client of its own that is closed with them: use it in an `async with`."""
    from asides.transports.run_stream import AsyncRunStream

    return AsyncRunStream(begin(CallBuilder()), _Aiohttp(), ends_transport=True)
