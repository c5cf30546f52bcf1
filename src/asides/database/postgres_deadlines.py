"""Deadlines of statements, so that no caller waits for a server that has stopped answering.

At the deadline we shut down the socket, so that the waiting thread or task gets an error. The server's own timeout does
not help: a server that hangs does not enforce it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection

_IDLE_SECONDS = 5.0


class Deadlines:
    """The deadlines of the threads of this process. One thread watches over them while there are some."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._watched: dict[object, tuple[float, Connection[Any]]] = {}
        self._has_thread = False

    @contextmanager
    def watch(self, connection: Connection[Any], deadline: float) -> Generator[None, None, None]:
        """Cut the connection if the block has not ended by then."""
        mark = object()
        with self._condition:
            self._watched[mark] = (deadline, connection)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="asides-store-deadlines", daemon=True).start()
            elif len(self._watched) == 1:
                self._condition.notify()
        try:
            yield
        finally:
            # The connection goes back to the pool: it must not be cut any more.
            with self._condition:
                self._watched.pop(mark, None)

    def _run(self) -> None:
        with self._condition:
            while True:
                if not self._watched and not self._condition.wait(_IDLE_SECONDS) and not self._watched:
                    self._has_thread = False
                    return
                now = time.monotonic()
                for mark, (deadline, connection) in list(self._watched.items()):
                    if deadline <= now:
                        del self._watched[mark]
                        cut(connection)
                if self._watched:
                    first = min(deadline for deadline, _ in self._watched.values())
                    # One that was added since then may end before.
                    self._condition.wait(min(max(first - now, 0.0), 0.2))


def cut(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """Shut down the socket of a connection. A thread or task that waits for it gets an error."""
    import psycopg

    with suppress(OSError, psycopg.Error):
        handle = socket.socket(fileno=connection.fileno())
        try:
            handle.shutdown(socket.SHUT_RDWR)
        finally:
            # It belongs to libpq.
            handle.detach()
