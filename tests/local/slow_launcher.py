"""A launcher that waits until its test has shown that the event loop is not blocked. Not a test."""

from __future__ import annotations

import threading

from asides.providers.credentials import Secret
from asides.transports.launch import RunningServer

may_start = threading.Event()
served: list[RunningServer] = []
asked: list[tuple[str, bool]] = []


def reset(url: str) -> None:
    may_start.clear()
    asked.clear()
    served[:] = [RunningServer(url, Secret("key-of-the-server"))]


def launch(model: str, *, wait: bool = True) -> RunningServer | None:
    asked.append((model, wait))
    if not wait and not may_start.is_set():
        return None
    assert may_start.wait(20), "the loop was blocked while a server started"
    return served[0]
