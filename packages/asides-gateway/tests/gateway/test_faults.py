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
from itertools import product
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.flows.build_call import CallBuilder
from asides.flows.call import encode_request
from asides.options import Options
from asides.providers.find import find_target
from asides.settings import load_settings
from asides.values.errors import AsidesError, ProviderError
from asides.values.messages import Prompt, user
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Say, Stage
from asides_stage.stage import Hang, Raw
from asides_stage.stage.script import Scene
from tests.gateway.gateway_process import GatewayProcess, gateway_process
from tests.gateway.http_client import MODEL, Client, ask, chat, gateway_before, message, wait_for
from tests.loopback import serving
from tests.relay.relaying import CALLERS, UPSTREAMS, Response, load, read_response, write_request

MEGABYTE = 1024 * 1024
with_uvloop = pytest.mark.skipif(find_spec("uvloop") is None, reason="no uvloop")
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
SOME = [
    *(pytest.param(model, 3) for model in UPSTREAMS if model.startswith(_FEW)),
    *(pytest.param(model, 1, marks=pytest.mark.thorough) for model in UPSTREAMS),
]


@pytest.mark.parametrize(("model", "step"), SOME)
def test_a_provider_that_breaks_off_at_any_event(model: str, step: int) -> None:
    """For each of seven dialects in, and each end of an event and each middle of one: an error that is told, in the
    dialect, as a response or as the end of the stream. About 130 requests for each provider, in about a second; every
    third of them by default, and all with the marker `thorough`."""
    body, content_type = record(model)
    cuts = list_cuts(body, content_type)
    assert len(cuts) > 9
    cases = list(product(cuts, CALLERS))[::step]
    scenes: list[Scene] = [Raw(body=body, content_type=content_type, cut_after=cut) for cut, _ in cases]
    silent: list[str] = []
    with Stage(scenes, rules="lenient") as stage, gateway_before(stage, options=Options(retries=0)) as gateway:
        for cut, dialect in cases:
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


def assert_soon(waits: list[float]) -> None:
    """Within 100 ms. The shortest counts: a busy machine makes some of them longer, waiting for a clock all of them."""
    best = min(waits) * 1000
    assert best < 100, f"{best:.0f} ms at best, {statistics.median(waits) * 1000:.1f} ms usually"


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
    with Stage([scene], rules="lenient") as stage, gateway_before(stage) as gateway:
        for number in range(4):
            client = Client(gateway)
            client.send("POST", "/v1/messages", message(stream, model=model), [("anthropic-version", "2023-06-01")])
            assert stage.wait_until(lambda wanted=number + 1: len(stage.requests) == wanted, 30)  # type: ignore[misc]
            if stream and not isinstance(scene, Hang):
                client.read_head()
            assert stage.open_connections >= 1
            began = time.monotonic()
            client.close()
            assert stage.wait_until(lambda: stage.open_connections == 0, 30), "the connection to the provider is open"
            waits.append(time.monotonic() - began)
        assert wait_for(lambda: gateway.service.open_requests == 0)
    assert_soon(waits)


@on_linux
@with_uvloop
def test_a_client_that_leaves_a_process_of_its_own() -> None:
    """As above, in another process and with the other event loop."""
    waits: list[float] = []
    with IdleProvider() as provider, gateway_process(provider.url, uvloop=True) as gateway:
        for _ in range(4):
            with Client(gateway) as client:
                client.send("POST", "/v1/messages", message(True))
                client.read_head()
                assert provider.open_connections == 1
            began = time.monotonic()
            assert wait_for(lambda: provider.open_connections == 0)
            waits.append(time.monotonic() - began)
    assert_soon(waits)


# --- slow clients -----------------------------------------------------------------------------------------------------


MOST_AHEAD = 32 * MEGABYTE
"""What the sockets of this machine may hold on the way, twice over: buffers of the kernel, which grow as it likes."""


class Flood:
    """A provider that writes as fast as it is read, and counts."""

    def __init__(self) -> None:
        self.written = 0
        self.blocked = threading.Event()
        """Set while it cannot write."""
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
                self.blocked.set()
                continue
            self.blocked.clear()
            self.written += count
            left = left[count:]


@on_linux
@pytest.mark.parametrize(
    ("model", "uvloop"),
    [
        pytest.param("openrouter:any", True, id="translated-uvloop", marks=with_uvloop),
        pytest.param("openrouter:any", False, id="translated-asyncio", marks=pytest.mark.thorough),
        pytest.param("openai:gpt-4.1", True, id="forwarded-uvloop", marks=[with_uvloop, pytest.mark.thorough]),
        pytest.param("openai:gpt-4.1", False, id="forwarded-asyncio"),
    ],
)
def test_a_client_that_reads_slowly_holds_the_provider_back(model: str, uvloop: bool) -> None:
    """The provider could send a gigabyte a second. The client reads 2 MB, stops until nothing flows, reads on."""
    flood = Flood()
    with serving(flood.answer) as server, gateway_process(server.url, uvloop=uvloop) as gateway:
        try:
            _check_flood(flood, gateway, model)
        finally:
            flood.stopped.set()


def _check_flood(flood: Flood, gateway: GatewayProcess, model: str) -> None:
    with Client(gateway) as client:
        client.send("POST", "/v1/chat/completions", chat(True, model=model))
        status, _ = client.read_head()
        assert status == 200
        chunks, taken = client.read_chunks(), 0
        while taken < 2 * MEGABYTE:
            taken += len(next(chunks))
        before = gateway.measure_memory()
        wait_until_full(flood)
        ahead, grown = flood.written - taken, gateway.measure_memory() - before
        assert ahead < MOST_AHEAD, f"{ahead / MEGABYTE:.1f} MB were taken ahead"
        assert grown < 16 * MEGABYTE, f"the process grew by {grown / 1024:.0f} KB while nobody read"
        for _ in range(5):  # a client that reads a little at a time
            until = taken + MEGABYTE // 2
            while taken < until:
                taken += len(next(chunks))
        ahead = flood.written - taken
        assert ahead < MOST_AHEAD, f"{ahead / MEGABYTE:.1f} MB were taken ahead of a slow reader"


def wait_until_full(flood: Flood) -> None:
    """Wait until the provider can write no more, and nothing moves for half a second."""
    until = time.monotonic() + 40
    while time.monotonic() < until:
        before = flood.written
        if flood.blocked.wait(1):
            time.sleep(0.5)
        if flood.written == before:
            return
    raise AssertionError(f"{flood.written / MEGABYTE:.0f} MB were taken from the provider, and it goes on")


# --- many idle streams ------------------------------------------------------------------------------------------------


@contextmanager
def many_files(streams: int) -> Generator[None, None, None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = streams * 2 + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@on_linux
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.thorough)])
def test_many_idle_streams(count: int) -> None:
    """Each stream has begun and is silent. At most 60 KB each, and each gets signs of life, from one process."""
    with many_files(count), IdleProvider() as provider, gateway_process(provider.url, ping_seconds=0.5) as gateway:
        _open_streams(gateway, 20)  # what is loaded with the first requests
        assert wait_for(lambda: provider.open_connections == 0)
        before = gateway.measure_memory()
        used = _open_streams(gateway, count)
        assert wait_for(lambda: provider.open_connections == 0), "connections to the provider are left"
        assert wait_for(lambda: gateway.count_files() < 40), "files are left open"
    each = (used - before) / count / 1024
    assert each <= 60, f"{each:.1f} KB for each stream"


def _open_streams(gateway: GatewayProcess, count: int) -> int:
    """Open streams, and listen until each has begun and got a sign of life. Returns the memory of the gateway then."""
    asked = {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    body = msgspec.json.encode(message(True) | asked)
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
            for words in (b"thinking_delta", b"event: ping"):
                without = _listen(selector, received, words)
                assert not without, f"{without} of {count} streams got no {words.decode()}"
            return gateway.measure_memory()
        finally:
            for connection in received:
                connection.close()


def _listen(selector: Any, received: dict[socket.socket, bytearray], words: bytes) -> int:
    """Listen until these words have come on every connection. Returns on how many they have not after 40 seconds."""
    until = time.monotonic() + 40
    while (without := sum(words not in data for data in received.values())) and time.monotonic() < until:
        for key, _ in selector.select(0.1):
            if data := key.fileobj.recv(65536):
                received[key.fileobj] += data
            else:
                selector.unregister(key.fileobj)
    return without


# --- garbage and large bodies -----------------------------------------------------------------------------------------


@on_linux
@pytest.mark.parametrize("megabytes", [10, pytest.param(50, marks=pytest.mark.thorough)])
def test_a_large_body(megabytes: int) -> None:
    """A valid request of 50 MB passes; one over the limit is refused before it is read."""
    text = "a long document, " * (megabytes * MEGABYTE // 17)
    body = msgspec.json.encode(chat(messages=[{"role": "user", "content": text}]))
    assert len(body) > (megabytes - 1) * MEGABYTE
    with (
        Stage(lambda served: Say(text=str(len(served.prompt.messages[0].text)))) as stage,
        gateway_process(stage.url) as gateway,
        Client(gateway, 50) as client,
    ):
        before = gateway.measure_cpu()
        client.send("POST", "/v1/chat/completions", body)
        answer = client.read()
        took = gateway.measure_cpu() - before
        assert answer.status == 200, answer.body[:300]
        assert answer.json["choices"][0]["message"]["content"] == str(len(text))
        assert took < 0.5 + megabytes * 0.1, f"{took:.2f} s of the gateway's processor time"
        # It never sends the body, so that whoever waited for it would not answer.
        client.send("POST", "/v1/chat/completions", b"{", [("content-length", str(65 * MEGABYTE))])
        assert client.read().status == 413


def test_garbage() -> None:
    """100 connections with random bytes: each is answered with 400 or closed, and the gateway goes on."""
    chance = random.Random(16)
    starts = (
        b"",
        b"POST /v1/messages HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"\x16\x03\x01\x02",
        b"PRI * HTTP/2.0\r\n\r\n",
    )
    with Stage([Say(text="42")]) as stage, gateway_before(stage, head_seconds=0.3) as gateway:
        for number in range(100):
            with Client(gateway) as client:
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
        with Client(gateway) as client:
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
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
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
        assert client.is_closed()
        took = time.monotonic() - began
    assert took > 0.2, f"closed after {took:.1f} s"


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
