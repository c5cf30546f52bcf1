"""The async transport by itself, over real sockets: heads, bytes as they come, patience, closing, event loops.

Whole calls through both transports: test_http_transports.py.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

import asides
from asides import aio
from asides.dialects.dialect import HttpRequest
from asides.options import Timeout
from asides.transports.http_async import AsyncHttpTransport
from asides.transports.protocols import AsyncResponse
from asides.values.errors import ConfigError, ConnectionLost, IdleTimeout
from tests.decoding import stream
from tests.loopback import ReceivedRequest, saying, serving, whole_response

FIRST = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


@pytest.fixture
async def transport() -> AsyncIterator[AsyncHttpTransport]:
    transport = AsyncHttpTransport()
    yield transport
    await transport.close()


def get(transport: AsyncHttpTransport, url: str, timeout: Timeout | None = None, body: bytes = b"") -> AsyncResponse:
    request = HttpRequest("POST" if body else "GET", url, {"X-Own": "1"}, body, direct=True)
    return transport.open(request, timeout or Timeout())


async def read_all(response: AsyncResponse) -> bytes:
    found = b""
    while data := await response.read():
        found += data
    return found


async def test_nothing_is_sent_before_the_head_is_asked_for(transport: AsyncHttpTransport) -> None:
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, server.url)
        assert (await response.read(), server.connections) == (b"", 0)
        response.close()


@pytest.mark.parametrize("body", [b"", b'{"a":1}', b"x" * 600_000], ids=["none", "small", "large"])
async def test_a_request_goes_out_as_it_is_and_the_head_has_names_in_lower_case(
    transport: AsyncHttpTransport, body: bytes
) -> None:
    with serving(saying(whole_response(b"no", status="404 Not Found", X_Request_Id="r1"))) as server:
        response = get(transport, f"{server.url}/a?b=c%2Fd", body=body)
        head = await response.head()
        assert (head.status, head.headers["x-request-id"], head.headers["content-type"]) == (
            404,
            "r1",
            "application/json",
        )
        assert head.received > 0
        assert await read_all(response) == b"no"
        (heard,) = server.heard
        assert (heard.line, heard.body) == (f"{'POST' if body else 'GET'} /v1/a?b=c%2Fd HTTP/1.1", body)
        assert heard.headers["x-own"] == "1"
        assert "user-agent" not in heard.headers


async def test_a_body_read_to_its_end_gives_its_connection_back_and_a_closed_one_does_not(
    transport: AsyncHttpTransport,
) -> None:
    with serving(saying(whole_response(b"x" * 400_000))) as server:
        for _ in range(2):
            response = get(transport, server.url)
            await response.head()
            assert await read_all(response) == b"x" * 400_000
            response.close()
        assert server.connections == 1
        half = get(transport, server.url)
        await half.head()
        half.close()
        half.close()
        response = get(transport, server.url)
        await response.head()
        assert (len(await read_all(response)), server.connections) == (400_000, 2)


async def test_bytes_come_as_soon_as_they_are_there_and_patience_ends_a_wait(transport: AsyncHttpTransport) -> None:
    gate = threading.Event()

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(FIRST)
        gate.wait(5)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        return True

    with serving(answer) as server:
        response = get(transport, server.url)
        await response.head()
        assert await response.read() == b"one"
        assert await response.read(patience=0.01) == b""
        gate.set()
        assert await read_all(response) == b"two"


def answer_and_wait(_: ReceivedRequest, connection: socket.socket) -> bool:
    connection.sendall(FIRST)
    connection.recv(1)
    return False


async def test_another_task_may_close_a_response_that_waits(transport: AsyncHttpTransport) -> None:
    with serving(answer_and_wait) as server:
        response = get(transport, server.url)
        await response.head()
        await response.read()
        asyncio.get_running_loop().call_soon(response.close)
        with pytest.raises(ConnectionLost):
            await response.read()
        with pytest.raises(ConnectionLost):
            await response.read()


async def test_silence_between_two_bytes_is_given_up(transport: AsyncHttpTransport) -> None:
    with serving(answer_and_wait) as server:
        response = get(transport, server.url, Timeout(idle=0.05))
        await response.head()
        assert await response.read() == b"one"
        with pytest.raises(IdleTimeout, match=r"0\.05 s"):
            await response.read()


@pytest.mark.parametrize(
    ("timeout", "says"), [(Timeout(first_byte=0.05), r"0\.05 s"), (Timeout(total=0.05), "whole call")]
)
async def test_a_server_that_says_nothing_is_given_up(
    transport: AsyncHttpTransport, timeout: Timeout, says: str
) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.recv(1)
        return False

    with serving(answer) as server:
        response = get(transport, server.url, timeout)
        with pytest.raises(IdleTimeout, match=says):
            await response.head()
        response.close()


async def test_an_address_that_is_none_is_a_mistake_of_the_settings(transport: AsyncHttpTransport) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        await get(transport, "http:///v1").head()


def test_what_closed_loops_kept_open_is_closed_without_a_warning() -> None:
    transport = AsyncHttpTransport()
    with serving(saying(whole_response(b"{}"))) as server:
        for _ in range(2):
            asyncio.run(read_one(transport, server.url))
        assert server.connections == 2
        del transport
        gc.collect()


def test_loops_of_many_threads_share_a_transport() -> None:
    transport, end = AsyncHttpTransport(), time.monotonic() + 0.5
    problems: list[RuntimeError] = []

    async def open_one() -> None:
        get(transport, "http://127.0.0.1:9/")

    def run_loops() -> None:
        kept: list[asyncio.AbstractEventLoop] = []
        try:
            while time.monotonic() < end:
                kept.append(asyncio.new_event_loop())
                kept[-1].run_until_complete(open_one())
                if len(kept) > 10:
                    kept.pop(0).close()
        except RuntimeError as problem:
            problems.append(problem)
        for loop in kept:
            loop.close()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run_loops) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []


async def read_one(transport: AsyncHttpTransport, url: str) -> None:
    response = get(transport, url)
    await response.head()
    assert await read_all(response) == b"{}"


@pytest.mark.parametrize("size", [0, 20_000_000], ids=["small", "large"])
async def test_a_cancelled_request_closes_its_connection(transport: AsyncHttpTransport, size: int) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    response = get(transport, f"http://127.0.0.1:{listening.getsockname()[1]}/", body=b"x" * size)
    waiting = asyncio.create_task(response.head())
    connection, _ = await asyncio.to_thread(listening.accept)
    with listening, connection:
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.05)
        connection.settimeout(5)
        with suppress(ConnectionResetError):
            while await asyncio.to_thread(connection.recv, 1_000_000):
                pass


async def test_a_response_that_is_being_opened_can_be_closed(transport: AsyncHttpTransport) -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.recv(1)
        return False

    with serving(answer) as server:
        response = get(transport, server.url)
        asyncio.get_running_loop().call_later(0.05, response.close)
        with pytest.raises(ConnectionLost):
            await response.head()


async def test_a_fast_body_leaves_the_loop_to_others(transport: AsyncHttpTransport) -> None:
    with serving(saying(whole_response(b"x" * 30_000_000))) as server:
        turns, response = 0, get(transport, server.url)
        await response.head()

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        assert len(await read_all(response)) == 30_000_000
        counting.cancel()
    assert turns > 10


async def test_a_flood_of_interim_responses_leaves_the_loop_to_others(
    transport: AsyncHttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are always bytes to receive, so that receiving never waits."""

    async def receive(*_: Any) -> bytes:
        return b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv", receive)
    with serving(saying(whole_response(b"{}"))) as server:
        response = get(transport, server.url, Timeout(first_byte=1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(response.head(), 0.1)


async def test_content_that_decompresses_to_very_much_leaves_the_loop_to_others(transport: AsyncHttpTransport) -> None:
    packed = gzip.compress(b"x" * 30_000_000)
    with serving(saying(whole_response(packed, Content_Encoding="gzip"))) as server:
        response, turns = get(transport, server.url), 0
        await response.head()

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        assert sum([len(data) async for data in iterate(response)]) == 30_000_000
        counting.cancel()
    assert turns > 5


async def iterate(response: AsyncResponse) -> AsyncIterator[bytes]:
    while data := await response.read():
        yield data


async def test_a_response_that_is_being_opened_can_be_closed_at_each_moment(transport: AsyncHttpTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        response = get(transport, f"http://127.0.0.1:{listening.getsockname()[1]}/")
        opening = asyncio.create_task(response.head())
        await asyncio.sleep(0.05)
        while not opening.done():
            response.close()
            await asyncio.sleep(0)
        with pytest.raises(ConnectionLost):
            await opening


async def test_a_cancelled_read_ends_the_response(transport: AsyncHttpTransport) -> None:
    """Bytes that had just arrived may be lost, so the rest would have a hole."""
    received = threading.Event()

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(FIRST)
        received.wait(5)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        return False

    with serving(answer) as server:
        response = get(transport, server.url)
        await response.head()
        assert await response.read() == b"one"
        reading = asyncio.create_task(response.read())
        await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        received.set()
        with pytest.raises(ConnectionLost):
            await response.read()


async def test_the_next_address_of_a_host_is_tried(
    transport: AsyncHttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first refuses the connection."""
    with serving(saying(whole_response(b"{}"))) as server:

        async def resolve(host: str, port: int, **_: Any) -> list[Any]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9)),
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        await read_one(transport, f"http://two.example:{server.port}/v1")


# --- event loops that are gone ------------------------------------------------------------------------------------

EVENT = stream({"content": "half"}).partition(b"\n\n")[0] + b"\n\n"


def answer_half(_: ReceivedRequest, connection: socket.socket) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + EVENT)
    assert connection.recv(1) == b""
    return False


def run_and_forget(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a loop that is closed without ending what is open there."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def begin(url: str, *, own: bool, run: Callable[..., Any]) -> tuple[asides.AsyncClient, aio.AsyncStream]:
    """A stream whose first event was read in a loop that is closed now."""
    client = asides.AsyncClient()

    async def read_one() -> aio.AsyncStream:
        open_stream = aio.stream if own else client.stream
        events = open_stream("openai-compatible:m", "?", base_url=url, api_key="k")
        await anext(events)
        return events

    return client, run(read_one())


@pytest.mark.parametrize("own", [True, False], ids=["of its own", "of a client"])
@pytest.mark.parametrize("run", [asyncio.run, run_and_forget])
class TestAClosedLoop:
    """The server ends only when the connection is closed, and every warning is an error."""

    def test_a_stream_can_be_closed_after_it(self, own: bool, run: Callable[..., Any]) -> None:
        with serving(answer_half) as server:
            client, events = begin(server.url, own=own, run=run)
            for _ in range(2):
                asyncio.run(events.close())
            asyncio.run(client.close())
            assert events.partial is not None
            assert events.partial.text == "half"

    def test_a_client_can_be_closed_first(self, own: bool, run: Callable[..., Any]) -> None:
        with serving(answer_half) as server:
            client, events = begin(server.url, own=own, run=run)
            asyncio.run(client.close())
            asyncio.run(events.close())

    def test_a_stream_cannot_be_read_on_in_another_loop(self, own: bool, run: Callable[..., Any]) -> None:
        with serving(answer_half) as server:
            client, events = begin(server.url, own=own, run=run)
            with pytest.raises(asides.TransportError) as caught:
                asyncio.run(events.drain())
            assert caught.value.partial is not None
            asyncio.run(client.close())

    def test_a_stream_can_be_forgotten(self, own: bool, run: Callable[..., Any]) -> None:
        with serving(answer_half) as server:
            client, events = begin(server.url, own=own, run=run)
            del client, events
            gc.collect()

    def test_a_client_can_be_used_in_another_loop(self, own: bool, run: Callable[..., Any]) -> None:
        with serving(answer_half) as server:
            client, _ = begin(server.url, own=own, run=run)

            async def read_again() -> None:
                async with (
                    client,
                    client.stream("openai-compatible:m", "?", base_url=server.url, api_key="k") as events,
                ):
                    await anext(events)

            asyncio.run(read_again())


def test_a_client_with_an_idle_connection_can_be_used_in_another_loop_and_forgotten() -> None:
    told: list[dict[str, Any]] = []

    async def read(transport: AsyncHttpTransport, url: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        response = get(transport, url)
        await response.head()
        assert await read_all(response) == b"one"

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(whole_response(b"one"))
        return True

    with serving(answer) as server:
        transport = AsyncHttpTransport()
        for _ in range(2):
            asyncio.run(read(transport, server.url))
        del transport
        gc.collect()
    assert told == []


async def test_a_client_and_a_stream_can_be_forgotten_in_their_loop() -> None:
    with serving(answer_half) as server:
        client = asides.AsyncClient()
        events = client.stream("openai-compatible:m", "?", base_url=server.url, api_key="k")
        await anext(events)
        del client, events
        gc.collect()
        for _ in range(9):
            await asyncio.sleep(0)


async def test_bytes_that_nobody_asked_for_end_an_idle_connection(transport: AsyncHttpTransport) -> None:
    gate = threading.Event()

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(whole_response(b"one" if not gate.is_set() else b"two"))
        if not gate.is_set():
            gate.set()
            connection.sendall(whole_response(b"poison"))
        return True

    with serving(answer) as server:
        for expected in (b"one", b"two"):
            response = get(transport, server.url)
            await response.head()
            assert await read_all(response) == expected
            await asyncio.sleep(0.05)
        assert server.connections == 2
