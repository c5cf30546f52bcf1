"""The whole events in the bytes of a stream that is forwarded: `find_splitter(content_type).feed(data)`.

A partial event means nothing to the caller yet. If the provider breaks off, it must not precede the error that ends
the stream: a parser would read the two as one.
"""

from __future__ import annotations

_MOST_HELD = 8 * 1024 * 1024
"""A longer event goes out in pieces, as it comes."""
_PREFIX = 4
_SHORTEST_FRAME = 16


class EventSplitter:
    """Finds whole events. This one, for other streams than those below, only sees where a line ends."""

    __slots__ = ("_is_torn",)

    def __init__(self) -> None:
        self._is_torn = False
        """Whether an event went out in part."""

    @property
    def is_between(self) -> bool:
        """Whether everything that went out were whole events."""
        return not self._is_torn

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes. Returns those up to the end of the last whole event."""
        self._is_torn = not data.endswith(b"\n")
        return data

    def flush(self) -> bytes:
        """What is left: the end of a stream need not be that of an event."""
        return b""


class _Holding(EventSplitter):
    """Holds back the bytes of an event until it is whole."""

    __slots__ = ("_held", "_searched")

    def __init__(self) -> None:
        super().__init__()
        self._held = bytearray()
        self._searched = 0
        """How many of the held bytes were searched for an end."""

    def feed(self, data: bytes) -> bytes:
        held = self._held
        if not held and self._is_end(data):
            self._is_torn = False
            return data
        held += data
        end = self._find_end(held)
        if end:
            self._is_torn = False
        elif len(held) > _MOST_HELD:
            self._is_torn, end = True, len(held)
        whole = bytes(held[:end])
        del held[:end]
        self._searched = max(self._searched - end, 0)
        return whole

    def flush(self) -> bytes:
        rest = bytes(self._held)
        self._held.clear()
        self._is_torn = self._is_torn or bool(rest)
        return rest

    def _is_end(self, data: bytes) -> bool:
        """Whether these bytes, which begin with an event, certainly end with one."""
        raise NotImplementedError

    def _find_end(self, held: bytearray) -> int:
        """Where the last whole event ends; 0 if there is none."""
        raise NotImplementedError


class _ServerSentEvents(_Holding):
    """Events end with a blank line."""

    __slots__ = ()

    def _is_end(self, data: bytes) -> bool:
        return data.endswith((b"\n\n", b"\r\n\r\n"))

    def _find_end(self, held: bytearray) -> int:
        # A blank line may have come in two reads.
        begin = max(self._searched - 3, 0)
        self._searched = len(held)
        ends = [place + len(blank) for blank in _BLANK_LINES if (place := held.rfind(blank, begin)) >= 0]
        return max(ends, default=0)


class _Lines(_Holding):
    """Each line is an event."""

    __slots__ = ()

    def _is_end(self, data: bytes) -> bool:
        return data.endswith(b"\n")

    def _find_end(self, held: bytearray) -> int:
        begin, self._searched = self._searched, len(held)
        return held.rfind(b"\n", begin) + 1


class _Frames(_Holding):
    """Each frame begins with its length."""

    __slots__ = ()

    def _is_end(self, data: bytes) -> bool:
        return len(data) > _PREFIX and int.from_bytes(data[:_PREFIX]) == len(data)

    def _find_end(self, held: bytearray) -> int:
        end = 0
        while end + _PREFIX <= len(held):
            length = int.from_bytes(held[end : end + _PREFIX])
            if not _SHORTEST_FRAME <= length <= _MOST_HELD:
                return len(held)  # Not frames.
            if end + length > len(held):
                break
            end += length
        return end


_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
_SPLITTERS: dict[str, type[EventSplitter]] = {
    "text/event-stream": _ServerSentEvents,
    "application/x-ndjson": _Lines,
    "application/vnd.amazon.eventstream": _Frames,
}


def find_splitter(content_type: str) -> EventSplitter:
    """What finds the whole events of a stream of this type."""
    return _SPLITTERS.get(content_type.partition(";")[0].strip().lower(), EventSplitter)()
