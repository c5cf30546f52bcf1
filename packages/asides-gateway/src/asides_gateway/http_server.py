"""The server of a gateway: uvicorn, with the bounds of all connections together, and a drain. `GatewayServer(app)`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Generator

import uvicorn

from asides_gateway.client_connection import ClientConnection
from asides_gateway.drain import drain
from asides_gateway.file_limit import count_connections
from asides_gateway.gateway_settings import MEGABYTE, GatewaySettings
from asides_gateway.web import Application

_log = logging.getLogger("asides.gateway")
_BACKLOG = 1024
_KEEPALIVE_SECONDS = 75
"""How long a connection may rest between two requests. Longer than the proxies that are usual in front."""
_MAX_HEADS = 16 * MEGABYTE
"""The bytes of all heads under way in a process."""
MAX_UNSENT = 256 * MEGABYTE
"""The bytes that wait in a process for clients to take them."""
_LOOK_SECONDS = 5.0


class MinuteLog:
    """Logs one line a minute, however often it is asked."""

    def __init__(self) -> None:
        self._next = 0.0

    def warn(self, text: str) -> None:
        """Log the line, unless there was one within the last minute."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + 60
            _log.warning("%s", text)


class ServerConfig(uvicorn.Config):
    """The configuration of uvicorn, and the bounds of connections."""

    def __init__(self, app: Application, settings: GatewaySettings) -> None:
        super().__init__(
            app,
            http=ClientConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEPALIVE_SECONDS,
        )
        self.head_seconds = settings.head_seconds
        self.stall_seconds = settings.stall_seconds
        self.drain_seconds = settings.drain_seconds
        self.max_connections = count_connections()
        self.max_head_bytes = _MAX_HEADS
        self.head_bytes = 0
        """The bytes of heads that have not arrived in full."""
        self.max_unsent = MAX_UNSENT
        self._full = MinuteLog()

    def note_full(self) -> None:
        """A connection was refused."""
        self._full.warn(
            f"connections are refused: {self.max_connections} are open, or their heads take too much. Raise the "
            "limit of open files (ulimit -n), or run more workers."
        )


class GatewayServer(uvicorn.Server):
    """Serves an application on open sockets. `serve(sockets)` returns after `stop`, once the replies under way have
    ended.
    """

    config: ServerConfig

    def __init__(self, app: Application, settings: GatewaySettings, on_ready: Callable[[], None]) -> None:
        """`on_ready`: called when the server accepts connections."""
        super().__init__(ServerConfig(app, settings))
        self._app = app
        self._on_ready = on_ready
        self._exit = asyncio.Event()
        self._next_look = 0.0

    def stop(self) -> None:
        """Drain, and return from `serve`."""
        self.should_exit = True
        self._exit.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        await super().startup(sockets)
        asyncio.get_running_loop().set_exception_handler(AcceptErrors())
        await self.on_tick(0)
        self._on_ready()

    async def main_loop(self) -> None:
        """Run until `stop`. Unlike uvicorn's, wakes once a second, and ends immediately."""
        look_seconds = min(_LOOK_SECONDS, self.config.stall_seconds / 4)
        while not self.should_exit:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, look_seconds)):
                    await self._exit.wait()
            await self.on_tick(0)
            now = time.monotonic()
            if now >= self._next_look:
                self._next_look = now + look_seconds
                self._watch_readers(now)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the replies under way end."""
        del sockets
        await drain(self, self._app, self.config.drain_seconds)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The process handles signals itself."""
        yield

    def _watch_readers(self, now: float) -> None:
        """Break off connections whose clients take nothing, and, beyond the bound of the process, those for which most
        waits.
        """
        total = 0
        waiting: list[ClientConnection] = []
        for connection in list(self.server_state.connections):
            if not isinstance(connection, ClientConnection):
                continue
            size = connection.transport.get_write_buffer_size()
            if not size or size != connection.unsent:
                connection.stalled_since = None
            elif connection.stalled_since is None:
                connection.stalled_since = now
            elif now - connection.stalled_since >= self.config.stall_seconds:
                connection.transport.abort()
                continue
            connection.unsent = size
            if size:
                total += size
                waiting.append(connection)
        if total <= self.config.max_unsent:
            return
        waiting.sort(key=lambda each: each.unsent, reverse=True)
        for number, connection in enumerate(waiting, 1):
            total -= connection.unsent
            connection.transport.abort()
            if total <= self.config.max_unsent:
                _log.warning("clients read too slowly: %d connections were cut", number)
                return


class AcceptErrors:
    """Handles errors of the event loop: one line a minute for connections that cannot be accepted."""

    def __init__(self) -> None:
        self._log = MinuteLog()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Handle an error."""
        problem, message = context.get("exception"), str(context.get("message", ""))
        if "_start_serving" in message:
            return  # asyncio tries to accept again after a second, and the server has closed.
        if isinstance(problem, OSError) and "accept" in message:
            self._log.warn(
                f"connections cannot be accepted: {problem.strerror or type(problem).__name__}. Raise the limit "
                "of open files (ulimit -n)."
            )
        else:
            loop.default_exception_handler(context)
