"""Server-sent events: bytes in any chunking in, complete data payloads out.

Not here: what a payload says. The reader knows JSON only as far as telling two documents in one event apart.
"""

from __future__ import annotations

import re

import msgspec

from asides.values.errors import ProtocolError

DONE = b"[DONE]"
"""The payload by which many servers say that the stream is over."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseReader:
    """Bytes in any chunking in, complete data payloads out.

    Lines end in LF, CRLF or CR. Comments, `event:`, `id:`, `retry:` and unknown fields are ignored, since every dialect
    repeats in its payload what it says there. Data lines of one event are joined with a line feed, except where they
    cannot belong together: a line that ends in `}` before one that begins with `{` or is `[DONE]`, and whatever follows
    `[DONE]`; no JSON document has such a seam, and servers that forget the blank line do. An `error:` line, which is no
    standard field, becomes the payload `{"error": …}`. Blank data gives no payload.

    An event longer than `max_event_bytes` raises `ProtocolError`, after every payload before it was handed over.
    """

    __slots__ = ("_after_cr", "_failure", "_first", "_limit", "_lines", "_lines_size", "_midway", "_tail")

    def __init__(self, max_event_bytes: int = 8 * 1024 * 1024) -> None:
        if max_event_bytes < 1:
            raise ValueError(f"max_event_bytes is {max_event_bytes}; an event has at least one byte.")
        self._limit = max_event_bytes
        self._tail = bytearray()
        """The line that has not ended. Only new bytes are searched for its end, so that growing it stays linear."""
        self._lines: list[bytes] = []
        """The values of the data lines of the event that has not ended."""
        self._lines_size = 0
        self._first = True
        # True at the start too, since only the walk looks for a byte order mark.
        self._midway = True
        self._after_cr = False
        self._failure: ProtocolError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the data of every event they complete, `[DONE]` included."""
        if self._failure is not None:
            raise self._failure
        if self._after_cr or b"\r" in data:
            data = self._with_line_feeds(data)
        start = 0
        payloads: list[bytes] = []
        if self._midway:
            start = self._walk(data, payloads)
            if start < 0:
                return self._delivered(payloads)
        # The usual read is events of one data line each: cut it in one sweep, and prove that nothing else was in it.
        end = data.rfind(b"\n\n", start)
        if end >= 0 and len(data) <= self._limit and (swept := _swept(data, start, end)):
            if payloads:
                swept = payloads + swept
            if len(data) == end + 2:
                return swept
            self._take_lines(data, end + 2, swept)
            return self._delivered(swept)
        self._take_lines(data, start, payloads)
        return self._delivered(payloads)

    def finish(self) -> list[bytes]:
        """The end of the bytes: the last event, should its blank line be missing."""
        if self._failure is not None:
            raise self._failure
        payloads: list[bytes] = []
        line = bytes(self._tail)
        self._tail.clear()
        self._take_line(line, payloads)
        self._end_event(payloads)
        return self._delivered(payloads)

    def _with_line_feeds(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _walk(self, data: bytes, payloads: list[bytes]) -> int:
        """Line by line to the end of the event begun earlier; where it ended, or -1 when all of `data` was taken."""
        start = 0
        while self._midway:
            end = data.find(b"\n", start)
            if end < 0:
                self._keep(data[start:])
                return -1
            line = data[start:end]
            if self._tail:
                self._tail += line
                line = bytes(self._tail)
                self._tail.clear()
            self._take_line(line, payloads)
            if self._failure is not None:
                return -1
            self._midway = bool(self._lines)
            start = end + 1
        return start

    def _take_lines(self, data: bytes, start: int, payloads: list[bytes]) -> None:
        lines = data[start:].split(b"\n")
        rest = lines.pop()
        for line in lines:
            self._take_line(line, payloads)
            if self._failure is not None:
                return
        self._midway = bool(self._lines)
        if rest:
            self._keep(rest)

    def _keep(self, data: bytes) -> None:
        self._tail += data
        self._midway = True
        if self._lines_size + len(self._tail) > self._limit:
            self._fail(self._tail)

    def _take_line(self, line: bytes, payloads: list[bytes]) -> None:
        if self._lines_size + len(line) > self._limit:
            self._fail(line)
            return
        if self._first:
            self._first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b" ", 5) else line[5:]
            if self._lines and self._begins_anew(value):
                self._end_event(payloads)
            self._lines.append(value)
            self._lines_size += len(line)
        elif not line:
            self._end_event(payloads)
        elif line.startswith(b"error:"):
            self._end_event(payloads)
            if told := line[6:].strip():
                payloads.append(_as_error(told))

    def _begins_anew(self, value: bytes) -> bool:
        """Whether a data line cannot belong to the document of the lines before it."""
        head = value.strip()
        if not head:  # or a run of blank lines would be walked back through for each of them
            return False
        last = next((line for kept in reversed(self._lines) if (line := kept.strip())), b"")
        return last == DONE or (last.endswith(b"}") and (head.startswith(b"{") or head == DONE))

    def _end_event(self, payloads: list[bytes]) -> None:
        lines = self._lines
        if not lines:
            return
        payload = lines[0] if len(lines) == 1 else b"\n".join(lines)
        lines.clear()
        self._lines_size = 0
        bare = payload.strip()
        if bare:
            payloads.append(DONE if bare == DONE else payload)

    def _fail(self, line: bytes | bytearray) -> None:
        begun = b"\n".join([*self._lines, line[:4096]])
        self._failure = ProtocolError(
            f"the server never ended its event: it grew past {self._limit} bytes, the most that is kept of one. "
            "To do: raise the limit if the server really sends events of that size.",
            payload=begun,
        )
        self._tail.clear()
        self._lines.clear()

    def _delivered(self, payloads: list[bytes]) -> list[bytes]:
        # What was complete before the failure is handed over first: otherwise it would depend on the chunking.
        if self._failure is not None and not payloads:
            raise self._failure
        return payloads


_PAIR = re.compile(rb"event: [^\n]*\ndata: ([^\n]+)")


def _swept(data: bytes, start: int, end: int) -> list[bytes]:
    """The data of a run of events of one data line each, with or without an `event:` line before it; [] if it is none.

    Counting line ends proves that nothing else was in it.
    """
    swept: list[bytes] = []
    lines = 0
    if data.startswith(b"data: ", start):
        swept = data[start + 6 : end].split(b"\n\ndata: ")
        lines = 2 * len(swept) - 2
    elif data.startswith(b"event: ", start):
        swept = _PAIR.findall(data, start, end)
        lines = 3 * len(swept) - 2
        if data.count(b"\n\nevent: ", start, end) != len(swept) - 1:
            return []
    if not swept or data.count(b"\n", start, end) != lines or not _are_plain(swept):
        return []
    return swept


def _are_plain(payloads: list[bytes]) -> bool:
    """Whether each is `[DONE]` or begins with a brace: neither blank, nor padded, nor anything to look at twice."""
    # The smallest one speaks for all: blank and padded ones sort before "{".
    return min(payloads) >= b"{" or all(payload >= b"{" or payload == DONE for payload in payloads)


def _as_error(told: bytes) -> bytes:
    # llama.cpp sends an object; whatever else stands there becomes a string, so that the payload stays JSON.
    if not told.startswith(b"{"):
        told = msgspec.json.encode(told.decode("utf-8", "replace"))
    return b'{"error":' + told + b"}"
