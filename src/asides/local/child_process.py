"""One llama.cpp server as a child process: find the file of its model, start it, wait until it is healthy, stop it."""

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
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from asides.providers.credentials import Secret
from asides.transports.launch import RunningServer
from asides.values.errors import ConfigError, UnknownModel

ENGINE = "xllamacpp"
# The name of each embedded model, and the package that has its file.
_EMBEDDED = {"tiny": "asides_tiny_model"}
_MAGIC = b"GGUF"
_PROGRAM = Path(__file__).with_name("llama_server.py")
_STOP_SECONDS = 2.0
_HEALTH_SECONDS = 0.02
# The first lines of the server's output name the cause, the last one the outcome.
_FIRST_LINES, _LAST_LINES = 2, 1
# Time and level in front of a line of llama.cpp's log.
_LOG_HEAD = re.compile(r"^[\d.]+ E\s+")


# --- the model and its settings ---------------------------------------------------------------------------------------


class ServerSettings(NamedTuple):
    """The settings of the server of one model."""

    file: str
    alias: str
    """The name of the model in the server's replies."""
    context: int
    """Tokens that one conversation may hold."""
    slots: int
    """Concurrent conversations; others wait in line."""
    threads: int | None
    """None: llama.cpp decides."""
    temperature: float | None
    """For requests that name none. None: llama.cpp decides."""

    @property
    def start_seconds(self) -> float:
        """The longest time that a start may take: to load the program, and to read the file from a slow disk."""
        return 30.0 + Path(self.file).stat().st_size / 50e6


def is_installed() -> bool:
    """Whether the extra `local` is installed: the engine and the embedded model. Does not load them."""
    return all(find_spec(package) is not None for package in (ENGINE, *_EMBEDDED.values()))


def find_model_file(model: str) -> Path:
    """The file of a model: an embedded one by its name, any other by its path, whose file need not exist.

    Raises a ConfigError if the package of an embedded model is not installed.
    """
    if (package := _EMBEDDED.get(model.lower())) is not None:
        return _find_embedded_file(model, package)
    try:
        return Path(model).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        raise UnknownModel(f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a path.") from None


def _find_embedded_file(model: str, package: str) -> Path:
    try:
        file: Path = import_module(package).find_model_file()
    except ModuleNotFoundError:
        raise ConfigError(
            f"the model {model!r} is in the package {package.replace('_', '-')}, which is not installed. "
            "Run pip install 'asides[local]'."
        ) from None
    return file


def plan_server(model: str) -> ServerSettings:
    """The settings of a server for this model. Raises a ConfigError if the model cannot be served."""
    if find_spec(ENGINE) is None:
        raise ConfigError(
            f"models on this machine need {ENGINE}, which is not installed. Run pip install 'asides[local]'."
        )
    path = find_model_file(model)
    if model.lower() in _EMBEDDED:
        # A second thread gains nothing at this size, and on busy cores the two wait for each other. The model was
        # trained for temperature 0.
        return ServerSettings(str(path), path.stem, context=2048, slots=4, threads=1, temperature=0.0)
    _check_format(path, model)
    # Memory grows with both numbers. Users who need more run a server with their own flags.
    return ServerSettings(str(path), path.stem, context=8192, slots=1, threads=None, temperature=None)


def _check_format(path: Path, model: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except (OSError, ValueError) as problem:
        reason = (getattr(problem, "strerror", None) or "no path").lower()
        raise UnknownModel(
            f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a GGUF file that can be read ({reason})."
        ) from None
    if start != _MAGIC:
        raise UnknownModel(f"{model!r} is not a GGUF file, so llama.cpp cannot load it.")


# --- the process ------------------------------------------------------------------------------------------------------


class Child:
    """A running server. It ends with this process, however that ends; `stop` ends it earlier."""

    def __init__(self, process: subprocess.Popen[bytes], server: RunningServer) -> None:
        self._process = process
        self.server = server

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process and wait for it. May be called twice."""
        _end_process(self._process)

    def forget(self) -> None:
        """Close our pipes and let the process run. For a fork of the process that started it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0  # Only the parent may wait for it.


def start(settings: ServerSettings) -> Child:
    """Start a server and wait until it is healthy. Raises a ConfigError with the reason if it does not start."""
    deadline = time.monotonic() + settings.start_seconds
    key = secrets.token_urlsafe(32)
    with tempfile.TemporaryFile() as output:
        try:
            process = _spawn(output)
        except OSError as problem:
            reason = (problem.strerror or "unknown reason").lower()
            raise ConfigError(f"the server for {settings.alias} could not be started: {reason}.") from None
        try:
            _send_settings(process, settings, key)
            url = _read_address(process, deadline)
            if url is None or not _wait_until_healthy(url, process, deadline):
                raise ConfigError(_explain_failure(process, settings, output))
        except BaseException:
            _end_process(process)
            raise
    return Child(process, RunningServer(url, Secret(key)))


def _spawn(output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the child in its own session, so that a Ctrl-C in the terminal does not reach it.

    -P keeps the program's folder off the import path.
    """
    return subprocess.Popen(  # noqa: S603 - this Python, and a program of our own
        [sys.executable, "-P", str(_PROGRAM), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _send_settings(process: subprocess.Popen[bytes], settings: ServerSettings, key: str) -> None:
    """Send the settings through the pipe, since other users of this machine can read a command line."""
    path = [folder or str(Path.cwd()) for folder in sys.path]
    line = json.dumps({**settings._asdict(), "key": key, "engine": ENGINE, "path": path})
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # It has ended already; its output has the reason.
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()


def _read_address(process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """The address that the child writes when it is ready; None if it ends before, or at the deadline."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    pipe = process.stdout
    if pipe is None:
        return None

    # Not every system can wait for a pipe with a time limit, so a thread reads it.
    def listen() -> None:
        with pipe:
            lines.put(pipe.readline())

    threading.Thread(target=listen, name="asides-server-start", daemon=True).start()
    with suppress(queue.Empty):
        return lines.get(timeout=max(deadline - time.monotonic(), 0)).decode().strip() or None
    return None


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], deadline: float) -> bool:
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


def _explain_failure(process: subprocess.Popen[bytes], settings: ServerSettings, output: IO[bytes]) -> str:
    """The message for a failed start: how the child ended, and its output, which contains no prompt yet."""
    # A pipe ends a moment before the process that held it.
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    code = process.returncode
    if code is None:
        how = f"was not ready after {settings.start_seconds:.0f} s"
    elif code < 0:
        how = f"was ended by {_name_signal(-code)} before it was ready"
    else:
        how = "ended before it was ready"
    output.seek(0)
    lines = [_LOG_HEAD.sub("", line.strip()) for line in output.read().decode("utf-8", "replace").splitlines()]
    words = list(dict.fromkeys(" ".join(line.split()).rstrip(".") for line in lines if line))
    if len(words) > _FIRST_LINES + _LAST_LINES:
        words = [*words[:_FIRST_LINES], "…", *words[-_LAST_LINES:]]
    quoted = f" Its output: {' / '.join(words)}." if words else ""
    return f"the server for {settings.alias} {how}.{quoted} Check that llama.cpp can run {settings.file}."


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_process(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
