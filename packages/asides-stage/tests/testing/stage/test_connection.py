"""Connections of clients: kept alive, pipelined, in chunks, HTTP/1.0, many at once, and no HTTP at all."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from asides_stage import OpenStage, Raw, Say
from tests.testing.stage.http_client import Answer, as_http, body_of, connected, raw_socket, read_all


def test_bytes_that_are_no_http_get_400_and_end_the_connection(stage: OpenStage) -> None:
    opened = stage()
    with raw_socket(opened, b"\x16\x03\x01 hello\r\n\r\n more") as client:
        received = read_all(client)
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in received


def test_a_connection_serves_the_next_request_too(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    with connected(opened) as connection:
        for stream in (True, False, True):
            connection.request("POST", "/v1/chat/completions", body_of(stream=stream))
            answer = Answer(connection.getresponse())
            assert (answer.status, answer.headers["connection"]) == (200, "keep-alive")
    assert (opened.connections, len(opened.requests)) == (1, 3)


def test_pipelined_requests_are_answered_in_order(stage: OpenStage) -> None:
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
    questions = [received.served.prompt.messages[-1].text for received in opened.requests if received.served]
    assert questions == ["in chunks", "waits"]


@pytest.mark.parametrize("option", ["close", "keep-alive"])
def test_an_old_client_gets_a_stream_that_ends_with_the_connection(stage: OpenStage, option: str) -> None:
    request = as_http(body_of(stream=True), f"Connection: {option}", version="1.0")
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
