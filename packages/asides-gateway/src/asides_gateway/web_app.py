"""The HTTP application of a gateway: which handler gets which path. `make_app(service)`.

Everything that no other handler has is a request for the relay.
"""

from __future__ import annotations

from urllib.parse import quote

from asides_gateway import web
from asides_gateway.authenticate import (
    SAFE_HEADERS,
    Refusal,
    is_preflight,
    write_cors_headers,
    write_preflight_headers,
)
from asides_gateway.conversations_api import add_routes as add_conversations
from asides_gateway.fault_body import write_fault
from asides_gateway.health import HEALTH_PATHS, add_health
from asides_gateway.metrics import METRICS_PATH
from asides_gateway.page_requests import answer_error
from asides_gateway.relay_handler import handle_relayed
from asides_gateway.requests_api import add_routes as add_requests
from asides_gateway.serve_page import add_routes as add_page
from asides_gateway.serve_page import is_browser_at_root
from asides_gateway.service import Service

# The routes that need no key: the files of the page, and the way to it. A route is named as it was added, so that no
# spelling of a path is taken for another one.
_OPEN = frozenset({"/ui", "/ui/", "/ui/{name}"})
_ONLY_OWN = (
    "the metrics are those of all clients, and this key may see only its own. Use a key of the settings, such as "
    "ASIDES_GATEWAY_KEY, or set gateway.open_metrics."
)
_FAULT = "the gateway failed to answer this request. Try again."
_DEFAULT_HEADERS = {**SAFE_HEADERS, "server": "asides"}


def make_app(service: Service) -> web.Application:
    """The application over a service, which it starts and closes."""

    async def relay(request: web.Request) -> web.StreamResponse:
        # It answers in the caller's dialect, and so checks the caller by itself.
        if service.settings.page and is_browser_at_root(request):
            return web.Response(status=302, headers={"location": f"{quote(request.root_path)}/ui/"})
        return await handle_relayed(request, service)

    async def check(request: web.Request, handler: web.Handler) -> web.StreamResponse:
        return await _check_caller(request, handler, service)

    async def start(_: web.Application) -> None:
        await service.start()

    async def close(_: web.Application) -> None:
        await service.close()

    app = web.Application(relay, _DEFAULT_HEADERS, _make_fault)
    app.check = check
    app.on_startup.append(start)
    add_health(app, service)
    add_page(app, service)
    if service.settings.page:
        add_conversations(app, service)
        add_requests(app, service)
    app.add_route("*", "/ui/{path:.*}", _answer_unknown)
    app.on_cleanup.append(close)
    return app


def _make_fault(request: web.Request) -> web.Response:
    """The response after an error in our own code."""
    return web.Response(
        body=write_fault(_FAULT, 500, request.raw_path, request.method),
        status=500,
        headers={"content-type": "application/json", "connection": "close"},
    )


async def _check_caller(request: web.Request, handler: web.Handler, service: Service) -> web.StreamResponse:
    """Authorize page and metrics requests."""
    route = request.route
    if route in HEALTH_PATHS:
        # Health paths reveal nothing; probes may use any Host header.
        return await handler(request)
    asks_first = is_preflight(request.method, request.headers)
    is_open = route in _OPEN or (route == METRICS_PATH and service.settings.open_metrics)
    found = await service.authenticator.admit(
        request.headers, request.raw_query, method=request.method, is_open=is_open, is_preflight=asks_first
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


async def _answer_unknown(_: web.Request) -> web.StreamResponse:
    return answer_error("nothing is here. Open /ui/.", "not_found", 404)
