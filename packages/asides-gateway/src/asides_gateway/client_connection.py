"""One connection of a client of our own server: uvicorn's, with bounds and with answers that repeat nothing of what was
sent.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from asides_gateway.authenticate import SAFE_HEADERS
from asides_gateway.fault_body import write_fault
from asides_gateway.web import EXTENSION

if TYPE_CHECKING:
    from asides_gateway.http_server import ServerConfig

MAX_HEAD = 128 * 1024
"""The bytes of a head: the request line and all headers together. Also those between two parts of a body."""
MAX_FIELDS = 200
_NOT_HTTP = (
    "this is not an HTTP request, or its head is broken. Send it again, by HTTP and not HTTPS, with valid headers."
)
_TOO_LARGE = f"the headers of the request are too large. Send at most {MAX_FIELDS}, of {MAX_HEAD // 1024} KB."
_FULL = "the gateway has reached its limit of connections. Try again later."


class _HeadTooLarge(Exception):
    """A head is larger than it may be."""


class _WithoutWords(logging.Filter):
    """Removes from uvicorn's records what a client may have written."""

    def filter(self, record: logging.LogRecord) -> bool:
        problem = record.exc_info[1] if record.exc_info else None
        name = "" if problem is None else f": {type(problem).__name__}"
        record.msg, record.args, record.exc_info = f"a response could not be completed{name}", (), None
        return True


_log = logging.getLogger("asides.gateway.http")
_log.addFilter(_WithoutWords())
_log.setLevel(logging.ERROR)


class ClientConnection(HttpToolsProtocol):
    """One connection of a client."""

    config: ServerConfig

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = _log
        self.access_log = False  # Ours shows no key and no query.
        self.stalled_since: float | None = None
        """When the client was first seen to take nothing of what waits for it."""
        self.unsent = 0
        """The bytes that waited for the client when they were last counted."""
        self.had_request = False
        """True once a request has arrived."""
        self._is_refused = False
        self._dropped = 0
        """The bytes that arrived after a refusal."""
        self._in_head = False
        self._in_message = False
        self._head_bytes = 0
        """The bytes that arrived since the head under way began."""
        self._frame_bytes = 0
        """The bytes that arrived since the last ones of a body: chunk sizes, chunk extensions and trailers."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._extensions: dict[str, Any] = {}
        self._joined: _JoinedTransport | None = None
        self._on_left: Callable[[], None] | None = None

    # --- the connection -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the first head."""
        super().connection_made(transport)
        self._extensions = {EXTENSION: {"abort": transport.abort, "watch": self._watch_client}}
        self._joined = _JoinedTransport(transport, self.loop)
        if len(self.connections) > self.config.max_connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
            return
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._end_head()
        super().connection_lost(exc)
        if self._on_left is not None:
            self._on_left()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        if self._is_refused:
            self._dropped += len(data)
            if self._dropped > _MAX_DROPPED:
                self.transport.abort()
            return
        counts = self._in_head or not self._in_message
        if counts:
            if b"h2c" in data:
                data = refuse_http2(data)
            self._head_bytes += len(data)
            self.config.head_bytes += len(data)
        else:
            self._frame_bytes += len(data)
        super().data_received(data)
        if self._frame_bytes > MAX_HEAD:
            self.transport.abort()
        elif not self._in_head and (self._in_message or not self.is_idle):
            if self._head_bytes:
                self._end_head()
        elif self._head_bytes > MAX_HEAD or (self._in_head and len(self.headers) > MAX_FIELDS):
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        elif self.config.head_bytes > self.config.max_head_bytes:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
        elif self._head_timer is None:
            # The first bytes of a head that is not whole, which may be a blank line.
            self._watch_head()

    @property
    def is_idle(self) -> bool:
        """True between two requests."""
        return not self.had_request or self.cycle.response_complete

    def timeout_keep_alive_handler(self) -> None:
        """The connection has rested long enough."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # The client took nothing for as long.
        else:
            super().timeout_keep_alive_handler()

    # --- heads --------------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = self._in_message = True
        self.scope["extensions"] = self._extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer. Trailers are ignored: the request was authenticated and routed without them."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head has ended."""
        headers = self.headers
        if len(headers) > MAX_FIELDS or (self._head_bytes > MAX_HEAD and self._measure_head() > MAX_HEAD):
            raise _HeadTooLarge
        is_1_0 = self.parser.get_http_version() == "1.0"
        hosts = sum(name == b"host" for name, _ in headers)
        if hosts > 1 or not (hosts or is_1_0):
            raise ValueError("no host, or several")
        self._in_head = False
        super().on_headers_complete()
        self.had_request = True
        self.cycle.transport = self._joined  # type: ignore[assignment] # it has what the cycle uses
        if is_1_0:
            # No chunks: the end of the connection is that of the body.
            self.cycle.chunked_encoding = False
            self.cycle.expected_content_length = sys.maxsize
            self.scope["extensions"] = {EXTENSION: {**self._extensions[EXTENSION], "until_close": True}}

    def on_body(self, body: bytes) -> None:
        """A part of a body has arrived."""
        super().on_body(body)
        self._frame_bytes = 0

    def on_message_complete(self) -> None:
        """A request has arrived in full."""
        super().on_message_complete()
        self._in_message = False
        self._frame_bytes = 0

    def _measure_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _watch_head(self) -> None:
        self._head_timer = self.loop.call_later(self.config.head_seconds, self._end_slow_head)

    def _end_head(self) -> None:
        self.config.head_bytes -= self._head_bytes
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_slow_head(self) -> None:
        self._head_timer = None
        if self._in_head or self.is_idle:
            self.transport.abort()

    def _watch_client(self, on_left: Callable[[], None] | None) -> None:
        """Call this when the client leaves; None: no longer."""
        if on_left is not None and self.transport.is_closing():
            on_left()
        else:
            self._on_left = on_left

    # --- refusals -----------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed."""
        del msg
        if self._in_head and (self._measure_head() > MAX_HEAD or len(self.headers) > MAX_FIELDS):
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, _NOT_HTTP)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer outside of the application, and close the connection."""
        self._is_refused = True
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            self.config.note_full()
        if not self.is_idle and self.cycle.response_started:
            self.transport.abort()
            return
        path = self.url.partition(b"?")[0].decode("latin-1") if self._in_message else ""
        body = write_fault(message, status, path)
        if self._in_head:
            # One read may bring thousands of headers, or 256 KB of one.
            self.headers.clear()
            self.url = b""
            self.parser = HttpRequestParser(self)
        headers = {
            **SAFE_HEADERS,
            "server": "asides",
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self._end_head()
        # What still arrives is dropped for a moment: closing now would reset the connection, and lose the answer.
        self._head_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()


class _JoinedTransport:
    """Writes the head of a response together with the first part of its body, in one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._is_scheduled = False
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write, at the latest when the event loop turns."""
        if self._held:
            self._transport.write(self._held + data)
            self._held = b""
        elif data.startswith(b"HTTP/1.1 ") and not self._is_scheduled:
            self._held, self._is_scheduled = data, True
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._held:
            self._transport.write(self._held)
            self._held = b""


_LINGER_SECONDS = 2.0
_MAX_DROPPED = 1024 * 1024
_OFFER = re.compile(rb"\r\nupgrade(?=:[ \t]*h2c[ \t]*\r\n)", re.IGNORECASE)


def refuse_http2(data: bytes) -> bytes:
    """The bytes that begin with a head, without an offer to change to HTTP/2: the parser would take the body for bytes
    of that protocol.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"\r\nx-offer", head + end[:2]) + end[2:] + rest
