"""HTTP's chunked transfer coding, undone: bytes of a body in, bytes of its content out. Not here: sockets.

It exists because the standard library hands out one chunk at a time, and servers make one of every event: undoing all
that a read brought at once costs a tenth of that.
"""

from __future__ import annotations

_LONGEST_LINE = 16 * 1024


class BrokenChunks(ValueError):
    """The bytes are not in chunks."""


class Dechunker:
    """Takes a body as it comes, cut anywhere. `ended` once its last chunk and its trailer were there."""

    __slots__ = ("_held", "_in_trailer", "_left", "ended")

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        """Bytes of the current chunk that are still to come, the line end behind it included."""
        self._in_trailer = False
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """The content in the next bytes; what follows the end of the body is left out."""
        if self._held:
            data, self._held = self._held + data, b""
        elif not self._left and data.endswith(b"\r\n") and not self._in_trailer:
            # One chunk, whole: what a model that is in no hurry sends.
            start = data.find(b"\r\n") + 2
            size = _size_in(data[: start - 2])
            if size and len(data) == start + size + 2:
                return data[start:-2]
        pieces: list[bytes] = []
        place, end, left = 0, len(data), self._left
        while place < end and not self.ended:
            if left:
                if end - place < left:
                    # Of the part that is there, the line end may be the last byte, or both.
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
                size = 0 if self._in_trailer else _size_in(line)
                if 0 < size <= end - place - 2:
                    # All of it is there: the usual case, and the one that counts.
                    pieces.append(data[place : place + size])
                    place += size + 2
                    continue
                left = self._take_line(line)
        self._left = left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_line(self, line: bytes) -> int:
        """The bytes to come of the chunk that a line announces, its line end included; 0 at the end of the body."""
        if self._in_trailer:
            self.ended = not line
            return 0
        size = _size_in(line)
        self._in_trailer = size == 0
        return size + 2 if size else 0


def _size_in(line: bytes) -> int:
    try:
        size = int(line, 16) if b";" not in line else int(line.partition(b";")[0], 16)
    except ValueError:
        raise BrokenChunks("a chunk does not say how long it is.") from None
    if size < 0:
        raise BrokenChunks("a chunk is shorter than nothing.")
    return size
