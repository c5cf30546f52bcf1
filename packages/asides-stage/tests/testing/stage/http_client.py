"""HTTP clients for the tests of the stage: the standard library's, and bare sockets."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from asides.wire.sse import SseReader
from asides_stage import Stage


class Answer:
    """A complete response."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def payloads(self) -> list[bytes]:
        reader = SseReader()
        return reader.feed(self.body) + reader.finish()


@contextmanager
def connected(stage: Stage) -> Generator[http.client.HTTPConnection, None, None]:
    connection = http.client.HTTPConnection(urlsplit(stage.url).netloc, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def body_of(question: str = "hi", *, stream: bool = False, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": question}]
    return json.dumps({"model": "any", "messages": messages, "stream": stream, **fields}).encode()


def post(
    stage: Stage, question: str = "hi", *, stream: bool = False, headers: dict[str, str] | None = None, **fields: Any
) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", "/v1/chat/completions", body_of(question, stream=stream, **fields), headers or {})
        return Answer(connection.getresponse())


def post_to(stage: Stage, path: str, body: dict[str, Any]) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body).encode())
        return Answer(connection.getresponse())


def get(stage: Stage, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request(method, path, headers=headers or {})
        return Answer(connection.getresponse())


@contextmanager
def raw_socket(stage: Stage, sent: bytes = b"") -> Generator[socket.socket, None, None]:
    address = urlsplit(stage.url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as client:
        client.sendall(sent)
        yield client


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def read_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65536):
        received += data
    return received


def as_http(body: bytes, *headers: str, version: str = "1.1") -> bytes:
    head = [f"POST /v1/chat/completions HTTP/{version}", "Host: stage", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
