"""Servers that drip: both transports end the same wait, and name the same timeout. Real sockets, no clock asserts."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

import pytest

import asides
from tests.decoding import stream, whole
from tests.loopback import read_request
from tests.shells import Shell, both_shells

SHORT = 0.15
PAUSE = 0.03
BODY = whole({"content": "42"})
HALF = stream({"content": "half"}).partition(b"\n\n")[0] + b"\n\n"
OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = OPEN + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED_CHUNKS = OPEN + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
PACKED = OPEN + b"Content-Encoding: gzip\r\n\r\n"
# A gzip member whose header has a file name, up to that name; and one up to its first block.
NAMED_GZIP = b"\x1f\x8b\x08\x08" + bytes(6)
PLAIN_GZIP = gzip.compress(b"")[:10]
EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"


class Drip(NamedTuple):
    """What a server sends at once, and what it repeats slowly and for ever."""

    name: str
    at_once: bytes
    repeated: bytes

    def __str__(self) -> str:
        return self.name


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def compress_half() -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(HALF) + packer.flush(zlib.Z_SYNC_FLUSH)


BEFORE_CONTENT = [
    Drip("silence", b"", b""),
    Drip("the status line", b"HTTP/1.1 200 ", b"O"),
    Drip("a header", OPEN + b"X: ", b"a"),
    Drip("many headers", OPEN, b"X: a\r\n"),
    Drip("a folded header", OPEN + b"X: a\r\n", b" a\r\n"),
    Drip("100 Continue", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    Drip("102 Processing", b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    Drip("103 Early Hints", b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    Drip("the head of a 103", b"HTTP/1.1 103 Early Hints\r\nLink: ", b"a"),
    Drip("no body", CHUNKED, b""),
    Drip("a chunk size", CHUNKED, b"0"),
    Drip("a chunk extension", CHUNKED + b"5;", b"a"),
    Drip("a trailer", CHUNKED + b"0\r\n", b"X: a\r\n"),
    Drip("one line of a trailer", CHUNKED + b"0\r\nX: ", b"a"),
    Drip("a gzip header", PACKED + NAMED_GZIP, b"a"),
    Drip("empty gzip blocks", PACKED + PLAIN_GZIP, EMPTY_BLOCK),
    Drip("empty gzip members", PACKED, gzip.compress(b"")),
    Drip("a gzip header in chunks", PACKED_CHUNKS + chunk(NAMED_GZIP), chunk(b"a")),
]
AFTER_CONTENT = [
    Drip("silence", CHUNKED + chunk(HALF), b""),
    Drip("silence inside of a chunk", CHUNKED + b"5000\r\n" + HALF, b""),
    Drip("silence before a length is over", OPEN + b"Content-Length: 5000\r\n\r\n" + HALF, b""),
    Drip("silence before the connection ends", OPEN + b"\r\n" + HALF, b""),
    Drip("a chunk size", CHUNKED + chunk(HALF), b"0"),
    Drip("a chunk extension", CHUNKED + chunk(HALF) + b"5;", b"a"),
    Drip("a trailer", CHUNKED + chunk(HALF) + b"0\r\n", b"X: a\r\n"),
    Drip("empty gzip blocks", PACKED + compress_half(), EMPTY_BLOCK),
]
KEEPS_ALIVE = [
    Drip("comments", CHUNKED + chunk(HALF), chunk(b": keep-alive\n\n")),
    Drip("a comment without an end", CHUNKED + chunk(HALF) + chunk(b": "), chunk(b"a")),
    Drip("events without content", CHUNKED + chunk(HALF), chunk(b'data: {"choices": []}\n\n')),
    Drip("a whole body, byte by byte", OPEN + b"Content-Length: 5000\r\n\r\n" + HALF, b" "),
]


@contextmanager
def accepting(answer: Callable[[socket.socket, threading.Event], object]) -> Generator[int, None, None]:
    """Call `answer` with each connection and an event that says when to end. Yields the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                answer(connection, ended)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        server.join(5)
        assert not server.is_alive(), "the server did not end"


def send_slowly(drip: Drip, connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(drip.at_once)
    while not ended.wait(PAUSE):
        connection.sendall(drip.repeated)


@contextmanager
def dripping(drip: Drip) -> Generator[str, None, None]:
    """Answer each request with a drip. Yields the address."""

    def answer(connection: socket.socket, ended: threading.Event) -> None:
        read_request(connection)
        send_slowly(drip, connection, ended)

    with accepting(answer) as port:
        yield f"http://127.0.0.1:{port}/v1"


def check(shell: Shell, url: str, named: str, kind: type[Exception], **options: object) -> None:
    outcome = shell(url, timeout=asides.Timeout(**{named: SHORT}), retries=0, **options)
    assert type(outcome.raised) is kind
    assert f"Timeout({named}=…)" in str(outcome.raised)
    assert f"{SHORT:g} s" in str(outcome.raised)


@both_shells
@pytest.mark.parametrize("drip", BEFORE_CONTENT, ids=str)
@pytest.mark.parametrize("named", ["first_byte", "total"])
def test_nothing_that_drips_before_the_content_extends_the_wait(shell: Shell, drip: Drip, named: str) -> None:
    with dripping(drip) as url:
        check(shell, url, named, asides.IdleTimeout)


@both_shells
@pytest.mark.parametrize("drip", AFTER_CONTENT, ids=str)
@pytest.mark.parametrize("named", ["idle", "total"])
def test_nothing_that_drips_after_content_extends_the_wait(shell: Shell, drip: Drip, named: str) -> None:
    with dripping(drip) as url:
        outcome = shell(url, timeout=asides.Timeout(**{named: SHORT}), retries=0)
    assert type(outcome.raised) is asides.IdleTimeout
    assert f"Timeout({named}=…)" in str(outcome.raised)
    assert outcome.partial is not None
    assert outcome.partial.text == "half"


@both_shells
@pytest.mark.parametrize("drip", KEEPS_ALIVE, ids=str)
def test_content_of_any_kind_is_no_silence_and_only_the_total_ends_it(shell: Shell, drip: Drip) -> None:
    with dripping(drip) as url:
        outcome = shell(url, timeout=asides.Timeout(idle=SHORT, total=3 * SHORT), retries=0)
    assert "Timeout(total=…)" in str(outcome.raised)
    assert outcome.partial is not None
    assert outcome.partial.text == "half"


@both_shells
@pytest.mark.parametrize("status", [b"400 Bad Request", b"503 Busy"])
def test_an_error_whose_body_drips_is_the_error_after_the_wait(shell: Shell, status: bytes) -> None:
    head = b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    with dripping(Drip("", head + b"5;", b"a")) as url:
        outcome = shell(url, timeout=asides.Timeout(first_byte=SHORT), retries=0)
    assert isinstance(outcome.raised, asides.ProviderError)
    assert outcome.raised.status == int(status[:3])


@both_shells
def test_a_reply_that_is_whole_is_returned_though_the_server_goes_on_and_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_sync", "http_async"):
        monkeypatch.setattr(f"asides.transports.{name}.MOST_PATIENCE", 0.5)
    with dripping(Drip("", OPEN + b"\r\n" + stream({"content": "42"}), b": alive\n\n")) as url:
        outcome = shell(url, timeout=None, retries=0)
    assert outcome.reply is not None
    assert outcome.reply.text == "42"


@both_shells
def test_an_error_is_raised_though_its_body_comes_byte_by_byte(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_sync", "http_async"):
        monkeypatch.setattr(f"asides.transports.{name}.MOST_PATIENCE", 0.1)
    with dripping(Drip("", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 60000\r\n\r\n", b"a")) as url:
        outcome = shell(url, timeout=None, retries=0)
    assert isinstance(outcome.raised, asides.BadRequest)


# --- the way to the server --------------------------------------------------------------------------------------------

CONNECTING = [
    Drip("silence", b"", b""),
    # A record that is announced long and comes byte by byte.
    Drip("a TLS record", b"\x16\x03\x03\x40\x00", b"\x02"),
]
TUNNELLING = [
    Drip("silence", b"", b""),
    Drip("the status line", b"HTTP/1.1 200 ", b"O"),
    Drip("headers", b"HTTP/1.1 200 OK\r\n", b"X: a\r\n"),
    Drip("100 Continue", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    Drip("a TLS record in the tunnel", b"HTTP/1.1 200 OK\r\n\r\n", b""),
]


@both_shells
@pytest.mark.parametrize("drip", CONNECTING, ids=str)
@pytest.mark.parametrize(("named", "kind"), [("connect", asides.ConnectTimeout), ("total", asides.IdleTimeout)])
def test_a_tls_handshake_that_drips_is_given_up(shell: Shell, drip: Drip, named: str, kind: type[Exception]) -> None:
    def answer(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(65536)
        send_slowly(drip, connection, ended)

    with accepting(answer) as port:
        check(shell, f"https://127.0.0.1:{port}/v1", named, kind)


@both_shells
@pytest.mark.parametrize("drip", TUNNELLING, ids=str)
@pytest.mark.parametrize(("named", "kind"), [("connect", asides.ConnectTimeout), ("total", asides.IdleTimeout)])
def test_a_proxy_that_drips_is_given_up(
    shell: Shell, drip: Drip, named: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with dripping(drip) as url:
        monkeypatch.setenv("HTTPS_PROXY", url.removesuffix("/v1"))
        check(shell, "https://models.example/v1", named, kind)


LARGE = "x" * 20_000_000


@both_shells
@pytest.mark.parametrize("named", ["first_byte", "total"])
def test_a_server_that_does_not_read_a_large_request_is_given_up(shell: Shell, named: str) -> None:
    with accepting(lambda _, ended: ended.wait(60)) as port:
        url = f"http://127.0.0.1:{port}/v1"
        check(shell, url, named, asides.IdleTimeout, prompt=LARGE)


@both_shells
def test_a_large_request_that_is_read_slowly_takes_its_time(shell: Shell) -> None:
    def answer(connection: socket.socket, ended: threading.Event) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        received = 0
        while received < len(LARGE) // 4:
            received += len(connection.recv(1024 * 1024))
            ended.wait(0.01)
        ended.wait(0)
        connection.settimeout(0.2)
        with suppress(TimeoutError):
            while connection.recv(1024 * 1024):
                pass
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
        connection.recv(1)

    with accepting(answer) as port:
        outcome = shell(f"http://127.0.0.1:{port}/v1", LARGE, timeout=asides.Timeout(first_byte=5 * SHORT), retries=0)
    assert outcome.reply is not None
    assert outcome.reply.text == "42"


# --- answers before the request is over -----------------------------------------------------------------------------

TOO_LARGE = b'HTTP/1.1 413 Too Large\r\nContent-Length: 27\r\n\r\n{"error":{"message":"big"}}'


@both_shells
@pytest.mark.parametrize("stays", [0.0, 0.2, 60.0], ids=["closes at once", "closes soon", "stays"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["", "after a 100"])
def test_an_answer_that_comes_before_the_request_was_read_is_the_answer(
    shell: Shell, stays: float, before: bytes
) -> None:
    def answer(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(1000)
        connection.sendall(before + TOO_LARGE)
        ended.wait(stays)

    with accepting(answer) as port:
        outcome = shell(f"http://127.0.0.1:{port}/v1", LARGE, retries=0)
    assert isinstance(outcome.raised, asides.BadRequest)
    assert outcome.raised.status == 413
    assert b"big" in outcome.raised.body


@both_shells
def test_an_endless_error_is_read_to_its_limit(shell: Shell) -> None:
    def answer(connection: socket.socket, ended: threading.Event) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while not ended.is_set():
            connection.sendall(b"x" * 65536)

    with accepting(answer) as port:
        outcome = shell(f"http://127.0.0.1:{port}/v1", retries=0)
    assert isinstance(outcome.raised, asides.BadRequest)
    assert len(outcome.raised.body) == 64 * 1024


@cache
def _pack_bomb() -> bytes:
    return gzip.compress(gzip.compress(bytes(200_000_000), compresslevel=1))


@both_shells
def test_a_compressed_bomb_as_an_error_is_read_to_its_limit(shell: Shell) -> None:
    packed = _pack_bomb()

    def answer(connection: socket.socket, ended: threading.Event) -> None:
        read_request(connection)
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(packed) + packed)
        ended.wait(10)

    with accepting(answer) as port:
        outcome = shell(f"http://127.0.0.1:{port}/v1", retries=0)
    assert isinstance(outcome.raised, asides.BadRequest)
    assert len(outcome.raised.body) == 64 * 1024
