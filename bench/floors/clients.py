"""The bare clients: a request's path and body → the bytes of the response. Sync: an iterator; async: an async iterator.

`post` returns a whole body. Connections are reused.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer x", "Accept": "text/event-stream"}
READ_SIZE = 65536
_TIMEOUT_SECONDS = 120


class SyncSource(Protocol):
    def stream(self, path: str, body: bytes) -> Iterator[bytes]: ...

    def post(self, path: str, body: bytes) -> bytes: ...


class AsyncSource(Protocol):
    def stream(self, path: str, body: bytes) -> AsyncIterator[bytes]: ...

    async def post(self, path: str, body: bytes) -> bytes: ...


def _write_request(path: str, body: bytes) -> bytes:
    headers = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _address(base_url: str) -> tuple[str, int]:
    host, port = base_url.removeprefix("http://").split(":")
    return host, int(port)


def _connect(base_url: str) -> socket.socket:
    connection = socket.create_connection(_address(base_url))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


# ── sync ──


class Socket:
    """A bare socket. It skips the HTTP framing without parsing it: a bound that no client can reach. Streams only."""

    def __init__(self, base_url: str) -> None:
        self._connection = _connect(base_url)

    def stream(self, path: str, body: bytes) -> Iterator[bytes]:
        self._connection.sendall(_write_request(path, body))
        while data := self._connection.recv(READ_SIZE):
            yield data
            if data.endswith(b"\r\n0\r\n\r\n"):
                return

    def post(self, path: str, body: bytes) -> bytes:
        raise NotImplementedError("a bare socket does not know where a body ends")


class _Response:
    """What httptools reports about one response."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append
        self.complete = False

    def on_message_complete(self) -> None:
        self.complete = True


class SocketHttptools:
    """A socket and httptools: the cheapest correct client of the sync world."""

    def __init__(self, base_url: str) -> None:
        import httptools

        self._connection = _connect(base_url)
        self._parser: Any = httptools.HttpResponseParser

    def stream(self, path: str, body: bytes) -> Iterator[bytes]:
        self._connection.sendall(_write_request(path, body))
        response = _Response()
        feed = self._parser(response).feed_data
        receive, pieces = self._connection.recv, response.pieces
        while not response.complete and (data := receive(READ_SIZE)):
            feed(data)
            if pieces:
                yield b"".join(pieces)
                pieces.clear()

    def post(self, path: str, body: bytes) -> bytes:
        return b"".join(self.stream(path, body))


class HttpClient:
    def __init__(self, base_url: str) -> None:
        import http.client

        self._connection = http.client.HTTPConnection(*_address(base_url))

    def _send(self, path: str, body: bytes) -> Any:
        self._connection.request("POST", path, body, HEADERS)
        return self._connection.getresponse()

    def stream(self, path: str, body: bytes) -> Iterator[bytes]:
        response = self._send(path, body)
        while data := response.read1(READ_SIZE):
            yield data

    def post(self, path: str, body: bytes) -> bytes:
        data: bytes = self._send(path, body).read()
        return data


class Urllib3:
    """A common client of the sync world."""

    def __init__(self, base_url: str) -> None:
        import urllib3

        self._base_url = base_url
        self._pool = urllib3.PoolManager()

    def stream(self, path: str, body: bytes) -> Iterator[bytes]:
        url = self._base_url + path
        response = self._pool.request("POST", url, body=body, headers=HEADERS, preload_content=False)
        yield from response.stream(READ_SIZE)
        response.release_conn()

    def post(self, path: str, body: bytes) -> bytes:
        return self._pool.request("POST", self._base_url + path, body=body, headers=HEADERS).data


class Httpx:
    def __init__(self, base_url: str) -> None:
        import httpx

        self._base_url = base_url
        self._client = httpx.Client(trust_env=False, timeout=_TIMEOUT_SECONDS)

    def stream(self, path: str, body: bytes) -> Iterator[bytes]:
        with self._client.stream("POST", self._base_url + path, content=body, headers=HEADERS) as response:
            yield from response.iter_raw()

    def post(self, path: str, body: bytes) -> bytes:
        return self._client.post(self._base_url + path, content=body, headers=HEADERS).content


# ── async ──


class HttptoolsProtocol:
    """An asyncio protocol and httptools: the cheapest correct client of the async world."""

    def __init__(self, base_url: str) -> None:
        import httptools

        self._address = _address(base_url)
        self._idle: list[Any] = []
        parser: Any = httptools.HttpResponseParser

        class Connection(asyncio.Protocol):
            def begin(self) -> None:
                self.response = _Response()
                self.waiter: asyncio.Future[None] | None = None
                self.feed = parser(self.response).feed_data

            def connection_made(self, transport: Any) -> None:
                self.transport = transport

            def data_received(self, data: bytes) -> None:
                self.feed(data)
                if self.waiter is not None and (self.response.pieces or self.response.complete):
                    self.waiter.set_result(None)
                    self.waiter = None

        self._kind = Connection

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> Any:
        return (await loop.create_connection(self._kind, *self._address))[1]

    async def stream(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        connection = self._idle.pop() if self._idle else await self._connect(loop)
        connection.begin()
        connection.transport.write(_write_request(path, body))
        response = connection.response
        pieces = response.pieces
        while pieces or not response.complete:
            if not pieces:
                connection.waiter = loop.create_future()
                await connection.waiter
            data = b"".join(pieces)
            pieces.clear()
            yield data
        self._idle.append(connection)

    async def post(self, path: str, body: bytes) -> bytes:
        return b"".join([data async for data in self.stream(path, body)])


class Aiohttp:
    """A common client of the async world."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session: Any = None

    def _post(self, path: str, body: bytes) -> Any:
        import aiohttp

        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        return self._session.post(self._base_url + path, data=body, headers=HEADERS)

    async def stream(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        async with self._post(path, body) as response:
            async for data in response.content.iter_any():
                yield data

    async def post(self, path: str, body: bytes) -> bytes:
        async with self._post(path, body) as response:
            data: bytes = await response.read()
        return data


class HttpxAsync:
    def __init__(self, base_url: str) -> None:
        import httpx

        limits = httpx.Limits(max_connections=None)
        self._base_url = base_url
        self._client = httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_SECONDS, limits=limits)

    async def stream(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        async with self._client.stream("POST", self._base_url + path, content=body, headers=HEADERS) as response:
            async for data in response.aiter_raw():
                yield data

    async def post(self, path: str, body: bytes) -> bytes:
        return (await self._client.post(self._base_url + path, content=body, headers=HEADERS)).content
