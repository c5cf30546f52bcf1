"""Run one process of a gateway until a signal stops it: `run_gateway(loaded)`.

At the first SIGTERM or SIGINT it stops listening, and exits after open replies finish; at the second, immediately.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from asides.telemetry.exporters import Telemetry, start_telemetry
from asides_gateway.access_log import AccessLog, flush_log
from asides_gateway.file_limit import raise_file_limit
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.http_server import GatewayServer
from asides_gateway.listen import close_sockets, name_address, open_sockets
from asides_gateway.metrics import Metrics, add_metrics, remove_folder
from asides_gateway.reload_settings import LoadedSettings, Reloader, SettingsSource
from asides_gateway.request_summaries import open_summaries
from asides_gateway.service import Service
from asides_gateway.watcher import list_span_watchers
from asides_gateway.web_app import make_app

_log = logging.getLogger("asides.gateway")
_MOST_NEW_OBJECTS = 20_000
"""The new objects after which Python looks for cycles. Hardly any of a request are in one, and looking takes time."""


def run_gateway(
    loaded: LoadedSettings,
    announce: Callable[[str], None],
    *,
    source: SettingsSource | None = None,
    shares_port: bool = False,
    parent: int | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code of the process.

    `announce` gets the address once it is open. `source`: where changed settings come from. `shares_port`: other
    processes listen there too. `parent`: a pipe that ends with the process that started this one.
    """
    raise_file_limit()
    sockets = open_sockets(loaded.gateway.host, loaded.gateway.port, shares=shares_port)
    try:
        with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
            return runner.run(_Process(loaded, sockets, announce, source, parent).serve())
    finally:
        close_sockets(sockets)


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop, where it is installed; None: that of Python."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Process:
    """One process of a gateway."""

    def __init__(
        self,
        loaded: LoadedSettings,
        sockets: list[socket.socket],
        announce: Callable[[str], None],
        source: SettingsSource | None,
        parent: int | None,
    ) -> None:
        self._loaded = loaded
        self._sockets = sockets
        self._announce = announce
        self._source = source
        self._parent = parent
        self._server: GatewayServer | None = None

    async def serve(self) -> int:
        """Serve until a signal comes, then let replies end."""
        service = Service(self._loaded.gateway, self._loaded.calls)
        metrics = Metrics(service)
        service.watchers += [metrics, *([AccessLog()] if service.settings.log != "off" else [])]
        summaries = open_summaries(service)
        metrics.count_summaries(summaries)
        telemetry = start_gateway_telemetry(service.settings)
        service.watchers += list_span_watchers()
        app = make_app(service)
        add_metrics(app, metrics)
        self._server = server = GatewayServer(app, service.settings, self._serving)
        await app.startup()
        reloader = None if self._source is None else Reloader(service, self._source, count=metrics.count_reload)
        reloading = None if reloader is None else asyncio.create_task(reloader.run())
        summaries.start()
        try:
            self._listen_to_signals(reloader)
            await server.serve(self._sockets)
        finally:
            if reloading is not None:
                reloading.cancel()
            await summaries.close()
            await app.cleanup()
            if telemetry is not None:
                await asyncio.to_thread(telemetry.close)
        flush_log()
        return 0

    def _serving(self) -> None:
        loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
        _log.info("process %d serves %s (%s)", os.getpid(), name_address(self._sockets[0]), loop)
        _spare_the_collector()
        self._announce(name_address(self._sockets[0]))

    # --- signals ------------------------------------------------------------------------------------------------------

    def _listen_to_signals(self, reloader: Reloader | None) -> None:
        loop = asyncio.get_running_loop()
        if self._parent is not None:
            loop.add_reader(self._parent, self._end_with_parent)
        if sys.platform == "win32":
            signal.signal(signal.SIGINT, lambda number, _: loop.call_soon_threadsafe(self._end, number))
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end, number)
        # `nohup` ignores it, and so do we then.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up, reloader)

    def _end(self, number: int) -> None:
        server = self._server
        if server is None or server.should_exit:
            _log.warning("process %d stops immediately: open replies are cut", os.getpid())
            _leave(128 + number)
        _log.info("process %d stops after open replies finish; a second signal stops it immediately", os.getpid())
        server.stop()

    def _hang_up(self, reloader: Reloader | None) -> None:
        """Reload the settings. If the terminal is gone that the gateway was started at, end."""
        if is_terminal_gone():
            self._end(signal.SIGHUP)
        elif reloader is not None:
            reloader.ask()

    def _end_with_parent(self) -> None:
        """End this process if its parent is gone."""
        if self._parent is not None and not os.read(self._parent, 1):
            remove_folder()
            _leave(1)


def start_gateway_telemetry(settings: GatewaySettings) -> Telemetry | None:
    """Turn telemetry on, if the settings and the variables of OpenTelemetry ask for it."""
    if not settings.telemetry:
        return None
    return start_telemetry(
        "asides-gateway",
        content=settings.telemetry_content,
        propagate=settings.trace_hosts,
        on_note=lambda text: _log.warning("%s", text),
    )


def _spare_the_collector() -> None:
    """Let Python look for cycles less often, and never among what this process has for good: modules and tables."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_MOST_NEW_OBJECTS, *gc.get_threshold()[1:])


def is_terminal_gone() -> bool:
    """Whether the controlling terminal was closed: then SIGHUP does not ask for a reload."""
    if sys.platform == "win32":
        return False
    import termios

    for number in (0, 1, 2):
        try:
            termios.tcgetattr(number)
        except termios.error as problem:
            if problem.args[0] == errno.EIO:
                return True
    return False


def _leave(code: int) -> NoReturn:
    flush_log()
    os._exit(code)
