"""The program of the child process: llama.cpp's own server, for as long as whoever started it is there.

Run as a file (child.py), and knows nothing of asides, so that it loads fast and from anywhere. Standard input brings
one line of JSON, the key in it, and then stays open: its end is the end of this process, and so is the end of the
process that the argument names. Standard output gets one line, the address, once requests can come.
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

_LOOK_SECONDS = 0.5
_ERRORS_ONLY = 1
# Every open stream holds one of the server's threads; those that wait for a slot do too.
_CONNECTIONS = 64


def main() -> None:
    """Serve until the parent is gone. Ends the process, since the engine has no way to stop."""
    # Windows may put a process of its own between the two.
    parent = int(sys.argv[1]) if os.name == "posix" else os.getppid()
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    settings: dict[str, Any] = json.loads(line)
    sys.path[:] = settings["path"]
    # Ctrl-C is for the program in the foreground, which may want to go on asking.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_standard_input()
    told = os.dup(1)
    os.dup2(2, 1)  # The engine may print; the line of the address is ours.
    try:
        engine = import_module(settings["engine"])
        server = engine.Server(_parameters(engine, settings))
    except Exception as problem:  # noqa: BLE001 - whatever it is, the parent tells it in these words
        os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
        sys.exit(1)  # In order, so that the engine's log is written to its end.
    _fall_silent()
    os.write(told, f"{server.listening_address}\n".encode())
    os.close(told)
    while os.read(0, 1):
        pass
    os._exit(0)


def _parameters(engine: Any, settings: dict[str, Any]) -> Any:
    parameters = engine.CommonParams()
    parameters.model.path = settings["file"]
    parameters.model_alias = {settings["alias"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [settings["key"]]
    parameters.n_parallel = settings["slots"]
    parameters.n_ctx = settings["context"] * settings["slots"]
    parameters.n_threads_http = _CONNECTIONS
    # It would keep old prompts, gigabytes of them.
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.ui = False
    parameters.verbosity = _ERRORS_ONLY
    if settings["threads"] is not None:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
    if settings["temperature"] is not None:
        parameters.sampling.temp = settings["temperature"]
    return parameters


def _end_without(parent: int) -> None:
    """End when the parent is gone. The end of standard input says so sooner, unless a process that the parent forked
    holds the other end of it open."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)


def _end_with_standard_input() -> None:
    """The engine holds the interpreter's lock while it loads a model, so nothing of ours would see the end then. The
    kernel does: it sends SIGIO, which ends a process that does not handle it."""
    if sys.platform != "win32":
        import fcntl
        import select

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([0], [], [], 0)[0]:  # It was at its end before the kernel was asked to tell.
            os._exit(0)


def _fall_silent() -> None:
    """From now on prompts come in: nothing of them is to be read anywhere but in the replies."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


if __name__ == "__main__":
    main()
