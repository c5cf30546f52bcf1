"""One HTTP/1.1 request and its response without I/O: connecting, proxies, TLS, sending, timeouts and errors.

`HttpExchange.open` is a generator of steps. Each transport carries them out and then reads the body itself.
"""

from __future__ import annotations

import errno
import re
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from asides.dialects.dialect import HttpRequest
from asides.flows.retry import NO_HEAD
from asides.flows.steps import Head
from asides.options import Timeout
from asides.providers.find import DEFAULT_PORTS
from asides.transports import transport_errors
from asides.transports.connection import READ_SIZE, Connection, ConnectionPool, Route, TlsLayer
from asides.transports.http_response import BadEncoding, BrokenBody, BrokenHead, HttpResponseReader
from asides.transports.proxy_and_tls import find_proxy, split_proxy_login
from asides.values.errors import ConfigError

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BAD_VALUE = re.compile(r"[\r\n\0\ud800-\udfff]")
_HOST = re.compile(r"(?!\.)[!$%&'()*+,\-.:;=_~0-9A-Za-z]+")
_FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})
_NOT_IN_TARGET = re.compile(rb"[^\x21-\x7e]")


class Connect(NamedTuple):
    """Open a TCP connection; the answer is the socket."""

    host: str
    port: int


class Send(NamedTuple):
    """Send these bytes."""

    data: bytes


class Receive(NamedTuple):
    """Wait for the next bytes; the answer is b"" at the end of the connection."""


class Upload(NamedTuple):
    """Send these pieces and pass received bytes to `hear`, b"" for the end. Stop when it returns True.

    A server may answer before it has read everything, and never read the rest. `progress` is called for each piece.
    """

    pieces: Iterator[bytes]
    hear: Callable[[bytes], bool]
    progress: Callable[[], None]


Step: TypeAlias = Connect | Send | Receive | Upload


def advance(steps: Generator[Step, Any, None], answer: Any) -> Step | None:
    """The next step, or None after the last one."""
    try:
        return steps.send(answer)
    except StopIteration:
        return None


class ProxyRefused(OSError):
    """The proxy does not open a tunnel. The argument says why."""


class HttpExchange:
    """The state of one request. Each wait has an absolute end, so that a dripping server cannot extend it."""

    def __init__(
        self, pool: ConnectionPool, get_tls_context: Callable[[], Any], request: HttpRequest, timeout: Timeout
    ) -> None:
        self.pool = pool
        self._get_tls_context = get_tls_context
        self._request = request
        self.timeout = timeout
        self.deadline = None if timeout.total is None else time.monotonic() + timeout.total
        self.wait_end: float | None = None
        self.connection: Connection | None = None
        self.reader = HttpResponseReader()
        self.is_connected = False
        """Whether the request can be sent: proxy and TLS included."""
        self.has_data = False
        self.is_cut = False
        """Whether the connection cannot be used again, whatever the response says."""
        self.closed = False
        self.timed_out = False
        self._proxy: str | None = None
        """The proxy, until it has connected."""

    @property
    def head(self) -> Head:
        """The head of the response."""
        return self.reader.head or NO_HEAD

    # --- opening ------------------------------------------------------------------------------------------------------

    def open(self) -> Generator[Step, Any, None]:
        """Connect, send the request and receive the head of the response."""
        request = self._request
        url = _split(request.url)
        proxy = None if request.direct else find_proxy(request.url)
        route = Route(url.secure, url.host, url.port, proxy)
        tunnels = proxy is not None and route.secure
        message = write_request(request, url, None if tunnels else proxy)
        self.start_wait(self.timeout.connect)
        self.connection = self.pool.take(route)
        connection = self.connection or (yield from self._connect(route))
        self._proxy, self.is_connected = None, True
        self.start_wait(self.timeout.first_byte)
        yield from self._send(connection, message, request.body)
        self.start_wait(self.timeout.first_byte)
        while self.reader.head is None:
            received = connection.unwrap((yield Receive()))
            if received == b"":
                raise ConnectionResetError(errno.ECONNRESET, "the connection was closed before the response")
            self.reader.feed(received or b"")

    def _connect(self, route: Route) -> Generator[Step, Any, Connection]:
        self._proxy = route.proxy
        proxy = None if route.proxy is None else _split(route.proxy)
        is_proxy_secure = proxy is not None and proxy.secure
        if route.secure or is_proxy_secure:
            self._get_tls_context()  # Reports unreadable certificates before anything is sent.
        first = (route.host, route.port) if proxy is None else (proxy.host, proxy.port)
        connection = self.connection = Connection((yield Connect(*first)), route)
        if is_proxy_secure:
            yield from self._start_tls(connection, TlsLayer(self._get_tls_context(), first[0]))
        if route.secure:
            if proxy is not None:
                yield from self._open_tunnel(connection, route)
                self._proxy = None
            yield from self._start_tls(connection, TlsLayer(self._get_tls_context(), route.host))
        return connection

    def _start_tls(self, connection: Connection, layer: TlsLayer) -> Generator[Step, Any, None]:
        received = None
        while True:
            is_done = layer.shake_hands(received)
            if outgoing := layer.take_outgoing():
                yield Send(connection.wrap(outgoing))
            if is_done:
                break
            received = connection.unwrap((yield Receive()))
            if received == b"":
                raise ConnectionResetError(errno.ECONNRESET, "the connection was closed during the TLS handshake")
        connection.add_tls(layer)

    def _open_tunnel(self, connection: Connection, route: Route) -> Generator[Step, Any, None]:
        address = f"{_bracket(route.host)}:{route.port}"
        headers = {"Host": address, **_write_proxy_login(route.proxy)}
        yield Send(connection.wrap(_write_head(f"CONNECT {address} HTTP/1.1", headers)))
        reader = HttpResponseReader()
        try:
            while reader.head is None:
                received = connection.unwrap((yield Receive()))
                if received == b"":
                    raise ConnectionResetError(errno.ECONNRESET, "the proxy closed the connection")
                reader.feed(received or b"")
        except BrokenHead as problem:
            raise ProxyRefused(str(problem)) from None
        if not 200 <= reader.head.status < 300:
            raise ProxyRefused(f"it answered {reader.head.status}")

    def _send(self, connection: Connection, message: bytes, body: bytes) -> Generator[Step, Any, None]:
        """Send the request. A small one is sent in one piece."""
        if len(message) + len(body) <= READ_SIZE:
            yield Send(connection.wrap(message + body))
            return
        yield Send(connection.wrap(message))
        rest = memoryview(body)
        pieces = (connection.wrap(bytes(rest[place : place + READ_SIZE])) for place in range(0, len(rest), READ_SIZE))
        yield Upload(pieces, self._hear, lambda: self.start_wait(self.timeout.first_byte))

    def _hear(self, data: bytes) -> bool:
        """Take bytes that arrive while the request is being sent; True if its rest need not be sent."""
        received = None if self.connection is None else self.connection.unwrap(data)
        if received:
            self.reader.feed(received)
        return received == b"" or self.reader.head is not None

    # --- ending -------------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Give the connection back after the body was read to its end."""
        connection, body = self.connection, self.reader.body
        if connection is None or body is None:
            return
        self.connection = None
        if body.reusable and not self.is_cut and not self.closed and not connection.ended:
            self.pool.give(connection)
        else:
            connection.close()

    # --- waits --------------------------------------------------------------------------------------------------------

    def start_wait(self, seconds: float | None) -> None:
        """Let everything until the next start take these seconds, or the time left for the whole call."""
        allowed = self.limit(seconds)
        self.wait_end = None if allowed is None else time.monotonic() + allowed

    def limit(self, seconds: float | None) -> float | None:
        """The lower of these seconds and the time left for the whole call. Raises TimeoutError if none is left."""
        if self.deadline is None:
            return seconds
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left if seconds is None else min(seconds, left)

    def compute_time_left(self) -> float | None:
        """The seconds until the current wait ends. Raises TimeoutError if it has ended."""
        left = None if self.wait_end is None else self.wait_end - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        return left

    # --- errors -------------------------------------------------------------------------------------------------------

    def translate(self, problem: Exception) -> Exception:
        """The error for the caller. Errors that are not of the connection are returned unchanged."""
        host = transport_errors.get_host(self._request.url)
        if self.closed and not self.timed_out:
            return transport_errors.connection_lost(host, has_data=self.has_data)
        if self.timed_out or isinstance(problem, TimeoutError):
            is_over = self.deadline is not None and self.deadline <= time.monotonic()
            return transport_errors.timed_out(
                host, self.timeout, is_over=is_over, is_connected=self.is_connected, has_data=self.has_data
            )
        if isinstance(problem, (BrokenHead, BadEncoding)):
            return transport_errors.unreadable(host, problem)
        if isinstance(problem, ProxyRefused) and self._proxy is not None:
            return transport_errors.proxy_error(self._proxy, host, str(problem))
        if isinstance(problem, OSError) and not self.is_connected:
            return transport_errors.no_connection(host, problem, proxy=self._proxy)
        if isinstance(problem, UnicodeError):
            return ConfigError(f"{host} is not a valid address. Correct base_url=.")
        if isinstance(problem, (OSError, BrokenBody)):
            return transport_errors.connection_lost(host, has_data=self.has_data)
        return problem


# --- the request ------------------------------------------------------------------------------------------------------


def write_request(request: HttpRequest, url: Address, proxy: str | None) -> bytes:
    """The head of a request. `proxy`: one that forwards it, which needs the whole address and its login."""
    target = url.target
    own = {name.lower() for name in request.headers}
    headers = {} if "host" in own else {"Host": url.shown_host}
    if proxy is not None:
        target = f"{'https' if url.secure else 'http'}://{url.shown_host}{target}"
        headers |= _write_proxy_login(proxy)
    if url.login is not None and "authorization" not in own:
        headers["Authorization"] = _write_basic(url.login)
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(request.body))
    # Only the transport says where the body ends: another length would make a second request of its rest.
    headers |= {name: value for name, value in request.headers.items() if name.lower() not in _FRAMING_HEADERS}
    return _write_head(f"{request.method} {target} HTTP/1.1", headers)


def _write_head(line: str, headers: dict[str, str]) -> bytes:
    lines = [line]
    for name, value in headers.items():
        if _NAME.fullmatch(name) is None or _BAD_VALUE.search(value) is not None:
            shown = name if _NAME.fullmatch(name) else "a header"
            raise ConfigError(f"{shown} holds a character that HTTP does not allow. Correct headers= or the key.")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode()


def _escape(target: str) -> str:
    """Spaces, control characters and characters beyond ASCII as percent escapes."""
    return _NOT_IN_TARGET.sub(lambda found: b"%%%02X" % found[0][0], target.encode()).decode("ascii")


def _write_proxy_login(proxy: str | None) -> dict[str, str]:
    login = None if proxy is None else split_proxy_login(proxy)[1]
    return {} if login is None else {"Proxy-Authorization": _write_basic(login)}


def _write_basic(login: str) -> str:
    return f"Basic {b64encode(login.encode()).decode('ascii')}"


# --- the address ------------------------------------------------------------------------------------------------------


class Address(NamedTuple):
    """The parts of an address that a request needs."""

    secure: bool
    host: str
    port: int
    shown_host: str
    """The host as the header names it."""
    target: str
    """The path and the query, escaped."""
    login: str | None
    """name:password, where the address has them."""


# Requests to one model have the same address.
@lru_cache(maxsize=64)
def _split(url: str) -> Address:
    """The parts of an address. Raises ConfigError if it is not a valid one."""
    try:
        parts = urlsplit(url)
        if parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0:
            return _read_parts(parts)
    except ValueError:
        pass
    raise ConfigError(f"{transport_errors.get_host(url)} is not a valid address. Correct base_url=.")


def _read_parts(url: SplitResult) -> Address:
    host, usual = _get_ascii_host(url), DEFAULT_PORTS[url.scheme]
    port = url.port or usual
    shown = _bracket(host) if port == usual else f"{_bracket(host)}:{port}"
    target = _escape(f"{url.path or '/'}?{url.query}" if url.query else url.path or "/")
    login = None if url.username is None else f"{unquote(url.username)}:{unquote(url.password or '')}"
    return Address(url.scheme == "https", host, port, shown, target, login)


def _get_ascii_host(url: SplitResult) -> str:
    """The host as it is sent. Raises ValueError if it has a character that could change the request."""
    host = url.hostname or ""
    host = host if host.isascii() else host.encode("idna").decode("ascii")
    if _HOST.fullmatch(host) is None:
        raise ValueError(host)
    return host


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
