"""A parsing pass-through: the cheapest honest gateway on this stack. `python -m bench.floors.gateway UPSTREAM`.

aiohttp.web in front, aiohttp behind, uvloop if it is installed. Every event is decoded into typed fields and encoded
again; events that arrive together leave together. It keeps nothing, checks nothing and knows one dialect. The model of
a request is the profile of the replay server. It writes its port to standard output, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer x"}


class Request(msgspec.Struct):
    model: str
    stream: bool = False


class Delta(msgspec.Struct, omit_defaults=True, gc=False):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Any] | None = None


class Choice(msgspec.Struct, gc=False):
    index: int
    delta: Delta
    finish_reason: str | None = None


class Chunk(msgspec.Struct, gc=False):
    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, Any] | None = None


_read_request = msgspec.json.Decoder(Request).decode
_read_chunk = msgspec.json.Decoder(Chunk).decode
_encode = msgspec.json.Encoder().encode


def pass_events(events: list[bytes]) -> bytes:
    """Decode each event and write it again."""
    written: list[bytes] = []
    for event in events:
        data = event[6:]
        written.append(b"data: %s\n\n" % (data if data == b"[DONE]" else _encode(_read_chunk(data))))
    return b"".join(written)


class Gateway:
    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = _read_request(body)
        url = f"{self._upstream}/{asked.model}/v1/chat/completions"
        async with self._session.post(url, data=body, headers=HEADERS) as upstream:
            if not asked.stream:
                whole = _encode(msgspec.json.decode(await upstream.read()))
                return web.Response(body=whole, content_type="application/json")
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            rest = b""
            async for data in upstream.content.iter_any():
                *events, rest = (rest + data).split(b"\n\n")
                if events:
                    await response.write(pass_events(events))
            await response.write_eof()
            return response


async def serve(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
    """Serve every path until standard input ends."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run it on uvloop, if it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def _serve(upstream: str) -> None:
    await serve(Gateway(upstream).answer)


if __name__ == "__main__":
    run(_serve(sys.argv[1]))
