"""Decompresses the content of a response: gzip and deflate, in bounded steps. Loaded when needed."""

from __future__ import annotations

import zlib

from asides.transports.http_response import COMPRESSIONS, BadEncoding

_MAX_ENCODINGS = 3
# Maximum output of one call, so that a small body cannot fill the memory.
_MAX_OUTPUT = 256 * 1024

_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class Decompressor:
    """Undoes the Content-Encoding of a body. One call returns a bounded amount; `has_more` says that more is ready."""

    __slots__ = ("_is_unknown", "_layers")

    def __init__(self, names: list[str]) -> None:
        known = [name for name in names if name in _WINDOWS]
        self._layers = [_Layer(_WINDOWS[name]) for name in reversed(known)]
        self._is_unknown = len(known) > _MAX_ENCODINGS or not (COMPRESSIONS - _WINDOWS.keys()).isdisjoint(names)

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


class _Layer:
    """One compression layer. Several gzip members may follow each other; trailing bytes after them are dropped."""

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
            content = self._inflate.decompress(data, _MAX_OUTPUT)
        except zlib.error:
            if not self._members:
                raise BadEncoding from None
            self._is_over = True
            return b""
        if not self._inflate.eof:
            self._held = self._inflate.unconsumed_tail
            # A full output may hide more, although the input is used up.
            self.has_more = bool(self._held) or len(content) == _MAX_OUTPUT
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
