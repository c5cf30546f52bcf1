"""Parses HTTP/1.1 requests from bytes, in any chunking."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

_MAX_HEAD = 64 * 1024
_MAX_BODY = 64 * 1024 * 1024
_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class BrokenRequest(Exception):
    """The bytes are no valid request; the connection ends with `status`."""

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
    """Takes bytes as they arrive and returns the requests they complete. It is unusable after a `BrokenRequest`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._done: list[Request] = []
        self._to_continue = False
        self._parser = self._parse_all()
        next(self._parser)

    def feed(self, data: bytes) -> list[Request]:
        """Take the next bytes; return every request they complete."""
        self._buffer += data
        next(self._parser)
        done, self._done = self._done, []
        return done

    def take_continue(self) -> bool:
        """Return whether the client waits for "100 Continue" before its body; true once per such request."""
        asked, self._to_continue = self._to_continue, False
        return asked

    # Each of these generators parses one part of a request and yields when it needs more bytes.

    def _parse_all(self) -> Generator[None, None, None]:
        while True:
            head = yield from self._parse_head_block()
            method, target, http10, headers = _read_head(head)
            path, _, query = target.partition("?")
            try:
                body = yield from self._parse_body(headers)
            except BrokenRequest as problem:
                problem.head = Request(method, path, query, headers, b"", http10)
                raise
            self._done.append(Request(method, path, query, headers, body, http10))

    def _parse_head_block(self) -> Generator[None, None, bytes]:
        searched = 0
        while True:
            # Skip an empty line before a request: some clients end a body with one.
            while self._buffer.startswith(b"\r\n"):
                del self._buffer[:2]
                searched = 0
            end = self._buffer.find(b"\r\n\r\n", max(searched - 3, 0))
            if end >= 0:
                break
            searched = len(self._buffer)
            if searched > _MAX_HEAD:
                raise BrokenRequest(431, f"the head of the request is longer than {_MAX_HEAD} bytes.")
            yield
        block = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return block

    def _parse_body(self, headers: dict[str, str]) -> Generator[None, None, bytes]:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None and length is not None:
            raise BrokenRequest(400, "the request has both a Content-Length and a Transfer-Encoding.")
        if coding is None and length is None:
            return b""
        if coding is not None:
            if coding.strip().lower() != "chunked":
                raise BrokenRequest(501, "the only Transfer-Encoding read here is chunked.")
            self._note_continue(headers)
            return (yield from self._parse_chunks())
        if length is None or not (length.isascii() and length.isdigit()):
            raise BrokenRequest(400, "the Content-Length is no number.")
        size = int(length)
        _check_size(size)
        if size:
            self._note_continue(headers)
        return (yield from self._take(size))

    def _note_continue(self, headers: dict[str, str]) -> None:
        self._to_continue = headers.get("expect", "").lower() == "100-continue" and not self._buffer

    def _parse_chunks(self) -> Generator[None, None, bytes]:
        body = bytearray()
        while True:
            line = yield from self._take_line()
            digits = line.partition(b";")[0].strip()
            if not digits or digits.translate(None, b"0123456789abcdefABCDEF"):
                raise BrokenRequest(400, "a chunk of the body has no readable size.")
            size = int(digits, 16)
            if size == 0:
                break
            _check_size(len(body) + size)
            body += yield from self._take(size)
            if (yield from self._take(2)) != b"\r\n":
                raise BrokenRequest(400, "a chunk of the body is not as long as it says.")
        while (yield from self._take_line()):  # Trailers are ignored.
            pass
        return bytes(body)

    def _take_line(self) -> Generator[None, None, bytes]:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD:
                raise BrokenRequest(400, "a line between the chunks of the body does not end.")
            yield
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, size: int) -> Generator[None, None, bytes]:
        while len(self._buffer) < size:
            yield
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def _check_size(size: int) -> None:
    if size > _MAX_BODY:
        raise BrokenRequest(413, f"the body is longer than {_MAX_BODY} bytes.")


def _read_head(head: bytes) -> tuple[str, str, bool, dict[str, str]]:
    first, *rest = head.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[0] or not _TOKEN.issuperset(words[0]):
        raise BrokenRequest(400, "the first line is no HTTP request.")
    method, target, version = words
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BrokenRequest(505, "the stage speaks HTTP/1.1 and HTTP/1.0.")
    if not target.startswith(b"/"):
        raise BrokenRequest(400, "the address in the first line does not begin with a slash.")
    headers: dict[str, str] = {}
    for line in rest:
        raw_name, colon, raw_value = line.partition(b":")
        if not colon or not raw_name or not _TOKEN.issuperset(raw_name):
            raise BrokenRequest(400, "a header line does not read.")
        name, value = raw_name.decode("ascii").lower(), raw_value.strip(b" \t").decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return method.decode("ascii"), target.decode("latin-1"), version == b"HTTP/1.0", headers
