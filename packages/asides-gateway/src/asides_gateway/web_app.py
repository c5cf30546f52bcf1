"""The HTTP application of a gateway: which handler gets which path. `make_app(service)`, `make_runner(app)`.

Everything that no other handler has is a request for the relay.
"""

from __future__ import annotations

from aiohttp import web

from asides_gateway.authenticate import (
    SAFE_HEADERS,
    Refusal,
    is_preflight,
    write_cors_headers,
    write_preflight_headers,
)
from asides_gateway.client_connection import GatewayRunner
from asides_gateway.conversations_api import add_routes as add_conversations
from asides_gateway.health import HEALTH_PATHS, add_health
from asides_gateway.metrics import METRICS_PATH
from asides_gateway.page_requests import Handler, answer_error
from asides_gateway.relay_handler import handle_relayed
from asides_gateway.requests_api import add_routes as add_requests
from asides_gateway.serve_page import add_routes as add_page
from asides_gateway.serve_page import is_browser_at_root
from asides_gateway.service import Service

SERVICE = web.AppKey("service", Service)
# The routes that need no key: the files of the page, and the way to it. A route is named as it was added, so that no
# spelling of a path is taken for another one.
_OPEN = frozenset({"/ui", "/ui/", "/ui/{name}"})
_ONLY_OWN = (
    "the figures are those of all clients, and this key sees its own alone. To do: use a key of the settings, such as "
    "ASIDES_GATEWAY_KEY, or set gateway.open_metrics."
)
# Paths of replies as clients of the three usual dialects write them, with their queries.
_USUAL_PATHS = frozenset({"/v1/chat/completions", "/v1/messages", "/v1/messages?beta=true", "/v1/responses"})


def make_app(service: Service) -> web.Application:
    """The application over a service, which it closes at its end."""

    async def relay(request: web.Request) -> web.StreamResponse:
        if service.settings.page and is_browser_at_root(request):
            return web.Response(status=302, headers={"location": "/ui/"})
        return await handle_relayed(request, service)

    @web.middleware
    async def check_caller(request: web.Request, handler: Handler) -> web.StreamResponse:
        # The relay answers in the caller's dialect, and so checks by itself.
        if request.match_info.handler is relay:
            return await handler(request)
        return await _check_caller(request, handler, service)

    async def start(_: web.Application) -> None:
        await service.start()

    async def close(_: web.Application) -> None:
        await service.close()

    app = web.Application(client_max_size=service.settings.max_body, middlewares=[check_caller])
    app[SERVICE] = service
    app.on_startup.append(start)
    app.on_cleanup.append(close)
    app.on_response_prepare.append(_add_safe_headers)
    add_health(app, service)
    add_page(app, service)
    if service.settings.page:
        add_conversations(app, service)
        add_requests(app, service)
    app.router.add_route("*", "/ui/{path:.*}", _answer_unknown)
    # The handler itself lets a client send its body, once it knows that it will read it.
    app.router.add_route("*", "/{path:.*}", relay, expect_handler=_expect_nothing)
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """What serves the application on the sites that are added to it."""
    service, handle_any = app[SERVICE], app._handle

    async def handle(request: web.Request) -> web.StreamResponse:
        # Most requests ask for replies. No other route has these paths, in any spelling, so none has to be looked for.
        if request.method == "POST" and request.raw_path in _USUAL_PATHS:
            return await handle_relayed(request, service)
        return await handle_any(request)

    return GatewayRunner(app, service.settings, handle)


async def _check_caller(request: web.Request, handler: Handler, service: Service) -> web.StreamResponse:
    """Let a request of the page, or for figures, through if whoever asks may."""
    resource = request.match_info.route.resource
    route = "" if resource is None else resource.canonical
    if route in HEALTH_PATHS:
        # They tell nothing, and whoever watches over processes asks by any name.
        return await handler(request)
    asks_first = is_preflight(request.method, request.headers)
    is_open = route in _OPEN or (route == METRICS_PATH and service.settings.open_metrics)
    found = await service.authenticator.admit(
        request.headers, request.rel_url.raw_query_string, is_open=is_open, is_preflight=asks_first
    )
    if isinstance(found, Refusal):
        return answer_error(found.message, found.code, found.status, found.headers)
    if route == METRICS_PATH and found.key is not None:
        return answer_error(_ONLY_OWN, "figures_of_all", 403)
    if not found.allowed_origin:
        return await handler(request)
    if asks_first:
        return web.Response(status=204, headers=write_preflight_headers(found.allowed_origin, request.headers))
    response = await handler(request)
    if not response.prepared:
        response.headers.update(write_cors_headers(found.allowed_origin))
    return response


async def _add_safe_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    headers = response.headers
    for name, value in SAFE_HEADERS.items():
        headers.setdefault(name, value)
    # Not the versions of what it runs on.
    headers["server"] = "asides"


async def _answer_unknown(_: web.Request) -> web.StreamResponse:
    return answer_error("nothing is here. To do: open /ui/.", "not_found", 404)


async def _expect_nothing(_: web.Request) -> None:
    pass
