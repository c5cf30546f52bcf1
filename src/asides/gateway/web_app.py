"""The HTTP application of a gateway: which handler gets which path. `make_app(service)`, `make_runner(app)`.

Everything that no other handler has is a request for the relay. Not here: the handlers.
"""

from __future__ import annotations

from aiohttp import web

from asides.gateway.conversations_api import add_routes as add_conversations
from asides.gateway.relay_handler import handle_relayed
from asides.gateway.serve_page import add_routes as add_page
from asides.gateway.service import Service

SERVICE = web.AppKey("service", Service)


def make_app(service: Service) -> web.Application:
    """The application over a service, which it closes at its end."""
    app = web.Application(client_max_size=service.settings.max_body)
    app[SERVICE] = service

    async def relay(request: web.Request) -> web.StreamResponse:
        return await handle_relayed(request, service)

    async def close(_: web.Application) -> None:
        await service.close()

    app.on_cleanup.append(close)
    add_page(app, service)
    if service.settings.page:
        add_conversations(app, service)
    app.router.add_route("*", "/{path:.*}", relay)
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """What serves the application on the sites that are added to it."""
    settings = app[SERVICE].settings
    return web.AppRunner(
        app,
        # A client that leaves ends its request, and with it the request to the provider.
        handler_cancellation=True,
        # Ours shows no key and no query.
        access_log=None,
        shutdown_timeout=settings.drain_seconds,
    )
