"""The HTTP application of a gateway: which handler gets which path. `make_app(service)`, `make_runner(app)`.

Everything that no other handler has is a request for the relay. Not here: the handlers.
"""

from __future__ import annotations

from aiohttp import web

from asides.gateway.authenticate import Refusal, is_preflight, write_cors_headers, write_preflight_headers
from asides.gateway.client_connection import GatewayRunner
from asides.gateway.conversations_api import add_routes as add_conversations
from asides.gateway.health import HEALTH_PATHS, add_health
from asides.gateway.metrics import METRICS_PATH
from asides.gateway.page_requests import Handler, answer_error
from asides.gateway.relay_handler import handle_relayed
from asides.gateway.requests_api import add_routes as add_requests
from asides.gateway.serve_page import add_routes as add_page
from asides.gateway.service import Service

SERVICE = web.AppKey("service", Service)
_PAGE = "/ui/"
_PAGE_API = "/ui/api/"
# What needs no key: the way to the page.
_OPEN = frozenset({"/ui"})


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
    asks_first = is_preflight(request.method, request.headers)
    is_file = path.startswith(_PAGE) and not path.startswith(_PAGE_API)
    is_open_metrics = path == METRICS_PATH and service.settings.open_metrics
    is_open = asks_first or is_file or is_open_metrics or path in _OPEN
    found = service.authenticator.identify(request.headers, request.rel_url.raw_query_string, is_open=is_open)
    if isinstance(found, Refusal):
        return answer_error(found.message, found.code, found.status, found.headers)
    if not found.allowed_origin:
        return await handler(request)
    if asks_first:
        return web.Response(status=204, headers=write_preflight_headers(found.allowed_origin, request.headers))
    response = await handler(request)
    if not response.prepared:
        response.headers.update(write_cors_headers(found.allowed_origin))
    return response


async def _answer_unknown(_: web.Request) -> web.StreamResponse:
    return answer_error("nothing is here. To do: open /ui/.", "not_found", 404)


async def _expect_nothing(_: web.Request) -> None:
    pass
