"""A bare pass-through: the cheapest gateway on this stack. `python -m bench.floors.bare_gateway UPSTREAM`.

aiohttp.web in front, aiohttp behind, uvloop if it is installed. It forwards path, query and body, and returns the bytes
of the response as they arrive. It parses nothing, so it serves every dialect. It writes its port to standard output,
and ends with its standard input.
"""

from __future__ import annotations

import sys

import aiohttp
from aiohttp import web

from bench.floors.gateway import HEADERS, run, serve


class BareGateway:
    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        async with self._session.post(self._upstream + request.path_qs, data=body, headers=HEADERS) as upstream:
            headers = {"Content-Type": upstream.headers["Content-Type"]}
            if "Content-Length" in upstream.headers:
                return web.Response(body=await upstream.read(), headers=headers)
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            async for data in upstream.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response


async def _serve(upstream: str) -> None:
    await serve(BareGateway(upstream).answer)


if __name__ == "__main__":
    run(_serve(sys.argv[1]))
