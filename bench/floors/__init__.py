"""The floors: the cheapest ways to read the same bytes in Python, with an HTTP client and no library on top.

One inlined loop splits, decodes the fields that are read, and appends. asides is compared with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.contestant import Contestant, Read, Sink
from bench.floors import clients
from bench.floors.bodies import typed_body
from bench.floors.decoders import SPLITTERS, TYPED, no_decode, split_events
from bench.payloads import DIALECTS, QUESTION

PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    "cohere": "/v2/chat",
    "ollama": "/api/chat",
    "bedrock": "/model/us.anthropic.claude-sonnet-4-5-20250929-v1/converse-stream",
}
BODY = (
    b'{"model":"deepseek-reasoner","messages":[{"role":"user","content":"%s"}],"stream":true,'
    b'"stream_options":{"include_usage":true}}' % QUESTION.encode()
)
# A bare socket finds the events among the HTTP framing, which works for server-sent events only.
WITH_EVENTS = ("chat", "messages", "responses", "gemini", "cohere")


def _build_sync(source: Callable[[str], clients.SyncSource], *, typed: bool = True) -> Callable[[str, str], Read]:
    def build(base_url: str, dialect: str) -> Read:
        client = source(base_url)
        bind = TYPED[dialect]() if typed else no_decode
        split = SPLITTERS.get(dialect, split_events)
        decode_body, take_body = typed_body(dialect)

        def read(profile: str, sink: Sink) -> None:
            path = f"/{profile}{PATHS[dialect]}"
            if profile.startswith("body"):
                take_body(sink, decode_body(client.post(path, BODY)))
                return
            push, rest = bind(sink), b""
            for data in client.stream(path, BODY):
                found, rest = split(rest, data)
                for payload in found:
                    push(payload)

        return read

    return build


def _build_async(source: Callable[[str], clients.AsyncSource]) -> Callable[[str, str], Read]:
    def build(base_url: str, dialect: str) -> Read:
        client = source(base_url)
        bind = TYPED[dialect]()
        split = SPLITTERS.get(dialect, split_events)
        decode_body, take_body = typed_body(dialect)

        async def read(profile: str, sink: Sink) -> None:
            path = f"/{profile}{PATHS[dialect]}"
            if profile.startswith("body"):
                take_body(sink, decode_body(await client.post(path, BODY)))
                return
            push, rest = bind(sink), b""
            async for data in client.stream(path, BODY):
                found, rest = split(rest, data)
                for payload in found:
                    push(payload)

        return read

    return build


SPLIT_ONLY = "socket, split only"
UNFRAMED = "socket + typed decode"


def _floor(name: str, mode: Any, build: Any, dialects: tuple[str, ...] = DIALECTS) -> Contestant:
    return Contestant(name, mode, "floor", build, "floor", dialects, reads_bodies=name not in (SPLIT_ONLY, UNFRAMED))


FLOORS = (
    _floor(SPLIT_ONLY, "sync", _build_sync(clients.Socket, typed=False), WITH_EVENTS),
    _floor(UNFRAMED, "sync", _build_sync(clients.Socket), WITH_EVENTS),
    _floor("socket + httptools + typed decode", "sync", _build_sync(clients.SocketHttptools)),
    _floor("http.client + typed decode", "sync", _build_sync(clients.HttpClient), ("chat",)),
    _floor("urllib3 + typed decode", "sync", _build_sync(clients.Urllib3)),
    _floor("httpx + typed decode", "sync", _build_sync(clients.Httpx), ("chat",)),
    _floor("httptools protocol + typed decode", "async", _build_async(clients.HttptoolsProtocol)),
    _floor("aiohttp + typed decode", "async", _build_async(clients.Aiohttp)),
    _floor("httpx + typed decode", "async", _build_async(clients.HttpxAsync), ("chat",)),
)
