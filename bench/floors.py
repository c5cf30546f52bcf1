"""The floors: the cheapest ways to read the same stream in Python, with an HTTP client and no library on top.

One inlined loop splits at blank lines, decodes the fields that are read, and appends. asides is compared with them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from bench.contestant import Contestant, Read, Sink
from bench.payloads import QUESTION

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer x", "Accept": "text/event-stream"}
BODY = (
    b'{"model":"deepseek-reasoner","messages":[{"role":"user","content":"%s"}],"stream":true,'
    b'"stream_options":{"include_usage":true}}' % QUESTION.encode()
)
READ_SIZE = 65536

Push = Callable[[bytes], None]
Decoder = Callable[[Sink], Push]


# ── decoders: the payload of one event → the sink ──


def _no_decode(_sink: Sink) -> Push:
    return lambda _payload: None


def _typed_chat() -> Decoder:
    import msgspec

    decode: Any = msgspec.json.Decoder(_chat_chunk_type()).decode

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            choices = decode(payload).choices
            if choices:
                delta = choices[0].delta
                if delta.content:
                    text(delta.content)
                elif delta.reasoning_content:
                    thinking(delta.reasoning_content)
                elif delta.tool_calls:
                    tool_arguments(delta.tool_calls[0].function.arguments or "")

        return push

    return bind


def _chat_chunk_type() -> type:
    import msgspec

    def struct(name: str, *fields: tuple[str, Any, Any]) -> Any:
        return msgspec.defstruct(name, fields, gc=False)

    def list_of(kind: Any) -> Any:
        return list[kind]

    function = struct("Function", ("arguments", str | None, None), ("name", str | None, None))
    call = struct("Call", ("function", function, None), ("index", int, 0), ("id", str | None, None))
    delta = struct(
        "Delta",
        ("content", str | None, None),
        ("reasoning_content", str | None, None),
        ("reasoning", str | None, None),
        ("tool_calls", list_of(call) | None, None),
    )
    choice = struct("Choice", ("delta", delta, None), ("finish_reason", str | None, None), ("index", int, 0))
    usage = struct("Usage", ("prompt_tokens", int, 0), ("completion_tokens", int, 0))
    chunk: type = struct("Chunk", ("choices", list_of(choice), []), ("usage", usage | None, None))
    return chunk


def _typed_messages() -> Decoder:
    import msgspec

    optional = [(name, str | None, None) for name in ("type", "text", "thinking", "partial_json")]
    delta_type: Any = msgspec.defstruct("Delta", optional, gc=False)
    event = msgspec.defstruct("Event", [("type", str), ("delta", delta_type | None, None)], gc=False)
    decode: Any = msgspec.json.Decoder(event).decode

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            event = decode(payload)
            if event.type == "content_block_delta":
                delta = event.delta
                kind = delta.type
                if kind == "text_delta":
                    text(delta.text)
                elif kind == "thinking_delta":
                    thinking(delta.thinking)
                elif kind == "input_json_delta":
                    tool_arguments(delta.partial_json)

        return push

    return bind


def _typed_responses() -> Decoder:
    import msgspec

    event = msgspec.defstruct("Event", [("type", str), ("delta", str | None, None)], gc=False)
    decode: Any = msgspec.json.Decoder(event).decode

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            event = decode(payload)
            kind = event.type
            if kind == "response.output_text.delta":
                text(event.delta)
            elif kind == "response.reasoning_summary_text.delta":
                thinking(event.delta)
            elif kind == "response.function_call_arguments.delta":
                tool_arguments(event.delta)

        return push

    return bind


_TYPED: dict[str, Callable[[], Decoder]] = {
    "chat": _typed_chat,
    "messages": _typed_messages,
    "responses": _typed_responses,
}


# ── sync sources: url path → the bytes of the body, as they arrive ──

Source = Callable[[str], Iterator[bytes]]
AsyncSource = Callable[[str], AsyncIterator[bytes]]


def _request(path: str) -> bytes:
    headers = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {len(BODY)}\r\n\r\n"
    return head.encode() + BODY


def _address(base_url: str) -> tuple[str, int]:
    host, port = base_url.removeprefix("http://").split(":")
    return host, int(port)


def _socket(base_url: str) -> Source:
    """A bare socket. It skips the HTTP framing without parsing it: a bound that no client can reach."""
    connection = socket.create_connection(_address(base_url))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(path: str) -> Iterator[bytes]:
        connection.sendall(_request(path))
        while data := connection.recv(READ_SIZE):
            yield data
            if data.endswith(b"\r\n0\r\n\r\n"):
                return

    return read


def _http_client(base_url: str) -> Source:
    import http.client

    connection = http.client.HTTPConnection(*_address(base_url))

    def read(path: str) -> Iterator[bytes]:
        connection.request("POST", path, BODY, HEADERS)
        response = connection.getresponse()
        while data := response.read1(READ_SIZE):
            yield data

    return read


def _urllib3(base_url: str) -> Source:
    import urllib3

    pool = urllib3.PoolManager()

    def read(path: str) -> Iterator[bytes]:
        response = pool.request("POST", base_url + path, body=BODY, headers=HEADERS, preload_content=False)
        yield from response.stream(READ_SIZE)
        response.release_conn()

    return read


def _httpx(base_url: str) -> Source:
    import httpx

    client = httpx.Client(trust_env=False, timeout=60)

    def read(path: str) -> Iterator[bytes]:
        with client.stream("POST", base_url + path, content=BODY, headers=HEADERS) as response:
            yield from response.iter_raw()

    return read


# ── async sources ──


def _httptools(base_url: str) -> AsyncSource:
    """An asyncio protocol and httptools: the smallest correct client. Connections are reused."""
    import httptools

    idle: list[Any] = []

    class Connection(asyncio.Protocol):
        def begin(self) -> None:
            self.pieces: list[bytes] = []
            self.on_body = self.pieces.append
            self.complete = False
            self.waiter: asyncio.Future[None] | None = None
            self.parser = httptools.HttpResponseParser(self)

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def on_message_complete(self) -> None:
            self.complete = True

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)
            if self.waiter is not None and (self.pieces or self.complete):
                self.waiter.set_result(None)
                self.waiter = None

    async def read(path: str) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        connection = idle.pop() if idle else (await loop.create_connection(Connection, *_address(base_url)))[1]
        connection.begin()
        connection.transport.write(_request(path))
        pieces = connection.pieces
        while pieces or not connection.complete:
            if not pieces:
                connection.waiter = loop.create_future()
                await connection.waiter
            data = b"".join(pieces)
            pieces.clear()
            yield data
        idle.append(connection)

    return read


def _aiohttp(base_url: str) -> AsyncSource:
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    async def read(path: str) -> AsyncIterator[bytes]:
        if not sessions:
            timeout = aiohttp.ClientTimeout(total=None)
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout))
        async with sessions[0].post(base_url + path, data=BODY, headers=HEADERS) as response:
            async for data in response.content.iter_any():
                yield data

    return read


def _httpx_async(base_url: str) -> AsyncSource:
    import httpx

    client = httpx.AsyncClient(trust_env=False, timeout=120, limits=httpx.Limits(max_connections=None))

    async def read(path: str) -> AsyncIterator[bytes]:
        async with client.stream("POST", base_url + path, content=BODY, headers=HEADERS) as response:
            async for data in response.aiter_raw():
                yield data

    return read


# ── the loop, sync and async ──


def _payloads(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    *events, rest = (rest + data).split(b"\n\n")
    return [event[at + 6 :] for event in events if (at := event.find(b"data: ")) >= 0], rest


def _build_sync(source: Callable[[str], Source], *, typed: bool = True) -> Callable[[str, str], Read]:
    def build(base_url: str, dialect: str) -> Read:
        fetch = source(base_url)
        bind = _TYPED[dialect]() if typed else _no_decode

        def read(profile: str, sink: Sink) -> None:
            push, rest = bind(sink), b""
            for data in fetch(f"/{profile}{PATHS[dialect]}"):
                found, rest = _payloads(rest, data)
                for payload in found:
                    if payload != b"[DONE]":
                        push(payload)

        return read

    return build


def _build_async(source: Callable[[str], AsyncSource]) -> Callable[[str, str], Read]:
    def build(base_url: str, dialect: str) -> Read:
        fetch = source(base_url)
        bind = _TYPED[dialect]()

        async def read(profile: str, sink: Sink) -> None:
            push, rest = bind(sink), b""
            async for data in fetch(f"/{profile}{PATHS[dialect]}"):
                found, rest = _payloads(rest, data)
                for payload in found:
                    if payload != b"[DONE]":
                        push(payload)

        return read

    return build


SPLIT_ONLY = "socket, split only"

FLOORS = (
    Contestant(SPLIT_ONLY, "sync", "floor", _build_sync(_socket, typed=False), "floor"),
    Contestant("socket + typed decode", "sync", "floor", _build_sync(_socket), "floor"),
    Contestant("http.client + typed decode", "sync", "floor", _build_sync(_http_client), "floor"),
    Contestant("urllib3 + typed decode", "sync", "floor", _build_sync(_urllib3), "floor"),
    Contestant("httpx + typed decode", "sync", "floor", _build_sync(_httpx), "floor"),
    Contestant("httptools protocol + typed decode", "async", "floor", _build_async(_httptools), "floor"),
    Contestant("aiohttp + typed decode", "async", "floor", _build_async(_aiohttp), "floor"),
    Contestant("httpx + typed decode", "async", "floor", _build_async(_httpx_async), "floor"),
)
