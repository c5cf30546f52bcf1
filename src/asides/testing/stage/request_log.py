"""What the stage saw, kept for the thread that asks: requests, connections, clients that left early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest


class Received(msgspec.Struct, frozen=True):
    """A request as it came, and as the dialect read it."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case; the key is among them, so it is not in the repr."""
    body: bytes
    served: ServedRequest | None = None
    """None when it asked for no reply, or could not be read."""
    problem: str | None = None
    """Why it was turned away."""

    @property
    def json(self) -> Any:
        """The body, decoded; None when there is none or it is no JSON."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except msgspec.DecodeError:
            return None

    def __repr__(self) -> str:
        return f"Received({self.method} {self.path}, <{len(self.body)} bytes>, problem={self.problem!r})"


class RequestLog:
    """Written by the stage's thread, read by any other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: list[Received] = []
        self._problems: list[Exception] = []
        self._closed_early = 0
        self._connections = 0
        self._open = 0

    # --- written ----------------------------------------------------------------------------------------------------

    def note_request(self, received: Received) -> None:
        """A request came."""
        with self._changed:
            self._requests.append(received)
            self._changed.notify_all()

    def note_problem(self, problem: Exception) -> None:
        """A script, or the stage itself, raised."""
        with self._changed:
            self._problems.append(problem)
            self._changed.notify_all()

    def note_left(self) -> None:
        """A client was gone before its reply was whole."""
        with self._changed:
            self._closed_early += 1
            self._changed.notify_all()

    def note_opened(self) -> None:
        """A connection was made."""
        with self._changed:
            self._connections += 1
            self._open += 1
            self._changed.notify_all()

    def note_closed(self) -> None:
        """A connection is gone."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    # --- read -------------------------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Received]:
        """What has come so far."""
        with self._changed:
            return list(self._requests)

    @property
    def problems(self) -> list[Exception]:
        """What was raised so far."""
        with self._changed:
            return list(self._problems)

    @property
    def closed_early(self) -> int:
        """How many clients were gone before the last byte of their reply was written."""
        return self._closed_early

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._connections

    @property
    def open_connections(self) -> int:
        """How many of them are still there."""
        return self._open

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait for something above to become true; False when the time is over."""
        deadline = monotonic() + timeout
        with self._changed:
            while not condition():
                left = deadline - monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return condition()
        return True
