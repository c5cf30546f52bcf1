"""The Protocols of a transport, for `Client(transport=…)` and `AsyncClient(transport=…)`."""

from __future__ import annotations

from typing import Protocol

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.options import Timeout

MOST_PATIENCE = 10
"""Reads with patience end after this multiple of it, even if bytes keep arriving."""


class Response(Protocol):
    """One request and its response, blocking. Failures are raised as `TransportError`s."""

    def head(self) -> Head:
        """Send the request and wait for the head of the response. Called once, first."""
        ...

    def read(self, patience: float | None = None) -> bytes:
        """The next bytes of the body as soon as there are any, decompressed; b"" at its end.

        With `patience`, also b"" when nothing arrives for this many seconds, and from `MOST_PATIENCE` times as many on.
        """
        ...

    def close(self) -> None:
        """Release the connection immediately. It is reused only if the body was read to its end.

        May be called at any time, twice, and from another thread; a waiting `head` or `read` then ends.
        """
        ...


class Transport(Protocol):
    """Carries the bytes of a `Client`: bring your own with `Client(transport=…)`. Used from many threads."""

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        """Take a request with its key; `head` sends it. `timeout.total` is the time left for the whole call."""
        ...

    def close(self) -> None:
        """Close everything that stays open for later requests."""
        ...


class AsyncResponse(Protocol):
    """One request and its response, awaiting. A cancelled `head` or `read` closes the connection."""

    async def head(self) -> Head:
        """Send the request and wait for the head of the response. Called once, first."""
        ...

    async def read(self, patience: float | None = None) -> bytes:
        """The next bytes of the body as soon as there are any, decompressed; b"" at its end.

        With `patience`, also b"" when nothing arrives for this many seconds, and from `MOST_PATIENCE` times as many on.
        """
        ...

    def close(self) -> None:
        """Release the connection immediately. May be called at any time, and more than once."""
        ...


class AsyncTransport(Protocol):
    """Carries the bytes of an `AsyncClient`: bring your own with `AsyncClient(transport=…)`."""

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request with its key; `head` sends it. `timeout.total` is the time left for the whole call."""
        ...

    async def close(self) -> None:
        """Close everything that stays open for later requests."""
        ...
