"""The urllib3 transport by itself, over real sockets: heads, bytes as they come, patience, closing, connections.

Whole calls through both transports: test_urllib3_and_aiohttp.py. Chunked bodies: test_urllib3_chunks.py.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from urllib3.util import connection as urllib3_connection

from asides.dialects.dialect import HttpRequest
from asides.options import Timeout
from asides.transports import urllib3 as urllib3_module
from asides.transports.protocols import Response
from asides.transports.urllib3 import Urllib3Transport, _Urllib3Response
from asides.values.errors import ConfigError, ConnectionLost, ConnectTimeout, IdleTimeout
from tests.loopback import ReceivedRequest, saying, serving, whole_response

FIRST = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


@pytest.fixture
def transport() -> Iterator[Urllib3Transport]:
    transport = Urllib3Transport()
    yield transport
    transport.close()


def get(transport: Urllib3Transport, url: str, timeout: Timeout | None = None, body: bytes = b"") -> Response:
    request = HttpRequest("POST" if body else "GET", url, {"X-Own": "1"}, body, direct=True)
    return transport.open(request, timeout or Timeout())


def read_all(response: Response) -> bytes:
    found = b""
    while data := response.read():
        found += data
    return found


def test_nothing_is_sent_before_the_head_is_asked_for(transport: Urllib3Transport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, server.url)
        assert (response.read(), server.connections) == (b"", 0)
        response.close()


@pytest.mark.parametrize("body", [b"", b'{"a":1}'])
def test_a_request_goes_out_as_it_is_and_the_head_has_names_in_lower_case(
    transport: Urllib3Transport, body: bytes
) -> None:
    with serving(saying(whole_response(b"no", status="404 Not Found", X_Request_Id="r1"))) as server:
        response = get(transport, f"{server.url}/a?b=c", body=body)
        head = response.head()
        assert (head.status, head.headers["x-request-id"], head.headers["content-type"]) == (
            404,
            "r1",
            "application/json",
        )
        assert head.received > 0
        assert read_all(response) == b"no"
        (heard,) = server.heard
        assert (heard.line, heard.body) == (f"{'POST' if body else 'GET'} /v1/a?b=c HTTP/1.1", body)
        assert heard.headers["x-own"] == "1"


def test_a_body_read_to_its_end_gives_its_connection_back_and_a_closed_one_does_not(
    transport: Urllib3Transport,
) -> None:
    with serving(saying(whole_response(b"x" * 200_000))) as server:
        for _ in range(2):
            response = get(transport, server.url)
            response.head()
            assert read_all(response) == b"x" * 200_000
            response.close()
        assert server.connections == 1
        half = get(transport, server.url)
        half.head()
        half.read()
        half.close()
        half.close()
        response = get(transport, server.url)
        response.head()
        assert (len(read_all(response)), server.connections) == (200_000, 2)


def test_bytes_come_as_soon_as_they_are_there_and_patience_ends_a_wait(transport: Urllib3Transport) -> None:
    gate = threading.Event()

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(FIRST)
        gate.wait(5)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        return True

    with serving(answer) as server:
        response = get(transport, server.url)
        response.head()
        assert response.read() == b"one"
        assert response.read(patience=0.01) == b""
        gate.set()
        response.close()


def test_another_thread_may_close_a_response_that_waits(transport: Urllib3Transport) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(FIRST)
        connection.recv(1)
        return False

    with serving(answer) as server:
        response = get(transport, server.url)
        response.head()
        response.read()
        closing = threading.Timer(0.05, response.close)
        closing.start()
        with pytest.raises(ConnectionLost):
            response.read()
        closing.join()


@pytest.mark.parametrize(
    ("timeout", "says"),
    [(Timeout(first_byte=0.05), r"0\.05 s"), (Timeout(total=0.05), "whole call")],
)
def test_a_server_that_says_nothing_is_given_up(transport: Urllib3Transport, timeout: Timeout, says: str) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.recv(1)
        return False

    with serving(answer) as server:
        response = get(transport, server.url, timeout)
        with pytest.raises(IdleTimeout, match=says):
            response.head()
        response.close()


def test_a_connection_that_opens_too_late_is_closed(
    transport: Urllib3Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = urllib3_connection.create_connection

    def connect_slowly(*arguments: Any, **options: Any) -> socket.socket:
        connection = connect(*arguments, **options)
        time.sleep(0.1)
        return connection

    monkeypatch.setattr(urllib3_connection, "create_connection", connect_slowly)
    with socket.create_server(("127.0.0.1", 0)) as server:
        response = get(transport, f"http://127.0.0.1:{server.getsockname()[1]}", Timeout(connect=0.05))
        with pytest.raises(ConnectTimeout) as raised:
            response.head()
        connection, _ = server.accept()
        with connection:
            connection.settimeout(5)
            assert connection.recv(1) == b"", "it is closed though the error is kept"
        assert "Timeout(connect=…)" in str(raised.value)


def test_an_address_that_is_none_is_a_mistake_of_the_settings(transport: Urllib3Transport) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        get(transport, "http:///v1").head()


def test_an_address_that_holds_a_secret_is_not_kept(transport: Urllib3Transport) -> None:
    harmless = "http://127.0.0.1:9/v1?alt=sse&api-version=1"
    for address in (harmless, "http://127.0.0.1:9/v1?alt=sse&key=hush", "http://me:hush@127.0.0.1:9/v1"):
        transport.find_sender(address, None)

    assert list(transport._pools) == [harmless]


def test_pools_are_made_once_for_each_proxy_and_again_after_closing(transport: Urllib3Transport) -> None:
    plain = transport.get_manager("http://a.example/v1", None)
    assert transport.get_manager("http://b.example", None) is plain
    assert transport.get_manager("HTTPS://a.example/v1", None) is not plain
    assert transport.get_manager("http://a.example/v1", "http://127.0.0.1:9") is not plain
    transport.close()
    assert transport.get_manager("http://a.example/v1", None) is not plain


@pytest.mark.parametrize("size", [0, 1, 50_000, 65_536, 70_000, 200_000])
def test_head_and_body_arrive_whole_and_a_small_request_in_one_piece(
    transport: Urllib3Transport, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    send_now = _Urllib3Response._send_now

    def count(response: _Urllib3Response, data: bytes) -> None:
        pieces.append(len(data))
        send_now(response, data)

    monkeypatch.setattr(_Urllib3Response, "_send_now", count)
    received: list[bytes] = []

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        received.append(request.body)
        connection.sendall(whole_response(b"{}"))
        return True

    with serving(answer) as server:
        for _ in range(2):
            response = get(transport, server.url, body=b"x" * size)
            assert response.head().status == 200
            assert read_all(response) == b"{}"
            response.close()
        assert received == [b"x" * size] * 2
        assert server.connections == 1
    assert len(pieces) == (2 if size < 65_000 else 4)


def test_an_answer_to_a_whole_large_request_leaves_the_connection_for_the_next(
    transport: Urllib3Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is there before the client looks again: it has sent everything, so nothing was cut off."""

    def add_late(seconds: float | None) -> float | None:
        time.sleep(0.05)
        return add_to_now(seconds)

    add_to_now = urllib3_module._add_to_now
    monkeypatch.setattr(urllib3_module, "_add_to_now", add_late)

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(whole_response(b"{}"))
        return True

    with serving(answer) as server:
        for _ in range(2):
            response = get(transport, server.url, body=b"x" * 70_000)
            assert response.head().status == 200
            assert read_all(response) == b"{}"
            response.close()
        assert server.connections == 1
