"""The HTTP application of a gateway: which handler gets which path. `make_app(service)`, `make_runner(app)`.

Everything that no other handler has is a request for the relay. Not here: the handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from aiohttp import web

from asides.gateway.authenticate import Refusal, write_cors_headers, write_preflight_headers
from asides.gateway.client_connection import GatewayRunner
from asides.gateway.conversations_api import add_routes as add_conversations
from asides.gateway.health import HEALTH_PATHS, add_health
from asides.gateway.metrics import METRICS_PATH
from asides.gateway.relay_handler import handle_relayed
from asides.gateway.requests_api import add_routes as add_requests
from asides.gateway.serve_page import add_routes as add_page
from asides.gateway.service import Service

SERVICE = web.AppKey("service", Service)
_PAGE = "/ui/"
_PAGE_API = "/ui/api/"
# What needs no key: the way to the page.
_OPEN = frozenset({"/ui"})

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(service: Service) -> web.Application:
    """The application over a service, which it closes at its end."""

    async def relay(request: web.Request) -> web.StreamResponse:
        return await handle_relayed(request, service)

    @web.middleware
    async def check_caller(request: web.Request, handler: Handler) -> web.StreamResponse:
        # The relay answers in the caller's dialect, and so checks by itself.
        if request.match_info.handler is relay:
            return await handler(request)
        return await _check_caller(request, handler, service)

    async def close(_: web.Application) -> None:
        await service.close()

    app = web.Application(client_max_size=service.settings.max_body, middlewares=[check_caller])
    app[SERVICE] = service
    app.on_cleanup.append(close)
    app.on_response_prepare.append(_name_server)
    add_health(app, service)
    add_page(app, service)
    if service.settings.page:
        add_conversations(app, service)
        add_requests(app, service)
    app.router.add_route("*", _PAGE + "{path:.*}", _answer_unknown)
    # The handler itself lets a client send its body, once it knows that it will read it.
    app.router.add_route("*", "/{path:.*}", relay, expect_handler=_expect_nothing)
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """What serves the application on the sites that are added to it."""
    return GatewayRunner(app, app[SERVICE].settings)


async def _check_caller(request: web.Request, handler: Handler, service: Service) -> web.StreamResponse:
    """Let a request of the page, or for figures, through if whoever asks may."""
    path = request.rel_url.raw_path
    if path in HEALTH_PATHS:
        # They tell nothing, and whoever watches over processes asks by any name.
        return await handler(request)
    is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    is_file = path.startswith(_PAGE) and not path.startswith(_PAGE_API)
    is_open_metrics = path == METRICS_PATH and service.settings.open_metrics
    is_open = is_preflight or is_file or is_open_metrics or path in _OPEN
    found = service.authenticator.identify(request.headers, request.rel_url.raw_query_string, is_open=is_open)
    if isinstance(found, Refusal):
        return _answer_error(found.status, found.code, found.message, found.headers)
    if not found.allowed_origin:
        return await handler(request)
    if is_preflight:
        return web.Response(status=204, headers=write_preflight_headers(found.allowed_origin, request.headers))
    response = await handler(request)
    if not response.prepared:
        response.headers.update(write_cors_headers(found.allowed_origin))
    return response


async def _name_server(_: web.Request, response: web.StreamResponse) -> None:
    """No response tells strangers the versions of what it runs on."""
    response.headers["server"] = "asides"


async def _answer_unknown(_: web.Request) -> web.StreamResponse:
    return _answer_error(404, "not_found", "nothing is here. To do: open /ui/.")


async def _expect_nothing(_: web.Request) -> None:
    pass


def _answer_error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """An error as the page reads it."""
    return web.Response(
        status=status,
        body=msgspec.json.encode({"error": {"message": message, "code": code}}),
        headers={
            "content-type": "application/json; charset=utf-8",
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            **(headers or {}),
        },
    )
