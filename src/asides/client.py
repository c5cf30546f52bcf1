"""The blocking shell: `Client`, and the HTTP library under it. Decides nothing; the flows do.

urllib3 is loaded with the first request, not with the import.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Self, Unpack

from asides.dialects.dialect import HttpRequest
from asides.flows.build_call import CallBuilder
from asides.flows.list_models import listing
from asides.flows.steps import Head
from asides.options import ListOptions, Options, PromptLike, Timeout
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.transports import transport_errors as faults
from asides.transports.protocols import Response, Transport
from asides.transports.proxy_and_tls import proxy_for, proxy_login, tls_context
from asides.transports.sync import Stream, carry_out
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo
from asides.values.reply import Reply
from asides.wire.chunked import BrokenChunks, Dechunker

if TYPE_CHECKING:
    import http.client

    import urllib3

    from asides.transports.run_stream import RunState, RunStream
    from asides.values.result import Output

__all__ = ["Client", "Stream", "ask", "shared_client", "stream"]

_READ_SIZE = 64 * 1024
_KEPT_CONNECTIONS = 64


class Client:
    """Asks models, and waits for them. Keeps connections for the next question; safe to use from many threads.

    Every option of `ask` may be given here as a default; what a call says wins. `providers` are rows of your own,
    `settings` is what `asides.toml` and the environment would otherwise say, `transport` carries the bytes.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: Transport | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        self._defaults = CallBuilder(defaults, providers=providers, settings=settings)
        self._transport: Transport = _Urllib3() if transport is None else transport

    def ask(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply:
        """The reply to a prompt. The answer is asked for in one piece; `stream=True` has it sent as it is made."""
        with Stream(self._defaults.call(model, prompt, options, stream=False), self._transport) as events:
            return events.reply

    def stream(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> Stream:
        """The events of a reply, as they come. Nothing is sent before they are asked for."""
        return Stream(self._defaults.call(model, prompt, options, stream=True), self._transport)

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> RunStream[Output]:
        """The events of a run that asks through this client; `begin` makes it. `Agent` calls this."""
        from asides.transports.run_stream import RunStream

        return RunStream(begin(self._defaults), self._transport)

    def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, in its own words; what the rows know of them is not among those."""
        call = self._defaults.listing(provider, options)
        return carry_out(call, lambda: listing(call), self._transport)

    def close(self) -> None:
        """Close the connections that are kept for the next question. The client may still be used."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- urllib3 ------------------------------------------------------------------------------------------------------

_at_work = threading.local()
"""The exchange of each thread that is sending, so that the connection that urllib3 picks can be told to it."""


class _Urllib3:
    """The transport of every client that was given no other. One pool of connections for each host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[tuple[bool, str | None], urllib3.PoolManager] = {}

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        return _Urllib3Response(self, request, timeout)

    def close(self) -> None:
        with self._lock:
            managers, self._managers = list(self._managers.values()), {}
        for manager in managers:
            # `clear` alone leaves the closing to the garbage collector.
            for key in manager.pools.keys():  # noqa: SIM118 - it refuses to be iterated over, for the sake of threads
                if (pool := manager.pools.get(key)) is not None:
                    pool.close()
            manager.clear()

    def manager(self, url: str, proxy: str | None) -> urllib3.PoolManager:
        kind = (url.lower().startswith("https:"), proxy)
        with self._lock:
            manager = self._managers.get(kind)
            if manager is None:
                manager = self._managers[kind] = _new_manager(secure=kind[0], proxy=proxy)
            return manager


def _new_manager(*, secure: bool, proxy: str | None) -> urllib3.PoolManager:
    import urllib3

    options: dict[str, Any] = {"maxsize": _KEPT_CONNECTIONS, "num_pools": _KEPT_CONNECTIONS, "retries": False}
    if secure or (proxy or "").startswith("https:"):
        options["ssl_context"] = tls_context()
    if proxy is None:
        manager = urllib3.PoolManager(**options)
    else:
        address, login = proxy_login(proxy)
        headers = None if login is None else urllib3.make_headers(proxy_basic_auth=login)
        manager = urllib3.ProxyManager(address, proxy_headers=headers, **options)
    manager.pool_classes_by_scheme = _pool_classes()
    return manager


@cache
def _pool_classes() -> dict[str, Any]:
    """urllib3's pools, with connections that tell which socket they use, and bodies that come as fast as they can."""
    from http.client import HTTPResponse, IncompleteRead

    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Body(HTTPResponse):
        """All that is there, or all that one read brings; the library's own gives one chunk at a time."""

        _dechunker: Dechunker | None = None

        def begin(self) -> None:
            super().begin()
            self._dechunker = Dechunker() if self.chunked else None
            if (response := getattr(_at_work, "response", None)) is not None:
                response.body = self

        def read1(self, n: int = -1) -> bytes:
            if self.isclosed():
                return b""
            dechunker = self._dechunker
            if dechunker is None:
                content = super().read1(n)
                if not content and self.length:
                    raise IncompleteRead(b"", self.length)
                return content
            content = b""
            while not content and not dechunker.ended:
                received = self.fp.read1(n)
                if not received:
                    raise IncompleteRead(b"")
                try:
                    content = dechunker.feed(received)
                except BrokenChunks:
                    raise IncompleteRead(b"") from None
            return content

    class Told:
        """A connection that tells the request at work which socket it goes over: to close it, and to time it."""

        sock: Any
        response_class = Body

        def connect(self) -> None:
            super().connect()  # type: ignore[misc]
            self._tell()

        def request(self, *arguments: Any, **options: Any) -> None:
            if self.sock is not None:
                self._tell()
            super().request(*arguments, **options)  # type: ignore[misc]

        def _tell(self) -> None:
            response: _Urllib3Response | None = getattr(_at_work, "response", None)
            if response is not None:
                response.connected(self.sock)

    def pool(kind: type, connection: type) -> type:
        return type("Pool", (kind,), {"ConnectionCls": type("Connection", (Told, connection), {})})

    return {"http": pool(HTTPConnectionPool, HTTPConnection), "https": pool(HTTPSConnectionPool, HTTPSConnection)}


class _Urllib3Response:
    """One request through urllib3, whose own retries and redirects are off: the flow decides those."""

    def __init__(self, transport: _Urllib3, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._deadline = None if timeout.total is None else time.monotonic() + timeout.total
        self._proxy: str | None = None
        self._socket: socket.socket | None = None
        self._response: urllib3.BaseHTTPResponse | None = None
        self.body: http.client.HTTPResponse | None = None
        """The same response one floor below: where there is nothing to decompress, urllib3's only makes it slower."""
        self._begun = False
        self._closed = False

    def head(self) -> Head:
        import urllib3

        request, timeout = self._request, self._timeout
        self._proxy = None if request.direct else proxy_for(request.url)
        manager = self._transport.manager(request.url, self._proxy)
        _at_work.response = self
        try:
            response = manager.request(
                request.method,
                request.url,
                body=request.body or None,
                headers=request.headers,
                timeout=urllib3.Timeout(connect=self._at_most(timeout.connect), read=self._at_most(timeout.first_byte)),
                preload_content=False,
                redirect=False,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            raise self._worded(problem) from None
        finally:
            _at_work.response = None
        self._response = response
        self._read: Callable[[int], bytes] = response.read1
        if self.body is not None and "content-encoding" not in response.headers:
            self._read = self.body.read1
        if self._closed:
            self.close()
        return Head(response.status, {name.lower(): value for name, value in response.headers.items()}, time.time())

    def read(self, patience: float | None = None) -> bytes:
        response = self._response
        if response is None:
            return b""
        if self._deadline is not None:
            self._set_timeout(self._at_most(self._timeout.idle if self._begun else self._timeout.first_byte))
        if patience is not None:
            self._set_timeout(patience)
        try:
            data = self._read(_READ_SIZE)
        except Exception as problem:  # noqa: BLE001 - `_worded` lets pass what it has no words for
            if patience is not None and _is_timeout(_root_of(problem)):
                return b""
            raise self._worded(problem) from None
        if not self._begun:
            self._begun = True
            self._set_timeout(self._at_most(self._timeout.idle))
        if not data and self.body is not None:
            self.body.close()
            response.release_conn()
        return data

    def close(self) -> None:
        self._closed = True
        response = self._response
        if response is not None and response.connection is None:
            return  # The body was read to its end, and the connection may be another request's by now.
        if self._socket is not None:
            # Before anything else, and past TLS: it wakes a thread that waits on it.
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        if response is not None:
            response.close()

    def connected(self, connection: socket.socket) -> None:
        """The connection that the request goes over; sending may take as long as waiting for the answer."""
        self._socket = connection
        connection.settimeout(self._at_most(self._timeout.first_byte))
        if self._closed:
            self.close()

    def _at_most(self, seconds: float | None) -> float | None:
        """These seconds, or what is left of the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise faults.out_of_time(faults.place_of(self._request.url), self._timeout.total)
        return left if seconds is None else min(seconds, left)

    def _set_timeout(self, seconds: float | None) -> None:
        if self._socket is not None and self._response is not None and self._response.connection is not None:
            with suppress(OSError):
                self._socket.settimeout(seconds)

    def _worded(self, problem: Exception) -> Exception:
        """What happened, in our words: urllib3's may hold the whole address. A mistake of ours stays what it is."""
        from http.client import BadStatusLine, HTTPException

        from urllib3 import exceptions as theirs

        place, cause = faults.place_of(self._request.url), _root_of(problem)
        if self._closed:
            # By another thread, and then the libraries trip over their own remains in many ways.
            return faults.broken_off(place, begun=self._begun)
        if not isinstance(problem, (theirs.HTTPError, HTTPException, OSError)):
            return problem
        if isinstance(problem, theirs.LocationValueError):
            return ConfigError(f"{place} does not read as an address. To do: correct base_url=.")
        if _is_timeout(cause):
            if self._deadline is not None and self._deadline <= time.monotonic():
                return faults.out_of_time(place, self._timeout.total)
            if self._socket is None:
                return faults.connect_timed_out(place, self._timeout)
            return faults.fell_silent(place, self._timeout, begun=self._begun)
        if isinstance(problem, theirs.ProxyError):
            return faults.not_connected(place, cause, proxy=self._proxy)
        if self._socket is None:
            return faults.not_connected(place, cause)
        if isinstance(cause, BadStatusLine) and not isinstance(cause, ConnectionError):
            return faults.not_http(place)
        if isinstance(problem, theirs.DecodeError):
            return faults.undecodable(place)
        return faults.broken_off(place, begun=self._begun)


def _is_timeout(cause: BaseException) -> bool:
    from urllib3.exceptions import TimeoutError as TheirTimeout

    return isinstance(cause, (TheirTimeout, TimeoutError))


def _root_of(problem: BaseException) -> BaseException:
    """The exception that urllib3 wrapped, in whichever of its ways."""
    seen = problem
    while True:
        inner = next((value for value in (*seen.args, seen.__cause__) if isinstance(value, BaseException)), None)
        if inner is None:
            return seen
        seen = inner


# --- without a client ---------------------------------------------------------------------------------------------

_shared = Client()


def shared_client() -> Client:
    """The client of everybody who was given none."""
    return _shared


def ask(model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply:
    """The reply to a prompt: `Client.ask` of one client that all such calls share."""
    return _shared.ask(model, prompt, **options)


def stream(model: str, prompt: PromptLike, **options: Unpack[Options]) -> Stream:
    """The events of a reply: `Client.stream` of one client that all such calls share."""
    return _shared.stream(model, prompt, **options)
