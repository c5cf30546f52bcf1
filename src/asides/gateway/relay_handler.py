"""One relayed request over HTTP: the request of aiohttp → the relay → its response, written as it comes.

Not here: what the relay does, and who may ask (authenticate).
"""

from __future__ import annotations

from aiohttp import web

from asides.gateway.service import Service
from asides.relay.relay_request import RelayRequest


async def handle_relayed(request: web.Request, service: Service, tenant: str = "") -> web.StreamResponse:
    """Answer a request in its dialect. A client that leaves ends the request to the provider."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = await request.read()
    relayed = RelayRequest("", request.method, request.path, request.query_string, headers, body, tenant)
    stream = service.begin(relayed)
    try:
        start = await stream.start()
        response = web.StreamResponse(status=start.status, headers=start.headers)
        await response.prepare(request)
        async for data in stream:
            await response.write(data)
        await response.write_eof()
    finally:
        await stream.close()
    return response
