"""Requests of the page: their paths, bodies and queries, and answers in JSON, errors included."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from asides.conversations.store import StoreConflict
from asides.database import StoreError
from asides.relay.error_response import RelayRefusal
from asides.values.errors import AsidesError, ConfigError, ProviderError
from asides.values.parts import is_too_deep
from asides_gateway import web
from asides_gateway.authenticate import SAFE_HEADERS, Authenticator, Identity, Refusal
from asides_gateway.gateway_settings import MEGABYTE, GatewaySettings
from asides_gateway.read_body import read_body

_log = logging.getLogger("asides.gateway")

Body = TypeVar("Body", bound=msgspec.Struct)
Handler = web.Handler

MOST_BODY = 2 * MEGABYTE
"""The most bytes of a request of the page: a question and a few settings."""
MOST_WITH_FILES = 32 * MEGABYTE
"""The most bytes of a question with files."""
_TOO_LARGE = "the request is larger than the page may send. Send less."
_STORE_FAILED = "the stored conversations cannot be used. Try again; the log of the gateway says more."
HEADERS = {"cache-control": "no-store", **SAFE_HEADERS}
EVENT_HEADERS = {**HEADERS, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
"""The headers of a response of server-sent events, which no proxy may hold back."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class PageError(Exception):
    """A request of the page is refused. The message says what to do, and holds no content."""

    def __init__(self, message: str, code: str, status: int = 400, *, allow: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.allow = allow


def add_paths(app: web.Application, prefix: str, paths: Mapping[str, Mapping[str, Handler]]) -> None:
    """Add the handlers of an API, by path and method. They need to come before a path that takes everything."""
    for path, methods in paths.items():
        for method, handler in methods.items():
            app.add_route(method, prefix + path, answer_errors(handler))
        app.add_route("*", prefix + path, refuse_methods(*methods))


def answer_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An answer in JSON."""
    return web.json_response(value, status=status, headers={**HEADERS, **(headers or {})})


def answer_error(message: str, code: str, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
    """An error as the page reads it."""
    return answer_json({"error": {"message": message, "code": code}}, status, headers)


def answer_errors(handler: Handler) -> Handler:
    """The handler, whose errors are answers in JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except PageError as problem:
            headers = {"allow": ", ".join(problem.allow)} if problem.allow else {}
            return answer_error(str(problem), problem.code, problem.status, headers)
        except AsidesError as problem:
            return answer_json({"error": describe_error(problem)}, find_status(problem))

    return handle


def describe_error(problem: AsidesError) -> dict[str, Any]:
    """An error of the library: what happened and what to do, and what a program matches on."""
    described: dict[str, Any] = {"message": str(problem), "code": name_error(problem)}
    if isinstance(problem, StoreError) and not isinstance(problem, StoreConflict):
        # It names files of this machine: log them for the operator only.
        _log.error("the page's conversations: %s", problem)
        described["message"] = _STORE_FAILED
    if isinstance(problem, ProviderError):
        described["status"] = problem.status
        described["kind"] = problem.kind
    return {name: value for name, value in described.items() if value is not None}


def name_error(problem: AsidesError) -> str:
    """The code of an error: the name of its class, such as rate_limited."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(problem).__name__).lower()


def find_status(problem: AsidesError) -> int:
    """The status of the answer for an error that came before anything was sent."""
    if isinstance(problem, StoreConflict):
        return 409
    if isinstance(problem, StoreError):
        return 503
    if isinstance(problem, RelayRefusal):
        return problem.status
    return 400 if isinstance(problem, ConfigError) else 502


async def read_json(request: web.Request, kind: type[Body], settings: GatewaySettings, most: int = MOST_BODY) -> Body:
    """Read the body as a value of this type. Raises PageError for any other."""
    if request.content_type != "application/json":
        raise PageError("the body is not JSON. Send content-type: application/json.", "not_json", 415)
    try:
        body = await read_body(request, msgspec.structs.replace(settings, max_body=min(most, settings.max_body)))
    except RelayRefusal as problem:
        message = _TOO_LARGE if problem.status == 413 else str(problem)
        raise PageError(message, "unreadable_body", problem.status) from None
    if is_too_deep(body):
        raise PageError("the body is nested too deep.", "invalid_json")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as problem:
        raise PageError(f"the request is not valid: {problem}.", "invalid_request") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PageError("the body is not valid JSON.", "invalid_json") from None


def find_tenant(request: web.Request, authenticator: Authenticator) -> str:
    """Return the tenant. Raises PageError if unauthenticated."""
    return find_identity(request, authenticator).tenant


def find_identity(request: web.Request, authenticator: Authenticator) -> Identity:
    """Return the identity, with the limits of the key. Raises PageError if unauthenticated."""
    found = authenticator.identify(request.headers, request.raw_query, method=request.method)
    if isinstance(found, Refusal):
        raise PageError(found.message, found.code, found.status)
    return found


def read_id(request: web.Request) -> str:
    """The id of a conversation in the path. Raises PageError for one that cannot be."""
    identifier = request.match["id"]
    if _ID.fullmatch(identifier) is None:
        raise refuse_unknown()
    return identifier


def refuse_unknown() -> PageError:
    """The error for a conversation that is not there, or not this tenant's."""
    return PageError("there is no such conversation. Reload the list.", "no_conversation", 404)


def read_number(request: web.Request, name: str, usual: int | None, most: int) -> int | None:
    """A whole number of the query, from 0 on. Raises PageError for anything else, and for more than `most`."""
    text = request.query.get(name)
    if text is None or text == "":
        return usual
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise PageError(f"{name} is a number from 0 to {most}.", "invalid_query")
    return int(text)


def check_query(request: web.Request, *names: str) -> None:
    """Raise PageError for a parameter that is not one of these. `key` is the client's, for who may ask."""
    for name in request.query:
        if name not in (*names, "key"):
            raise PageError(f"unknown parameter {name[:40]!r}.", "invalid_query")


def refuse_methods(*allowed: str) -> Handler:
    """A handler for the methods that a path does not take."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        raise PageError(f"{request.method} is not allowed for this path.", "method_not_allowed", 405, allow=allowed)

    return answer_errors(refuse)
