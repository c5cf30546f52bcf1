"""Faults on both sides of a gateway, over real sockets. Figures are in the messages of the assertions.

Seen on two busy cores: a client that leaves, 1 to 5 ms until the connection to the provider is closed; a client that
stops reading, nothing more is taken from the provider once the buffers of the kernel are full (8 to 16 MB), and the
process does not grow; 1,000 idle streams, 53 KB each; a body of 50 MB, 0.45 s of the gateway's processor time.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import resource
import selectors
import socket
import statistics
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.flows.build_call import CallBuilder
from asides.flows.call import encode_request
from asides.gateway.embedded import Gateway
from asides.gateway.gateway_settings import GatewaySettings
from asides.options import Options
from asides.providers.find import find_target
from asides.settings import load_settings
from asides.testing import Say, Stage
from asides.testing.stage import Hang, Raw
from asides.testing.stage.script import Scene
from asides.values.errors import AsidesError, ProviderError
from asides.values.messages import Prompt, user
from tests.gateway.gateway_process import GatewayProcess, gateway_process
from tests.gateway.http_client import MODEL, Client, ask, chat, gateway_before, message, wait_for
from tests.loopback import serving
from tests.relay.relaying import CALLERS, UPSTREAMS, Response, load, read_response, write_request

MEGABYTE = 1024 * 1024
LOOPS = [
    pytest.param(False, id="asyncio"),
    pytest.param(True, id="uvloop", marks=pytest.mark.skipif(find_spec("uvloop") is None, reason="no uvloop")),
]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")


def send(client: Client, dialect: str, model: str, *, stream: bool = True) -> None:
    request = write_request(dialect, model, Prompt((user("?"),), stream=stream))
    path = f"{request.path}?{request.query}" if request.query else request.path
    client.send(request.method, path, request.body, [item for item in request.headers.items() if item[0] != "host"])


# --- the provider breaks off ------------------------------------------------------------------------------------------


def record(model: str) -> tuple[bytes, str]:
    """The stream of a provider, as its stage writes it, and its type."""
    with Stage([Say(thinking="six sevens", text="forty-two indeed", piece=6)], rules="lenient") as stage:
        builder = CallBuilder(Options(base_url=stage.url, api_key="k"), settings=load())
        call = builder.build(model, "?", Options(), stream=True)
        sent = encode_request(call.prompt, call.target, on_conflict="adjust").request
        with urlopen(Request(sent.url, sent.body, dict(sent.headers))) as response:
            return response.read(), response.headers["content-type"]


def list_cuts(body: bytes, content_type: str) -> list[int]:
    """Every end of an event, and a place within each."""
    if "amazon" in content_type:
        ends, place = [], 0
        while place < len(body):
            place += int.from_bytes(body[place : place + 4])
            ends.append(place)
    else:
        blank = b"\n" if "ndjson" in content_type else b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
        ends = [place + len(blank) for place in range(len(body)) if body.startswith(blank, place)]
    return sorted({0, *ends[:-1], *(end - 5 for end in ends)})


def is_whole(body: bytes, model: str) -> bool:
    """Whether the reply in these bytes is complete, although their connection broke."""
    target = find_target(model, base_url="http://127.0.0.1:1/v1")
    decoder = find_dialect(target.dialect).decoder(target)
    decoder.feed(body)
    decoder.finish()
    return decoder.failure is None


_FEW = ("anthropic", "gemini", "deepseek")
SOME = [model if model.startswith(_FEW) else pytest.param(model, marks=pytest.mark.thorough) for model in UPSTREAMS]


@pytest.mark.parametrize("model", SOME)
def test_a_provider_that_breaks_off_at_any_event(model: str) -> None:
    """For each of seven dialects in, and each end of an event and each middle of one: an error that is told, in the
    dialect, as a response or as the end of the stream. About 130 requests for each provider, in about a second."""
    body, content_type = record(model)
    cuts = list_cuts(body, content_type)
    assert len(cuts) > 9
    scenes: list[Scene] = [Raw(body=body, content_type=content_type, cut_after=cut) for cut in cuts for _ in CALLERS]
    silent: list[str] = []
    with Stage(scenes, rules="lenient") as stage, gateway_before(stage, options=Options(retries=0)) as gateway:
        for cut in cuts:
            for dialect in CALLERS:
                with Client(gateway) as client:
                    send(client, dialect, model)
                    answer = client.read()
                try:
                    read_response(dialect, model, Response(answer.status, answer.headers, answer.body, None))
                    is_told = is_whole(body[:cut], model)
                except ProviderError as problem:
                    is_told = "the connection" in str(problem)
                except AsidesError:
                    is_told = False
                if not is_told or not answer.is_complete:
                    silent.append(f"{dialect} at {cut} of {len(body)}: {answer.status} {answer.body[-200:]!r}")
        assert len(stage.requests) == len(scenes)
    assert not silent, f"{len(silent)} of {len(scenes)}: {silent[0]}"


# --- a silent provider -----------------------------------------------------------------------------------------------


class IdleProvider:
    """A provider that begins each reply, and says no more. It runs in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
        await asyncio.sleep(0.05)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(size[1]) if size else 0)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            writer.write(b'data: {"id":"x","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n')
            await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


# --- the client leaves ------------------------------------------------------------------------------------------------

LEAVING: dict[str, tuple[Scene, str, bool]] = {
    "within a translated stream": (Say(thinking="hm", text="x" * 9000, piece=3, pause=0.01), MODEL, True),
    "within a forwarded stream": (Say(text="x" * 9000, piece=3, pause=0.01), "anthropic:claude-opus-4-5", True),
    "in a silence": (Say(thinking="hm", text="x" * 90, hang_after=600), MODEL, True),
    "before the head": (Hang(), MODEL, True),
    "while a whole reply is made": (Hang(), MODEL, False),
}


@pytest.mark.parametrize("case", LEAVING)
def test_a_client_that_leaves_closes_the_connection_to_the_provider(case: str) -> None:
    scene, model, stream = LEAVING[case]
    waits: list[float] = []
    with Stage([scene], rules="lenient") as stage, gateway_before(stage, ping_seconds=0.05) as gateway:
        for number in range(8):
            client = Client(gateway)
            client.send("POST", "/v1/messages", message(stream, model=model), [("anthropic-version", "2023-06-01")])
            assert stage.wait_until(lambda wanted=number + 1: len(stage.requests) == wanted)  # type: ignore[misc]
            if stream:
                client.read_head()
            assert stage.open_connections >= 1
            began = time.monotonic()
            client.close()
            assert stage.wait_until(lambda: stage.open_connections == 0), "the connection to the provider is still open"
            waits.append(time.monotonic() - began)
        assert wait_for(lambda: gateway.service.open_requests == 0)
    worst = sorted(waits)[-2] * 1000  # all but one, for a machine that does other things
    assert worst < 100, f"{case}: {worst:.0f} ms at worst, {statistics.median(waits) * 1000:.1f} ms usually"


@on_linux
@pytest.mark.parametrize("uvloop", LOOPS)
def test_a_client_that_leaves_a_process_of_its_own(uvloop: bool) -> None:
    """As above, in another process and with each event loop."""
    waits: list[float] = []
    with IdleProvider() as provider, gateway_process(provider.url, uvloop=uvloop) as gateway:
        for _ in range(8):
            with Client(gateway) as client:
                client.send("POST", "/v1/messages", message(True))
                client.read_head()
                assert provider.open_connections == 1
            began = time.monotonic()
            assert wait_for(lambda: provider.open_connections == 0)
            waits.append(time.monotonic() - began)
    worst = sorted(waits)[-2] * 1000
    assert worst < 100, f"{worst:.0f} ms at worst, {statistics.median(waits) * 1000:.1f} ms usually"


# --- slow clients -----------------------------------------------------------------------------------------------------


MOST_AHEAD = 32 * MEGABYTE
"""What the sockets of this machine may hold on the way, twice over: buffers of the kernel, which grow as it likes."""


class Flood:
    """A provider that writes as fast as it is read, and counts."""

    def __init__(self) -> None:
        self.written = 0
        self.stopped = threading.Event()

    def answer(self, _: object, connection: socket.socket) -> bool:
        connection.settimeout(0.2)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        self._write(connection, head)
        event = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"' + b"word " * 400 + b'"}}]}\n\n'
        while not self.stopped.is_set():
            self._write(connection, event)
        return False

    def _write(self, connection: socket.socket, data: bytes) -> None:
        left = memoryview(data)
        while left and not self.stopped.is_set():
            try:
                count = connection.send(left)
            except TimeoutError:
                continue
            self.written += count
            left = left[count:]


@on_linux
@pytest.mark.parametrize("uvloop", LOOPS)
@pytest.mark.parametrize("model", ["openrouter:any", "openai:gpt-4.1"], ids=["translated", "forwarded"])
def test_a_client_that_reads_slowly_holds_the_provider_back(model: str, uvloop: bool) -> None:
    """The provider could send a gigabyte a second. The client reads 2 MB, stops for a second and a half, reads on."""
    flood = Flood()
    with serving(flood.answer) as server, gateway_process(server.url, uvloop=uvloop) as gateway:
        try:
            _check_flood(flood, gateway, model)
        finally:
            flood.stopped.set()


def wait_for_calm(flood: Flood) -> None:
    """Wait until all buffers are full, and no longer than eight seconds."""
    for _ in range(20):
        before = flood.written
        time.sleep(0.4)
        if flood.written == before:
            return


def _check_flood(flood: Flood, gateway: GatewayProcess, model: str) -> None:
    with Client(gateway) as client:
        client.send("POST", "/v1/chat/completions", chat(True, model=model))
        status, _ = client.read_head()
        assert status == 200
        chunks, taken = client.read_chunks(), 0
        while taken < 2 * MEGABYTE:
            taken += len(next(chunks))
        wait_for_calm(flood)
        held, before = flood.written, gateway.measure_memory()
        time.sleep(1.0)
        more, grown = flood.written - held, gateway.measure_memory() - before
        ahead = held - taken
        assert more < MEGABYTE / 4, f"{more / 1024:.0f} KB more were taken from the provider while nobody read"
        assert grown < MEGABYTE, f"the process grew by {grown / 1024:.0f} KB while nobody read"
        assert ahead < MOST_AHEAD, f"{ahead / MEGABYTE:.1f} MB were taken ahead"
        for _ in range(5):  # a client that reads a little at a time
            until = taken + MEGABYTE // 2
            while taken < until:
                taken += len(next(chunks))
            time.sleep(0.05)
        ahead = flood.written - taken
        assert ahead < MOST_AHEAD, f"{ahead / MEGABYTE:.1f} MB were taken ahead of a slow reader"


# --- many idle streams ------------------------------------------------------------------------------------------------

STREAMS = 1000


@contextmanager
def many_files() -> Generator[None, None, None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = STREAMS * 2 + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@on_linux
def test_a_thousand_idle_streams() -> None:
    """Each stream has begun and is silent. At most 60 KB each, and each gets signs of life, from one process."""
    with many_files(), IdleProvider() as provider, gateway_process(provider.url, ping_seconds=1.5) as gateway:
        _open_streams(gateway, 20, 0.0)  # what is loaded with the first requests
        assert wait_for(lambda: provider.open_connections == 0)
        before = gateway.measure_memory()
        pings, used = _open_streams(gateway, STREAMS, 3.5)
        assert wait_for(lambda: provider.open_connections == 0, 20), "connections to the provider are left"
        assert wait_for(lambda: gateway.count_files() < 40), "files are left open"
    each = (used - before) / STREAMS / 1024
    assert each <= 60, f"{each:.1f} KB for each stream"
    assert min(pings) >= 1, f"{sum(count == 0 for count in pings)} of {STREAMS} streams got no sign of life"


def _open_streams(gateway: GatewayProcess, count: int, seconds: float) -> tuple[list[int], int]:
    """Open streams; listen for these seconds. Returns the signs of life of each, and the memory of the gateway."""
    body = msgspec.json.encode(message(True))
    host, _, port = gateway.url.removeprefix("http://").rpartition(":")
    head = f"POST /v1/messages HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with selectors.DefaultSelector() as selector:
        received: dict[socket.socket, bytearray] = {}
        for _ in range(count):
            connection = socket.create_connection((host, int(port)), 20)
            connection.sendall(head + body)
            received[connection] = bytearray()
            selector.register(connection, selectors.EVENT_READ)
        try:
            _listen(selector, received, lambda: all(b"thinking_delta" in data for data in received.values()), 30)
            _listen(selector, received, lambda: False, seconds)
            used = gateway.measure_memory()
        finally:
            for connection in received:
                connection.close()
    begun = sum(b"thinking_delta" in data for data in received.values())
    assert begun == count, f"{begun} of {count} streams began"
    return [data.count(b"event: ping") for data in received.values()], used


def _listen(selector: Any, received: dict[socket.socket, bytearray], is_over: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not is_over():
        for key, _ in selector.select(min(left, 0.2)):
            if data := key.fileobj.recv(65536):
                received[key.fileobj] += data
            else:
                selector.unregister(key.fileobj)


# --- garbage and large bodies -----------------------------------------------------------------------------------------


@on_linux
def test_a_body_of_50_megabytes() -> None:
    """A valid request of 50 MB passes; one over the limit is refused before it is read."""
    text = "a long document, " * (50 * MEGABYTE // 17)
    body = msgspec.json.encode(chat(messages=[{"role": "user", "content": text}]))
    assert len(body) > 49 * MEGABYTE
    with (
        Stage(lambda served: Say(text=str(len(served.prompt.messages[0].text)))) as stage,
        gateway_process(stage.url) as gateway,
        Client(gateway, 60) as client,
    ):
        before = gateway.measure_cpu()
        client.send("POST", "/v1/chat/completions", body)
        answer = client.read()
        took = gateway.measure_cpu() - before
        assert answer.status == 200, answer.body[:300]
        assert answer.json["choices"][0]["message"]["content"] == str(len(text))
        assert took < 5, f"{took:.2f} s of the gateway's processor time"
        client.send("POST", "/v1/chat/completions", b"{", [("content-length", str(65 * MEGABYTE))])
        began = time.monotonic()
        assert client.read().status == 413
        took = time.monotonic() - began
        assert took < 1, f"{took:.1f} s"


def test_garbage() -> None:
    """300 connections with random bytes: each is answered with 400 or closed, and the gateway goes on."""
    chance = random.Random(16)
    starts = (
        b"",
        b"POST /v1/messages HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"\x16\x03\x01\x02",
        b"PRI * HTTP/2.0\r\n\r\n",
    )
    with Stage([Say(text="42")]) as stage, gateway_before(stage, head_seconds=0.5) as gateway:
        for number in range(300):
            with Client(gateway, 5) as client:
                client.write(starts[number % len(starts)] + chance.randbytes(chance.randrange(1, 400)) + b"\r\n\r\n")
                if number % 3:
                    continue
                try:
                    status, _ = client.read_head()
                except (ConnectionError, TimeoutError):
                    continue
                assert status in (400, 403, 404, 405, 408), status
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
        assert wait_for(lambda: gateway.service.open_requests == 0)


def test_a_valid_head_and_a_random_body() -> None:
    chance = random.Random(17)
    paths = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/v2/chat", "/api/generate")
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        for number in range(300):
            answer = client.ask("POST", paths[number % len(paths)], os.urandom(chance.randrange(0, 3000)))
            assert answer.status == 400
            assert answer.json
        assert not stage.requests


# --- heads ------------------------------------------------------------------------------------------------------------


def test_large_headers_of_agents_pass() -> None:
    """A header of 60 KB, and 100 of them: agents send their betas, traces and settings so."""
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", chat(), [("x-large", "v" * 60_000)]).status == 200
        many = [(f"x-header-{number}", "value " * 20) for number in range(100)]
        assert ask(gateway, "POST", "/v1/chat/completions", chat(), many).status == 200
        long = "/v1/chat/completions?x=" + "y" * 60_000
        assert ask(gateway, "POST", long, chat()).status == 200


@pytest.mark.parametrize(
    "headers",
    [[("x-large", "v" * MEGABYTE)], [(f"x-{number}", "v") for number in range(20_000)], [("x" * 200_000, "v")]],
    ids=["a large one", "20,000 of them", "a long name"],
)
def test_a_flood_of_headers_is_refused(headers: list[tuple[str, str]]) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        with Client(gateway, 10) as client:
            try:
                client.send("POST", "/v1/chat/completions", chat(), headers)
                status, _ = client.read_head()
                assert status in (400, 431)
            except ConnectionError:
                pass  # closed before it was sent
            assert client.is_closed()
        assert not stage.requests
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200


def test_a_head_without_an_end_is_cut() -> None:
    """Headers for ever, as fast as they go: the connection is closed after some hundred KB."""
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway, 10) as client:
        client.write(b"POST /v1/messages HTTP/1.1\r\n")
        sent = 0
        with suppress(OSError):
            while sent < 20 * MEGABYTE:
                client.write(b"x-%d: %b\r\n" % (sent, b"v" * 100))
                sent += 110
        assert sent < 16 * MEGABYTE, f"{sent / MEGABYTE:.1f} MB were taken"


def test_heads_that_come_slowly() -> None:
    """50 connections that send a byte of their head now and then: closed when the time for a head is over."""
    with Stage([Say(text="42")]) as stage, gateway_before(stage, head_seconds=0.6) as gateway:
        clients = [Client(gateway) for _ in range(50)]
        began = time.monotonic()
        for client in clients:
            client.write(b"POST /v1/messages HTTP/1.1\r\nx-a: ")
        for _ in range(4):
            time.sleep(0.1)
            for client in clients:
                client.write(b"a")
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200  # meanwhile
        assert all(client.is_closed(2) for client in clients)
        took = time.monotonic() - began
        for client in clients:
            client.close()
    assert took < 2, f"closed after {took:.1f} s"


def test_a_second_head_that_comes_slowly() -> None:
    with (
        Stage([Say(text="42")]) as stage,
        gateway_before(stage, head_seconds=0.4) as gateway,
        Client(gateway) as client,
    ):
        assert client.ask("POST", "/v1/chat/completions", chat()).status == 200
        time.sleep(0.8)  # at rest: no head has begun
        assert client.ask("POST", "/v1/chat/completions", chat()).status == 200
        client.write(b"POST /v1/messages HT")
        began = time.monotonic()
        assert client.is_closed(3)
        took = time.monotonic() - began
    assert 0.2 < took < 2, f"closed after {took:.1f} s"


def test_a_reply_that_takes_longer_than_a_head_may() -> None:
    slow = Say(thinking="hm", text="x" * 60, piece=3, pause=0.05)
    with Stage([slow]) as stage, gateway_before(stage, head_seconds=0.3) as gateway:
        answer = ask(gateway, "POST", "/v1/chat/completions", chat(True))
    assert answer.body.endswith(b"data: [DONE]\n\n")


# --- a model on this machine that cannot be started -------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_local_server_that_cannot_start_is_told(stream: bool, tmp_path: Path) -> None:
    missing = tmp_path / "missing.gguf"
    with Gateway(GatewaySettings(port=0), load_settings(environ={}, files=[])) as gateway:
        answer = ask(gateway, "POST", "/v1/chat/completions", chat(stream, model=f"local:{missing}"))
    assert answer.status == 404
    assert "missing.gguf" in answer.json["error"]["message"]
