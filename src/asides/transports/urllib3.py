"""The transport of `Client`: urllib3. It is loaded with the first request, not with the import.

`Dechunker` decodes chunked bodies: `http.client` would return one chunk at a time. Not here: when to try again and what
a response means (flows), and which proxy and certificates (proxy_and_tls).
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.options import Timeout
from asides.transports import transport_errors
from asides.transports.protocols import Response
from asides.transports.proxy_and_tls import build_tls_context, find_proxy, split_proxy_login
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    import http.client

    import urllib3

_READ_SIZE = 64 * 1024
_POOL_SIZE = 64
# The longest line between two chunks.
_LONGEST_LINE = 16 * 1024

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

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        """Take a request; `head` of the response sends it."""
        return _Urllib3Response(self, request, timeout)

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            managers, self._managers = list(self._managers.values()), {}
        for manager in managers:
            # `clear` alone leaves closing to the garbage collector.
            for key in manager.pools.keys():  # noqa: SIM118 - the container is not iterable
                if (pool := manager.pools.get(key)) is not None:
                    pool.close()
            manager.clear()

    def get_manager(self, url: str, proxy: str | None) -> urllib3.PoolManager:
        """The pools for an address, made when first used."""
        key = (url.lower().startswith("https:"), proxy)
        with self._lock:
            manager = self._managers.get(key)
            if manager is None:
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
    """Build urllib3's pools with connections that report their socket, and bodies that decode all chunks of a read."""
    from http.client import HTTPResponse, IncompleteRead

    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Body(HTTPResponse):
        """A body whose `read1` returns everything that one read brings, and not just one chunk."""

        _dechunker: Dechunker | None = None

        def begin(self) -> None:
            super().begin()
            self._dechunker = Dechunker() if self.chunked else None
            if (response := getattr(_current, "response", None)) is not None:
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

    class ReportsSocket:
        """A connection that reports its socket to the current response, which closes it and sets its timeout."""

        sock: Any
        response_class = Body

        def connect(self) -> None:
            super().connect()  # type: ignore[misc]
            self._report()

        def request(self, *arguments: Any, **options: Any) -> None:
            if self.sock is not None:
                self._report()
            super().request(*arguments, **options)  # type: ignore[misc]

        def _report(self) -> None:
            response: _Urllib3Response | None = getattr(_current, "response", None)
            if response is not None:
                response.use_socket(self.sock)

    def build_pool(kind: type, connection: type) -> type:
        return type("Pool", (kind,), {"ConnectionCls": type("Connection", (ReportsSocket, connection), {})})

    return {
        "http": build_pool(HTTPConnectionPool, HTTPConnection),
        "https": build_pool(HTTPSConnectionPool, HTTPSConnection),
    }


class _Urllib3Response:
    """One request through urllib3. urllib3's own retries and redirects are off, since the flow decides those."""

    def __init__(self, transport: Urllib3Transport, request: HttpRequest, timeout: Timeout) -> None:
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self._deadline = None if timeout.total is None else time.monotonic() + timeout.total
        self._proxy: str | None = None
        self._socket: socket.socket | None = None
        self._response: urllib3.BaseHTTPResponse | None = None
        self.body: http.client.HTTPResponse | None = None
        """The `http.client` response inside. Reading it directly is faster when nothing has to be decompressed."""
        self._has_data = False
        self._closed = False

    def head(self) -> Head:
        import urllib3

        request, timeout = self._request, self._timeout
        self._proxy = None if request.direct else find_proxy(request.url)
        manager = self._transport.get_manager(request.url, self._proxy)
        _current.response = self
        try:
            response = manager.request(
                request.method,
                request.url,
                body=request.body or None,
                headers=request.headers,
                timeout=urllib3.Timeout(connect=self._limit(timeout.connect), read=self._limit(timeout.first_byte)),
                preload_content=False,
                redirect=False,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            raise self._translate(problem) from None
        finally:
            _current.response = None
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
            self._set_timeout(self._limit(self._timeout.idle if self._has_data else self._timeout.first_byte))
        if patience is not None:
            self._set_timeout(patience)
        try:
            data = self._read(_READ_SIZE)
        except Exception as problem:  # noqa: BLE001 - `_translate` returns unknown errors unchanged
            if patience is not None and _is_timeout(_find_root_cause(problem)):
                return b""
            raise self._translate(problem) from None
        if not self._has_data:
            self._has_data = True
            self._set_timeout(self._limit(self._timeout.idle))
        if not data and self.body is not None:
            self.body.close()
            response.release_conn()
        return data

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
        """Take the socket of the request. Sending may take as long as waiting for the first byte."""
        self._socket = connection
        connection.settimeout(self._limit(self._timeout.first_byte))
        if self._closed:
            self.close()

    def _limit(self, seconds: float | None) -> float | None:
        """These seconds, or the time left for the whole call if that is less."""
        if self._deadline is None:
            return seconds
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise transport_errors.total_timeout(transport_errors.get_host(self._request.url), self._timeout.total)
        return left if seconds is None else min(seconds, left)

    def _set_timeout(self, seconds: float | None) -> None:
        if self._socket is not None and self._response is not None and self._response.connection is not None:
            with suppress(OSError):
                self._socket.settimeout(seconds)

    def _translate(self, problem: Exception) -> Exception:
        """Our error for an error of urllib3, whose text may hold the whole address. Other errors return unchanged."""
        from http.client import BadStatusLine, HTTPException

        from urllib3 import exceptions

        host, cause = transport_errors.get_host(self._request.url), _find_root_cause(problem)
        if self._closed:
            # Another thread closed it. The libraries then raise many different errors.
            return transport_errors.connection_lost(host, has_data=self._has_data)
        if not isinstance(problem, (exceptions.HTTPError, HTTPException, OSError)):
            return problem
        if isinstance(problem, exceptions.LocationValueError):
            return ConfigError(f"{host} is not a valid address. To do: correct base_url=.")
        if _is_timeout(cause):
            if self._deadline is not None and self._deadline <= time.monotonic():
                return transport_errors.total_timeout(host, self._timeout.total)
            if self._socket is None:
                return transport_errors.connect_timeout(host, self._timeout)
            return transport_errors.idle_timeout(host, self._timeout, has_data=self._has_data)
        if isinstance(problem, exceptions.ProxyError):
            return transport_errors.no_connection(host, cause, proxy=self._proxy)
        if self._socket is None:
            return transport_errors.no_connection(host, cause)
        if isinstance(cause, BadStatusLine) and not isinstance(cause, ConnectionError):
            return transport_errors.not_http(host)
        if isinstance(problem, exceptions.DecodeError):
            return transport_errors.bad_encoding(host)
        return transport_errors.connection_lost(host, has_data=self._has_data)


def _is_timeout(cause: BaseException) -> bool:
    from urllib3.exceptions import TimeoutError as Urllib3Timeout

    return isinstance(cause, (Urllib3Timeout, TimeoutError))


def _find_root_cause(problem: BaseException) -> BaseException:
    """The innermost exception that urllib3 wrapped, as an argument or as a cause."""
    cause = problem
    while True:
        inner = next((value for value in (*cause.args, cause.__cause__) if isinstance(value, BaseException)), None)
        if inner is None:
            return cause
        cause = inner


# --- chunked bodies -------------------------------------------------------------------------------------------------


class BrokenChunks(ValueError):
    """The bytes do not follow the chunked encoding."""


class Dechunker:
    """Decodes a chunked body, cut anywhere. `ended` is set after the last chunk and the trailer."""

    __slots__ = ("_held", "_in_trailer", "_left", "ended")

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        """The bytes that are left of the current chunk, including the line end after it."""
        self._in_trailer = False
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return their content. Bytes after the end of the body are dropped."""
        if self._held:
            data, self._held = self._held + data, b""
        elif not self._left and data.endswith(b"\r\n") and not self._in_trailer:
            # A fast path: exactly one chunk, as a slow model sends it.
            start = data.find(b"\r\n") + 2
            size = _read_size(data[: start - 2])
            if size and len(data) == start + size + 2:
                return data[start:-2]
        pieces: list[bytes] = []
        place, end, left = 0, len(data), self._left
        while place < end and not self.ended:
            if left:
                if end - place < left:
                    # The last one or two of these bytes may belong to the line end.
                    pieces.append(data[place : min(end, place + max(left - 2, 0))])
                    left -= end - place
                    break
                pieces.append(data[place : place + max(left - 2, 0)])
                place += left
                left = 0
            else:
                line_end = data.find(b"\r\n", place)
                if line_end < 0:
                    if end - place > _LONGEST_LINE:
                        raise BrokenChunks("a line between two chunks has no end.")
                    self._held = data[place:]
                    break
                line = data[place:line_end]
                place = line_end + 2
                size = 0 if self._in_trailer else _read_size(line)
                if 0 < size <= end - place - 2:
                    # A fast path: the whole chunk is here.
                    pieces.append(data[place : place + size])
                    place += size + 2
                    continue
                left = self._read_line(line)
        self._left = left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_line(self, line: bytes) -> int:
        """Return the size of the chunk that a line announces, including its line end; 0 at the end of the body."""
        if self._in_trailer:
            self.ended = not line
            return 0
        size = _read_size(line)
        self._in_trailer = size == 0
        return size + 2 if size else 0


def _read_size(line: bytes) -> int:
    try:
        size = int(line, 16) if b";" not in line else int(line.partition(b";")[0], 16)
    except ValueError:
        raise BrokenChunks("a chunk does not say how long it is.") from None
    if size < 0:
        raise BrokenChunks("a chunk has a negative length.")
    return size
