"""Who carries the bytes: the small Protocols behind `Client(transport=…)` and `AsyncClient(transport=…)`.

Not here: the transports that come with asides; they live in the shells, beside the HTTP library they use.
"""

from __future__ import annotations

import time
from typing import Protocol

from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.options import Timeout
from asides.providers.credentials import AwsCredentials, Secret
from asides.providers.signing import sign


class Response(Protocol):
    """A request on its way, blocking. Failures are raised as `TransportError`s."""

    def head(self) -> Head:
        """Send the request and wait for the head of the answer. Asked once, first."""
        ...

    def read(self, patience: float | None = None) -> bytes:
        """The next bytes of the body as soon as there are any, content encoding undone; b"" at its end.

        With `patience`, b"" also when nothing comes for so many seconds.
        """
        ...

    def close(self) -> None:
        """Let go of the connection at once; it is reused only if the body was read to its end.

        May be asked at any time, twice, and from another thread, whose `head` or `read` then ends.
        """
        ...


class Transport(Protocol):
    """Who carries the bytes of a `Client`: bring your own with `Client(transport=…)`. Used from many threads."""

    def open(self, request: HttpRequest, timeout: Timeout) -> Response:
        """Take a request, key included; nothing is sent before `head`. `timeout.total` is what is left of it."""
        ...

    def close(self) -> None:
        """Let go of everything that is kept for the next request."""
        ...


class AsyncResponse(Protocol):
    """The same, awaiting. A cancelled `head` or `read` closes the connection."""

    async def head(self) -> Head:
        """Send the request and wait for the head of the answer. Asked once, first."""
        ...

    async def read(self, patience: float | None = None) -> bytes:
        """The next bytes of the body as soon as there are any, content encoding undone; b"" at its end.

        With `patience`, b"" also when nothing comes for so many seconds.
        """
        ...

    def close(self) -> None:
        """Let go of the connection at once; at any time, and more than once."""
        ...


class AsyncTransport(Protocol):
    """Who carries the bytes of an `AsyncClient`: bring your own with `AsyncClient(transport=…)`."""

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Take a request, key included; nothing is sent before `head`. `timeout.total` is what is left of it."""
        ...

    async def close(self) -> None:
        """Let go of everything that is kept for the next request."""
        ...


def prepared(request: HttpRequest, key: Secret | None) -> HttpRequest:
    """The request with its credential, as it goes over the wire and nowhere else: a key in its header, or a signature
    over the request, which is made anew each time since it holds the hour.
    """
    if key is None or request.credential_header is None:
        return request
    if isinstance(key, AwsCredentials):
        own = sign(request.method, request.url, request.headers, request.body, key, time.time())
    else:
        name, prefix = request.credential_header
        own = {name: prefix + key.reveal()}
    headers = {**request.headers, **own}
    return HttpRequest(request.method, request.url, headers, request.body, direct=request.direct)
