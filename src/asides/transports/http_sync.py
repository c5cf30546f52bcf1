"""The transport of `Client`: HTTP/1.1 over sockets that wait in the calling thread."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.options import Timeout
from asides.transports.connection import (
    NEXT_ADDRESS_SECONDS,
    READ_SIZE,
    Address,
    ConnectionPool,
    choose_problem,
    find_numeric_addresses,
    open_socket,
    order_addresses,
)
from asides.transports.http_exchange import Connect, HttpExchange, Send, Step, Upload, advance
from asides.transports.protocols import MOST_PATIENCE, Response
from asides.transports.proxy_and_tls import build_tls_context

if TYPE_CHECKING:
    import ssl

_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY)


class HttpTransport:
    """The default transport of a `Client`. It keeps idle connections for later requests."""

    def __init__(self) -> None:
        self._pool = ConnectionPool()
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        """Take a request; `head` of the response sends it."""
        return _HttpResponse(HttpExchange(self._pool, self._get_tls_context, request, timeout))

    def close(self) -> None:
        """Close all idle connections."""
        self._pool.close()

    def _get_tls_context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls is None:
                self._tls = build_tls_context()
            return self._tls


class _HttpResponse:
    """One request over a socket."""

    __slots__ = ("_exchange", "_has_head", "_is_busy", "_rest_end", "_socket_timeout")

    def __init__(self, exchange: HttpExchange) -> None:
        self._exchange = exchange
        self._has_head = False
        self._is_busy = False
        """Whether a thread uses the socket. It alone may close it then: its number could soon be another socket's."""
        self._rest_end = 0.0
        self._socket_timeout: float | None = -1.0  # The last one set, since setting it is a system call.

    def head(self) -> Head:
        exchange = self._exchange
        steps, answer = exchange.open(), None
        self._is_busy = True
        try:
            while (step := advance(steps, answer)) is not None:
                if exchange.closed:
                    raise ConnectionResetError
                answer = self._do(step)
            if exchange.closed:
                raise ConnectionResetError
        except BaseException as problem:
            self._drop()
            if isinstance(problem, Exception):
                raise exchange.translate(problem) from None
            raise
        finally:
            steps.close()
            self._stop_work()
        self._has_head = True
        return exchange.head

    def _do(self, step: Step) -> Any:
        exchange = self._exchange
        if isinstance(step, Connect):
            return self._connect(step)
        if exchange.connection is None:
            raise ConnectionResetError
        sock = exchange.connection.sock
        if isinstance(step, Upload):
            self._upload(sock, step)
            return None
        sock.settimeout(exchange.compute_time_left())
        if isinstance(step, Send):
            # The server may have answered before it closed: the next receive shows whether it did.
            with suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(step.data)
            return None
        return sock.recv(READ_SIZE)

    def _connect(self, step: Connect) -> socket.socket:
        """Connect to the first address that answers. Each has a head start over the next."""
        import selectors

        addresses = find_numeric_addresses(*step)
        if addresses is None:
            addresses = order_addresses(socket.getaddrinfo(*step, type=socket.SOCK_STREAM))
        problems: list[OSError] = []
        with selectors.DefaultSelector() as selector:
            try:
                while addresses or selector.get_map():
                    if addresses:
                        self._start_connecting(addresses.pop(0), selector, problems)
                    while selector.get_map():
                        left = self._exchange.compute_time_left()
                        ready = selector.select(
                            NEXT_ADDRESS_SECONDS if left is None else min(left, NEXT_ADDRESS_SECONDS)
                        )
                        if self._exchange.closed:
                            raise ConnectionResetError
                        for key, _ in ready:
                            sock: socket.socket = key.data
                            selector.unregister(sock)
                            if not (problem := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
                                return sock
                            sock.close()
                            problems.append(OSError(problem, os.strerror(problem)))
                        if addresses:
                            break
                raise choose_problem(problems)
            finally:
                for key in list(selector.get_map().values()):
                    key.data.close()

    def _start_connecting(self, address: Address, selector: Any, problems: list[OSError]) -> None:
        import selectors

        try:
            sock = open_socket(address)
        except OSError as problem:
            problems.append(problem)
            return
        code = sock.connect_ex(address[3])
        if code in _IN_PROGRESS:
            selector.register(sock, selectors.EVENT_WRITE, sock)
        else:
            sock.close()
            problems.append(OSError(code, os.strerror(code)))

    def _upload(self, sock: socket.socket, step: Upload) -> None:
        import selectors

        exchange = self._exchange
        sock.setblocking(False)
        piece = memoryview(b"")
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while piece or (piece := memoryview(next(step.pieces, b""))):
                problem: OSError | None = None
                try:
                    piece = piece[sock.send(piece) :]
                    step.progress()
                except BlockingIOError:
                    selector.select(exchange.compute_time_left())
                except OSError as found:
                    problem = found  # The server may have answered before it closed.
                with suppress(BlockingIOError):
                    if step.hear(received := sock.recv(READ_SIZE)):
                        # An answer cuts off what is not sent yet.
                        exchange.is_cut = not received or bool(piece) or bool(next(step.pieces, b""))
                        return
                if problem is not None:
                    raise problem

    def read(self, patience: float | None = None) -> bytes:
        exchange = self._exchange
        if not self._has_head:
            return b""
        if patience is not None:
            self._rest_end = self._rest_end or time.monotonic() + MOST_PATIENCE * patience
            patience = min(patience, self._rest_end - time.monotonic())
            if patience <= 0:
                return b""
        self._is_busy = True
        try:
            content = self._read_content(patience)
        except Exception as problem:  # noqa: BLE001 - `translate` returns unknown errors unchanged
            if patience is not None and isinstance(problem, TimeoutError):
                return b""
            raise exchange.translate(problem) from None
        finally:
            self._stop_work()
        exchange.has_data = True
        if not content or exchange.reader.is_taken:
            exchange.release()
        return content

    def _read_content(self, patience: float | None) -> bytes:
        # Few calls before and after a wait: a processor that waited for the network has cold caches.
        exchange = self._exchange
        reader, connection = exchange.reader, exchange.connection
        if reader.is_taken:
            return b""
        if not reader.needs_bytes and (content := reader.take()) is not None:
            return content
        if connection is None:
            raise ConnectionResetError
        allowed = exchange.timeout.idle if exchange.has_data else exchange.timeout.first_byte
        if patience is not None:
            allowed = patience if allowed is None else min(allowed, patience)
        if exchange.deadline is not None:
            allowed = exchange.limit(allowed)
        exchange.wait_end = None if allowed is None else time.monotonic() + allowed
        sock = connection.sock
        if exchange.closed:
            raise ConnectionResetError
        if allowed != self._socket_timeout:
            self._socket_timeout = allowed
            sock.settimeout(allowed)
        while True:
            received = b"" if connection.ended else connection.unwrap(sock.recv(READ_SIZE))
            if exchange.closed:
                raise ConnectionResetError
            if received is not None and (content := reader.read(received)) is not None:
                return content
            self._socket_timeout = exchange.compute_time_left()
            sock.settimeout(self._socket_timeout)

    def close(self) -> None:
        # Set before looking at the connection: a thread that stops using it, or gives it back, looks in reverse order.
        self._exchange.closed = True
        if not self._is_busy:
            self._drop()
        elif (connection := self._exchange.connection) is not None:
            connection.shut()

    def _stop_work(self) -> None:
        """Called when a thread stops using the socket. Closes what another thread has ended meanwhile."""
        self._is_busy = False
        if self._exchange.closed:
            self._drop()

    def _drop(self) -> None:
        """Close the connection, unless the body was read to its end and another request may use it."""
        if (connection := self._exchange.connection) is not None:
            connection.shut()
            connection.close()
