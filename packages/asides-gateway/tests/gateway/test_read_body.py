"""Bodies of requests: encodings, sizes, clients that ask first, and broken framing."""

from __future__ import annotations

import gzip
import os
import time
import zlib

import msgspec
import pytest

from asides.relay.error_response import RelayRefusal
from asides_gateway.read_body import decompress
from asides_stage import Say, Stage
from tests.gateway.http_client import Client, ask, chat, gateway_before

MEGABYTE = 1024 * 1024
zstandard = pytest.importorskip("zstandard")


def zstd(data: bytes) -> bytes:
    packed: bytes = zstandard.ZstdCompressor().compress(data)
    return packed


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("GZIP", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare_deflate),
    ("zstd", zstd),
    ("identity", bytes),
    ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data))),
]


@pytest.mark.parametrize(("name", "pack"), PACKERS, ids=[f"{name}-{place}" for place, (name, _) in enumerate(PACKERS)])
def test_a_body_in_an_encoding(name: str, pack: object) -> None:
    body = pack(msgspec.json.encode(chat()))  # type: ignore[operator]
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        answer = ask(gateway, "POST", "/v1/chat/completions", body, [("content-encoding", name)])
        assert answer.status == 200, answer.body
        assert "content-encoding" not in stage.requests[0].headers
    assert answer.json["choices"][0]["message"]["content"] == "42"


def test_an_encoding_that_nobody_knows() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        for name in ("br", "gzip, gzip, gzip", "x" * 500):
            answer = ask(gateway, "POST", "/v1/messages", chat(), [("content-encoding", name)])
            assert answer.status == 415
            assert answer.json["type"] == "error"
            assert "gzip" in answer.headers["accept-encoding"]
        assert not stage.requests


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_a_body_that_is_not_what_its_header_says(name: str) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        answer = ask(gateway, "POST", "/v1/chat/completions", b"\xff\x00 no such thing", [("content-encoding", name)])
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, zstd])
def test_a_small_body_that_grows_beyond_the_limit(pack: object) -> None:
    """60 MB of zeros in some ten KB: refused at the limit, and no more than it is held."""
    body: bytes = pack(bytes(60 * MEGABYTE))  # type: ignore[operator]
    name = {gzip.compress: "gzip", zlib.compress: "deflate", zstd: "zstd"}[pack]  # type: ignore[index]
    began = time.process_time()
    with pytest.raises(RelayRefusal) as problem:
        decompress(body, [name], 4 * MEGABYTE)
    spent = time.process_time() - began
    assert problem.value.status == 413
    assert spent < 0.5, f"{len(body)} bytes took {spent:.2f} s"


def test_decompressing_takes_time_in_proportion() -> None:
    """10 MB that hardly compress: as fast as the library is."""
    data = os.urandom(5 * MEGABYTE) * 2
    body = gzip.compress(data, 1)
    began = time.process_time()
    assert decompress(body, ["gzip"], 64 * MEGABYTE) == data
    spent = time.process_time() - began
    assert spent < 1, f"{len(body)} bytes took {spent:.2f} s"


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini:g:generateContent"])
def test_a_body_over_the_limit_is_refused_unread(path: str) -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, max_body=MEGABYTE) as gateway,
        Client(gateway) as client,
    ):
        client.send("POST", path, b"{", [("content-length", str(10 * MEGABYTE))])
        answer = client.read()
        assert not stage.requests
    assert answer.status == 413
    assert "error" in answer.json
    assert answer.headers["connection"] == "close"


def test_a_body_over_the_limit_without_a_length() -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, max_body=MEGABYTE) as gateway,
        Client(gateway) as client,
    ):
        client.send("POST", "/v1/messages", None, [("transfer-encoding", "chunked")])
        for _ in range(20):
            client.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        answer = client.read()
    assert answer.status == 413
    assert answer.json["type"] == "error"


def test_a_body_at_the_limit_passes() -> None:
    body = msgspec.json.encode(chat())
    with Stage([Say(text="42")]) as stage, gateway_before(stage, max_body=len(body)) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", body).status == 200
        assert ask(gateway, "POST", "/v1/chat/completions", body + b" ").status == 413


# --- clients that ask first, and slow ones ----------------------------------------------------------------------------


def test_a_client_that_asks_first() -> None:
    body = msgspec.json.encode(chat())
    expect = [("expect", "100-continue"), ("content-length", str(len(body)))]
    with Stage([Say(text="42")]) as stage, gateway_before(stage, max_body=4096) as gateway:
        with Client(gateway) as client:
            client.send("POST", "/v1/chat/completions", None, expect)
            assert client.read_head()[0] == 100
            client.write(body)
            assert client.read().status == 200
        with Client(gateway) as client:  # it sends at once
            client.send("POST", "/v1/chat/completions", body, expect)
            head = client.read_head()
            assert (client.read_head() if head[0] == 100 else head)[0] == 200
        with Client(gateway) as client:
            client.send("POST", "/v1/chat/completions", None, [expect[0], ("content-length", "999999")])
            assert client.read().status == 413  # before it has sent anything
        with Client(gateway) as client:
            client.send("POST", "/v1/chat/completions", None, [("expect", "miracles"), expect[1]])
            assert client.read().status == 417
        assert len(stage.requests) == 2


def test_a_client_that_asks_first_and_has_no_key_sends_nothing() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, keys=("k",)) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/messages", None, [("expect", "100-continue"), ("content-length", "5000000")])
        assert client.read().status == 401


def test_a_body_that_takes_too_long() -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, body_seconds=0.3) as gateway,
        Client(gateway) as client,
    ):
        client.send("POST", "/v1/messages", None, [("content-length", "100")])
        began = time.monotonic()
        for _ in range(20):
            time.sleep(0.05)
            try:
                client.write(b" ")
            except OSError:
                break
        answer = client.read()
        waited = time.monotonic() - began
    assert answer.status == 408
    assert answer.json["type"] == "error"
    assert waited > 0.25, f"{waited:.2f} s"


@pytest.mark.parametrize(
    "broken", [b"zz\r\n{}\r\n0\r\n\r\n", b"5\r\n{}\r\n0\r\n\r\n", b"-5\r\n{}\r\n", b"5;\x00\r\n12345\r\n"]
)
def test_chunks_that_are_broken(broken: bytes) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/messages", broken, [("transfer-encoding", "chunked")])
        answer = client.read()
        assert answer.status == 400
        assert client.is_closed()
        assert not stage.requests
        assert ask(gateway, "HEAD", "/").status == 200


def test_chunks_that_are_whole() -> None:
    body = msgspec.json.encode(chat())
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:])) + b"0\r\n\r\n"
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/chat/completions", chunks, [("transfer-encoding", "chunked")])
        assert client.read().status == 200
