"""The program of the child process: llama.cpp's own server, which ends when its parent ends.

child_process runs it as a file. It imports nothing of asides, so that it loads fast and from anywhere. Standard input
brings one line of JSON with the settings and the key, and then stays open. The process ends when its standard input
ends, and when the process ends whose id is the argument. Once it is ready, it writes its address to standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from importlib import import_module
from typing import Any

_CHECK_SECONDS = 0.5
_ERRORS_ONLY = 1
# Every open stream holds one of the server's threads, also while it waits for a slot.
_CONNECTIONS = 64


def main() -> None:
    """Serve until the parent ends. Then end the process, since the engine cannot be stopped."""
    # Windows may put another process between the two.
    parent = int(sys.argv[1]) if os.name == "posix" else os.getppid()
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    settings: dict[str, Any] = json.loads(line)
    sys.path[:] = settings["path"]
    # Ctrl-C is meant for the program in the foreground, which may continue.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_standard_input()
    address_pipe = os.dup(1)
    os.dup2(2, 1)  # The engine may print, and only the address may go to the pipe.
    try:
        engine = import_module(settings["engine"])
        server = engine.Server(_build_parameters(engine, settings))
    except Exception as problem:  # noqa: BLE001 - the parent reports it, whatever it is
        os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
        sys.exit(1)  # A normal exit, so that the engine's log is flushed.
    _mute_output()
    os.write(address_pipe, f"{server.listening_address}\n".encode())
    os.close(address_pipe)
    while os.read(0, 1):
        pass
    os._exit(0)


def _build_parameters(engine: Any, settings: dict[str, Any]) -> Any:
    parameters = engine.CommonParams()
    parameters.model.path = settings["file"]
    parameters.model_alias = {settings["alias"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [settings["key"]]
    parameters.n_parallel = settings["slots"]
    parameters.n_ctx = settings["context"] * settings["slots"]
    parameters.n_threads_http = _CONNECTIONS
    # The cache would store gigabytes of old prompts.
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.ui = False
    parameters.verbosity = _ERRORS_ONLY
    if settings["threads"] is not None:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
    if settings["temperature"] is not None:
        parameters.sampling.temp = settings["temperature"]
    return parameters


def _end_with_parent(parent: int) -> None:
    """End when the parent has ended. Standard input ends sooner, unless a fork of the parent holds it open."""
    while os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    os._exit(0)


def _end_with_standard_input() -> None:
    """End when standard input ends, even while the engine loads a model and holds the interpreter's lock.

    The kernel then sends SIGIO, which ends a process that does not handle it.
    """
    if sys.platform != "win32":
        import fcntl
        import select

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([0], [], [], 0)[0]:  # It ended before O_ASYNC was set.
            os._exit(0)


def _mute_output() -> None:
    """Discard all output from now on, so that no prompt is written anywhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


if __name__ == "__main__":
    main()
