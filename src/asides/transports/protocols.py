"""The Protocols of a transport, for `Client(transport=…)` and `AsyncClient(transport=…)`.

Not here: the transports that come with asides (urllib3, aiohttp).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head, ReserveUse, StoredRecord, UnconfirmedRecord, Use
from asides.options import Timeout
from asides.values.errors import AsidesError

MOST_PATIENCE = 10
"""Reads with patience end after this many times of it, though something arrives now and then."""


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
        """Release the connection at once. It is reused only if the body was read to its end.

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
        """Release the connection at once. May be called at any time, and more than once."""
        ...


class AsyncTransport(Protocol):
    """Carries the bytes of an `AsyncClient`: bring your own with `AsyncClient(transport=…)`."""

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request with its key; `head` sends it. `timeout.total` is the time left for the whole call."""
        ...

    async def close(self) -> None:
        """Close everything that stays open for later requests."""
        ...


class RecordStore(Protocol):
    """Keeps the records of a relay for each tenant. Used from many threads. Any error means that the store failed."""

    @property
    def is_instant(self) -> bool:
        """Whether its methods never wait, so that an event loop may call them itself."""
        ...

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The records of the tenant that have one of these keys, each once. Reading prolongs their life."""
        ...

    def write(self, tenant: str, record: StoredRecord) -> None:
        """Store a record. It survives the end of the process if the store does."""
        ...

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        """Delete the records of the tenant that have one of these keys; returns how many there were."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        """The same as `read`, in an event loop, which goes on meanwhile."""
        ...

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        """The same as `write`, in an event loop. Whoever stops to wait does not stop it."""
        ...

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        """The same as `delete`, in an event loop."""
        ...


class ConfirmingStore(RecordStore, Protocol):
    """A store that knows which replies were delivered. A record with a `pending` key takes the place of earlier ones
    with the same key, unless they were confirmed, or may still be on their way. Other stores keep both.
    """

    def confirm(self, record: UnconfirmedRecord) -> None:
        """The reply of this record was delivered: its pending key goes. Waits for nothing and raises nothing."""
        ...


class UseMeter(Protocol):
    """Counts what one relayed request uses, for whoever limits its caller. It belongs to the request's event loop."""

    async def reserve(self, step: ReserveUse) -> AsidesError | None:
        """Reserve it, in place of what is reserved. Returns the error for the caller if it may not use so much."""
        ...

    async def settle(self, use: Use) -> None:
        """Replace what is reserved with what was used. Raises nothing: the reply is there."""
        ...

    def leave(self) -> None:
        """The request has ended. What is still reserved is settled with what was used, behind its back."""
        ...
