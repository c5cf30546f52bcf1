"""Decodes HTTP's chunked transfer coding: bytes of a body in, bytes of its content out. Not here: sockets.

The standard library returns one chunk at a time, and servers send each event as one. Decoding everything that a read
brought at once costs a tenth of that.
"""

from __future__ import annotations

_LONGEST_LINE = 16 * 1024


class BrokenChunks(ValueError):
    """The bytes are not in chunks."""


class Dechunker:
    """Decodes a body that may be cut anywhere. `ended` is set once its last chunk and its trailer have come."""

    __slots__ = ("_held", "_in_trailer", "_left", "ended")

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        """The bytes that the current chunk still lacks, including the line end after it."""
        self._in_trailer = False
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """Return the content in the next bytes; bytes after the end of the body are dropped."""
        if self._held:
            data, self._held = self._held + data, b""
        elif not self._left and data.endswith(b"\r\n") and not self._in_trailer:
            # Exactly one chunk: the usual read from a slow model.
            start = data.find(b"\r\n") + 2
            size = _read_size(data[: start - 2])
            if size and len(data) == start + size + 2:
                return data[start:-2]
        pieces: list[bytes] = []
        place, end, left = 0, len(data), self._left
        while place < end and not self.ended:
            if left:
                if end - place < left:
                    # The last one or two of these bytes may belong to the line end.
                    pieces.append(data[place : min(end, place + max(left - 2, 0))])
                    left -= end - place
                    break
                pieces.append(data[place : place + max(left - 2, 0)])
                place += left
                left = 0
            else:
                line_end = data.find(b"\r\n", place)
                if line_end < 0:
                    if end - place > _LONGEST_LINE:
                        raise BrokenChunks("a line between two chunks has no end.")
                    self._held = data[place:]
                    break
                line = data[place:line_end]
                place = line_end + 2
                size = 0 if self._in_trailer else _read_size(line)
                if 0 < size <= end - place - 2:
                    # The whole chunk has come: the usual case, made fast.
                    pieces.append(data[place : place + size])
                    place += size + 2
                    continue
                left = self._read_line(line)
        self._left = left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_line(self, line: bytes) -> int:
        """Return the size of the chunk that a line announces, including its line end; 0 at the end of the body."""
        if self._in_trailer:
            self.ended = not line
            return 0
        size = _read_size(line)
        self._in_trailer = size == 0
        return size + 2 if size else 0


def _read_size(line: bytes) -> int:
    try:
        size = int(line, 16) if b";" not in line else int(line.partition(b";")[0], 16)
    except ValueError:
        raise BrokenChunks("a chunk does not say how long it is.") from None
    if size < 0:
        raise BrokenChunks("a chunk has a negative length.")
    return size
