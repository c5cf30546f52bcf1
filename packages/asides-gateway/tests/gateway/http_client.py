"""A plain HTTP client over a socket, for requests that no library would send, and responses to the byte."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.options import Options, merge_options
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.watcher import RequestWatcher
from asides_stage import Stage
from asides_stage.stage.script import Scene
from tests.gateway.gateway_process import GatewayProcess

QUESTION = [{"role": "user", "content": "what is six times seven?"}]
MODEL = "deepseek:deepseek-v4-pro"
"""Asked in chat completions: a host that differs from the plain dialect, so that everything is translated."""


class Answer(msgspec.Struct, frozen=True):
    """A response as it arrived."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_complete: bool
    """Whether it ended as its framing says."""

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Held:
    """A script of a stage whose scene is played when someone lets it: the provider is silent until then."""

    def __init__(self, *scenes: Scene) -> None:
        self._scenes = list(scenes)
        self._let = threading.Semaphore(0)

    def let(self) -> None:
        """Play the next scene."""
        self._let.release()

    def __call__(self, _: ServedRequest) -> Scene:
        assert self._let.acquire(timeout=40), "nobody let the provider answer"
        return self._scenes.pop(0)


class Client:
    """One connection to a gateway."""

    def __init__(self, gateway: Gateway | GatewayProcess, timeout: float = 40.0) -> None:
        host, _, port = gateway.url.removeprefix("http://").rpartition(":")
        self.host = f"{host}:{port}"
        self.socket = socket.create_connection((host, int(port)), timeout)
        self._held = b""

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Iterable[tuple[str, str]] = (),
        *,
        host: str | None = None,
    ) -> None:
        """Send a request. A body that is no bytes is written as JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {name.lower() for name, _ in headers}
        lines = [f"{method} {path} HTTP/1.1", f"host: {host or self.host}"]
        if "content-length" not in given and "transfer-encoding" not in given and (data or method == "POST"):
            lines.append(f"content-length: {len(data)}")
        lines += [f"{name}: {value}" for name, value in headers]
        self.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def ask(self, method: str, path: str, body: object = None, headers: Iterable[tuple[str, str]] = ()) -> Answer:
        self.send(method, path, body, headers)
        return self.read(method)

    def read(self, method: str = "POST") -> Answer:
        """Read one response to its end."""
        status, headers = self.read_head()
        if method == "HEAD" or status in (204, 304):
            return Answer(status, headers, b"", True)
        if "content-length" in headers:
            body = self._read_exactly(int(headers["content-length"]))
            return Answer(status, headers, body, len(body) == int(headers["content-length"]))
        if headers.get("transfer-encoding") == "chunked":
            pieces = list(self.read_chunks())
            return Answer(status, headers, b"".join(pieces), self.ended)
        rest = [self._held]
        while data := self._receive():
            rest.append(data)
        return Answer(status, headers, b"".join(rest), True)

    def read_head(self) -> tuple[int, dict[str, str]]:
        """Read the next head."""
        while b"\r\n\r\n" not in self._held:
            data = self._receive()
            if not data:
                raise ConnectionError(f"the connection ended within the head: {self._held[:200]!r}")
            self._held += data
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    ended = False
    """Whether the last chunk has arrived."""

    def read_chunks(self) -> Iterator[bytes]:
        """The chunks of a body as they arrive."""
        while True:
            while b"\r\n" not in self._held:
                data = self._receive()
                if not data:
                    return
                self._held += data
            line, _, self._held = self._held.partition(b"\r\n")
            size = int(line, 16)
            piece = self._read_exactly(size + 2)
            if len(piece) < size + 2:
                return
            if not size:
                self.ended = True
                return
            yield piece[:-2]

    def is_closed(self, within: float = 30.0) -> bool:
        """Whether the other side has closed the connection, or does so soon."""
        self.socket.settimeout(within)
        try:
            while self._receive():
                pass
        except TimeoutError:
            return False
        return True

    def _read_exactly(self, size: int) -> bytes:
        pieces, length = [self._held], len(self._held)
        while length < size and (data := self._receive()):
            pieces.append(data)
            length += len(data)
        whole = b"".join(pieces)
        self._held = whole[size:]
        return whole[:size]

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(1 << 18)
        except (ConnectionResetError, BrokenPipeError):
            return b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def gateway_before(
    stage: Stage | str,
    *watchers: RequestWatcher,
    tables: dict[str, Any] | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Generator[Gateway, None, None]:
    """A gateway whose every provider is this stage, or the server at this address."""
    url = stage if isinstance(stage, str) else stage.url
    given = merge_options(Options(base_url=url, api_key="sk-upstream"), options or Options())
    values: dict[str, Any] = {"port": 0, "drain_seconds": 1.0, **settings}
    own = GatewaySettings(**values)
    with Gateway(
        own, load_settings(environ={}, files=[], **(tables or {})), options=given, watchers=watchers
    ) as gateway:
        yield gateway


def ask(
    gateway: Gateway | GatewayProcess,
    method: str,
    path: str,
    body: object = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Answer:
    """One request on a connection of its own."""
    with Client(gateway) as client:
        return client.ask(method, path, body, headers)


def chat(stream: bool = False, **more: Any) -> dict[str, Any]:
    """A request for chat completions."""
    return {"model": MODEL, "messages": QUESTION, "stream": stream, **more}


def message(stream: bool = False, **more: Any) -> dict[str, Any]:
    """A request for messages."""
    return {"model": MODEL, "messages": QUESTION, "max_tokens": 99, "stream": stream, **more}


def wait_for(condition: Any, seconds: float = 30.0) -> bool:
    """Wait until a condition is true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.002)
    return bool(condition())
