"""The sync transport by itself, over real sockets: heads, bytes as they come, patience, closing, connections.

Whole calls through both transports: test_http_transports.py.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from asides.dialects.dialect import HttpRequest
from asides.options import Timeout
from asides.transports import http_sync
from asides.transports.connection import Connection, ConnectionPool, Route, open_socket
from asides.transports.http_exchange import HttpExchange
from asides.transports.http_sync import HttpTransport
from asides.transports.protocols import Response
from asides.values.errors import ConfigError, ConnectionLost, ConnectTimeout, IdleTimeout
from tests.loopback import ReceivedRequest, saying, serving, whole_response

FIRST = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    transport = HttpTransport()
    yield transport
    transport.close()


def get(transport: HttpTransport, url: str, timeout: Timeout | None = None, body: bytes = b"") -> Response:
    request = HttpRequest("POST" if body else "GET", url, {"X-Own": "1"}, body, direct=True)
    return transport.open(request, timeout or Timeout())


def read_all(response: Response) -> bytes:
    found = b""
    while data := response.read():
        found += data
    return found


def test_nothing_is_sent_before_the_head_is_asked_for(transport: HttpTransport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, server.url)
        assert (response.read(), server.connections) == (b"", 0)
        response.close()


@pytest.mark.parametrize("body", [b"", b'{"a":1}'])
def test_a_request_goes_out_as_it_is_and_the_head_has_names_in_lower_case(
    transport: HttpTransport, body: bytes
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
    transport: HttpTransport,
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


def test_bytes_come_as_soon_as_they_are_there_and_patience_ends_a_wait(transport: HttpTransport) -> None:
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


def test_another_thread_may_close_a_response_that_waits(transport: HttpTransport) -> None:
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


def test_another_thread_may_close_a_response_that_sends(transport: HttpTransport) -> None:
    """The sender closes the socket itself: a socket that vanishes from its selector would never wake it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for _ in range(20):
            response = get(transport, f"http://127.0.0.1:{listening.getsockname()[1]}/", body=b"x" * 8_000_000)
            problems: list[Exception] = []

            def send(response: Response = response, problems: list[Exception] = problems) -> None:
                try:
                    response.head()
                except ConnectionLost as problem:
                    problems.append(problem)

            sending = threading.Thread(target=send, daemon=True)
            sending.start()
            connection, _ = listening.accept()
            with connection:
                time.sleep(0.02)
                response.close()
                sending.join(2)
            assert len(problems) == 1


def test_a_socket_is_closed_by_the_thread_that_uses_it(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread could get its number for another connection, and the reader would read that one's bytes."""
    closed_by: list[int] = []
    close = Connection.close

    def note(connection: Connection) -> None:
        closed_by.append(threading.get_ident())
        close(connection)

    monkeypatch.setattr(Connection, "close", note)

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
    assert set(closed_by) == {threading.get_ident()}


@pytest.mark.parametrize(
    ("timeout", "says"),
    [(Timeout(first_byte=0.05), r"0\.05 s"), (Timeout(total=0.05), "whole call")],
)
def test_a_server_that_says_nothing_is_given_up(transport: HttpTransport, timeout: Timeout, says: str) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.recv(1)
        return False

    with serving(answer) as server:
        response = get(transport, server.url, timeout)
        with pytest.raises(IdleTimeout, match=says):
            response.head()
        response.close()


def test_a_name_that_resolves_too_late_is_a_timeout(transport: HttpTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def resolve_slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.1)
        return resolve(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_slowly)
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, server.url.replace("127.0.0.1", "localhost"), Timeout(connect=0.05))
        with pytest.raises(ConnectTimeout) as raised:
            response.head()
        assert server.heard == []
    assert "Timeout(connect=…)" in str(raised.value)


def test_an_address_that_is_none_is_a_mistake_of_the_settings(transport: HttpTransport) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        get(transport, "http:///v1").head()


def test_a_header_that_could_forge_another_is_refused(transport: HttpTransport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        for headers in ({"X": "a\r\nY: b"}, {"X": "a\0"}, {"X\r\nY": "a"}, {"": "a"}):
            request = HttpRequest("GET", server.url, headers, b"", direct=True)
            with pytest.raises(ConfigError, match="does not allow"):
                transport.open(request, Timeout()).head()
        assert server.connections == 0


def test_the_transport_alone_says_where_the_body_ends(transport: HttpTransport) -> None:
    raw: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                raw.append(connection.recv(65536))
                connection.sendall(whole_response(b"{}"))

        server = threading.Thread(target=answer, daemon=True)
        server.start()
        headers = {"host": "own.example", "content-length": "99", "Transfer-Encoding": "chunked"}
        request = HttpRequest("POST", f"http://127.0.0.1:{listening.getsockname()[1]}/", headers, b"abc", direct=True)
        assert read_all(opened(transport.open(request, Timeout()))) == b"{}"
        server.join(5)
    assert raw == [b"POST / HTTP/1.1\r\nContent-Length: 3\r\nhost: own.example\r\n\r\nabc"]


@pytest.mark.parametrize("host", ["a b", "a\0b", "a<b", "h:99999", "[::1", "."])
def test_a_host_that_could_change_the_request_is_refused(
    transport: HttpTransport, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match="is not a valid address"):
        transport.open(HttpRequest("GET", f"https://{host}/", {}, b""), Timeout()).head()


def test_an_address_is_written_so_that_it_stays_one_line(transport: HttpTransport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, f"{server.url}/a b/é?c=d e\u2028#fragment")
        response.head()
        assert server.heard[0].line == "GET /v1/a%20b/%C3%A9?c=d%20e%E2%80%A8 HTTP/1.1"
        response.close()


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(transport: HttpTransport) -> None:
    with serving(saying(whole_response(b"{}"), then=False)) as server:
        for _ in range(3):
            response = get(transport, server.url)
            assert response.head().status == 200
            assert read_all(response) == b"{}"
            time.sleep(0.05)
        assert server.connections == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(transport: HttpTransport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        read_all(opened(get(transport, server.url)))
        child = os.fork()
        if child == 0:
            outcome = 1
            try:
                outcome = 0 if read_all(opened(get(transport, server.url))) == b"{}" else 1
            finally:
                os._exit(outcome)
        assert os.waitpid(child, 0)[1] == 0
        assert server.connections == 2
        assert read_all(opened(get(transport, server.url))) == b"{}"
        assert server.connections == 2, "the parent's connection still works"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_does_not_end_the_parents_response(transport: HttpTransport) -> None:
    gate = threading.Event()

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(FIRST)
        gate.wait(5)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        return True

    with serving(answer) as server:
        response = opened(get(transport, server.url))
        assert response.read() == b"one"
        child = os.fork()
        if child == 0:
            response.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        gate.set()
        assert read_all(response) == b"two"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_keeps_no_connection_that_was_in_use_at_the_fork() -> None:
    pool, route, pair = ConnectionPool(), Route(False, "h", 80, None), socket.socketpair()
    connection = Connection(pair[0], route)
    child = os.fork()
    if child == 0:
        had_none = pool.take(route) is None
        pool.give(connection)
        os._exit(0 if had_none and pool.take(route) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    pool.give(connection)
    assert pool.take(route) is connection
    pair[1].close()


def test_sweeping_idle_connections_does_not_look_at_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread takes it at that moment; looking at it would wait for its response."""
    pool, route, pairs = ConnectionPool(), Route(False, "h", 80, None), [socket.socketpair() for _ in range(2)]
    first, second = (Connection(pair[0], route) for pair in pairs)
    pool.give(first)
    looked: list[tuple[Connection, bool]] = []

    def look(connection: Connection, _: float) -> bool:
        looked.append((connection, pool.take(route) is connection if not looked else False))
        return False

    monkeypatch.setattr(Connection, "is_stale", look)
    monkeypatch.setattr(pool, "_next_sweep", 0.0)
    pool.give(second)
    assert looked[0] == (first, False)
    assert (pool.take(route), pool.take(route), pool.take(route)) == (second, first, None)
    for pair in pairs:
        pair[1].close()
    first.close()
    second.close()


def test_an_answer_to_a_request_that_was_not_read_is_the_answer(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers and closes while a small request is still being sent."""

    def open_small(address: Any) -> socket.socket:
        sock = open_socket(address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return sock

    monkeypatch.setattr(http_sync, "open_socket", open_small)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                time.sleep(0.1)
                connection.sendall(whole_response(b"no", status="401 Unauthorized"))

        server = threading.Thread(target=answer, daemon=True)
        server.start()
        response = get(transport, f"http://127.0.0.1:{listening.getsockname()[1]}/", body=b"x" * 60_000)
        assert response.head().status == 401
        response.close()
        server.join(5)


def test_the_next_address_of_a_host_is_tried(transport: HttpTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first refuses the connection."""
    with serving(saying(whole_response(b"{}"))) as server:

        def resolve(host: str, port: int, **_: Any) -> list[Any]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9)),
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
            ]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        assert read_all(opened(get(transport, f"http://two.example:{server.port}/v1"))) == b"{}"


def opened(response: Response) -> Response:
    response.head()
    return response


@pytest.mark.parametrize("size", [0, 1, 50_000, 65_536, 70_000, 200_000])
def test_head_and_body_arrive_whole_and_a_small_request_in_one_piece(
    transport: HttpTransport, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    wrap = Connection.wrap

    def count(connection: Connection, data: bytes) -> bytes:
        pieces.append(len(data))
        return wrap(connection, data)

    monkeypatch.setattr(Connection, "wrap", count)
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
    assert len(pieces) == 2 if size < 65_000 else len(pieces) >= 4


def test_an_answer_to_a_whole_large_request_leaves_the_connection_for_the_next(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is there before the client looks again: it has sent everything, so nothing was cut off."""

    def start_late(exchange: HttpExchange, seconds: float | None) -> None:
        time.sleep(0.05)
        start_wait(exchange, seconds)

    start_wait = HttpExchange.start_wait
    monkeypatch.setattr(HttpExchange, "start_wait", start_late)

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
