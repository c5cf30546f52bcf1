"""Responses that break the rules of HTTP, or use them to the full: both transports give the same reply or error."""

from __future__ import annotations

import gzip
import socket
import struct
import time
import zlib
from typing import NamedTuple

import pytest

import asides
from tests.decoding import stream, whole
from tests.loopback import ReceivedRequest, saying, serving
from tests.shells import Outcome, stream_async, stream_sync

BODY = whole({"content": "42"})
EVENTS = stream({"content": "half"}, {"content": "whole"})
HALF = EVENTS.partition(b"\n\n")[0] + b"\n\n"
PACKED = gzip.compress(BODY)
LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
HTTP = "breaks the rules of HTTP"
LOST = "closed the connection without an answer"


class Case(NamedTuple):
    """The bytes that a server sends before it closes; the answer, or the kind and a word of the error."""

    name: str
    sent: bytes
    answer: str | None = "42"
    kind: type[asides.AsidesError] = asides.TransportError
    words: str = HTTP
    partial: str | None = None

    def __str__(self) -> str:
        return self.name


def head(*lines: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"\r\n".join([status, b"Content-Type: application/json", *lines]) + b"\r\n\r\n"


def chunk(content: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(content), extension, content)


def refused(name: str, sent: bytes, words: str = HTTP) -> Case:
    return Case(name, sent, None, words=words)


def lost(name: str, sent: bytes, words: str = "", partial: str | None = None) -> Case:
    return Case(name, sent, None, asides.ConnectionLost, words, partial)


INTERIM = [
    Case("100", b"HTTP/1.1 100 Continue\r\n\r\n" + head(LENGTH) + BODY),
    Case("100 with a length", b"HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n" + head(LENGTH) + BODY),
    Case("102 twice", b"HTTP/1.1 102 Processing\r\n\r\n" * 2 + head(LENGTH) + BODY),
    Case("103", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head(LENGTH) + BODY),
    Case("199", b"HTTP/1.1 199 Made up\r\n\r\n" + head(LENGTH) + BODY),
    refused("101", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
    lost("103 and nothing else", b"HTTP/1.1 103 Early Hints\r\n\r\n", LOST),
]
LENGTHS = [
    *(
        refused(f"a length of {value[:12]!r}", head(b"Content-Length: " + value) + BODY)
        for value in (b"-5", b"+5", b"abc", b"", b"0x10", b"1_0", b"5.0", b"5 5", b"9" * 30, b"9" * 5000, b"5, 6")
    ),
    refused("two lengths", head(LENGTH, b"Content-Length: 5") + BODY),
    Case("one length twice", head(LENGTH, LENGTH) + BODY),
    refused("a length and chunks", head(LENGTH, CHUNKED) + chunk(BODY) + chunk(b"")),
    refused("chunks and a length", head(CHUNKED, LENGTH) + chunk(BODY) + chunk(b"")),
    Case("chunked twice", head(CHUNKED, CHUNKED) + chunk(BODY) + chunk(b"")),
    *(
        refused(f"the encoding {value!r}", head(b"Transfer-Encoding: " + value) + chunk(BODY) + chunk(b""))
        for value in (b"gzip, chunked", b"chunked, gzip", b"identity", b"xchunked", b"made-up", b"")
    ),
    Case("chunks in HTTP/1.0", head(CHUNKED, status=b"HTTP/1.0 200 OK") + chunk(BODY) + chunk(b"")),
    Case("no length", head() + BODY),
    Case("no length in HTTP/1.0", head(status=b"HTTP/1.0 200 OK") + BODY),
    Case("a length that is too long", head(b"Content-Length: 999") + BODY),
    Case("bytes after the body", head(LENGTH) + BODY + b"HTTP/1.1 500 Poison\r\n\r\n"),
    Case("a length that is too short", head(b"Content-Length: 20") + BODY, None, asides.ProtocolError, "not JSON"),
    lost("an empty body", head(b"Content-Length: 0"), "empty body"),
    lost("204 with a body", head(LENGTH, status=b"HTTP/1.1 204 No Content") + BODY, "empty body"),
    Case("304 with a body", head(LENGTH, status=b"HTTP/1.1 304 Same") + BODY, None, asides.ProviderError, "304"),
]
HEADS = [
    refused("a header without a colon", head(b"garbage", LENGTH) + BODY),
    refused("a header without a name", head(b": x", LENGTH) + BODY),
    refused("a space before the colon", head(b"Content-Length : %d" % len(BODY)) + BODY),
    refused("a space in a name", head(b"X Y: 1", LENGTH) + BODY),
    refused("NUL in a value", head(b"X: a\0b", LENGTH) + BODY),
    refused("CR in a value", head(b"X: a\rb", LENGTH) + BODY),
    refused("a folded first header", b"HTTP/1.1 200 OK\r\n X: a\r\n\r\n" + BODY),
    Case("a folded header", head(b"X: one\r\n two", LENGTH) + BODY),
    Case("a folded length", head(b"Content-Length:\r\n %d" % len(BODY)) + BODY),
    Case("bytes that are no ASCII", head(b"X: \xe9\xff\x01", LENGTH) + BODY),
    Case("LF only", head(LENGTH).replace(b"\r\n", b"\n") + BODY),
    Case("a long header", head(b"X: " + b"a" * 100_000, LENGTH) + BODY),
    Case("a long reason", head(LENGTH, status=b"HTTP/1.1 200 " + b"a" * 20_000) + BODY),
    Case("many headers", head(*[b"X-%d: 1" % number for number in range(1000)], LENGTH) + BODY),
    refused("a header that is too long", head(b"X: " + b"a" * 300_000, LENGTH) + BODY),
    refused("too many headers", head(*[b"X-%d: 1" % number for number in range(50_000)], LENGTH) + BODY),
    Case("no reason", head(LENGTH, status=b"HTTP/1.1 200") + BODY),
    Case("HTTP/1.2", head(LENGTH, status=b"HTTP/1.2 200 OK") + BODY),
    *(
        refused(f"the first line {line!r}", head(LENGTH, status=line) + BODY)
        for line in (
            b"HTTP/1.1 20 OK",
            b"HTTP/1.1 2000 OK",
            b"HTTP/1.1 099 OK",
            b"HTTP/1.1  200 OK",
            b"HTTP/1.1 -20 OK",
        )
    ),
    *(
        refused(f"a response that begins with {line[:9]!r}", line + b"\r\n\r\n" + BODY, "is not HTTP")
        for line in (
            b"HTTP/2 200",
            b"HTTP/0.9 200 OK",
            b"http/1.1 200 OK",
            b"ICY 200 OK",
            b"<html>",
            b"",
            b"\xef\xbb\xbf",
        )
    ),
    lost("nothing", b"", LOST),
    lost("half a status line", b"HTTP/1.1 2", LOST),
    lost("half a head", b"HTTP/1.1 200 OK\r\nContent-Le", LOST),
]
CHUNKS = [
    *(
        Case(f"the extension {extension!r}", head(CHUNKED) + chunk(BODY, extension) + chunk(b""))
        for extension in (b";a=b", b' ; a="b"', b" ", b"\t")
    ),
    Case("a trailer", head(CHUNKED) + chunk(BODY) + b"0\r\nX: y\r\n\r\n"),
    Case("no last chunk", head(CHUNKED) + chunk(BODY)),
    Case("a trailer that is none", head(CHUNKED) + chunk(BODY) + b"0\r\ngarbage\r\n\r\n"),
    Case("an endless trailer", head(CHUNKED) + chunk(BODY) + b"0\r\n" + b"X: y\r\n" * 50_000),
    *(
        lost(f"a chunk after {prefix!r}", head(CHUNKED) + chunk(HALF) + prefix + chunk(EVENTS), "middle", "half")
        for prefix in (b"-", b"+", b"0x", b" ", b"_", b"\r\n", b"g", b"f" * 20, b"5;" + b"a" * 50_000)
    ),
    lost("LF only", head(CHUNKED) + chunk(HALF).replace(b"\r\n", b"\n")),
    lost("a chunk without its end", head(CHUNKED) + chunk(HALF)[:-2] + b"XX" + chunk(EVENTS), "middle", "half"),
    lost("an end in the middle of a chunk", head(CHUNKED) + chunk(EVENTS)[: len(HALF) + 4], "middle", "half"),
    lost("an end in the middle", head(b"Content-Length: %d" % len(EVENTS)) + HALF, "middle", "half"),
    lost(
        "an end in the middle, announced", head(b"Connection: close", b"Content-Length: 999") + HALF, "middle", "half"
    ),
]
ENCODINGS = [
    *(
        Case(f"{name!r}, {len(packed)} bytes", head(b"Content-Encoding: " + name) + packed)
        for name, packed in [
            (b"gzip", PACKED),
            (b"GZip", PACKED),
            (b"x-gzip", PACKED),
            (b"gzip, gzip", gzip.compress(PACKED)),
            (b"gzip\r\nContent-Encoding: gzip", gzip.compress(PACKED)),
            (b"deflate, gzip", gzip.compress(zlib.compress(BODY))),
            (b"deflate", zlib.compress(BODY)),
            (b"deflate", zlib.compress(BODY)[2:-4]),
            (b"gzip", gzip.compress(BODY[:9]) + gzip.compress(BODY[9:])),
            (b"gzip", PACKED + b"no gzip"),
            (b"gzip", PACKED[:-4]),
            (b"identity", BODY),
            (b"none", BODY),
            (b"utf-8", BODY),
            (b"", BODY),
        ]
    ),
    *(
        refused(f"{name!r}, unreadable", head(b"Content-Encoding: " + name) + BODY, "cannot be decompressed")
        for name in (b"gzip", b"deflate", b"br", b"zstd", b"gzip, br", b"gzip, gzip, gzip, gzip")
    ),
]
ERRORS = [
    Case(f"{name} with a status of 401", sent, None, asides.AuthError, "401")
    for name, sent in [
        ("a body that is too short", head(b"Content-Length: 99", status=b"HTTP/1.1 401 No") + b"{}"),
        ("a body that is no gzip", head(b"Content-Encoding: gzip", status=b"HTTP/1.1 401 No") + b"{}"),
        ("a body in br", head(b"Content-Encoding: br", status=b"HTTP/1.1 401 No") + b"{}"),
        ("broken chunks", head(CHUNKED, status=b"HTTP/1.1 401 No") + b"no chunk\r\n"),
        ("no body", head(status=b"HTTP/1.1 401 No")),
    ]
]
CASES = [*INTERIM, *LENGTHS, *HEADS, *CHUNKS, *ENCODINGS, *ERRORS]


def describe(outcome: Outcome, port: int) -> tuple[object, ...]:
    """All that a caller sees, without the port."""
    error, reply = outcome.error, outcome.reply
    return (
        type(error),
        str(error).replace(str(port), ""),
        None if reply is None else reply.text,
        None if outcome.partial is None else outcome.partial.text,
        [type(event).__name__ for event in outcome.events],
    )


def check(outcome: Outcome, case: Case) -> None:
    if case.answer is not None:
        assert outcome.reply is not None, outcome.error
        assert outcome.reply.text == case.answer
        return
    assert type(outcome.raised) is case.kind
    assert case.words in str(outcome.raised)
    assert (None if outcome.partial is None else outcome.partial.text) == case.partial


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_transports_read_a_response_alike(case: Case) -> None:
    with serving(saying(case.sent, then=False)) as server:
        sync, awaited = stream_sync(server.url, retries=0), stream_async(server.url, retries=0)
        assert server.connections == 2
    check(sync, case)
    assert describe(sync, server.port) == describe(awaited, server.port)


@pytest.mark.parametrize("case", [case for case in CASES if len(case.sent) < 600], ids=str)
def test_how_the_bytes_are_cut_makes_no_difference(case: Case) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(0, len(case.sent), 40):
            connection.sendall(case.sent[place : place + 40])
            time.sleep(0.0005)
        return False

    with serving(answer) as server:
        for shell in (stream_sync, stream_async):
            check(shell(server.url, retries=0), case)


@pytest.mark.parametrize("shell", [stream_sync, stream_async])
@pytest.mark.parametrize("sent", [b"", head(b"Content-Length: 999") + HALF], ids=["at once", "in the middle"])
def test_a_reset_is_a_lost_connection(shell: object, sent: bytes) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(sent)
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    with serving(answer) as server:
        outcome: Outcome = shell(server.url, retries=0)  # type: ignore[operator]
    assert type(outcome.raised) is asides.ConnectionLost
    assert (outcome.partial is not None and outcome.partial.text == "half") is bool(sent)
