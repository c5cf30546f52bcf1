"""The transport of `AsyncClient`: HTTP/1.1 over sockets that wait in an event loop."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

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
from asides.transports.protocols import MOST_PATIENCE, AsyncResponse
from asides.transports.proxy_and_tls import build_tls_context

if TYPE_CHECKING:
    import ssl

_CHECK_INTERVAL = 1.0
# A timer that fires slightly too early must not spin.
_SHORTEST_INTERVAL = 0.001
# A fast server must not starve the other tasks of the loop.
_READS_BETWEEN_PAUSES = 16


class AsyncHttpTransport:
    """The default transport of an `AsyncClient`. It keeps idle connections for each event loop."""

    def __init__(self) -> None:
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ConnectionPool] = WeakKeyDictionary()
        self._lock = threading.Lock()
        """Guards the pools: loops of several threads may share a transport."""
        self._tls: ssl.SSLContext | None = None

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request; `head` of the response sends it."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if (pool := self._pools.get(loop)) is None:
                self._drop_closed_loops()
                pool = self._pools.setdefault(loop, ConnectionPool())
        return _AsyncHttpResponse(HttpExchange(pool, self._get_tls_context, request, timeout), loop)

    async def close(self) -> None:
        """Close the idle connections of this event loop, and those of closed loops."""
        with self._lock:
            self._drop_closed_loops()
            pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            pool.close()

    def _drop_closed_loops(self) -> None:
        for loop, pool in list(self._pools.items()):
            if loop.is_closed():
                pool.close()
                self._pools.pop(loop, None)

    def _get_tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = build_tls_context()
        return self._tls


class _AsyncHttpResponse:
    """One request over a socket in an event loop."""

    __slots__ = (
        "__weakref__", "_exchange", "_has_head", "_listening", "_loop", "_opening", "_reads",
        "_rest_end", "_sending", "_timer", "_waiting_since"
    )  # fmt: skip

    def __init__(self, exchange: HttpExchange, loop: asyncio.AbstractEventLoop) -> None:
        self._exchange = exchange
        self._loop = loop
        self._has_head = False
        self._opening: asyncio.Timeout | None = None
        self._listening: asyncio.Task[bytes] | None = None
        """A receive that was begun while the request was being sent. Cancelling it could lose bytes."""
        self._sending: asyncio.Task[None] | None = None
        self._reads = 0
        self._rest_end = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None

    async def head(self) -> Head:
        exchange = self._exchange
        steps, answer = exchange.open(), None
        try:
            async with asyncio.timeout(None) as self._opening:
                while (step := advance(steps, answer)) is not None:
                    if exchange.closed:
                        raise ConnectionResetError
                    if type(step) is Send:
                        answer = None
                        if not (rest := self._send_now(step.data)):
                            continue
                        step = Send(rest)
                    self._extend_opening()
                    answer = await self._do(step)
            if exchange.closed:
                raise ConnectionResetError
        except BaseException as problem:
            self._opening = None
            self._drop()
            if isinstance(problem, Exception):
                raise exchange.translate(problem) from None
            raise
        finally:
            self._opening = None
            steps.close()
        self._has_head = True
        return exchange.head

    def _extend_opening(self) -> None:
        """Let the opening end with the current wait."""
        if self._opening is not None and not self._exchange.closed and not self._opening.expired():
            left = self._exchange.compute_time_left()
            self._opening.reschedule(None if left is None else self._loop.time() + left)

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Connect):
            return await self._connect(step)
        if (connection := self._exchange.connection) is None:
            raise ConnectionResetError
        if isinstance(step, Upload):
            await self._upload(connection.sock, step)
            return None
        if isinstance(step, Send):
            # The server may have answered before it closed: the next receive shows whether it did.
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._loop.sock_sendall(connection.sock, step.data)
            return None
        # The head may follow any number of interim ones.
        await self._pause()
        return await self._receive(connection.sock)

    def _send_now(self, data: bytes) -> bytes:
        """Send what the socket takes without waiting, which is nearly always all; returns the rest."""
        if (connection := self._exchange.connection) is None:
            return data
        try:
            return data[connection.sock.send(data) :]
        except (BlockingIOError, InterruptedError):
            return data
        except (BrokenPipeError, ConnectionResetError):
            return b""  # The server may have answered before it closed: the next receive shows whether it did.

    async def _pause(self) -> None:
        """Let other tasks run now and then: bytes that are already here are received without waiting."""
        self._reads += 1
        if not self._reads % _READS_BETWEEN_PAUSES:
            await asyncio.sleep(0)

    async def _receive(self, sock: socket.socket) -> bytes:
        if self._listening is not None:
            listening, self._listening = self._listening, None
            return await listening
        return await self._loop.sock_recv(sock, READ_SIZE)

    async def _connect(self, step: Connect) -> socket.socket:
        """Connect to the first address that answers. Each has a head start over the next."""
        addresses = find_numeric_addresses(*step)
        if addresses is None:
            addresses = order_addresses(await self._loop.getaddrinfo(*step, type=socket.SOCK_STREAM))
        if len(addresses) == 1:
            return await self._connect_to(addresses[0])
        problems: list[OSError] = []
        connecting: set[asyncio.Task[socket.socket]] = set()
        try:
            while addresses or connecting:
                if addresses:
                    connecting.add(asyncio.create_task(self._connect_to(addresses.pop(0))))
                wait = NEXT_ADDRESS_SECONDS if addresses else None
                ended, _ = await asyncio.wait(connecting, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    connecting.discard(task)
                    problem = task.exception()
                    if problem is None:
                        return task.result()
                    if not isinstance(problem, OSError):
                        raise problem
                    problems.append(problem)
            raise choose_problem(problems)
        finally:
            for task in connecting:
                task.cancel()
                task.add_done_callback(_close_result)

    async def _connect_to(self, address: Address) -> socket.socket:
        sock = open_socket(address)
        try:
            await self._loop.sock_connect(sock, address[3])
        except BaseException:
            sock.close()
            raise
        return sock

    async def _upload(self, sock: socket.socket, step: Upload) -> None:
        exchange, loop = self._exchange, self._loop
        self._listening = asyncio.create_task(loop.sock_recv(sock, READ_SIZE))
        for piece in step.pieces:
            sending = self._sending = asyncio.create_task(loop.sock_sendall(sock, piece))
            try:
                while not sending.done():
                    await asyncio.wait((sending, self._listening), return_when=asyncio.FIRST_COMPLETED)
                    failed = sending.done() and sending.exception() is not None
                    if failed:
                        # The server may have answered before it closed.
                        await asyncio.wait((self._listening,))
                    if not self._listening.done():
                        continue
                    received = self._listening.result()
                    if step.hear(received):
                        # An answer cuts off what is not sent yet.
                        exchange.is_cut = not received or not sending.done() or bool(next(step.pieces, b""))
                        self._listening = None
                        return
                    self._listening = asyncio.create_task(loop.sock_recv(sock, READ_SIZE))
                sending.result()
            finally:
                sending.cancel()
            step.progress()
            self._extend_opening()

    async def read(self, patience: float | None = None) -> bytes:
        if not self._has_head:
            return b""
        try:
            if patience is None:
                return await self._read()
            self._rest_end = self._rest_end or time.monotonic() + MOST_PATIENCE * patience
            with suppress(TimeoutError):
                async with asyncio.timeout(min(patience, self._rest_end - time.monotonic())):
                    return await self._read()
        except asyncio.CancelledError:
            # Bytes that have just arrived may be lost.
            self.close()
            raise
        # The end of the wait may have lost bytes too.
        self._exchange.is_cut = True
        return b""

    async def _read(self) -> bytes:
        exchange = self._exchange
        if asyncio.get_running_loop() is not self._loop:
            # The socket belongs to the other loop.
            self.close()
        try:
            content = await self._read_content()
        except Exception as problem:  # noqa: BLE001 - `translate` returns unknown errors unchanged
            self._drop()
            raise exchange.translate(problem) from None
        if not exchange.has_data:
            exchange.has_data = True
            self._stop_timer()
        if not content or exchange.reader.is_taken:
            self._stop_timer()
            exchange.release()
        return content

    async def _read_content(self) -> bytes:
        exchange = self._exchange
        reader, connection = exchange.reader, exchange.connection
        if exchange.closed and not reader.is_taken:
            raise ConnectionResetError
        if reader.is_taken:
            return b""
        if not reader.needs_bytes:
            # A few bytes may decompress to very much content.
            await self._pause()
            if (content := reader.take()) is not None:
                return content
        if connection is None:
            raise ConnectionResetError
        self._waiting_since = time.monotonic()
        if self._timer is None:
            self._check_wait()
        sock, receive = connection.sock, self._loop.sock_recv
        try:
            while True:
                self._reads += 1
                if not self._reads % _READS_BETWEEN_PAUSES:
                    await asyncio.sleep(0)
                if exchange.closed:
                    raise ConnectionResetError
                received = b"" if connection.ended else connection.unwrap(await receive(sock, READ_SIZE))
                if exchange.closed:
                    raise ConnectionResetError
                if received is not None and (content := reader.read(received)) is not None:
                    return content
        finally:
            self._waiting_since = None

    def close(self) -> None:
        self._exchange.closed = True
        self._stop_timer()
        if self._opening is None or self._loop.is_closed():
            self._drop()
        elif not self._opening.expired():
            self._opening.reschedule(0.0)

    def _drop(self) -> None:
        """Close the connection, unless the body was read to its end and another request may use it."""
        if (connection := self._exchange.connection) is None:
            return
        connection.shut()
        if self._loop.is_closed():
            connection.close()
            return
        # The event loop forgets a socket after its waits have ended, and must not find another one of its number.
        pending: list[asyncio.Task[Any]] = []
        for task in (self._listening, self._sending):
            if task is not None and not task.done():
                pending.append(task)
                task.cancel()
        if pending:
            asyncio.gather(*pending, return_exceptions=True).add_done_callback(lambda _: connection.close())
        elif self._waiting_since is None:
            connection.close()

    # --- waits --------------------------------------------------------------------------------------------------------

    def _check_wait(self) -> None:
        """End a read that waits too long. One timer serves all reads, since one for each costs more."""
        self._stop_timer()
        exchange, now, since = self._exchange, time.monotonic(), self._waiting_since
        if since is None:
            return  # The next read starts it again.
        allowed = exchange.timeout.idle if exchange.has_data else exchange.timeout.first_byte
        ends = [] if allowed is None else [since + allowed]
        due = min(ends if exchange.deadline is None else [*ends, exchange.deadline], default=float("inf"))
        if due <= now:
            exchange.timed_out = True
            self.close()
        else:
            wait = max(min(due - now, _CHECK_INTERVAL), _SHORTEST_INTERVAL)
            self._timer = self._loop.call_later(wait, self._check_wait)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _close_result(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
