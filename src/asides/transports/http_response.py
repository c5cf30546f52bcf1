"""Reads an HTTP/1.1 response, for both transports: its head, its framing and its compression. Bytes in, content out.

HTTP libraries disagree on responses that break the rules. One reader makes both transports agree, however bytes are
cut. Not here: sockets and timeouts (urllib3, aiohttp), and what a response means (flows).
"""

from __future__ import annotations

import re
import time
import zlib
from typing import Final

from asides.flows.steps import Head

LONGEST_HEAD = 256 * 1024
_LONGEST_LINE = 16 * 1024
_LONGEST_TRAILER = 64 * 1024
_MOST_ENCODINGS = 3
# How much one call decompresses, so that a small body cannot fill the memory at once.
_MOST_OUTPUT = 256 * 1024

_START = b"HTTP/1."
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.(\d) ([1-9]\d\d)(?: [^\0\r]*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_HEX: Final = b"0123456789abcdefABCDEF"
_NO_BODY = frozenset({204, 304})


class BrokenHead(ValueError):
    """The bytes are no head of an HTTP/1.1 response, or a head that can be read in two ways. Its text says why."""

    def __init__(self, why: str, *, speaks_http: bool = True) -> None:
        super().__init__(why)
        self.speaks_http = speaks_http


class BrokenBody(ValueError):
    """The body breaks its framing, or the connection ended before it did."""


class BadEncoding(ValueError):
    """The content cannot be decompressed."""


class HttpResponseReader:
    """Reads one response, cut anywhere: bytes in (`feed`, `finish`), head and content out (`head`, `take`)."""

    __slots__ = ("_decompressor", "_is_lost", "_pieces", "_received", "body", "head", "is_taken", "size")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.body: Body | None = None
        self.size = 0
        """How many bytes of content wait to be taken."""
        self.is_taken = False
        """Whether all content of a complete response was taken."""
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

    def take(self) -> bytes | None:
        """The next content; b"" at the end of the body, None as long as there is none. Raises when some is missing."""
        pieces, decompressor, data = self._pieces, self._decompressor, b""
        while not data and (pieces or (decompressor is not None and decompressor.has_more)):
            if decompressor is None or not decompressor.has_more:
                data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                self.size = 0
            if decompressor is not None:
                data = decompressor.feed(data)
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
        self._decompressor = choose_decompressor(_list_values(headers, "content-encoding"))
        self.head = Head(status, dict(headers), time.time())
        return body


# --- the head ---------------------------------------------------------------------------------------------------------


def _parse_head(received: bytes) -> tuple[int, int, list[tuple[str, str]]]:
    """The minor version, the status and the headers, with names in lower case."""
    first, *lines = (line.removesuffix(b"\r") for line in received.split(b"\n"))
    found = _STATUS_LINE.fullmatch(first)
    if found is None:
        raise BrokenHead("its first line is no status line")
    headers: list[tuple[str, str]] = []
    for line in lines:
        if b"\r" in line or b"\0" in line:
            raise BrokenHead("a header holds a control character")
        if line[:1] in (b" ", b"\t"):
            if not headers:
                raise BrokenHead("its first header has no name")
            # The old way to continue a header on the next line.
            name, value = headers.pop()
            headers.append((name, f"{value} {line.strip().decode('latin-1')}".strip()))
            continue
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
        return SizedBody(0, reusable=reusable)
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
        elif not self._left and data.endswith(b"\r\n") and not self._in_trailer and not self.broken:
            # A fast path: exactly one chunk, as a slow model sends it.
            start = data.find(b"\r\n") + 2
            size = _read_size(data[: start - 2])
            if size > 0 and len(data) == start + size + 2:
                return data[start:-2]
        pieces: list[bytes] = []
        place, end, left = 0, len(data), self._left
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
                line, place = data[place:line_end], line_end + 2
                size = 0 if self._in_trailer else _read_size(line)
                if 0 < size <= end - place - 2 and data.startswith(b"\r\n", place + size):
                    # A fast path: the whole chunk is here.
                    pieces.append(data[place : place + size])
                    place += size + 2
                    continue
                left = self._read_line(line, size)
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
    if line.strip(_HEX):
        number = line.partition(b";")[0].rstrip(b" \t")
        if number.strip(_HEX) or len(line) > _LONGEST_LINE:
            return -1
        line = number
    return int(line, 16) if 0 < len(line) <= 16 else -1


# --- compression ------------------------------------------------------------------------------------------------------

_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_OTHER_COMPRESSIONS = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})


class Decompressor:
    """Undoes the Content-Encoding of a body. One call returns a bounded amount; `has_more` says that more is ready."""

    __slots__ = ("_is_unknown", "_layers")

    def __init__(self, names: list[str]) -> None:
        known = [name for name in names if name in _WINDOWS]
        self._layers = [_Layer(_WINDOWS[name]) for name in reversed(known)]
        self._is_unknown = len(known) > _MOST_ENCODINGS or not _OTHER_COMPRESSIONS.isdisjoint(names)

    @property
    def has_more(self) -> bool:
        """Whether `feed(b"")` may return more."""
        return any(layer.has_more for layer in self._layers)

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return their content. Raises BadEncoding."""
        if self._is_unknown:
            raise BadEncoding
        # What the last layers hold goes first, so that none of them holds more and more.
        held = (place for place in range(len(self._layers) - 1, 0, -1) if self._layers[place].has_more)
        for layer in self._layers[next(held, 0) if not data else 0 :]:
            data = layer.feed(data)
        return data


def choose_decompressor(names: list[str]) -> Decompressor | None:
    """What undoes these encodings; None if nothing is compressed. Some servers name a charset there, or "none"."""
    is_packed = any(name in _WINDOWS or name in _OTHER_COMPRESSIONS for name in names)
    return Decompressor(names) if is_packed else None


class _Layer:
    """One compression. Several gzip members may follow each other; what follows them and is no member is dropped."""

    __slots__ = ("_first", "_held", "_inflate", "_is_over", "_members", "_window", "has_more")

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._members = 0
        self._is_over = False
        self._first = b""
        self._held = b""
        self.has_more = False

    def feed(self, data: bytes) -> bytes:
        if self._is_over or not (data or self.has_more):
            return b""
        data, self._held, self.has_more = self._held + data, b"", False
        if self._window == _ZLIB:
            data = self._choose_window(data)
        try:
            content = self._inflate.decompress(data, _MOST_OUTPUT)
        except zlib.error:
            if not self._members:
                raise BadEncoding from None
            self._is_over = True
            return b""
        if not self._inflate.eof:
            self._held = self._inflate.unconsumed_tail
            # A full output may hide more, although the input is used up.
            self.has_more = bool(self._held) or len(content) == _MOST_OUTPUT
        elif self._window == _GZIP:
            self._held = self._inflate.unused_data
            self.has_more = bool(self._held)
            self._members += 1
            self._inflate = zlib.decompressobj(_GZIP)
        else:
            self._is_over = True
        return content

    def _choose_window(self, data: bytes) -> bytes:
        """Many servers send "deflate" without its header of two bytes. Returns what to decompress."""
        if len(self._first) < 2:
            self._first += data
            if len(self._first) < 2:
                return b""
            data = self._first
            if data[0] & 15 != 8 or int.from_bytes(data[:2]) % 31:
                self._window = _DEFLATE
                self._inflate = zlib.decompressobj(_DEFLATE)
        return data
