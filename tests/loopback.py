"""A small server for cases that the stage cannot play: broken framing, TLS, a proxy, a full backlog."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple


class ReceivedRequest(NamedTuple):
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


class Server:
    """Calls `answer(request, connection)` for each request; False ends the connection."""

    def __init__(
        self, answer: Callable[[ReceivedRequest, socket.socket], bool], tls: ssl.SSLContext | None = None
    ) -> None:
        self._answer = answer
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.heard: list[ReceivedRequest] = []
        self.connections = 0
        self.port: int = self._listening.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        self._run(self._accept)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive(), "a connection of the test server did not end"

    def _run(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with self._lock:
                self._open.add(connection)
            self._run(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: socket.socket) -> None:
        stream: socket.socket = connection
        try:
            with suppress(OSError):
                if self._tls is not None:
                    stream = self._tls.wrap_socket(connection, server_side=True)
                while (heard := read_request(stream)) is not None:
                    self.heard.append(heard)
                    if not self._answer(heard, stream):
                        return
        finally:
            with self._lock:
                self._open.discard(connection)
            stream.close()
            connection.close()


def read_request(connection: socket.socket) -> ReceivedRequest | None:
    """The next request on a connection; None when the client is gone."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65536)
        if not data:
            return None
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (entry.partition(":") for entry in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        data = connection.recv(65536)
        if not data:
            return None
        body += data
    return ReceivedRequest(line, headers, body)


def whole_response(
    body: bytes, content_type: str = "application/json", status: str = "200 OK", **headers: str
) -> bytes:
    """A response with a length."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


@contextmanager
def serving(
    answer: Callable[[ReceivedRequest, socket.socket], bool], tls: ssl.SSLContext | None = None
) -> Generator[Server, None, None]:
    """Run a server during the block."""
    server = Server(answer, tls)
    server.start()
    try:
        yield server
    finally:
        server.close()


def saying(*responses: bytes, then: bool = True) -> Callable[[ReceivedRequest, socket.socket], bool]:
    """Answer each request with the next response; the last one repeats."""
    waiting = list(responses)

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(waiting.pop(0) if len(waiting) > 1 else waiting[0])
        return then

    return answer
