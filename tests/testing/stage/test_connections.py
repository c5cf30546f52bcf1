"""What the stage sees and whom it lets in, over real sockets: requests, keys, connections, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from asides.dialects.dialect import ServedRequest
from asides.testing.stage import Hang, OpenStage, Raw, Say, Stage
from asides.values.errors import ConfigError
from tests.testing.stage.http_client import Answer, as_http, body_of, connected, ended, get, post, raw_socket, read_all

# --- what the stage saw -----------------------------------------------------------------------------------------------


def test_requests_are_kept_as_they_came(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    post(opened, "what?", headers={"Authorization": "Bearer secret"}, temperature=0.5)
    [received] = opened.requests
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.headers["authorization"] == "Bearer secret"
    assert received.json["temperature"] == 0.5
    assert received.served is not None
    assert received.served.prompt.messages[-1].text == "what?"
    assert "secret" not in repr(received)
    assert "what?" not in repr(received)


def test_a_client_that_leaves_early_is_counted(stage: OpenStage) -> None:
    opened = stage(Say("hi", pause=0.05), Hang(), Say("hi"))
    for _ in range(2):
        with raw_socket(opened, as_http(body_of(stream=True))):
            assert opened.wait_until(lambda: len(opened.requests) == 1 + opened.closed_early)
        assert opened.wait_until(lambda: len(opened.requests) == opened.closed_early)
    post(opened)
    assert opened.wait_until(lambda: opened.open_connections == 0)
    assert opened.closed_early == 2


def test_a_client_that_leaves_a_large_reply_unread_is_counted(stage: OpenStage) -> None:
    opened = stage(Raw(b"x" * 30_000_000))
    with raw_socket(opened, as_http(body_of())) as client:
        client.recv(1000)
    assert opened.wait_until(lambda: opened.closed_early == 1)


def test_nothing_is_left_of_a_client_that_left(stage: OpenStage, caplog: pytest.LogCaptureFixture) -> None:
    opened = stage(Hang(), Say("hi", pause=0.02))
    for _ in range(2):
        with raw_socket(opened, as_http(body_of(stream=True))):
            assert opened.wait_until(lambda: len(opened.requests) == 1 + opened.closed_early)
        assert opened.wait_until(lambda: opened.open_connections == 0)
    time.sleep(0.1)  # a conversation that went on would write in the meantime
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_client_that_read_everything_did_not_leave_early(stage: OpenStage) -> None:
    opened = stage(Raw(b"x" * 3_000_000, chunk=500_000), Say("hi"))
    for _ in range(20):
        post(opened, stream=True)
    assert opened.wait_until(lambda: opened.open_connections == 0)
    assert opened.closed_early == 0


def test_waiting_for_what_does_not_come_ends(stage: OpenStage) -> None:
    opened = stage()
    assert opened.wait_until(lambda: bool(opened.requests), timeout=0.05) is False


def test_what_a_script_raises_is_answered_500_and_raised_on_closing() -> None:
    def broken(request: ServedRequest) -> Say:
        raise LookupError(request.model)

    opened = Stage(broken).start()
    answer = post(opened)
    assert answer.status == 500
    assert "LookupError" in answer.json["error"]["message"]
    with pytest.raises(LookupError, match="any"):
        opened.close()


def test_what_went_wrong_in_the_block_is_not_hidden_by_the_script() -> None:
    def broken(_: ServedRequest) -> Say:
        raise LookupError

    def use() -> None:
        with Stage(broken) as opened:
            post(opened)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()


# --- doors ------------------------------------------------------------------------------------------------------------


def test_models_and_health(stage: OpenStage) -> None:
    opened = stage(models=("a", "b"))
    assert [model["id"] for model in get(opened, "/v1/models").json["data"]] == ["a", "b"]
    assert get(opened, "/health").json["status"] == "ok"
    with raw_socket(opened, b"HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n") as client:
        head = read_all(client)
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert head.endswith(b"\r\n\r\n"), "a head and no body"


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/api/openai/v4/chat/completions/"])
def test_any_prefix_will_do(stage: OpenStage, path: str) -> None:
    with connected(stage(Say("hi"))) as connection:
        connection.request("POST", path, body_of())
        assert Answer(connection.getresponse()).json["choices"][0]["message"]["content"] == "hi"


def test_what_is_not_there_and_what_is_asked_wrongly(stage: OpenStage) -> None:
    opened = stage()
    missing = get(opened, "/v1/nothing")
    assert missing.status == 404
    assert "/v1/nothing" in missing.json["error"]["message"]
    wrong = get(opened, "/v1/chat/completions")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert get(opened, "/v1/models", "DELETE").status == 405
    assert [received.problem is None for received in opened.requests] == [False, False, False]


def test_a_request_that_cannot_be_read_takes_no_scene(stage: OpenStage) -> None:
    opened = stage(Say("first"), Say("second"))
    for body in (b"{", b"[]", b'{"model": "x"}'):
        with connected(opened) as connection:
            connection.request("POST", "/v1/chat/completions", body)
            answer = Answer(connection.getresponse())
        assert answer.status == 400
        assert answer.json["error"]["message"]
    assert [received.served for received in opened.requests] == [None] * 3
    assert post(opened).json["choices"][0]["message"]["content"] == "first"


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"x-api-key": "wrong"}]
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_key_that_is_wrong(stage: OpenStage, headers: dict[str, str], path: str) -> None:
    answer = get(stage(key="secret"), path, "POST", headers)
    assert answer.status == 401
    assert answer.json["error"]["type"] == "authentication_error"
    assert "secret" not in answer.body.decode()


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer secret"}, {"X-API-Key": "secret"}, {"api-key": "secret"}]
)
def test_a_key_that_is_right(stage: OpenStage, headers: dict[str, str]) -> None:
    assert post(stage(Say("hi"), key="secret"), headers=headers).status == 200


def test_what_is_no_http_is_told_so_and_ended(stage: OpenStage) -> None:
    opened = stage()
    with raw_socket(opened, b"\x16\x03\x01 hello\r\n\r\n more") as client:
        received = read_all(client)
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in received


# --- connections ------------------------------------------------------------------------------------------------------


def test_a_connection_is_kept_for_the_next_request(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    with connected(opened) as connection:
        for stream in (True, False, True):
            connection.request("POST", "/v1/chat/completions", body_of(stream=stream))
            answer = Answer(connection.getresponse())
            assert (answer.status, answer.headers["connection"]) == (200, "keep-alive")
    assert (opened.connections, len(opened.requests)) == (1, 3)


def test_requests_one_behind_the_other_are_answered_in_order(stage: OpenStage) -> None:
    opened = stage(Say("first", delay=0.05), Say("second"))
    with raw_socket(opened, as_http(body_of()) + as_http(body_of(), "Connection: close")) as client:
        received = read_all(client)
    assert received.index(b"first") < received.index(b"second")


def test_a_body_in_chunks_and_one_that_waits_for_continue(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    with connected(opened) as connection:
        body = body_of("in chunks")
        connection.request("POST", "/v1/chat/completions", iter([body[:10], body[10:]]), encode_chunked=True)
        assert Answer(connection.getresponse()).status == 200
    request = as_http(body_of("waits"), "Expect: 100-continue", "Connection: close")
    head, _, body = request.partition(b"\r\n\r\n")
    with raw_socket(opened, head + b"\r\n\r\n") as client:
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert read_all(client).startswith(b"HTTP/1.1 200 OK\r\n")
    heard = [received.served.prompt.messages[-1].text for received in opened.requests if received.served]
    assert heard == ["in chunks", "waits"]


@pytest.mark.parametrize("wish", ["close", "keep-alive"])
def test_an_old_client_gets_a_stream_that_ends_with_the_connection(stage: OpenStage, wish: str) -> None:
    request = as_http(body_of(stream=True), f"Connection: {wish}", version="1.0")
    with raw_socket(stage(Raw(b"data: 1\n\n")), request) as client:
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == b"data: 1\n\n"


async def test_many_streams_at_once(stage: OpenStage) -> None:
    opened = stage(Say("one two three four", pause=0.01, piece=5))
    address = urlsplit(opened.url)

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(as_http(body_of(stream=True), "Connection: close"))
        received = await reader.read()
        writer.close()
        await writer.wait_closed()
        return received

    answers = await asyncio.gather(*(ask() for _ in range(200)))
    assert all(answer.startswith(b"HTTP/1.1 200 OK") and answer.endswith(b"0\r\n\r\n") for answer in answers)
    assert opened.connections == 200
    assert opened.closed_early == 0


# --- beginning and end ------------------------------------------------------------------------------------------------


def stage_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "asides-stage"]


def test_closing_ends_the_thread_and_what_hangs() -> None:
    before = stage_threads()
    opened = Stage(Hang()).start()
    with raw_socket(opened, as_http(body_of())) as client, raw_socket(opened) as idle:
        assert opened.wait_until(lambda: len(opened.requests) == 1 and opened.connections == 2)
        opened.close()
        assert stage_threads() == before
        assert [ended(each) for each in (client, idle)] == [True, True]
    assert (opened.closed_early, opened.open_connections) == (0, 0)
    opened.close()


def test_closing_does_not_wait_for_a_client_that_does_not_read() -> None:
    opened = Stage(Raw(b"x" * 30_000_000)).start()
    with raw_socket(opened, as_http(body_of())) as client:
        client.recv(1000)
        opened.close()
    assert opened.open_connections == 0


def test_the_port_is_free_again_after_closing() -> None:
    with Stage(Say("a")) as first:
        port = urlsplit(first.url).port or 0
    with Stage(Say("b"), port=port) as second:
        assert post(second).json["choices"][0]["message"]["content"] == "b"


def test_a_port_that_is_taken() -> None:
    with Stage() as first, pytest.raises(ConfigError, match=r"cannot open 127[.]0[.]0[.]1 port"):
        Stage(port=urlsplit(first.url).port or 0).start()


def test_a_stage_is_started_once_and_has_an_address_only_then() -> None:
    opened = Stage()
    with pytest.raises(RuntimeError, match="not open yet"):
        _ = opened.url
    with opened:
        assert opened.url.startswith("http://127.0.0.1:")
        with pytest.raises(RuntimeError, match="started before"):
            opened.start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_other_machines_are_kept_out_unless_they_are_asked_in(host: str) -> None:
    with pytest.raises(ConfigError, match="other machines"):
        Stage(host=host)


def test_other_machines_may_be_asked_in() -> None:
    with Stage(Say("hi"), host="0.0.0.0", anywhere=True) as opened:
        assert post(opened).status == 200


def test_localhost_is_an_address_of_this_machine() -> None:
    with Stage(Say("hi"), host="localhost") as opened:
        assert opened.url.startswith("http://127.0.0.1:")
        assert post(opened).status == 200


def test_clients_that_come_while_it_closes_are_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    def come_in(address: tuple[str, int], clients: list[socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while True:
                clients.append(socket.create_connection(address, timeout=5))

    for _ in range(6):
        opened, clients = Stage(Hang()).start(), list[socket.socket]()
        address = urlsplit(opened.url)
        coming = threading.Thread(target=come_in, args=((address.hostname, address.port), clients))
        coming.start()
        while opened.connections < 4:
            time.sleep(0.001)
        opened.close()
        coming.join(10)
        for client in clients:
            client.close()
        assert opened.open_connections == 0
    gc.collect()  # a lost socket would warn now
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
