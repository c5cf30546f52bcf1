"""Connections: what is no HTTP, what is logged of it, and rest between requests."""

from __future__ import annotations

import json
import logging
import re
import time

import pytest

from asides_stage import Say, Stage
from tests.gateway.http_client import Client, ask, chat, gateway_before

CANARY = b"sk-canary-4711"
BROKEN = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + CANARY,
    b"GET / HTTP/1.1\r\nauthorization: Bearer " + CANARY + b"\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nx-api-key " + CANARY + b"\r\n\r\n",
    b"GET /?key=" + CANARY + b" and spaces HTTP/1.1\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nx-api-key: " + CANARY + b"\r\ncontent-length: twelve\r\n\r\n",
    b"POST / HTTP/1.1\r\nx-api-key: " + CANARY + b"\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"POST / HTTP/1.1\r\nx-api-key: " + CANARY + b"\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n",
    b"GET / HTTP/1.1\r\nx-api-key: " + CANARY * 8000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("request_bytes", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_http_is_refused_without_its_words(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        with Client(gateway) as client:
            client.write(request_bytes)
            answer = client.read()
            assert client.is_closed()
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
    assert (answer.status, answer.headers["server"]) == (400, "asides")
    assert re.search(r"\. [A-Z]", answer.json["error"]["message"])
    assert CANARY not in answer.body
    told = capfd.readouterr()
    assert CANARY.decode() not in caplog.text + told.out + told.err


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (b"/v1/chat/completions", ("error", "message")),
        (b"/v1/messages", ("error", "message")),
        (b"/v1beta/models/gemini-3-pro-preview:generateContent", ("error", "status")),
        (b"/v2/chat", ("message",)),
    ],
)
def test_a_head_that_cannot_be_read_is_answered_in_the_dialect_of_its_path(path: bytes, place: tuple[str, ...]) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.write(b"POST " + path + b" HTTP/1.1\r\nhost: a\r\ncontent-length: twelve\r\n\r\n")
        answer = client.read()
    assert answer.status == 400
    found = answer.json
    for name in place:
        found = found[name]
    assert isinstance(found, str)
    if b"messages" in path:
        assert answer.json["type"] == "error"


def test_a_client_may_name_itself_twice() -> None:
    body = json.dumps(chat()).encode()
    with Stage([Say(text="42"), Say(text="43")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        for _ in range(2):
            client.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nuser-agent: one/1\r\nhost: 127.0.0.1\r\nUser-Agent: two/2\r\n"
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            )
            assert client.read().status == 200


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["together", "late"])
@pytest.mark.parametrize("has_key", [True, False], ids=["with-a-key", "without"])
def test_trailers_are_no_headers(pause: float, has_key: bool) -> None:
    """They neither authenticate a request nor reach the provider, and the connection remains usable."""
    key, body = b"sk-0123456789abcdef", json.dumps(chat()).encode()
    given = b"authorization: Bearer %b\r\n" % key if has_key else b""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n%btransfer-encoding: chunked\r\n\r\n" % given
    trailers = b"Authorization: Bearer %b\r\nHTTP-Referer: http://late\r\nExpect: 100-continue\r\n" % key
    with (
        Stage([Say(text="42"), Say(text="43")]) as stage,
        gateway_before(stage, keys=(key.decode(),)) as gateway,
        Client(gateway) as client,
    ):
        for _ in range(2 if has_key else 1):
            rest = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)
            if pause:
                client.write(head)
                time.sleep(pause)
                client.write(rest)
            else:
                client.write(head + rest)
            assert client.read().status == (200 if has_key else 401)
    sent = [f"{name}: {value}" for request in stage.requests for name, value in request.headers.items()]
    assert len(stage.requests) == (2 if has_key else 0)
    assert not [line for line in sent if "late" in line]


def test_a_request_line_of_its_own_kind() -> None:
    """A target with a host, as clients of a proxy write it."""
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.write(b"GET http://127.0.0.1/v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert client.read().status == 200


def test_a_connection_that_rests_is_kept() -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, head_seconds=0.2) as gateway,
        Client(gateway) as client,
    ):
        for _ in range(3):
            assert client.ask("POST", "/v1/chat/completions", chat()).status == 200
            time.sleep(0.4)


def test_a_connection_that_never_asks_is_closed() -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, head_seconds=0.3) as gateway,
        Client(gateway) as client,
    ):
        assert client.is_closed()


@pytest.mark.parametrize("asks_before", [False, True])
def test_a_connection_that_sends_blank_lines_alone_is_closed(asks_before: bool) -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, head_seconds=0.3) as gateway,
        Client(gateway) as client,
    ):
        if asks_before:
            assert client.ask("GET", "/healthz").status == 200
        client.write(b"\r\n")
        assert client.is_closed()


def test_an_error_in_a_handler_of_the_page_is_answered_without_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: object) -> None:
        raise ValueError("SECRET PROMPT")

    monkeypatch.setattr("asides_gateway.web_app._answer_unknown", fail)
    with caplog.at_level(logging.DEBUG), Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        answer = ask(gateway, "GET", "/ui/deep/nothing")
    assert answer.status == 500
    assert re.search(r"\. [A-Z]", answer.json["error"]["message"])
    assert b"SECRET" not in answer.body
    assert "SECRET" not in caplog.text
    assert "ValueError" in caplog.text
