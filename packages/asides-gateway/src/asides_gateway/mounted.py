"""A gateway inside an ASGI application of FastAPI or Starlette, or on an ASGI server: `MountedGateway(settings)`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from asides.options import Options
from asides.settings import Settings
from asides_gateway.fault_body import write_fault
from asides_gateway.gateway_settings import GatewaySettings, is_loopback
from asides_gateway.request_summaries import open_summaries
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatcher, list_span_watchers
from asides_gateway.web import Application, Receive, Scope, Send
from asides_gateway.web_app import make_app

_NOT_STARTED = (
    "the gateway was not started. Run its lifespan with that of the application around it, such as "
    "FastAPI(lifespan=gateway.lifespan)."
)
_NEEDS_KEY = (
    "this gateway has no key and answers this machine only. Set keys, as in "
    "app(GatewaySettings(keys=(KEY,))), and send one."
)
_NO_WEBSOCKETS = "this gateway does not support WebSockets. Send an HTTP request."


class MountedGateway:
    """A gateway as an ASGI application.

    gateway = asides_gateway.app(asides_gateway.GatewaySettings(keys=(KEY,)))
    application = FastAPI(lifespan=gateway.lifespan)
    application.mount("/llm", gateway)
    """

    def __init__(
        self,
        settings: GatewaySettings | None = None,
        call_settings: Settings | None = None,
        *,
        options: Options | None = None,
        watchers: tuple[RequestWatcher, ...] = (),
    ) -> None:
        """`settings`: None for the defaults, with everything in memory; the address and the limits of connections are
        those of the server around it. `call_settings`, `options`, `watchers`: as of `Gateway`."""
        self._settings = GatewaySettings() if settings is None else settings
        self._call_settings = call_settings
        self._options = options
        self._watchers = watchers
        self._app: Application | None = None
        self._service: Service | None = None

    @property
    def service(self) -> Service:
        """What its requests share, while it runs."""
        if self._service is None:
            raise RuntimeError(_NOT_STARTED)
        return self._service

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncGenerator[None, None]:
        """Start the gateway, and close it at the end. Frameworks do not run the lifespan of a mounted application: pass
        this one to the application around it, or enter it in that one's own.
        """
        if self._app is not None:
            raise RuntimeError("this gateway runs already")
        async with open_application(self._settings, self._call_settings, self._options, self._watchers) as opened:
            self._service, self._app = opened
            try:
                yield
            finally:
                await self._app.shutdown()
                self._app = self._service = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run the lifespan."""
        match scope["type"]:
            case "lifespan":
                await self._run_lifespan(receive, send)
            case "websocket":
                await _refuse_websocket(scope, receive, send)
            case _ if self._app is None or self._service is None:
                await _refuse(send, "http.response", 503, _NOT_STARTED)
            case _ if not self._service.authenticator.needs_key and not _is_local(scope):
                await _refuse(send, "http.response", 401, _NEEDS_KEY)
            case _:
                await self._app(scope, receive, send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        is_started = False
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                is_started = True
                await receive()
        except Exception as problem:
            phase = "shutdown" if is_started else "startup"
            await send({"type": f"lifespan.{phase}.failed", "message": str(problem)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def __repr__(self) -> str:
        return f"MountedGateway({'running' if self._app is not None else 'not started'})"


@asynccontextmanager
async def open_application(
    settings: GatewaySettings,
    call_settings: Settings | None,
    options: Options | None,
    watchers: tuple[RequestWatcher, ...],
) -> AsyncGenerator[tuple[Service, Application], None]:
    """The parts of a gateway inside another program, started; closed at the end."""
    service = Service(settings, call_settings, options=options)
    summaries = open_summaries(service)
    service.watchers.extend((*watchers, *list_span_watchers()))
    app = make_app(service)
    try:
        await app.startup()
        summaries.start()
        yield service, app
    finally:
        await summaries.close()
        await app.cleanup()


def _is_local(scope: Scope) -> bool:
    client = scope.get("client")
    return client is not None and is_loopback(str(client[0]))


async def _refuse(send: Send, kind: str, status: int, message: str) -> None:
    body = write_fault(message, status)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body, "more_body": False})


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 426, after which clients use HTTP; where the server cannot, close."""
    await receive()
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _refuse(send, "websocket.http.response", 426, _NO_WEBSOCKETS)
    else:
        await send({"type": "websocket.close", "code": 1000})
