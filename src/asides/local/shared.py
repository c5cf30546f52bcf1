"""One server for each model in this process: started once however many ask at once, ended with the process."""

from __future__ import annotations

import atexit
import os
import threading

from asides.local.child_process import Child, start
from asides.local.model_files import find_model_file, plan_server
from asides.transports.launch import RunningServer
from asides.values.errors import ConfigError


class _Place:
    """Where the server of one model is, or will be."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: Child | None = None
        self.attempts = 0
        self.failure: ConfigError | None = None

    def running(self) -> RunningServer | None:
        child = self.child
        return child.served if child is not None and child.alive else None


class _Places:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_file: dict[str, _Place] = {}

    def of(self, file: str) -> _Place:
        with self.lock:
            return self.by_file.setdefault(file, _Place())

    def children(self) -> list[Child]:
        return [place.child for place in list(self.by_file.values()) if place.child is not None]


_places = _Places()


def launch(model: str, *, wait: bool = True) -> RunningServer | None:
    """The server of `model`, the name of an embedded one or the path of a GGUF file; started if it does not run.

    All threads share it. Without `wait`, None when it does not run yet. One that has died is started again.
    """
    place = _places.of(str(find_model_file(model)))
    if (served := place.running()) is not None or not wait:
        return served
    attempts = place.attempts
    with place.lock:
        if (served := place.running()) is not None:
            return served
        if place.failure is not None and place.attempts != attempts:
            # It was tried while this thread waited for its turn; the next would find the same.
            raise ConfigError(*place.failure.args)
        if place.child is not None:
            place.child.stop()  # It is dead; what it leaves is a pipe.
            place.child = None
        place.attempts += 1
        place.failure = None
        try:
            place.child = start(plan_server(model))
        except ConfigError as problem:
            place.failure = problem
            raise
        return place.child.served


def running() -> list[Child]:
    """The servers of this process that are up."""
    return [child for child in _places.children() if child.alive]


def stop() -> None:
    """End every server of this process. The next call that needs one starts it again."""
    for place in list(_places.by_file.values()):
        child, place.child = place.child, None
        if child is not None:
            child.stop()


def _forget() -> None:
    """In a fork: the servers are the parent's, and locks may be held by threads that were not copied."""
    global _places
    children, _places = _places.children(), _Places()
    for child in children:
        child.forget()


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
