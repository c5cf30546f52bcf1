"""Reads an HTTP/1.1 response: its head, its framing and its compression. Bytes in, content out, in any chunking."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from asides.flows.steps import Head

if TYPE_CHECKING:
    from asides.transports.decompressor import Decompressor

LONGEST_HEAD = 256 * 1024
_LONGEST_LINE = 16 * 1024
_LONGEST_TRAILER = 64 * 1024
_MAX_EMPTY_ROUNDS = 100
"""How often in a row a decompressor may return nothing although it has more."""

_START = b"HTTP/1."
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_STATUS_LINE = re.compile(rb"HTTP/1\.(\d) ([1-9]\d\d)(?: [^\0\r]*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_HEX: Final = b"0123456789abcdefABCDEF"
_NO_BODY = frozenset({204, 304})
COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz"})

_LONGEST_KNOWN_LINE = 8
_MAX_SIZES = 4096
_sizes: dict[bytes, int] = {}
"""The sizes of chunks by their lines, as `_read_size` has read them: servers repeat a few hundred. Never one of 0."""


class BrokenHead(ValueError):
    """The bytes are not the head of an HTTP/1.1 response, or the head is ambiguous. Its text says why."""

    def __init__(self, why: str, *, speaks_http: bool = True) -> None:
        super().__init__(why)
        self.speaks_http = speaks_http


class BrokenBody(ValueError):
    """The body breaks its framing, or the connection ended before it did."""


class BadEncoding(ValueError):
    """The content cannot be decompressed."""


class HttpResponseReader:
    """Reads one response, cut anywhere: bytes in (`feed`, `finish`), head and content out (`head`, `take`)."""

    __slots__ = ("_decompressor", "_is_lost", "_pieces", "_received", "body", "head", "is_taken", "needs_bytes", "size")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.body: Body | None = None
        self.size = 0
        """How many bytes of content wait to be taken."""
        self.is_taken = False
        """Whether all content of a complete response was taken."""
        self.needs_bytes = False
        """After `read`: whether `take` is known to have nothing."""
        self._received = bytearray()
        """The bytes of a head that is not complete."""
        self._decompressor: Decompressor | None = None
        self._pieces: list[bytes] = []
        self._is_lost = False

    @property
    def is_complete(self) -> bool:
        """Whether the response has arrived to its end."""
        return self.body is not None and self.body.ended

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the connection. Raises BrokenHead."""
        body = self.body
        if body is None:
            if (body := self._read_head(data)) is None:
                return
            self.body, data, self._received = body, bytes(self._received), bytearray()
        if data and (content := body.feed(data)):
            self._pieces.append(content)
            self.size += len(content)

    def finish(self, *, is_clean: bool = True) -> None:
        """Take the end of the connection."""
        self._is_lost = True
        if self.body is not None and is_clean and not self.body.broken:
            self.body.finish()

    def read(self, data: bytes) -> bytes | None:
        """Take the next bytes of the connection, b"" for its end, and return what `take` returns."""
        body = self.body
        if body is None or not data or self._pieces or self._decompressor is not None:
            if data:
                self.feed(data)
            else:
                self.finish()
        elif content := body.feed(data):
            self.is_taken = body.ended
            self.needs_bytes = not body.ended and not body.broken
            return content
        self.needs_bytes = False
        return self.take()

    def take(self) -> bytes | None:
        """The next content; b"" at the end of the body, None if more bytes are needed. Raises if the body is cut."""
        pieces, decompressor, data, rounds = self._pieces, self._decompressor, b"", 0
        while not data and (pieces or (decompressor is not None and decompressor.has_more)):
            if decompressor is None or not decompressor.has_more:
                data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                self.size = 0
            if decompressor is not None:
                data = decompressor.feed(data)
                rounds += 1
                if rounds > _MAX_EMPTY_ROUNDS:
                    raise BadEncoding
        body = self.body
        if body is not None and body.ended:
            self.is_taken = decompressor is None or not decompressor.has_more
            return data
        if not data and (self._is_lost or (body is not None and body.broken)):
            raise BrokenBody
        return data or None

    def _read_head(self, data: bytes) -> Body | None:
        """The body, when the head is complete. Interim responses (100, 103 …) are skipped."""
        received = self._received
        searched = max(len(received) - 2, 0)
        received += data
        while True:
            if not received.startswith(_START[: len(received)]):
                raise BrokenHead("it does not begin like HTTP/1.1", speaks_http=False)
            end = _END_OF_HEAD.search(received, searched)
            if (len(received) if end is None else end.end()) > LONGEST_HEAD:
                raise BrokenHead(f"its head has more than {LONGEST_HEAD // 1024} KiB")
            if end is None:
                return None
            minor, status, headers = _parse_head(bytes(received[: end.start()]))
            del received[: end.end()]
            searched = 0
            if status == 101:
                raise BrokenHead("it changes to another protocol, which was not asked for")
            if status >= 200:
                break
        body = _choose_body(minor, status, headers)
        encodings = _list_values(headers, "content-encoding")
        # Some servers name a charset there, or "none".
        if not COMPRESSIONS.isdisjoint(encodings):
            from asides.transports.decompressor import Decompressor

            self._decompressor = Decompressor(encodings)
        self.head = Head(status, dict(headers), time.time())
        return body


# --- the head ---------------------------------------------------------------------------------------------------------


def _parse_head(received: bytes) -> tuple[int, int, list[tuple[str, str]]]:
    """The minor version, the status and the headers, with names in lower case."""
    first, _, rest = received.partition(b"\n")
    found = _STATUS_LINE.fullmatch(first.removesuffix(b"\r"))
    if found is None:
        raise BrokenHead("its first line is not a status line")
    if rest.startswith((b" ", b"\t")):
        raise BrokenHead("its first header has no name")
    headers: list[tuple[str, str]] = []
    # A fold is the old way to continue a header on the next line.
    for line in _FOLD.sub(b" ", rest).split(b"\n") if rest else ():
        line = line.removesuffix(b"\r")
        if b"\r" in line or b"\0" in line:
            raise BrokenHead("a header holds a control character")
        raw_name, colon, raw_value = line.partition(b":")
        if not colon or _NAME.fullmatch(raw_name) is None:
            raise BrokenHead("a header has no valid name")
        headers.append((raw_name.decode("ascii").lower(), raw_value.strip(b" \t").decode("latin-1")))
    return int(found[1]), int(found[2]), headers


def _choose_body(minor: int, status: int, headers: list[tuple[str, str]]) -> Body:
    """How the body ends. A head that allows two answers is refused: two readers would see two responses."""
    lengths = set(_list_values(headers, "content-length"))
    codings = set(_list_values(headers, "transfer-encoding"))
    options = _list_values(headers, "connection")
    reusable = "close" not in options and (minor >= 1 or "keep-alive" in options)
    if status in _NO_BODY:
        # A server that announces a body may send it, and the next response would begin with it.
        return SizedBody(0, reusable=reusable and not codings and lengths <= {"0"})
    if codings and lengths:
        raise BrokenHead("it has both a Content-Length and a Transfer-Encoding")
    # Some proxies repeat a header. That is harmless as long as all say the same.
    if codings:
        if codings != {"chunked"}:
            raise BrokenHead("its Transfer-Encoding is not chunked")
        return ChunkedBody(reusable=reusable and minor >= 1)
    if lengths:
        if len(lengths) > 1 or _LENGTH.fullmatch(length := lengths.pop()) is None:
            raise BrokenHead("its Content-Length is not one number")
        return SizedBody(int(length), reusable=reusable)
    return Body()


def _list_values(headers: list[tuple[str, str]], name: str) -> list[str]:
    return [token.strip().lower() for own, value in headers if own == name for token in value.split(",")]


# --- the body ---------------------------------------------------------------------------------------------------------


class Body:
    """A body that ends with the connection, and the base of the others. Nothing raises, so that no content is lost.

    `ended`: the body is complete. `broken`: it breaks its framing, and `feed` returned what came before. `reusable`:
    the connection may carry another request.
    """

    __slots__ = ("broken", "ended", "reusable")

    def __init__(self, *, reusable: bool = False) -> None:
        self.ended = False
        self.broken = False
        self.reusable = reusable

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return their content."""
        return data

    def finish(self) -> None:
        """Take the end of the connection."""
        self.ended = self.ended or type(self) is Body
        self.broken = not self.ended


class SizedBody(Body):
    """A body with a Content-Length. Bytes after its end are dropped."""

    __slots__ = ("_left",)

    def __init__(self, size: int, *, reusable: bool) -> None:
        super().__init__(reusable=reusable)
        self._left = size
        self.ended = not size

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return their content."""
        left = self._left = self._left - len(data)
        if left <= 0:
            self.ended = True
            if left < 0:
                self.reusable = False
                self._left = 0
                return data[:left]
        return data


class ChunkedBody(Body):
    """A chunked body. It has ended after the last chunk and the trailer; bytes after that are dropped."""

    __slots__ = ("_held", "_in_trailer", "_left", "_trailer_size")

    def __init__(self, *, reusable: bool = True) -> None:
        super().__init__(reusable=reusable)
        self._held = b""
        self._left = 0
        """The bytes that are left of the current chunk, including the line end after it."""
        self._in_trailer = False
        self._trailer_size = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return their content."""
        if self._held:
            data, self._held = self._held + data, b""
        place, end, left = 0, len(data), self._left
        pieces: list[bytes] = []
        while place < end and not self.ended and not self.broken:
            if left > 2:
                pieces.append(data[place : place + left - 2])
                place += len(pieces[-1])
                left -= len(pieces[-1])
            elif left:
                # The line end after a chunk, whole or in two halves.
                expected = b"\r\n"[2 - left :]
                self.broken = data[place : place + left] != expected[: end - place]
                place, left = place + left, max(left - (end - place), 0)
            else:
                line_end = data.find(b"\r\n", place)
                if line_end < 0:
                    # A half of the line end may be here.
                    self.broken = end - place > _LONGEST_LINE + 1
                    self._held = data[place:]
                    break
                line, start = data[place:line_end], line_end + 2
                size = 0 if self._in_trailer else _sizes.get(line) or _read_size(line)
                if not 0 < size <= end - start - 2 or not data.startswith(b"\r\n", start + size):
                    place, left = start, self._read_line(line, size)
                else:
                    pieces.append(data[start : start + size])
                    place = start + size + 2
        self._left = left
        if place < end and not self._held:
            self.reusable = False
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_line(self, line: bytes, size: int) -> int:
        """Return the size of the chunk that a line announces, including its line end; 0 at the end of the body."""
        if self._in_trailer:
            self.ended = not line
            self._trailer_size += len(line) + 2
            self.broken = len(line) > _LONGEST_LINE or self._trailer_size > _LONGEST_TRAILER
            return 0
        self.broken = size < 0
        self._in_trailer = size == 0
        return size + 2 if size > 0 else 0


def _read_size(line: bytes) -> int:
    """The size of a chunk; -1 if the line has none."""
    number = line
    if line.strip(_HEX):
        number = line.partition(b";")[0].rstrip(b" \t")
        if number.strip(_HEX) or len(line) > _LONGEST_LINE:
            return -1
    size = int(number, 16) if 0 < len(number) <= 16 else -1
    if size > 0 and len(line) <= _LONGEST_KNOWN_LINE:
        if len(_sizes) >= _MAX_SIZES:
            _sizes.clear()
        _sizes[line] = size
    return size
