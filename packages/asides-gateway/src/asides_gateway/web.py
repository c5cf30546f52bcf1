"""HTTP over ASGI as the handlers of the gateway see it: requests, responses, and an application with routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Handler: TypeAlias = Callable[["Request"], Awaitable["StreamResponse"]]
Hook: TypeAlias = Callable[["Application"], Awaitable[None]]

EXTENSION = "asides"
"""The ASGI extension of our own server: `abort` breaks a connection off, `watch` calls back when the client leaves, for
less than a task costs, `until_close` says that the end of the connection is the end of the body (HTTP/1.0)."""
LINGER_SECONDS = 10.0
"""How long the rest of a body is read and dropped after a response: closing earlier would reset the connection, and the
client would lose the response."""
_NO_BODY = frozenset({204, 304})
_log = logging.getLogger("asides.gateway")


class Headers(Mapping[str, str]):
    """The headers of a request. Names ignore case; `[]` and `get` return the first value of a name."""

    __slots__ = ("_first", "_pairs")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = [
            (name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")) for name, value in raw
        ]
        self._first: dict[str, str] = {}
        for name, value in self._pairs:
            self._first.setdefault(name, value.strip(" \t"))

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._first

    def getall(self, name: str, default: list[str] | None = None) -> list[str]:
        """All values of a header, in their order."""
        name = name.lower()
        found = [value.strip(" \t") for other, value in self._pairs if other == name]
        return found or default or []

    def list_pairs(self) -> list[tuple[str, str]]:
        """All headers in their order, names in lower case."""
        return self._pairs


class Request:
    """One request."""

    __slots__ = (
        "_finished",
        "_has_left",
        "_lingers",
        "_query",
        "_receive",
        "_send",
        "_sending",
        "_task",
        "_watching",
        "app",
        "body_arrived",
        "content_length",
        "has_body",
        "headers",
        "match",
        "method",
        "raw_path",
        "raw_query",
        "route",
        "scope",
        "started",
    )

    def __init__(self, app: Application, scope: Scope, receive: Receive, send: Send) -> None:
        self.app = app
        self.scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.headers = Headers(scope["headers"])
        self.raw_path = _find_path(scope)
        """The path as it was sent, below the path at which the application is mounted."""
        self.raw_query: str = scope["query_string"].decode("latin-1")
        self.route = ""
        """The path with which its route was added."""
        self.match: dict[str, str] = {}
        """The parts of the path that the route names."""
        length = self.headers.get("content-length", "")
        self.content_length = int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else None
        self.has_body = bool(self.content_length) or "transfer-encoding" in self.headers
        self.body_arrived = not self.has_body
        self.started = False
        """True once a response has begun."""
        self._query: dict[str, str] | None = None
        self._finished = False
        self._has_left = False
        self._lingers = False
        self._sending = 0
        self._task: asyncio.Task[Any] | None = None
        self._watching: asyncio.Task[None] | None = None

    # --- the head -----------------------------------------------------------------------------------------------------

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the query; the first value of each."""
        if self._query is None:
            self._query = {}
            for name, value in parse_qsl(self.raw_query, keep_blank_values=True):
                self._query.setdefault(name, value)
        return self._query

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()

    @property
    def remote(self) -> str:
        """The address of the client; "" if unknown."""
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    @property
    def root_path(self) -> str:
        """The path at which the application is mounted; "" for the top."""
        return str(self.scope.get("root_path") or "").rstrip("/")

    @property
    def origin(self) -> str:
        """Where the client reached the application, such as "http://127.0.0.1:4242"."""
        host = self.headers.get("host", "") or ":".join(str(part) for part in self.scope.get("server") or ())
        return f"{self.scope.get('scheme', 'http')}://{host}{quote(self.root_path)}"

    @property
    def is_http_1_0(self) -> bool:
        """True if the body of the response ends with the connection."""
        return bool(self._extension.get("until_close"))

    # --- the body -----------------------------------------------------------------------------------------------------

    async def receive_body(self) -> bytes:
        """The next part of the body. Raises ConnectionError if the client has left."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._has_left = True
            raise ConnectionResetError("the client has left")
        if not message.get("more_body", False):
            self.body_arrived = True
            self.watch()
        body: bytes = message.get("body", b"")
        return body

    def watch(self) -> None:
        """Cancel the handler when the client leaves. Call it once no more of the body will be read."""
        if self._task is not None:
            return
        self._task = asyncio.current_task()
        if (watch := self._extension.get("watch")) is not None:
            watch(self._leave)
        else:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        if not self._finished and self._task is not None:
            self._has_left = True
            self._task.cancel()

    # --- the response -------------------------------------------------------------------------------------------------

    @property
    def is_sending(self) -> bool:
        """True while a write waits for the client."""
        return self._sending > 0

    def abort(self) -> None:
        """Break the connection off: the client must not take the response for a whole one."""
        if (abort := self._extension.get("abort")) is not None:
            abort()

    @property
    def _extension(self) -> Mapping[str, Any]:
        return (self.scope.get("extensions") or {}).get(EXTENSION) or {}

    async def send_start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of the response."""
        self.started = True
        raw = [(name.encode("latin-1"), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()]
        if not self.body_arrived and "connection" not in headers:
            raw.append((b"connection", b"close"))
        await self._write({"type": "http.response.start", "status": status, "headers": raw})

    async def send_body(self, data: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body. Waits for a client that reads slowly."""
        if is_last:
            self._finished = True
            self._lingers = not self.body_arrived
        more = not is_last or self._lingers or self.is_http_1_0
        if data or not more:
            await self._write({"type": "http.response.body", "body": data, "more_body": more})

    async def _write(self, message: Message) -> None:
        self._sending += 1
        try:
            await self._send(message)
        except OSError as problem:
            self._has_left = True
            raise ConnectionResetError("the client has left") from problem
        finally:
            self._sending -= 1

    # --- the end ------------------------------------------------------------------------------------------------------

    async def answer(self, handler: Handler) -> None:
        """Run the handler and send its response. Errors become responses."""
        if self.body_arrived:
            self.watch()
        try:
            await self._run(handler)
            if not self._finished and not self._has_left:
                raise BrokenOff
            if self._lingers:
                await self._linger()
        except asyncio.CancelledError:
            if not self._has_left:
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        except ConnectionError:
            pass  # The client has left.
        except BrokenOff:
            # Our own server has broken the connection off; another one does so, and logs this.
            if not self._extension:
                raise
        finally:
            if self._watching is not None:
                self._watching.cancel()
            elif self._task is not None:
                self._extension["watch"](None)

    async def _run(self, handler: Handler) -> None:
        try:
            response = await handler(self)
        except ConnectionError:
            raise
        except Exception as problem:  # noqa: BLE001 - the client gets a response, and the log no content
            _log.error("a request could not be answered: %s", type(problem).__name__)
            if self.started:
                self.abort()
                raise BrokenOff from None
            response = self.app.make_fault(self)
        if not response.prepared:
            await response.prepare(self)
            await response.write_eof()

    async def _linger(self) -> None:
        """Drop the rest of the body, then end the response."""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self.body_arrived:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    self.body_arrived = not message.get("more_body", False)
        if not self.is_http_1_0:
            await self._write({"type": "http.response.body", "body": b"", "more_body": False})


class BrokenOff(Exception):
    """A response broke off after it had begun."""


class StreamResponse:
    """A response whose body is written piece by piece."""

    def __init__(self, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status = status if 200 <= status < 600 else HTTPStatus.BAD_GATEWAY.value
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._request: Request | None = None

    @property
    def prepared(self) -> bool:
        """True once the head was sent."""
        return self._request is not None

    async def prepare(self, request: Request) -> None:
        """Send the head."""
        self._request = request
        headers = self.headers
        for name, value in request.app.default_headers.items():
            headers.setdefault(name, value)
        await request.send_start(self.status, headers)

    async def write(self, data: bytes) -> None:
        """Send a part of the body. Waits for a client that reads slowly."""
        await self._get_request().send_body(data)

    async def write_eof(self) -> None:
        """End the body."""
        await self._get_request().send_body(b"", is_last=True)

    def _get_request(self) -> Request:
        if self._request is None:
            raise RuntimeError("the head of this response was not sent")
        return self._request


class Response(StreamResponse):
    """A response with a whole body."""

    def __init__(
        self,
        *,
        body: bytes = b"",
        text: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status=status, headers=headers)
        self.body = body if text is None else text.encode()
        if text is not None:
            self.headers.setdefault("content-type", "text/plain; charset=utf-8")
        if self.status not in _NO_BODY:
            self.headers["content-length"] = str(len(self.body))

    async def write_eof(self) -> None:
        """Send the body."""
        await self._get_request().send_body(self.body, is_last=True)


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    content = {"content-type": "application/json; charset=utf-8"}
    return Response(body=msgspec.json.encode(value), status=status, headers={**content, **(headers or {})})


# --- the application --------------------------------------------------------------------------------------------------


class _Route:
    """A path and its handlers by method; "*": any other method."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handlers: dict[str, Handler] = {}
        self._segments = path.split("/")
        self._has_tail = self._segments[-1] == "{path:.*}"

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The named parts of a path; None for another path."""
        own = self._segments[:-1] if self._has_tail else self._segments
        if len(segments) <= len(own) if self._has_tail else len(segments) != len(own):
            return None
        found: dict[str, str] = {}
        for name, segment in zip(own, segments, strict=False):
            if name.startswith("{"):
                if not segment:
                    return None
                found[name[1:-1]] = segment
            elif name != segment:
                return None
        return found


class Application:
    """An ASGI application: routes, and a handler for everything else."""

    def __init__(
        self, fallback: Handler, default_headers: Mapping[str, str], make_fault: Callable[[Request], Response]
    ):
        """`fallback`: handles paths without a route. `default_headers`: on each response that has no others of the
        same name. `make_fault`: the response after an error of a handler."""
        self._fallback = fallback
        self._routes: dict[str, _Route] = {}
        self._first_segments: set[str] = set()
        self.default_headers = default_headers
        self.make_fault = make_fault
        self.check: Callable[[Request, Handler], Awaitable[StreamResponse]] | None = None
        """Runs the handler of a route, or refuses."""
        self.on_startup: list[Hook] = []
        self.on_shutdown: list[Hook] = []
        """Called when no more requests are accepted: ends responses that have no end of their own."""
        self.on_cleanup: list[Hook] = []
        self.draining = asyncio.Event()
        """Set when the gateway accepts no more requests."""

    def add_route(self, method: str, path: str, handler: Handler) -> None:
        """Add a handler. `{name}` is one segment of the path, `{path:.*}` at the end is the rest of it. Routes are
        tried in the order in which their paths were added.
        """
        self._routes.setdefault(path, _Route(path)).handlers[method] = handler
        self._first_segments.add(path.split("/")[1])

    def add_get(self, path: str, handler: Handler) -> None:
        """Add a handler for GET and HEAD."""
        self.add_route("GET", path, handler)
        self.add_route("HEAD", path, handler)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def startup(self) -> None:
        """Call before the first request."""
        for hook in self.on_startup:
            await hook(self)

    async def shutdown(self) -> None:
        """Call when no more requests are accepted."""
        self.draining.set()
        for hook in self.on_shutdown:
            await hook(self)

    async def cleanup(self) -> None:
        """Call after the last request."""
        for hook in self.on_cleanup:
            await hook(self)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(self, scope, receive, send)
        await request.answer(self._find_handler(request))

    def _find_handler(self, request: Request) -> Handler:
        path = request.raw_path
        # Decoded segment by segment: an encoded slash separates nothing.
        segments = [unquote(segment) for segment in path.split("/")] if "%" in path else path.split("/")
        if segments[1:2] and segments[1] not in self._first_segments:
            return self._fallback
        for route in self._routes.values():
            found = route.match(segments)
            if found is None:
                continue
            handler = route.handlers.get(request.method) or route.handlers.get("*")
            if handler is not None:
                request.route, request.match = route.path, found
                return self._guard(handler)
        return self._fallback

    def _guard(self, handler: Handler) -> Handler:
        check = self.check
        if check is None:
            return handler

        async def handle(request: Request) -> StreamResponse:
            return await check(request, handler)

        return handle


def _find_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    # Not every server keeps the path as it was sent.
    path = raw.decode("latin-1").partition("?")[0] if raw else quote(scope["path"])
    root = quote(str(scope.get("root_path") or "").rstrip("/"))
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path
