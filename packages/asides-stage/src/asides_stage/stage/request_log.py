"""The stage's log, which other threads read: requests, connections, clients that left early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides_stage.stage.prompt_cache import CacheUse


class RefusedRequest(msgspec.Struct, frozen=True):
    """What the rules of a provider say against a request. A lenient stage answers it all the same."""

    text: str
    """The reason, in the server's words."""
    kind: str | None
    """The kind of rejection, as in `ProviderError.kind`; None if it is none of them."""
    status: int
    body: bytes
    """The body of the error, which may quote the request, so the repr leaves it out."""
    path: str
    number: int
    """Which request of the stage it was, from 0."""

    def __repr__(self) -> str:
        return f"RefusedRequest({self.kind or 'no kind'}, request {self.number} {self.path}, {self.text!r})"


class Received(msgspec.Struct, frozen=True):
    """A request as it arrived, and as the dialect read it."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case. They include the key, so the repr leaves them out."""
    body: bytes
    served: ServedRequest | None = None
    """None if it asked for no reply or could not be read."""
    problem: str | None = None
    """The reason why the stage refused it."""
    query: str = ""
    """What stood behind the question mark of the address. It may include the key, so the repr leaves it out."""
    refusal: RefusedRequest | None = None
    """What the rules say against it, whether the stage refused it or is lenient."""
    dropped: tuple[str, ...] = ()
    """Thinking that the real server would leave out without a word: its place and the reason."""
    cache: CacheUse | None = None
    """What the prompt cache did for it; None if it asked for no reply or was refused."""

    @property
    def json(self) -> Any:
        """The decoded body; None if it is empty or not JSON."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except msgspec.DecodeError:
            return None

    def __repr__(self) -> str:
        return f"Received({self.method} {self.path}, <{len(self.body)} bytes>, problem={self.problem!r})"


class RequestLog:
    """The stage's thread writes it, any thread reads it."""

    def __init__(self, on_refusal: Callable[[RefusedRequest], None] | None = None) -> None:
        self._on_refusal = on_refusal
        self._changed = threading.Condition()
        self._requests: list[Received] = []
        self._problems: list[Exception] = []
        self._closed_early = 0
        self._connections = 0
        self._open = 0

    # --- writing ------------------------------------------------------------------------------------------------------

    def record_request(self, received: Received) -> None:
        """Record a request. Its place in the log is the number of its refusal."""
        with self._changed:
            if received.refusal is not None:
                refusal = msgspec.structs.replace(received.refusal, number=len(self._requests))
                received = msgspec.structs.replace(received, refusal=refusal)
            self._requests.append(received)
            self._changed.notify_all()
        if received.refusal is not None and self._on_refusal is not None:
            self._on_refusal(received.refusal)

    def record_problem(self, problem: Exception) -> None:
        """Record an exception of the script or of the stage."""
        with self._changed:
            self._problems.append(problem)
            self._changed.notify_all()

    def record_early_close(self) -> None:
        """Record a client that left before its reply was complete."""
        with self._changed:
            self._closed_early += 1
            self._changed.notify_all()

    def record_opened(self) -> None:
        """Record a new connection."""
        with self._changed:
            self._connections += 1
            self._open += 1
            self._changed.notify_all()

    def record_closed(self) -> None:
        """Record that a connection is gone."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Received]:
        """The requests so far."""
        with self._changed:
            return list(self._requests)

    @property
    def problems(self) -> list[Exception]:
        """The exceptions so far."""
        with self._changed:
            return list(self._problems)

    @property
    def closed_early(self) -> int:
        """The number of clients that left before the last byte of their reply was written."""
        return self._closed_early

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._connections

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return self._open

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until the condition is true; return False after the timeout."""
        deadline = monotonic() + timeout
        with self._changed:
            while not condition():
                left = deadline - monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return condition()
        return True
