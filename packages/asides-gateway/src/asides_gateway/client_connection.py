"""The connections of a gateway: the bounds of heads, and what a client gets that speaks no HTTP. `GatewayRunner(app)`.

aiohttp bounds no time for a head, and writes the words of a request it cannot read into its answer and its log. Not
here: bodies (read_body) and responses (relay_handler).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from aiohttp import web

from asides.relay.endpoints import NoEndpoint, find_endpoint
from asides.relay.error_response import RelayRefusal, write_error_response
from asides_gateway.authenticate import SAFE_HEADERS
from asides_gateway.gateway_settings import GatewaySettings

Handle: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger("asides.gateway")
_KEEPALIVE_SECONDS = 75.0
"""How long a connection may rest between two requests. Longer than the proxies that are usual in front."""
_MOST_LINE = 64 * 1024
_MOST_FIELD = 64 * 1024
_MOST_FIELDS = 200


class _Connection(web.RequestHandler):
    """One connection of a client."""

    __slots__ = ("_first_line", "_head_seconds", "_head_timer")

    def __init__(self, manager: web.Server, *, head_seconds: float, **options: Any) -> None:
        super().__init__(manager, **options)
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._first_line = b""
        """How the last head begins: a head that cannot be read is answered in the dialect of its path."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._watch_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        count = self._request_count
        if self._head_timer is not None or self._is_waiting():
            if (begins := _FIRST_LINE.match(data)) is not None:
                self._first_line = begins[0]
            data = join_agents(data)
        super().data_received(data)
        if self._request_count != count:
            self._stop_watching()
        elif self._head_timer is None and self._is_waiting():
            # The first bytes of a head that is not whole.
            self._watch_head()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what aiohttp cannot read, and errors of handlers, without a word of the request."""
        del message
        if status >= 500:
            _log.error("a request could not be answered: %s", type(exc).__name__)
        else:
            _log.debug("a request could not be read: %s", type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun")
        words = _FAULT if status >= 500 else _UNREADABLE
        kind = "api_error" if status >= 500 else "invalid_request_error"
        body = msgspec.json.encode(
            {"type": "error", "error": {"type": kind, "message": words, "code": None, "param": None}}
        )
        if (dialect := _find_dialect(self._first_line)) is not None:
            body = write_error_response(RelayRefusal(words, status=status), dialect).body
        headers = {**SAFE_HEADERS, "server": "asides", "content-type": "application/json"}
        response = web.Response(status=status, body=body, headers=headers)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log without the text of an exception."""
        problem = more.get("exc_info")
        _log.error("a connection failed: %s", type(problem).__name__ if isinstance(problem, BaseException) else args[0])

    def _is_waiting(self) -> bool:
        """Whether no request is under way."""
        return self._waiter is not None and not self._waiter.done()

    def _watch_head(self) -> None:
        self._head_timer = self._loop.call_later(self._head_seconds, self._end_slow_head)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_slow_head(self) -> None:
        self._head_timer = None
        if self._is_waiting():
            self.force_close()


_FIRST_LINE = re.compile(rb"([A-Z]{3,10}) (/[^ ?\r\n]{0,4096})(?:\?[^ \r\n]*)? HTTP/1")
_AGENT = re.compile(rb"\r\nuser-agent:[ \t]*([^\r\n]*)", re.IGNORECASE)


def join_agents(data: bytes) -> bytes:
    """The bytes that begin with a head, its User-Agent in one header: some clients send two, one of their own and one
    of a library below, and servers accept that (pydantic-ai with google-genai, 2026-11).
    """
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[:end]
    found = list(_AGENT.finditer(head))
    if len(found) < 2:
        return data
    joined = b"\r\nuser-agent: " + b" ".join([agent[1] for agent in found])
    pieces = [head[: found[0].start()], joined]
    pieces += [head[one.end() : other.start()] for one, other in pairwise(found)]
    return b"".join([*pieces, head[found[-1].end() :], data[len(head) :]])


def _find_dialect(first_line: bytes) -> str | None:
    """The dialect of a path for replies or their like; None for others, and for what is no HTTP."""
    parsed = _FIRST_LINE.match(first_line)
    if parsed is None or parsed[2] == b"/":
        return None
    method, path = parsed[1].decode(), parsed[2].decode("latin-1")
    try:
        return find_endpoint(method, path, "", {}).dialect
    except NoEndpoint as problem:
        return problem.dialect


_UNREADABLE = (
    "this is no HTTP request, or its head is too large. To do: send fewer or smaller headers, by HTTP and not HTTPS."
)
_FAULT = "the gateway failed to answer this request. To do: try again."


class _Server(web.Server):
    """Makes a connection for each client."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class GatewayRunner(web.AppRunner):
    """What serves an application on the sites that are added to it."""

    def __init__(self, app: web.Application, settings: GatewaySettings, handle: Handle) -> None:
        """`handle`: answers each request, as the application would."""
        self._handle = handle
        super().__init__(
            app,
            # A client that leaves ends its request, and with it the request to the provider.
            handler_cancellation=True,
            # Ours shows no key and no query.
            access_log=None,
            # Bounded, by read_body.
            auto_decompress=False,
            shutdown_timeout=settings.drain_seconds,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            max_line_size=_MOST_LINE,
            max_field_size=_MOST_FIELD,
            max_headers=_MOST_FIELDS,
            head_seconds=settings.head_seconds,
        )

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        # aiohttp has no other way to a connection of one's own.
        server.__class__ = _Server
        server.request_handler = self._handle  # type: ignore[assignment] # its requests are those of an application
        return server
