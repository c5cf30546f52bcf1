"""Run a gateway in several processes that share one port: `run_workers`.

The parent answers nothing: it starts the workers, starts one again that dies, and passes signals on. A worker ends with
its parent, however that ends: it holds the other end of a pipe.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import msgspec

from asides.values.errors import ConfigError
from asides_gateway.access_log import flush_log
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.listen import can_share_ports, check_free, close_sockets, name_address, open_sockets
from asides_gateway.metrics import FOLDER_VARIABLE, forget_process, make_folder
from asides_gateway.run_gateway import is_terminal_gone

_log = logging.getLogger("asides.gateway")
_START_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
# After this uptime a crash does not count as a failed start.
_SOUND_SECONDS = 30.0
_MOST_FAILED_STARTS = 5
# Grace period of a worker after its replies end.
_END_SECONDS = 10.0


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reads from its standard input, which stays open as long as its parent lives."""

    flags: dict[str, object]
    """The settings that arguments gave."""
    port: int
    path: list[str]
    """Where Python looks for modules."""


def run_workers(
    settings: GatewaySettings,
    announce: Callable[[str], None],
    command: Sequence[str],
    flags: Mapping[str, object],
) -> int:
    """Run the workers until a signal comes. Returns the exit code of the process.

    `command` starts a worker that reads its `WorkerPlan` and writes a line when it answers.
    """
    if not can_share_ports():
        raise ConfigError("this system does not share a port among processes. Leave --workers out.")
    check_free(settings.host, settings.port)
    # Holds the port between the lives of workers. It does not listen, so no connection comes here.
    held = open_sockets(settings.host, settings.port, shares=True)
    folder = make_folder()
    try:
        port: int = held[0].getsockname()[1]
        plan = WorkerPlan(flags=dict(flags), port=port, path=list(sys.path))
        parent = _Parent(settings, command, msgspec.json.encode(plan) + b"\n", folder, held[0], announce)
        return asyncio.run(parent.run())
    finally:
        close_sockets(held)
        shutil.rmtree(folder, ignore_errors=True)


class _Parent:
    def __init__(
        self,
        settings: GatewaySettings,
        command: Sequence[str],
        plan: bytes,
        folder: str,
        held: socket.socket,
        announce: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._command = command
        self._plan = plan
        self._folder = folder
        self._held = held
        self._announce = announce
        self._ending = asyncio.Event()
        self._alive: dict[int, Process] = {}
        self._ready: set[int] = set()
        self._failed_starts = 0
        self._code = 0

    async def run(self) -> int:
        """Run the workers until they have ended."""
        self._listen_to_signals()
        numbers = range(1, self._settings.workers + 1)
        keepers: list[asyncio.Task[None]] = []
        try:
            # Start the first one alone: a problem would stop all of them, and is reported once.
            first = await self._start(1)
            if await self._wait_until_ready(1, first):
                others = {number: await self._start(number) for number in numbers[1:]}
                ready = await asyncio.gather(*(self._wait_until_ready(*each) for each in others.items()))
                if not all(ready):
                    self._code = 1
                elif not self._ending.is_set():
                    workers = {1: first, **others}
                    keepers = [asyncio.create_task(self._keep(*each)) for each in workers.items()]
                    self._announce(name_address(self._held))
                    await self._ending.wait()
            elif not self._ending.is_set():
                self._code = first.returncode or 1
            self._ending.set()
        finally:
            # A worker that is being started now ends with this process.
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await self._end()
        flush_log()
        return self._code

    # --- workers ------------------------------------------------------------------------------------------------------

    async def _start(self, number: int) -> Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(number),
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, FOLDER_VARIABLE: self._folder},
            # A terminal's Ctrl-C is for the parent, which passes it on once.
            start_new_session=True,
        )
        self._alive[number] = process
        if process.stdin is not None:
            process.stdin.write(self._plan)
            with suppress(OSError):
                await process.stdin.drain()
        return process

    async def _wait_until_ready(self, number: int, process: Process) -> bool:
        """Whether a worker answers now; else it has ended."""
        line = b""
        if process.stdout is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_START_SECONDS):
                    line = await process.stdout.readline()
                    if not line:
                        # It is ending by itself, with an exit code of its own.
                        await process.wait()
        if line:
            self._ready.add(number)
            self._failed_starts = 0
            return True
        _signal(process, signal.SIGKILL)
        await self._reap(number, process)
        self._failed_starts += 1
        if not self._ending.is_set():
            _log.error("worker %d did not start: %s", number, _describe_end(process.returncode))
        return False

    async def _keep(self, number: int, process: Process) -> None:
        """Start a worker again whenever it dies."""
        pause = _FIRST_PAUSE
        while True:
            since = time.monotonic()
            if number in self._ready:
                await self._reap(number, process)
                if self._ending.is_set():
                    return
                _log.error("worker %d ended: %s; it is restarted", number, _describe_end(process.returncode))
            if self._failed_starts >= _MOST_FAILED_STARTS and not self._ready:
                _log.error("workers keep failing to start, so the gateway stops. See the error above.")
                self._code = 1
                self._ending.set()
                return
            pause = _FIRST_PAUSE if time.monotonic() - since > _SOUND_SECONDS else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause / 2)
            process = await self._start(number)
            await self._wait_until_ready(number, process)

    async def _reap(self, number: int, process: Process) -> None:
        await process.wait()
        self._ready.discard(number)
        if self._alive.get(number) is process:
            del self._alive[number]
        forget_process(process.pid, self._folder)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._told_to_end, number)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _told_to_end(self, number: int) -> None:
        if self._ending.is_set():
            self._code = 128 + number
            self._signal_all(signal.SIGKILL)
        self._ending.set()

    def _hang_up(self) -> None:
        if is_terminal_gone():
            self._told_to_end(signal.SIGHUP)
        else:
            # One that is being started reads the settings anyway.
            self._signal_all(signal.SIGHUP, self._ready)

    def _signal_all(self, number: int, only: Collection[int] | None = None) -> None:
        for worker, process in self._alive.items():
            if only is None or worker in only:
                _signal(process, number)

    async def _end(self) -> None:
        """Let all workers end; kill those that do not."""
        self._signal_all(signal.SIGTERM)
        ends = [process.wait() for process in self._alive.values()]
        try:
            async with asyncio.timeout(self._settings.drain_seconds + _END_SECONDS):
                await asyncio.gather(*ends)
        except TimeoutError:
            _log.error("%d workers did not end in time and are killed", len(self._alive))
            self._signal_all(signal.SIGKILL)
            await asyncio.gather(*(process.wait() for process in self._alive.values()))


def _signal(process: Process, number: int) -> None:
    """Send a signal to a worker, if it lives. `Process.send_signal` would look for its end first, and so take the exit
    code from the event loop, which then reports 255."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _describe_end(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
