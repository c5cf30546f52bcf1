"""Requests and responses over HTTP: methods, paths, framing, streams, signs of life, errors of our own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import ExitStack
from itertools import takewhile
from select import select
from typing import Any, NoReturn

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay import RelayExchange
from asides.relay.steps import UnconfirmedRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
from asides_gateway import web
from asides_gateway.relay_handler import read_client
from asides_gateway.request_record import RequestRecord
from asides_gateway.watcher import RequestWatcher
from asides_stage import Say, Stage
from asides_stage.stage import Fail, Hang, Raw, Scene
from tests.gateway.http_client import MODEL, Client, Held, ask, chat, gateway_before, message, wait_for
from tests.loopback import serving, whole_response
from tests.relay.relaying import CALLERS, Response, read_response, write_request

STREAM_TYPES = {
    "anthropic": "text/event-stream",
    "bedrock": "application/vnd.amazon.eventstream",
    "cohere": "text/event-stream",
    "gemini": "text/event-stream",
    "ollama": "application/x-ndjson",
    "openai_chat": "text/event-stream",
    "gemini_interactions": "text/event-stream",
    "openai_responses": "text/event-stream",
}
PINGS = {
    "anthropic": b"event: ping\n",
    "bedrock": b"",
    "cohere": b": ping\n\n",
    "gemini": b"\r\n",
    "gemini_interactions": b": ping\n\n",
    "ollama": b'"content":""',
    "openai_chat": b": ping\n\n",
    "openai_responses": b": ping\n\n",
}


class Seen(RequestWatcher):
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.ends: list[RequestRecord] = []

    def end(self, record: RequestRecord) -> None:
        self.ends.append(record)

    def wait(self, count: int = 1) -> list[RequestRecord]:
        assert wait_for(lambda: len(self.ends) >= count), "the watcher was not told of the end"
        return self.ends


def send(client: Client, dialect: str, model: str = MODEL, *, stream: bool, session: str = "") -> None:
    """Send a request as a client of this dialect does. `session`: it names its session, as coding agents do."""
    # Where the first block of a reply is its answer, thinking comes only if it was asked for.
    thinking = Thinking(effort="low") if dialect in ("anthropic", "gemini") else Thinking()
    request = write_request(dialect, model, Prompt((user("?"),), stream=stream, thinking=thinking))
    path = f"{request.path}?{request.query}" if request.query else request.path
    headers = [(name, value) for name, value in request.headers.items() if name != "host"]
    headers += [("session-id", session)] if session else []
    client.send(request.method, path, request.body, headers)


# --- every dialect ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", CALLERS)
def test_a_reply_in_every_dialect(dialect: str, stream: bool) -> None:
    seen = Seen()
    with Stage([Say(thinking="six sevens", text="forty-two")]) as stage, gateway_before(stage, seen) as gateway:
        with Client(gateway) as client:
            send(client, dialect, stream=stream)
            answer = client.read()
        end = seen.wait()[0]
    reply = read_response(dialect, MODEL, Response(answer.status, answer.headers, answer.body, None))
    assert reply.thinking
    assert (reply.thinking.text, reply.text) == ("six sevens", "forty-two")
    assert answer.is_complete
    if stream:
        assert answer.headers["content-type"].startswith(STREAM_TYPES[dialect])
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["transfer-encoding"] == "chunked"
    else:
        assert int(answer.headers["content-length"]) == len(answer.body)
    assert end.dialect == dialect
    assert end.id in answer.headers.values()
    assert (end.ended, end.status, end.sent_bytes) == ("done", 200, len(answer.body))
    assert end.model == MODEL
    assert end.first_byte is not None
    assert 0 < end.first_byte <= end.seconds


@pytest.mark.parametrize("dialect", CALLERS)
def test_an_error_of_the_provider_before_the_first_byte(dialect: str) -> None:
    with (
        Stage([Fail(status=429, retry_after=7)]) as stage,
        gateway_before(stage, options=Options(retries=0)) as gateway,
        Client(gateway) as client,
    ):
        send(client, dialect, stream=True)
        answer = client.read()
    assert answer.status == 429
    assert answer.headers["retry-after"] == "7"
    assert int(answer.headers["content-length"]) == len(answer.body)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", CALLERS)
def test_a_client_waits_for_a_provider_by_itself(dialect: str, stream: bool) -> None:
    with Stage([Fail(status=429, retry_after=7)]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        began = time.monotonic()
        send(client, dialect, stream=stream)
        answer = client.read()
        assert time.monotonic() - began < 5
        assert len(stage.requests) == 1
    assert answer.status == 429
    assert answer.headers["retry-after"] == "7"


def test_a_gateway_waits_as_long_as_it_is_told_to() -> None:
    answers: list[Scene] = [Fail(status=429, retry_after=2), Say(text="42")]
    with Stage(answers) as stage, gateway_before(stage, options=Options(max_wait=3.0)) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
    with Stage(answers) as stage, gateway_before(stage) as gateway:
        body = {**chat(), "asides": {"max_wait": 3}}
        assert ask(gateway, "POST", "/v1/chat/completions", body).status == 200


# --- methods, paths, heads --------------------------------------------------------------------------------------------


def test_head_and_get() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        for path in ("/", "/v1/models", "/api/version", "/api/tags"):
            got = client.ask("GET", path)
            head = client.ask("HEAD", path)  # on the same connection: a body would spoil the next answer
            assert head.status == got.status == 200, path
            assert head.headers["content-length"] == got.headers["content-length"]
        assert client.ask("HEAD", "/nothing").status == 404
        assert client.ask("GET", "/v1/chat/completions").headers["allow"] == "POST"
        assert client.ask("DELETE", "/v1/messages").status == 405
        assert client.ask("POST", "/v1/messages?beta=true", message()).json["content"] == [
            {"type": "text", "text": "42"}
        ]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=x", "/v1/chat/completions"])
def test_a_web_socket_is_told_to_use_http(path: str) -> None:
    upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        assert client.ask("GET", path, headers=upgrade).status == 426
        assert client.ask("POST", "/v1/chat/completions", chat()).status == 200  # the connection is still good


def test_a_client_that_offers_http2_is_answered_in_http1() -> None:
    offer = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAEAAEAAAAIAAAABAAMAAABk"),
    ]
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        assert client.ask("POST", "/v1/chat/completions", chat(), offer).status == 200
        assert client.ask("POST", "/v1/chat/completions", chat()).status == 200


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/openrouter%3Aa%2Fb:generateContent", "a/b"),
        ("/v1beta/models/openrouter:a/b:generateContent", "a/b"),
        ("/v1beta/models/openrouter:a/b:free:generateContent", "a/b:free"),
        ("/v1beta/models/openrouter:100%2525:generateContent", "100%25"),  # decoded once, and not again
        ("//v1beta/models/openrouter:x:generateContent", "x"),
        ("/any/prefix/v1beta/models/openrouter:x:generateContent?alt=json", "x"),
    ],
)
def test_a_model_in_a_path_is_decoded_once(path: str, model: str) -> None:
    with Stage([Say(text="42")], rules="lenient") as stage, gateway_before(stage) as gateway:
        answer = ask(gateway, "POST", path, {"contents": [{"role": "user", "parts": [{"text": "?"}]}]})
        assert answer.status == 200, answer.body
        assert stage.requests[0].json["model"] == model


def test_headers_that_come_twice_are_joined() -> None:
    body = message(model="anthropic:claude-opus-4-5")
    headers = [("anthropic-version", "2023-06-01"), ("anthropic-beta", "one-2026"), ("Anthropic-Beta", "two-2026")]
    with Stage([Say(text="42")], rules="lenient") as stage, gateway_before(stage) as gateway:
        assert ask(gateway, "POST", "/v1/messages", body, headers).status == 200
        assert stage.requests[0].headers["anthropic-beta"] == "one-2026, two-2026"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b'{"model": 1}', b"null", b"[" * 100_000, b'{"a":NaN}']
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/v2/chat"])
def test_a_body_that_is_no_request(path: str, body: bytes) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        answer = client.ask("POST", path, body)
        assert answer.status in (400, 404), answer.body
        assert answer.json
        assert client.ask("HEAD", "/").status == 200


def test_headers_of_a_provider_that_http_does_not_allow() -> None:
    def answer(_: object, connection: Any) -> bool:
        body = b'{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"end_turn",'
        body += b'"usage":{"input_tokens":1,"output_tokens":1}}'
        connection.sendall(
            whole_response(
                body,
                request_id="req\x01split",
                anthropic_good="yes",
                x_ratelimit_limit="caf\xe9",
                retry_after="1",
            )
        )
        return True

    body = message(model="anthropic:claude-opus-4-5")
    with serving(answer) as server, gateway_before(server.url) as gateway:
        got = ask(gateway, "POST", "/v1/messages", body, [("anthropic-version", "2023-06-01")])
    assert got.status in (200, 502), got.body
    assert "\x01" not in repr(got.headers)


def test_http_1_0() -> None:
    body = msgspec.json.encode(chat(True))
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.write(b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        answer = client.read()
    assert answer.status == 200
    assert "transfer-encoding" not in answer.headers
    assert answer.body.endswith(b"data: [DONE]\n\n")


def test_requests_in_a_row_without_waiting() -> None:
    """Pipelining: answers come in the order of the requests."""
    with (
        Stage(lambda served: Say(text=served.prompt.messages[-1].text)) as stage,
        gateway_before(stage) as gateway,
        Client(gateway) as client,
    ):
        for number in range(40):
            question = [{"role": "user", "content": f"number {number}"}]
            client.send("POST", "/v1/chat/completions", chat(number % 2 == 0, messages=question))
        for number in range(40):
            answer = client.read()
            assert answer.status == 200
            assert f"number {number}".encode() in answer.body


def test_the_first_word_of_a_client() -> None:
    assert read_client({"user-agent": "claude-cli/2.1.9 (external, cli)"}) == "claude-cli/2.1.9"
    assert read_client({"user-agent": "\udcff evil\n"}) == ""
    assert read_client({}) == ""
    assert len(read_client({"user-agent": "x" * 5000})) == 60


# --- limits -----------------------------------------------------------------------------------------------------------


def test_one_key_cannot_take_all_requests() -> None:
    """Of eight requests a greedy key gets four, a second one two, a third one one, and one is left for the next."""
    keys = tuple(f"sk-gateway-0123456789-{number}" for number in range(4))
    with Stage(Hang()) as stage, gateway_before(stage, keys=keys, max_requests=8) as gateway, ExitStack() as clients:

        def is_accepted(key: str) -> bool:
            client, before = clients.enter_context(Client(gateway)), len(stage.requests)
            client.send("POST", "/v1/messages", message(), [("x-api-key", key)])
            assert wait_for(lambda: len(stage.requests) > before or select([client.socket], [], [], 0)[0])
            if len(stage.requests) > before:
                return True
            refused = client.read()
            assert (refused.status, refused.headers["retry-after"]) == (429, "5")
            assert refused.json["error"]["type"] == "rate_limit_error"
            return False

        taken = [sum(takewhile(bool, (is_accepted(key) for _ in range(9)))) for key in keys[:3]]
        assert taken == [4, 2, 1]
        assert is_accepted(keys[3])
        clients.close()
        assert wait_for(lambda: gateway.service.open_requests == 0)


def test_the_only_key_may_use_all_requests() -> None:
    key = [("x-api-key", "sk-gateway-0123456789")]
    with (
        Stage(Hang()) as stage,
        gateway_before(stage, keys=(key[0][1],), max_requests=3) as gateway,
        ExitStack() as opened,
    ):
        for _ in range(3):
            opened.enter_context(Client(gateway)).send("POST", "/v1/messages", message(), key)
        assert stage.wait_until(lambda: len(stage.requests) == 3, 30)
        assert ask(gateway, "POST", "/v1/messages", message(), key).status == 503


def test_too_many_requests_under_way() -> None:
    with Stage([Hang()]) as stage, gateway_before(stage, max_requests=2) as gateway:
        clients = [Client(gateway) for _ in range(2)]
        for client in clients:
            client.send("POST", "/v1/messages", message())
        assert stage.wait_until(lambda: len(stage.requests) == 2, 30)
        refused = ask(gateway, "POST", "/v1/messages", {})
        assert refused.status == 503
        assert refused.headers["retry-after"] == "5"
        assert refused.json["type"] == "error"
        for client in clients:
            client.close()
        assert wait_for(lambda: ask(gateway, "HEAD", "/").status == 200)


# --- streams ----------------------------------------------------------------------------------------------------------


def test_each_event_is_written_as_it_comes() -> None:
    """The provider writes the next word when the client has got the one before."""
    words = ["one ", "two ", "three ", "four "]
    arrived = threading.Semaphore(1)

    def answer(_: object, connection: Any) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for word in words:
            assert arrived.acquire(timeout=40), "the word before did not reach the client"
            event = {"id": "x", "choices": [{"index": 0, "delta": {"content": word}}]}
            connection.sendall(b"data: %b\n\n" % msgspec.json.encode(event))
        return False

    with serving(answer) as server, gateway_before(server.url) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/chat/completions", chat(True, model="openrouter:any"))
        client.read_head()
        got = b""
        chunks = client.read_chunks()
        for word in words:
            while word.strip().encode() not in got:
                got += next(chunks)
            arrived.release()


@pytest.mark.parametrize("dialect", CALLERS)
def test_an_early_head_and_signs_of_life_before_a_silent_provider(dialect: str) -> None:
    """The provider is silent until the client has a head and three signs of life, where its dialect has some."""
    silent = Held(Say(thinking="hm", text="42"))
    with Stage(silent) as stage, gateway_before(stage, ping_seconds=0.05) as gateway, Client(gateway) as client:
        began = time.monotonic()
        send(client, dialect, stream=True)
        if not PINGS[dialect]:
            threading.Timer(0.3, silent.let).start()
        status, headers = client.read_head()
        waited = time.monotonic() - began
        chunks, body = client.read_chunks(), b""
        while body.count(PINGS[dialect]) < 3 and PINGS[dialect]:
            body += next(chunks)
        silent.let()
        body += b"".join(chunks)
    reply = read_response(dialect, MODEL, Response(status, headers, body, None))
    assert reply.thinking
    assert (reply.thinking.text, reply.text) == ("hm", "42")
    assert headers["content-type"].startswith(STREAM_TYPES[dialect])
    assert client.ended
    if not PINGS[dialect]:
        assert waited > 0.25
        return
    assert headers["x-accel-buffering"] == "no"
    assert any("request-id" in name for name in headers)
    assert body[: body.index(b'42"')].count(PINGS[dialect]) >= 3


@pytest.mark.parametrize("dialect", CALLERS)
def test_signs_of_life_within_a_stream(dialect: str) -> None:
    with (
        Stage([Say(text="six seven", piece=4, pause=0.25)]) as stage,
        gateway_before(stage, ping_seconds=0.05) as gateway,
        Client(gateway) as client,
    ):
        send(client, dialect, stream=True)
        answer = client.read()
    reply = read_response(dialect, MODEL, Response(answer.status, answer.headers, answer.body, None))
    assert reply.text == "six seven"
    assert answer.body.count(PINGS[dialect]) >= 2 or not PINGS[dialect]


FORWARDED = b"".join(
    b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))
    for kind, fields in (
        ("message_start", {"message": {"id": "msg_1", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "forty-two"}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        ("message_stop", {}),
    )
)


def test_signs_of_life_never_come_within_a_forwarded_event() -> None:
    """The provider sends 37 bytes, waits, and so on: a sign of life only where an event is whole."""
    seen = Seen()
    body = message(True, model="anthropic:claude-opus-4-5")
    slow = Raw(body=FORWARDED, chunk=37, pause=0.06)
    with Stage([slow]) as stage, gateway_before(stage, seen, ping_seconds=0.02) as gateway:
        answer = ask(gateway, "POST", "/v1/messages", body, [("anthropic-version", "2023-06-01")])
        record = seen.wait()[0]
    assert record.mode == "forward", record.reason
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert answer.body.replace(ping, b"") == FORWARDED
    assert all(before.endswith(b"\n\n") or not before for before in answer.body.split(ping)[:-1])


def test_signs_of_life_between_forwarded_events() -> None:
    body = message(True, model="anthropic:claude-opus-4-5")
    first = FORWARDED.index(b"event: content_block_delta")
    with (
        Stage([Raw(body=FORWARDED, chunk=first, pause=0.6)]) as stage,
        gateway_before(stage, ping_seconds=0.05) as gateway,
    ):
        answer = ask(gateway, "POST", "/v1/messages", body, [("anthropic-version", "2023-06-01")])
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert answer.body.replace(ping, b"") == FORWARDED
    got = answer.body
    while got.startswith(ping):  # before the provider has begun
        got = got.removeprefix(ping)
    assert got[first:].startswith(ping)


@pytest.mark.parametrize("dialect", [dialect for dialect in CALLERS if PINGS[dialect]])
def test_an_error_after_an_early_head_ends_the_stream(dialect: str) -> None:
    seen, silent = Seen(), Held(Fail(status=503, message="out to lunch"))
    with (
        Stage(silent) as stage,
        gateway_before(stage, seen, ping_seconds=0.05, options=Options(retries=0)) as gateway,
    ):
        with Client(gateway) as client:
            send(client, dialect, stream=True)
            status, _ = client.read_head()
            silent.let()
            body = b"".join(client.read_chunks())
        end = seen.wait()[0]
    assert status == 200
    assert client.ended
    assert b"out to lunch" in body
    assert (end.ended, end.status) == ("failed", 200)


def test_a_forwarded_error_after_an_early_head_ends_the_stream_too() -> None:
    body = message(True, model="anthropic:claude-opus-4-5")
    silent = Held(Fail(status=529, message="overloaded for now"))
    with Stage(silent) as stage, gateway_before(stage, ping_seconds=0.05) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/messages", body, [("anthropic-version", "2023-06-01")])
        status, _ = client.read_head()
        silent.let()
        events = b"".join(client.read_chunks())
    assert status == 200
    last = events.split(b"\n\n")[-2]
    assert last.startswith(b"event: error\n"), events
    assert b"overloaded for now" in last


def test_another_target_is_asked_after_an_early_head() -> None:
    """Only signs of life have left, so that nothing is spliced."""
    silent = Held(Fail(status=503), Say(text="from the second"))
    routes = {"best": {"targets": [MODEL, "openrouter:second"]}}
    with Stage(silent, rules="lenient") as stage:
        with (
            gateway_before(stage, ping_seconds=0.05, tables={"routes": routes}, options=Options(retries=0)) as gateway,
            Client(gateway) as client,
        ):
            client.send("POST", "/v1/chat/completions", chat(True, model="best"))
            client.read_head()
            chunks, body = client.read_chunks(), b""
            for count in (2, 4):
                while body.count(b": ping\n\n") < count:
                    body += next(chunks)
                silent.let()
            body += b"".join(chunks)
        assert len(stage.requests) == 2
    assert b"from the sec" in body
    assert body.endswith(b"data: [DONE]\n\n")


def test_a_whole_reply_gets_no_sign_of_life() -> None:
    with Stage([Say(text="42", delay=0.4)]) as stage, gateway_before(stage, ping_seconds=0.05) as gateway:
        answer = ask(gateway, "POST", "/v1/chat/completions", chat())
    assert answer.json["choices"][0]["message"]["content"] == "42"


# --- errors of our own ------------------------------------------------------------------------------------------------


def _fail(*_: object) -> NoReturn:
    raise AssertionError("SECRET PROMPT in the words of an exception")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini:g:generateContent"])
def test_an_error_of_ours_is_answered_in_the_callers_dialect(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    monkeypatch.setattr(RelayExchange, "steps", _fail)
    with caplog.at_level(logging.DEBUG), Stage([Say(text="42")]) as stage, gateway_before(stage, seen) as gateway:
        with Client(gateway) as client:
            answer = client.ask("POST", path, chat())
            assert client.ask("HEAD", "/ui/").status in (200, 405)  # the connection is still good
        assert seen.wait()[0].ended == "failed"
    assert answer.status == 500
    assert "error" in answer.json
    assert b"SECRET" not in answer.body
    assert "SECRET" not in caplog.text
    assert "AssertionError" in caplog.text


def test_an_error_of_ours_within_a_stream_ends_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from asides.relay.relayed_exchange import RelayedExchange

    fit, calls = RelayedExchange._fit, []  # pyright: ignore[reportPrivateUsage]

    def fail_later(self: RelayedExchange, events: Any) -> Any:
        calls.append(1)
        return fit(self, events) if len(calls) < 4 else _fail()

    monkeypatch.setattr(RelayedExchange, "_fit", fail_later)
    with (
        Stage([Say(thinking="hm", text="one two three four five", piece=4, pause=0.02)]) as stage,
        gateway_before(stage) as gateway,
    ):
        answer = ask(gateway, "POST", "/v1/messages", message(True))
    assert answer.status == 200
    assert answer.is_complete
    assert b"event: error\n" in answer.body
    assert b"SECRET" not in answer.body
    assert "SECRET" not in caplog.text


def test_a_watcher_that_fails_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RequestWatcher):
        def end(self, record: RequestRecord) -> None:
            _fail(record)

    seen = Seen()
    with Stage([Say(text="42")]) as stage, gateway_before(stage, Broken(), seen) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
        assert len(seen.wait()) == 1
    assert "SECRET" not in caplog.text


# --- clients that leave -----------------------------------------------------------------------------------------------


def test_a_client_that_leaves_is_told_to_watchers() -> None:
    seen = Seen()
    with (
        Stage([Say(thinking="hm", text="x" * 2000, piece=2, pause=0.02)]) as stage,
        gateway_before(stage, seen) as gateway,
    ):
        client = Client(gateway)
        client.send("POST", "/v1/chat/completions", chat(True))
        client.read_head()
        next(client.read_chunks())
        client.close()
        end = seen.wait()[0]
        assert stage.wait_until(lambda: stage.closed_early == 1, 30)
        assert wait_for(lambda: gateway.service.open_requests == 0)
    assert end.ended == "left"
    assert end.status == 200
    assert end.mode == "translate"
    assert end.sent_bytes > 0


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_turn_is_confirmed_when_its_end_has_left(stream: bool, leaves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: web.StreamResponse) -> NoReturn:
        raise ConnectionResetError

    confirmed: list[UnconfirmedRecord] = []
    monkeypatch.setattr(MemoryVault, "confirm", lambda _, record: confirmed.append(record))
    if leaves:
        monkeypatch.setattr(web.StreamResponse, "write_eof", fail)
        monkeypatch.setattr(web.Response, "write_eof", fail)
    seen = Seen()
    with (
        Stage([Say(thinking="hm", text="forty-two")]) as stage,
        gateway_before(stage, seen, state_mode="memory") as gateway,
        Client(gateway) as client,
    ):
        send(client, "ollama", "anthropic:claude-sonnet-4-5", stream=stream, session="mine")
        end = seen.wait()[0]
    assert end.ended == ("left" if leaves else "done")
    assert end.mode is not None
    assert len(confirmed) == (not leaves)


@pytest.mark.parametrize("has_all", [False, True])
def test_a_client_that_leaves_with_the_last_event_has_its_turn(has_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(_: web.StreamResponse) -> None:
        await asyncio.sleep(30)

    confirmed: list[UnconfirmedRecord] = []
    monkeypatch.setattr(MemoryVault, "confirm", lambda _, record: confirmed.append(record))
    monkeypatch.setattr(web.StreamResponse, "write_eof", wait)
    seen = Seen()
    with (
        Stage([Say(thinking="hm", text="forty-two " * 20, piece=8, pause=0.01)]) as stage,
        gateway_before(stage, seen, state_mode="memory") as gateway,
        Client(gateway) as client,
    ):
        send(client, "ollama", "anthropic:claude-sonnet-4-5", stream=True, session="mine")
        client.read_head()
        assert any(b'"done":true' in chunk or not has_all for chunk in client.read_chunks())
        client.close()
        end = seen.wait()[0]
    assert end.ended == "left"
    assert len(confirmed) == has_all


def test_a_client_that_takes_nothing_is_left() -> None:
    seen = Seen()
    settings: dict[str, Any] = {"ping_seconds": 0.1, "stall_seconds": 0.4}
    stop = threading.Event()

    def flood(_: object, connection: Any) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        event = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 60_000 + b'"}}]}\n\n'
        while not stop.is_set():
            connection.sendall(event)
        return False

    with serving(flood) as server, gateway_before(server.url, seen, **settings) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/chat/completions", chat(True, model="openrouter:any"))
        end = seen.wait()[0]
        stop.set()
    assert end.ended == "left"
