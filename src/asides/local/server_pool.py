"""One server for each model in this process: started once for all threads, and stopped with the process."""

from __future__ import annotations

import atexit
import threading

from asides.local.child_process import Child, find_model_file, plan_server, start
from asides.transports.launch import RunningServer
from asides.values.errors import ConfigError
from asides.values.fork_guard import call_in_children


class _Slot:
    """The server of one model, running or not."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: Child | None = None
        self.attempts = 0
        self.failure: ConfigError | None = None

    @property
    def server(self) -> RunningServer | None:
        """The address and key; None if the server does not run."""
        child = self.child
        return child.server if child is not None and child.alive else None


class _Pool:
    """The servers of this process, by model file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_file: dict[str, _Slot] = {}

    def find_slot(self, file: str) -> _Slot:
        with self.lock:
            return self.by_file.setdefault(file, _Slot())

    def list_children(self) -> list[Child]:
        return [slot.child for slot in list(self.by_file.values()) if slot.child is not None]


_pool = _Pool()


def launch(model: str, *, wait: bool = True) -> RunningServer | None:
    """Return the server of `model`, the name of an embedded one or the path of a GGUF file; start it if needed.

    All threads share it. Without `wait`, return None if it does not run yet. A server that has died is started again.
    """
    slot = _pool.find_slot(str(find_model_file(model)))
    if (server := slot.server) is not None or not wait:
        return server
    attempts = slot.attempts
    with slot.lock:
        if (server := slot.server) is not None:
            return server
        if slot.failure is not None and slot.attempts != attempts:
            # The start failed while this thread waited, and would fail again.
            raise ConfigError(*slot.failure.args)
        if slot.child is not None:
            slot.child.stop()  # It is dead; this closes its pipe.
            slot.child = None
        slot.attempts += 1
        slot.failure = None
        try:
            slot.child = start(plan_server(model))
        except ConfigError as problem:
            slot.failure = problem
            raise
        return slot.child.server


def list_running() -> list[Child]:
    """The servers of this process that run."""
    return [child for child in _pool.list_children() if child.alive]


def stop() -> None:
    """Stop every server of this process. The next call starts the server that it needs again."""
    for slot in list(_pool.by_file.values()):
        child, slot.child = slot.child, None
        if child is not None:
            child.stop()


def _forget_servers() -> None:
    """Start with an empty pool in a fork. The servers belong to the parent, and so do threads that hold the locks."""
    global _pool
    children, _pool = _pool.list_children(), _Pool()
    for child in children:
        child.forget()


atexit.register(stop)
call_in_children(_forget_servers)
