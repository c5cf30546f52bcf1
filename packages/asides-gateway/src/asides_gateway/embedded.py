"""A gateway inside another program: `Gateway(settings)`, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Self

try:
    from asides_gateway.http_server import GatewayServer
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"a gateway needs {missing.name}, which is not installed. Run pip install 'asides[gateway]'.",
        name=missing.name,
    ) from None

from asides.options import Options
from asides.settings import Settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.listen import close_sockets, name_address, open_sockets
from asides_gateway.mounted import open_application
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatcher

_END_SECONDS = 10.0


class Gateway:
    """A gateway in a thread of its own.

    with Gateway(GatewaySettings(port=0), settings) as gateway:
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any")
    """

    def __init__(
        self,
        settings: GatewaySettings | None = None,
        call_settings: Settings | None = None,
        *,
        options: Options | None = None,
        watchers: tuple[RequestWatcher, ...] = (),
    ) -> None:
        """`settings`: None for a free port of 127.0.0.1, with everything in memory. One with a `folder` or a `store`
        keeps summaries of requests there, as `asides serve` does; `summary_days=0` turns that off. `call_settings`:
        routes, aliases, rows and defaults; None: those of asides.toml and the environment. `options`: of every call to
        a provider."""
        self._settings = GatewaySettings(port=0) if settings is None else settings
        self._call_settings = call_settings
        self._options = options
        self._watchers = watchers
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None
        self._url: str | None = None
        self._service: Service | None = None

    @property
    def url(self) -> str:
        """Where it answers, such as "http://127.0.0.1:4242"."""
        if self._url is None:
            raise RuntimeError("the gateway is not open. Use it in a with block, or call start().")
        return self._url

    @property
    def service(self) -> Service:
        """What its requests share. It belongs to the thread of the gateway."""
        if self._service is None:
            raise RuntimeError("the gateway is not open. Use it in a with block, or call start().")
        return self._service

    def start(self) -> Self:
        """Open the port and answer requests in a new thread. Raises a ConfigError if the port is taken."""
        if self._thread is not None:
            raise RuntimeError("this gateway was started before. Make another one.")
        ready: Future[tuple[str, Callable[[], object]]] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="asides-gateway", daemon=True)
        self._thread.start()
        try:
            self._url, self._stop = ready.result()
        except BaseException:
            self._thread.join(_END_SECONDS)
            raise
        return self

    def close(self) -> None:
        """End replies under way, after at most `drain_seconds`, and the thread. Closing twice does no harm."""
        if self._thread is None or self._stop is None:
            return
        if self._thread.is_alive():
            with suppress(RuntimeError):  # Its loop is closed already.
                self._stop()
        self._thread.join(self._settings.drain_seconds + _END_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError("the gateway's thread did not end.")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, ready: Future[tuple[str, Callable[[], object]]]) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as problem:
            if ready.done():
                raise
            ready.set_exception(problem)  # It has to be raised in the thread that started this one.

    async def _serve(self, ready: Future[tuple[str, Callable[[], object]]]) -> None:
        settings = self._settings
        opening = open_application(settings, self._call_settings, self._options, self._watchers)
        async with opening as (self._service, app):
            sockets = open_sockets(settings.host, settings.port)
            try:

                def announce() -> None:
                    tell_to_stop = partial(asyncio.get_running_loop().call_soon_threadsafe, server.stop)
                    ready.set_result((name_address(sockets[0]), tell_to_stop))

                server = GatewayServer(app, settings, announce)
                await server.serve(sockets)
            finally:
                close_sockets(sockets)

    def __repr__(self) -> str:
        return f"Gateway({self._url or 'not open'})"
