"""`AsidesTransport` and `AsyncAsidesTransport`: transports for clients of httpx and httpx2, which run the relay.

    httpx.Client(transport=AsidesTransport())

One class serves both libraries: a response is made with the classes of the library that made the request.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from asides.integrations.in_process_relay import Answered, ClientRequest, InProcessRelay, RelayOptions
from asides.relay.relay_request import RelayOutcome, ResponseStart
from asides.relay.streams.relay_stream import AsyncRelayStream, Relayed, RelayStream
from asides.transports.http_async import AsyncHttpTransport
from asides.transports.http_sync import HttpTransport
from asides.transports.protocols import AsyncTransport, Transport
from asides.values.errors import ConfigError, ConnectTimeout, IdleTimeout, TransportError

if TYPE_CHECKING:
    import httpx
    import httpx2

    class _TransportOfBoth(httpx.BaseTransport, httpx2.BaseTransport):
        def handle_request(self, request: Any) -> Any: ...

    class _AsyncTransportOfBoth(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any: ...
else:
    # Both libraries only ask for the methods, and neither has to be installed.
    _TransportOfBoth = _AsyncTransportOfBoth = object


class AsidesTransport(_TransportOfBoth):
    """Answers the requests of an `httpx.Client` or `httpx2.Client` from any provider, without a server between.

    A model is named `provider:model`; without a provider, it is asked at the client's own base URL, with the client's
    key. `asides` holds options for every request. Safe to use from many threads.
    """

    def __init__(
        self, asides: RelayOptions | Mapping[str, Any] | None = None, *, transport: Transport | None = None
    ) -> None:
        self._relay = InProcessRelay(asides)
        self._transport: Transport = HttpTransport() if transport is None else transport

    def handle_request(self, request: Any) -> Any:
        """Answer a request. The body of the response arrives while it is read."""
        library = _find_library(request)
        read = _read_request(request, request.read())
        transport = self._relay.add_headers(read, self._transport)
        stream = RelayStream(self._relay.begin(read), transport, self._relay.records)
        try:
            start = stream.start()
            if start.status < 500:
                return library.build_response(start, library.body(stream, request))
            # Raise connection errors as the library does: its users catch those.
            body = b"".join(stream)
        except BaseException:
            stream.close()
            raise
        return library.finish(start, body, stream.outcome, request)

    def close(self) -> None:
        """Close idle connections. The transport may still be used."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncAsidesTransport(_AsyncTransportOfBoth):
    """The same for an `httpx.AsyncClient` or `httpx2.AsyncClient`, under asyncio. It may serve several event loops."""

    def __init__(
        self, asides: RelayOptions | Mapping[str, Any] | None = None, *, transport: AsyncTransport | None = None
    ) -> None:
        self._relay = InProcessRelay(asides)
        self._transport: AsyncTransport = AsyncHttpTransport() if transport is None else transport

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request. The body of the response arrives while it is read."""
        library = _find_library(request)
        read = _read_request(request, await request.aread())
        if not _has_event_loop():
            error = ConfigError(_NO_LOOP)
            return library.finish(*_write_at_once(Answered("openai_chat", error)), None, request)
        transport = self._relay.add_headers(read, self._transport)
        stream = AsyncRelayStream(self._relay.begin(read), transport, self._relay.records)
        try:
            start = await stream.start()
            if start.status < 500:
                return library.build_response(start, library.async_body(stream, request))
            body = b"".join([piece async for piece in stream])
        except BaseException:
            await stream.close()
            raise
        return library.finish(start, body, stream.outcome, request)

    async def aclose(self) -> None:
        """Close idle connections. The transport may still be used."""
        if _has_event_loop():
            await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_NO_LOOP = (
    "asides needs a running asyncio event loop; trio is not supported. Run "
    "the program with asyncio, or use the blocking client in a thread."
)


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _write_at_once(answered: Relayed) -> tuple[ResponseStart, bytes]:
    step: Any = next(answered.steps())
    start, *pieces = step.events
    return start, b"".join(pieces)


def _read_request(request: Any, body: bytes) -> ClientRequest:
    url = request.url
    path, _, query = url.raw_path.decode("ascii").partition("?")
    host, port = url.host, url.port
    host = f"[{host}]" if ":" in host else host
    origin = f"{url.scheme}://{host}" if port is None else f"{url.scheme}://{host}:{port}"
    limits = request.extensions.get("timeout")
    return ClientRequest(request.method, origin, path, query, _read_headers(request.headers), body, limits)


def _read_headers(headers: Any) -> dict[str, str]:
    try:
        pairs = [(name.decode("ascii").lower(), value.decode("ascii")) for name, value in headers.raw]
        if len(read := dict(pairs)) == len(pairs):
            return read
    except UnicodeDecodeError:
        pass
    # The library joins those of one name, and finds the encoding of others.
    return {name.lower(): value for name, value in headers.items()}


# --- the two libraries ------------------------------------------------------------------------------------------------


_KINDS: dict[type, _Library] = {}
"""By the class of a request, its library."""


def _find_library(request: Any) -> _Library:
    known = _KINDS.get(type(request))
    return _look_up_library(type(request)) if known is None else known


def _look_up_library(asked: type) -> _Library:
    for kind in asked.__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("httpx", "httpx2"):
            found = _KINDS[asked] = _load_library(name)
            return found
    raise TypeError(f"expected a request of httpx or httpx2, not of {asked.__module__}.")


@cache
def _load_library(name: str) -> _Library:
    module: Any = sys.modules[name]

    class Body(module.SyncByteStream):  # type: ignore[misc]
        """The bytes of a response as they arrive. Closing it closes the connection immediately. Many clients do so
        after the last event.
        """

        def __init__(self, stream: RelayStream, request: Any) -> None:
            self._stream = stream
            self._request = request

        def __iter__(self) -> Iterator[bytes]:
            yield from self._stream
            library.check_end(self._stream.outcome, self._request)

        def close(self) -> None:
            self._stream.confirm()
            self._stream.close()

    class AsyncBody(module.AsyncByteStream):  # type: ignore[misc]
        """The same, awaiting."""

        def __init__(self, stream: AsyncRelayStream, request: Any) -> None:
            self._stream = stream
            self._request = request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                yield piece
            library.check_end(self._stream.outcome, self._request)

        async def aclose(self) -> None:
            self._stream.confirm()
            await self._stream.close()

    library = _Library(module, Body, AsyncBody)
    return library


class _Library(NamedTuple):
    """httpx or httpx2."""

    module: Any
    body: Any
    async_body: Any

    def build_response(self, start: ResponseStart, stream: Any) -> Any:
        """A response whose body follows."""
        return self.module.Response(start.status, headers=start.headers, stream=stream)

    def finish(self, start: ResponseStart, body: bytes, outcome: RelayOutcome | None, request: Any) -> Any:
        """A response with its whole body. Raises the library's own error if no complete answer arrived."""
        if outcome is not None and isinstance(outcome.error, TransportError):
            raise self._translate(outcome.error, request) from outcome.error
        return self.module.Response(start.status, headers=start.headers, content=body)

    def check_end(self, outcome: RelayOutcome | None, request: Any) -> None:
        """Raise the library's own error if a response that passed broke off. Others end with an error in it."""
        if outcome is not None and outcome.passed and isinstance(outcome.error, TransportError):
            raise self._translate(outcome.error, request, has_begun=True) from outcome.error

    def _translate(self, error: TransportError, request: Any, *, has_begun: bool = False) -> Exception:
        if isinstance(error, ConnectTimeout):
            kind = self.module.ConnectTimeout
        elif isinstance(error, IdleTimeout):
            kind = self.module.ReadTimeout
        else:
            kind = self.module.RemoteProtocolError if has_begun else self.module.ConnectError
        problem: Exception = kind(str(error), request=request)
        return problem
