"""The stage's HTTP parser: requests in any chunking, and the requests that it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides_stage.stage.http_requests import BrokenRequest, Request, RequestReader

HEAD = b"POST / HTTP/1.1\r\nHost: stage\r\n"
GET = b"GET /v1/models?x=1&y=2 HTTP/1.1\r\nHost: stage\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: stage\r\nContent-Length: 5\r\nX-A: 1\r\nx-a:  2 \r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\nA;note=1\r\nlo, world!\r\n0\r\nTrailer: x\r\n\r\n"

GOOD: dict[str, tuple[bytes, list[Request]]] = {
    "without a body": (GET, [Request("GET", "/v1/models", "x=1&y=2", {"host": "stage"}, b"")]),
    "with a length": (
        POST,
        [
            Request(
                "POST", "/v1/chat/completions", "", {"host": "stage", "content-length": "5", "x-a": "1, 2"}, b"hello"
            )
        ],
    ),
    "in chunks": (
        CHUNKED,
        [Request("POST", "/", "", {"host": "stage", "transfer-encoding": "chunked"}, b"hello, world!")],
    ),
    "two in a row": (
        GET + b"\r\n" + GET,
        [Request("GET", "/v1/models", "x=1&y=2", {"host": "stage"}, b"")] * 2,
    ),
    "of the old version": (b"GET / HTTP/1.0\r\n\r\n", [Request("GET", "/", "", {}, b"", http10=True)]),
    "not all there": (POST[:-1], []),
}

BROKEN: dict[str, tuple[bytes, int]] = {
    "no request": (b"hello\r\n\r\n", 400),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "a version to come": (b"GET / HTTP/2.0\r\n\r\n", 505),
    "a proxy's address": (b"GET http://elsewhere/ HTTP/1.1\r\nHost: stage\r\n\r\n", 400),
    "a header without a colon": (b"GET / HTTP/1.1\r\nHost: stage\r\nhost\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "a space before the colon": (b"GET / HTTP/1.1\r\nHost: stage\r\na : 1\r\n\r\n", 400),
    "a length that is none": (HEAD + b"Content-Length: five\r\n\r\n", 400),
    "a length below zero": (HEAD + b"Content-Length: -5\r\n\r\n", 400),
    "two lengths": (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
    "a length and chunks": (
        b"POST / HTTP/1.1\r\nHost: stage\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "a coding nobody knows": (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "a body too large": (HEAD + b"Content-Length: 99999999999\r\n\r\n", 413),
    "a chunk without a size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
    "a chunk that is longer": (
        b"POST / HTTP/1.1\r\nHost: stage\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        400,
    ),
    "a chunk line without end": (
        b"POST / HTTP/1.1\r\nHost: stage\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000,
        431,
    ),
    "a head without end": (b"GET / HTTP/1.1\r\nHost: stage\r\n" + b"a: b\r\n" * 20_000, 431),
}


def read(*chunks: bytes) -> list[Request]:
    reader = RequestReader()
    return [request for chunk in chunks for request in reader.feed(chunk)]


@pytest.mark.parametrize(("wire", "requests"), GOOD.values(), ids=GOOD.keys())
def test_requests_read_the_same_in_any_chunking(wire: bytes, requests: list[Request]) -> None:
    assert read(wire) == requests
    assert read(*(wire[at : at + 1] for at in range(len(wire)))) == requests
    for at in range(len(wire)):
        assert read(wire[:at], wire[at:]) == requests, f"cut at {at}"


@pytest.mark.parametrize(("wire", "status"), BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("size", [7, 1_000_000])
def test_what_is_no_request_is_turned_away_with_a_status(wire: bytes, status: int, size: int) -> None:
    chunks = [wire[start : start + size] for start in range(0, len(wire), size)]
    with pytest.raises(BrokenRequest) as caught:
        read(*chunks)
    assert caught.value.status == status


@given(st.binary(max_size=200))
def test_garbage_is_turned_away_or_waited_for_and_never_breaks_the_reader(garbage: bytes) -> None:
    statuses: list[int] = []
    try:
        requests = read(garbage, b"\r\n\r\n")
    except BrokenRequest as problem:
        requests = []
        statuses.append(problem.status)
    assert all(400 <= status < 600 for status in statuses)
    assert all(request.path.startswith("/") for request in requests)


@pytest.mark.parametrize(
    ("version", "connection", "stays_open"),
    [
        ("1.1", None, True),
        ("1.1", "close", False),
        ("1.1", "TE, Close", False),
        ("1.0", None, False),
        ("1.0", "keep-alive", True),
    ],
)
def test_whether_the_connection_stays_open(version: str, connection: str | None, stays_open: bool) -> None:
    header = f"Connection: {connection}\r\n" if connection else ""
    [request] = read(f"GET / HTTP/{version}\r\nHost: stage\r\n{header}\r\n".encode())
    assert request.keeps_alive is stays_open


def test_a_client_that_waits_for_continue_gets_it_once() -> None:
    reader = RequestReader()
    assert reader.feed(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n") == []
    assert (reader.take_continue(), reader.take_continue()) == (True, False)
    [request] = reader.feed(b"ok")
    assert request.body == b"ok"


def test_a_client_that_sends_its_body_at_once_needs_no_continue() -> None:
    reader = RequestReader()
    [_] = reader.feed(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok")
    assert reader.take_continue() is False
