"""Run a gateway until it is told to end: `run_gateway(settings)`.

Not here: what it answers (web_app).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from asides.gateway.gateway_settings import GatewaySettings
from asides.gateway.service import Service
from asides.gateway.web_app import make_app, make_runner


def run_gateway(settings: GatewaySettings, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `announce` gets the address once it is open."""
    asyncio.run(_serve(settings, announce))


async def _serve(settings: GatewaySettings, announce: Callable[[str], None]) -> None:
    runner = make_runner(make_app(Service(settings)))
    await runner.setup()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        site = web.TCPSite(runner, settings.host, settings.port)
        await site.start()
        host, port = runner.addresses[0][:2]
        announce(f"http://{host}:{port}")
        await ended.wait()
    finally:
        await runner.cleanup()
