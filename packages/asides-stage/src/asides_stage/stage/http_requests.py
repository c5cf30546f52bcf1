"""Reads HTTP/1.1 requests from bytes, in any chunking, with h11."""

from __future__ import annotations

import h11
import msgspec

_MAX_HEAD = 64 * 1024
_MAX_BODY = 64 * 1024 * 1024


class BrokenRequest(Exception):
    """The bytes are not a valid request; the connection ends with `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.head: Request | None = None
        """The request without its body, if only the body is wrong."""


class Request(msgspec.Struct, frozen=True):
    """One complete request."""

    method: str
    path: str
    """Without the query."""
    query: str
    headers: dict[str, str]
    """Names in lower case; the values of a repeated name are joined by a comma."""
    body: bytes
    http10: bool = False

    @property
    def keeps_alive(self) -> bool:
        """Whether the client asks to keep the connection open."""
        options = {word.strip().lower() for word in self.headers.get("connection", "").split(",")}
        return "keep-alive" in options if self.http10 else "close" not in options

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path}, <{len(self.body)} bytes>)"


class RequestReader:
    """Takes bytes as they arrive and returns the requests they complete. It is unusable after a `BrokenRequest`.

    Responses are not h11's: the stage also plays responses that are cut off or malformed. So each request has an
    `h11.Connection` of its own, which begins with the bytes that the one before it left.
    """

    def __init__(self) -> None:
        self._connection = _connect()
        self._head: Request | None = None
        self._body = bytearray()
        self._to_continue = False

    def feed(self, data: bytes) -> list[Request]:
        """Take the next bytes; return every request they complete."""
        if self._head is None and not self._connection.trailing_data[0]:
            data = data.lstrip(b"\r\n")  # Some clients end a body with an empty line.
        if not data:  # h11 would read it as the end of the connection.
            return []
        done: list[Request] = []
        try:
            self._connection.receive_data(data)
            while (event := self._connection.next_event()) is not h11.NEED_DATA:
                match event:
                    case h11.Request():
                        self._begin(event)
                    case h11.Data(data=piece):
                        _check_size(len(self._body) + len(piece))
                        self._body += piece
                    case _:
                        done.append(self._end())
        except h11.RemoteProtocolError as problem:
            raise self._refuse(problem.error_status_hint, str(problem)) from problem
        except BrokenRequest as problem:
            problem.head = self._head
            raise
        self._to_continue = self._connection.they_are_waiting_for_100_continue
        return done

    def take_continue(self) -> bool:
        """Return whether the client waits for "100 Continue" before its body; true once per such request."""
        asked, self._to_continue = self._to_continue, False
        return asked

    def _begin(self, request: h11.Request) -> None:
        headers: dict[str, str] = {}
        for raw_name, raw_value in request.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if request.http_version not in (b"1.0", b"1.1"):
            raise BrokenRequest(505, "the stage speaks HTTP/1.1 and HTTP/1.0.")
        if not request.target.startswith(b"/"):
            raise BrokenRequest(400, "the address in the first line does not begin with a slash.")
        path, _, query = request.target.decode("latin-1").partition("?")
        method, is_old = request.method.decode("ascii"), request.http_version == b"1.0"
        self._head = Request(method, path, query, headers, b"", is_old)
        self._body = bytearray()
        if {"transfer-encoding", "content-length"} <= headers.keys():
            raise BrokenRequest(400, "the request has both a Content-Length and a Transfer-Encoding.")
        if headers.get("content-length", "").isdigit():
            _check_size(int(headers["content-length"]))

    def _end(self) -> Request:
        head = self._head
        if head is None:
            raise BrokenRequest(400, "a request ended before it began.")
        rest, _ = self._connection.trailing_data
        self._connection, self._head = _connect(), None
        if rest := rest.lstrip(b"\r\n"):
            self._connection.receive_data(rest)
        return msgspec.structs.replace(head, body=bytes(self._body))

    def _refuse(self, status: int, message: str) -> BrokenRequest:
        refusal = BrokenRequest(status, message)
        refusal.head = self._head
        return refusal


def _connect() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)


def _check_size(size: int) -> None:
    if size > _MAX_BODY:
        raise BrokenRequest(413, f"the body is longer than {_MAX_BODY} bytes.")
