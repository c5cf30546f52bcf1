"""The transport of `Client`: urllib3. It is loaded with the first request, not with the import.

urllib3 only connects and keeps connections, since `http.client` keeps no timeout while bytes drip. Not here: what the
bytes of a response say (http_response) and mean (flows), and which proxy and certificates (proxy_and_tls).
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from asides.dialects.dialect import HttpRequest
from asides.flows.retry import NO_HEAD
from asides.flows.steps import Head
from asides.options import Timeout
from asides.providers.credentials import is_secret_query
from asides.transports import transport_errors
from asides.transports.http_response import BadEncoding, Body, BrokenBody, BrokenHead, HttpResponseReader
from asides.transports.protocols import MOST_PATIENCE, Response
from asides.transports.proxy_and_tls import build_tls_context, find_proxy, split_proxy_login
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    import http.client

    import urllib3

_READ_SIZE = 64 * 1024
_POOL_SIZE = 64
_current = threading.local()
"""The response that each thread is opening. The connection that urllib3 picks reports its socket to it."""
logging.getLogger("urllib3.connectionpool").addFilter(
    transport_errors.PathFilter(lambda: getattr(_current, "response", None) is not None)
)


class Urllib3Transport:
    """The default transport of a `Client`. It keeps one pool of connections for each host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[tuple[bool, str | None], urllib3.PoolManager] = {}
        self._pools: dict[str, tuple[urllib3.HTTPConnectionPool, str]] = {}
        """By address, without proxies: its pool, and the address as the pool takes it."""

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        """Take a request; `head` of the response sends it."""
        return _Urllib3Response(self, request, timeout)

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            managers, self._managers = list(self._managers.values()), {}
            pools, self._pools = list(self._pools.values()), {}
        for known, _ in pools:
            known.close()
        for manager in managers:
            # `clear` alone leaves closing to the garbage collector.
            for key in manager.pools.keys():  # noqa: SIM118 - the container is not iterable
                if (pool := manager.pools.get(key)) is not None:
                    pool.close()
            manager.clear()

    def find_sender(self, url: str, proxy: str | None) -> tuple[Any, str]:
        """Find what sends a request to this address, a pool or a manager; and the address as that takes it."""
        if proxy is not None:
            return self.get_manager(url, proxy), url
        known = self._pools.get(url)
        if known is None or known[0].pool is None:
            from urllib3.util import parse_url

            # To look for the pool takes longer than most of the other things that are done for a request.
            parsed = parse_url(url)
            pool = self.get_manager(url, None).connection_from_host(parsed.host, parsed.port, parsed.scheme)
            known = pool, parsed.request_uri
            # The transport outlives a call, so it keeps no address with a secret.
            if parsed.auth is None and not any(is_secret_query(name) for name, _ in parse_qsl(parsed.query or "")):
                if len(self._pools) >= _POOL_SIZE:
                    self._pools.clear()
                self._pools[url] = known
        return known

    def get_manager(self, url: str, proxy: str | None) -> urllib3.PoolManager:
        """The pools for an address, made when first used."""
        key = (url.lower().startswith("https:"), proxy)
        with self._lock:
            if (manager := self._managers.get(key)) is None:
                manager = self._managers[key] = _build_manager(secure=key[0], proxy=proxy)
            return manager


def _build_manager(*, secure: bool, proxy: str | None) -> urllib3.PoolManager:
    import urllib3

    options: dict[str, Any] = {"maxsize": _POOL_SIZE, "num_pools": _POOL_SIZE, "retries": False}
    if secure or (proxy or "").startswith("https:"):
        options["ssl_context"] = build_tls_context()
    if proxy is None:
        manager = urllib3.PoolManager(**options)
    else:
        address, login = split_proxy_login(proxy)
        headers = None if login is None else urllib3.make_headers(proxy_basic_auth=login)
        manager = urllib3.ProxyManager(address, proxy_headers=headers, **options)
    manager.pool_classes_by_scheme = _build_pool_classes()
    return manager


@cache
def _build_pool_classes() -> dict[str, Any]:
    """Build urllib3's pools with connections that leave their socket to the current response."""
    from http.client import HTTPMessage, HTTPResponse

    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Answer(HTTPResponse):
        """What `http.client` sees of a response: whether the connection can be used again."""

        def begin(self) -> None:
            response: _Urllib3Response = _current.response
            reusable = response.read_head()
            response.answer = self
            self.headers = self.msg = HTTPMessage()
            self.version, self.status, self.reason = 11, 200, ""
            self.chunked, self.length, self.will_close = False, None, not reusable

    class LendsSocket:
        """A connection whose socket the current response reads, writes and closes within its timeouts."""

        sock: Any
        timeout: float | None
        _tunnel_host: str
        _tunnel_port: int
        _tunnel_headers: dict[str, str]
        response_class = Answer

        def connect(self) -> None:
            super().connect()  # type: ignore[misc]
            _current.response.use_socket(self.sock)

        def request(self, *arguments: Any, **options: Any) -> None:
            if self.sock is not None:
                _current.response.use_socket(self.sock)
            super().request(*arguments, **options)  # type: ignore[misc]
            _current.response.send_rest()

        def send(self, data: bytes) -> None:
            if self.sock is None:
                self.connect()
            _current.response.send(data)

        def _new_conn(self) -> socket.socket:
            self.timeout = _compute_time_left(_current.response.connect_end)
            connection: socket.socket = super()._new_conn()  # type: ignore[misc]
            try:
                connection.settimeout(_compute_time_left(_current.response.connect_end))
            except TimeoutError:
                connection.close()  # Nobody else knows it yet.
                raise
            return connection

        def _tunnel(self) -> None:
            """Ask the proxy for a tunnel. The method of `http.client` keeps no timeout while bytes drip."""
            response: _Urllib3Response = _current.response
            address = f"{self._tunnel_host}:{self._tunnel_port}"
            headers = {"Host": address, **self._tunnel_headers}
            lines = [f"CONNECT {address} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
            self.sock.sendall("\r\n".join(lines).encode("latin-1"))
            reader = HttpResponseReader()
            try:
                while reader.head is None:
                    self.sock.settimeout(_compute_time_left(response.connect_end))
                    reader.feed(_receive(self.sock))
            except BrokenHead as problem:
                raise ProxyRefused(str(problem)) from None
            if not 200 <= reader.head.status < 300:
                raise ProxyRefused(f"it answered {reader.head.status}")
            self.sock.settimeout(_compute_time_left(response.connect_end))

    def build_pool(kind: type, connection: type) -> type:
        return type("Pool", (kind,), {"ConnectionCls": type("Connection", (LendsSocket, connection), {})})

    return {
        "http": build_pool(HTTPConnectionPool, HTTPConnection),
        "https": build_pool(HTTPSConnectionPool, HTTPSConnection),
    }


class ProxyRefused(OSError):
    """The proxy does not open a tunnel. The argument says why."""


def _receive(connection: socket.socket | None) -> bytes:
    """The next bytes of a head. Raises a ConnectionError at the end of the connection."""
    if connection is not None and (received := connection.recv(_READ_SIZE)):
        return received
    raise ConnectionResetError("the connection was closed before the response")


class _Urllib3Response:
    """One request through urllib3. Its own retries and redirects are off, since the flow decides those.

    Each wait has an absolute end, so that a server that sends one byte now and then cannot extend it.
    """

    def __init__(self, transport: Urllib3Transport, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._deadline = None if timeout.total is None else time.monotonic() + timeout.total
        self.connect_end: float | None = None
        self._wait_end: float | None = None
        self._socket_timeout: float | None = -1.0  # As it was set last, since setting it is a system call.
        self._proxy: str | None = None
        self._socket: socket.socket | Any = None  # Not always a socket: TLS inside of TLS is a class of urllib3.
        self._response: urllib3.BaseHTTPResponse | None = None
        self.answer: http.client.HTTPResponse | None = None
        self._reader: HttpResponseReader | None = None
        self._body: Body | None = None
        self._unsent = b""
        self._is_cut = False  # The response arrived before the whole request was sent.
        self._has_data = False
        self._rest_end = 0.0
        self._closed = False

    def head(self) -> Head:
        import urllib3

        request = self._request
        self._proxy = None if request.direct else find_proxy(request.url)
        connect = self._limit(self._timeout.connect)
        self.connect_end = _add_to_now(connect)
        _current.response = self
        try:
            sender, address = self._transport.find_sender(request.url, self._proxy)
            self._response = sender.urlopen(
                request.method,
                address,
                body=request.body or None,
                headers=request.headers,
                timeout=urllib3.Timeout(connect=connect, read=None),
                preload_content=False,
                redirect=False,
                retries=False,
                assert_same_host=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, BrokenHead) as problem:
            raise self._translate(problem) from None
        finally:
            _current.response = None
        if self._closed:
            self.close()
        return NO_HEAD if self._reader is None or self._reader.head is None else self._reader.head

    def read(self, patience: float | None = None) -> bytes:
        if self._response is None:
            return b""
        if patience is not None:
            self._rest_end = self._rest_end or time.monotonic() + MOST_PATIENCE * patience
            patience = min(patience, self._rest_end - time.monotonic())
            if patience <= 0:
                return b""
        try:
            content = self._read_content(patience)
        except Exception as problem:  # noqa: BLE001 - `_translate` returns unknown errors unchanged
            if patience is not None and isinstance(problem, TimeoutError):
                return b""
            raise self._translate(problem) from None
        self._has_data = True
        if not content:
            self._release()
        return content

    def _read_content(self, patience: float | None) -> bytes:
        # Few calls before and after a wait: a processor that waited for the network has cold caches.
        reader, connection = self._reader, self._socket
        if reader is None or connection is None or reader.is_taken:
            return b""
        if not reader.needs_bytes and (content := reader.take()) is not None:
            return content
        allowed = self._timeout.idle if self._has_data else self._timeout.first_byte
        if patience is not None:
            allowed = patience if allowed is None else min(allowed, patience)
        if self._deadline is not None:
            allowed = self._limit(allowed)
        self._wait_end = None if allowed is None else time.monotonic() + allowed
        if allowed != self._socket_timeout:
            self._set_timeout(allowed)
        while (content := reader.read(connection.recv(_READ_SIZE))) is None:
            self._set_timeout(_compute_time_left(self._wait_end))
        return content

    def _release(self) -> None:
        """Give the connection back after the body was read to its end."""
        if self._response is None or self.answer is None or self._body is None:
            return
        if self._response.connection is not None and (self._is_cut or not self._body.reusable):
            self._response.connection.close()
        self.answer.close()
        self._response.release_conn()

    def close(self) -> None:
        self._closed = True
        response = self._response
        if response is not None and response.connection is None:
            return  # The body was read to its end, so the connection may already serve another request.
        if self._socket is not None:
            # First, and below TLS: this wakes a thread that waits on the socket.
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        if response is not None:
            response.close()

    def use_socket(self, connection: socket.socket) -> None:
        """Take the socket of the request."""
        self._socket = connection
        self._socket_timeout = -1.0
        if self._closed:
            self.close()

    def send(self, data: bytes) -> None:
        """Send a part of the request. A head waits for its body, since a small request is sent in one piece."""
        if len(self._unsent) + len(data) > _READ_SIZE:
            self.send_rest()
            self._send_now(data)
        else:
            self._unsent += data

    def send_rest(self) -> None:
        """Send what waits."""
        if self._unsent:
            data, self._unsent = self._unsent, b""
            self._send_now(data)

    def _send_now(self, data: bytes) -> None:
        """Send each piece as fast as the first byte must come. A response ends it early."""
        if self._socket is None or self._is_cut:
            return
        self._start_wait(self._timeout.first_byte)
        if len(data) > _READ_SIZE and isinstance(self._socket, socket.socket):
            self._send_and_listen(self._socket, memoryview(data))
        else:
            self._socket.sendall(data)

    def _send_and_listen(self, connection: socket.socket, data: memoryview) -> None:
        """Send a large body. A server may answer before it has read everything, and never read the rest."""
        import selectors
        import ssl

        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        blocked = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
        with selectors.DefaultSelector() as selector:
            selector.register(connection, both)
            connection.settimeout(0)
            while data and not self._is_cut:
                sent, awaited = 0, both
                try:
                    sent = connection.send(data[:_READ_SIZE])
                except blocked as problem:
                    awaited = selectors.EVENT_READ if isinstance(problem, ssl.SSLWantReadError) else both
                if sent:
                    data = data[sent:]
                    self._wait_end = _add_to_now(self._limit(self._timeout.first_byte))
                else:
                    selector.modify(connection, awaited)
                    selector.select(_compute_time_left(self._wait_end))
                with suppress(*blocked):
                    if received := connection.recv(_READ_SIZE):
                        self._feed(received)
                    # Once everything is sent, an answer cuts nothing off.
                    self._is_cut = not received or (self._body is not None and bool(data))

    def read_head(self) -> bool:
        """Read the head of the response, unless it is there already. Returns whether the connection is reusable."""
        self._socket_timeout = -1.0
        self._start_wait(self._timeout.first_byte)
        while self._body is None:
            self._set_timeout(_compute_time_left(self._wait_end))
            self._feed(_receive(self._socket))
        return self._body.reusable

    def _feed(self, received: bytes) -> None:
        self._reader = self._reader or HttpResponseReader()
        self._reader.feed(received)
        self._body = self._reader.body

    def _start_wait(self, seconds: float | None) -> None:
        """Let everything until the next start take these seconds, or the time left for the whole call."""
        allowed = self._limit(seconds)
        self._wait_end = _add_to_now(allowed)
        self._set_timeout(allowed)

    def _set_timeout(self, seconds: float | None) -> None:
        if seconds != self._socket_timeout and self._socket is not None:
            self._socket_timeout = seconds
            with suppress(OSError):
                self._socket.settimeout(seconds)

    def _limit(self, seconds: float | None) -> float | None:
        """These seconds, or the time left for the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise transport_errors.total_timeout(transport_errors.get_host(self._request.url), self._timeout.total)
        return left if seconds is None else min(seconds, left)

    def _translate(self, problem: Exception) -> Exception:
        """Our error for an error of urllib3, whose text may hold the whole address. Other errors return unchanged."""
        from http.client import HTTPException

        from urllib3 import exceptions

        host, cause = transport_errors.get_host(self._request.url), transport_errors.find_root_cause(problem)
        if self._closed:
            # Another thread closed it. The libraries then raise many different errors.
            return transport_errors.connection_lost(host, has_data=self._has_data)
        if isinstance(problem, (BrokenHead, BadEncoding)):
            return transport_errors.unreadable(host, problem)
        if not isinstance(problem, (exceptions.HTTPError, HTTPException, OSError, BrokenBody)):
            return problem
        if isinstance(problem, exceptions.LocationValueError):
            return ConfigError(f"{host} is not a valid address. To do: correct base_url=.")
        if isinstance(cause, (exceptions.TimeoutError, TimeoutError)):
            is_over = self._deadline is not None and self._deadline <= time.monotonic()
            return transport_errors.timed_out(
                host, self._timeout, is_over=is_over, is_connected=self._socket is not None, has_data=self._has_data
            )
        if isinstance(cause, ProxyRefused) and self._proxy is not None:
            return transport_errors.proxy_error(self._proxy, host, str(cause))
        if self._socket is None or isinstance(problem, exceptions.ProxyError):
            proxy = self._proxy if isinstance(problem, exceptions.ProxyError) else None
            return transport_errors.no_connection(host, cause, proxy=proxy)
        return transport_errors.connection_lost(host, has_data=self._has_data)


def _add_to_now(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _compute_time_left(end: float | None) -> float | None:
    """The seconds until this moment. Raises a TimeoutError if it has passed."""
    left = None if end is None else end - time.monotonic()
    if left is not None and left <= 0:
        raise TimeoutError
    return left
