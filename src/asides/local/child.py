"""One server as a child process: started, found healthy, ended. Not here: that there is one for each model (shared)."""

from __future__ import annotations

import json
import os
import queue
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from asides.local.model_files import ENGINE, Setup
from asides.providers.credentials import Secret
from asides.transports.launch import RunningServer
from asides.values.errors import ConfigError

_PROGRAM = Path(__file__).with_name("server.py")
_STOP_SECONDS = 2.0
_HEALTH_SECONDS = 0.02
# The first lines name the cause; the last is what became of it.
_FIRST_LINES, _LAST_LINES = 2, 1
# Time and level in front of a line of llama.cpp's log.
_LOG_HEAD = re.compile(r"^[\d.]+ E\s+")


class Child:
    """A server that runs. It ends with this process, however that ends; `stop` ends it before."""

    def __init__(self, process: subprocess.Popen[bytes], served: RunningServer) -> None:
        self._process = process
        self.served = served

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it, and wait until it has ended. May be asked twice."""
        _end(self._process)

    def forget(self) -> None:
        """This process is a fork of the one that started it: let go of it without ending it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0  # Not ours to wait for.


def start(setup: Setup) -> Child:
    """A server for this model, ready to be asked. Raises a ConfigError that says why there is none."""
    deadline = time.monotonic() + setup.patience
    key = secrets.token_urlsafe(32)
    with tempfile.TemporaryFile() as said:
        try:
            process = _spawn(said)
        except OSError as problem:
            reason = (problem.strerror or "unknown reason").lower()
            raise ConfigError(f"the server for {setup.alias} could not be started: {reason}.") from None
        try:
            _tell(process, setup, key)
            url = _address(process, deadline)
            if url is None or not _becomes_healthy(url, process, deadline):
                raise ConfigError(_why(process, setup, said))
        except BaseException:
            _end(process)
            raise
    return Child(process, RunningServer(url, Secret(key)))


def _spawn(said: IO[bytes]) -> subprocess.Popen[bytes]:
    """The child. In a session of its own, so that a Ctrl-C in the terminal does not reach it.

    -P: the folder of the program is no place to import from.
    """
    return subprocess.Popen(  # noqa: S603 - this Python, and a program of our own
        [sys.executable, "-P", str(_PROGRAM), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _tell(process: subprocess.Popen[bytes], setup: Setup, key: str) -> None:
    """The settings go through the pipe, since others on this machine can read a command line."""
    settings = {**setup._asdict(), "key": key, "engine": ENGINE, "path": [path or str(Path.cwd()) for path in sys.path]}
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # It has ended already; what it said tells why.
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()


def _address(process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """What the child writes when it is up; None when it ends or when the time is over before."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    pipe = process.stdout
    if pipe is None:
        return None

    # A pipe can be waited for with a limit on some systems only; a thread can everywhere.
    def listen() -> None:
        with pipe:
            lines.put(pipe.readline())

    threading.Thread(target=listen, name="asides-server-start", daemon=True).start()
    with suppress(queue.Empty):
        return lines.get(timeout=max(deadline - time.monotonic(), 0)).decode().strip() or None
    return None


def _becomes_healthy(url: str, process: subprocess.Popen[bytes], deadline: float) -> bool:
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            if _is_healthy(url):
                return True
        time.sleep(_HEALTH_SECONDS)
    return False


def _is_healthy(url: str) -> bool:
    parts = urlsplit(url)
    place = (parts.hostname or "", parts.port or 0)
    with socket.create_connection(place, timeout=5) as connection:
        connection.sendall(f"GET /health HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            return b" 200 " in answer.readline()


def _why(process: subprocess.Popen[bytes], setup: Setup, said: IO[bytes]) -> str:
    """Why a start failed: how the child ended and what it said. No prompt has come near it yet."""
    # A pipe that has ended is a moment ahead of the process that held it.
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    code = process.returncode
    if code is None:
        how = f"was not ready after {setup.patience:.0f} s"
    elif code < 0:
        how = f"was ended by {_signal_name(-code)} before it was ready"
    else:
        how = "ended before it was ready"
    said.seek(0)
    lines = [_LOG_HEAD.sub("", line.strip()) for line in said.read().decode("utf-8", "replace").splitlines()]
    words = list(dict.fromkeys(" ".join(line.split()).rstrip(".") for line in lines if line))
    if len(words) > _FIRST_LINES + _LAST_LINES:
        words = [*words[:_FIRST_LINES], "…", *words[-_LAST_LINES:]]
    told = f" Its words: {' / '.join(words)}." if words else ""
    return f"the server for {setup.alias} {how}.{told} To do: check that llama.cpp can run {setup.file}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
