"""An application on a server and a free port of its own, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp

from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.http_server import GatewayServer
from asides_gateway.listen import name_address, open_sockets
from asides_gateway.web import Application


async def _read_all(response: aiohttp.ClientResponse) -> None:
    """Read each response when it arrives, so that no test has to close it."""
    await response.read()


@asynccontextmanager
async def open_client(app: Application) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Serve the application, and close it at the end."""
    ready = asyncio.Event()
    settings = GatewaySettings(port=0, drain_seconds=1)
    sockets = open_sockets(settings.host, 0)
    await app.startup()
    server = GatewayServer(app, settings, ready.set)
    serving = asyncio.create_task(server.serve(sockets))
    await ready.wait()
    try:
        async with aiohttp.ClientSession(name_address(sockets[0]), raise_for_status=_read_all) as client:
            yield client
    finally:
        server.stop()
        await serving
        await app.cleanup()
