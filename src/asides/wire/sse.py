"""Reads server-sent events: bytes in any chunking in, complete data payloads out.

Not here: the meaning of a payload (dialects). The reader knows JSON only well enough to separate two documents in one
event.
"""

from __future__ import annotations

import re

import msgspec

from asides.values.errors import ProtocolError

DONE = b"[DONE]"
"""The payload with which many servers end a stream."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseReader:
    """Reads complete data payloads from bytes in any chunking.

    Lines end in LF, CRLF or CR. Comments, `event:`, `id:`, `retry:` and unknown fields are ignored: every dialect
    repeats their content in its payload. Data lines of one event are joined with a line feed, except where they cannot
    belong together: a line that ends in `}` before one that begins with `{` or is `[DONE]`, and any line after
    `[DONE]`. No JSON document has such a seam; servers that forget the blank line do. An `error:` line, which is no
    standard field, becomes the payload `{"error": …}`. Blank data gives no payload.

    An event longer than `max_event_bytes` raises `ProtocolError`, after every payload before it was returned.
    """

    __slots__ = ("_after_cr", "_between", "_first", "_limit", "_lines", "_lines_size", "_midway", "_tail", "failure")

    def __init__(self, max_event_bytes: int = 8 * 1024 * 1024) -> None:
        if max_event_bytes < 1:
            raise ValueError(f"max_event_bytes is {max_event_bytes}; an event has at least one byte.")
        self._limit = max_event_bytes
        self._tail = bytearray()
        """The line that has not ended yet. Only new bytes are searched for its end, so the time stays linear."""
        self._lines: list[bytes] = []
        """The values of the data lines of the event that has not ended yet."""
        self._lines_size = 0
        self._first = True
        # True at the start too: only `_finish_open_event` looks for a byte order mark.
        self._midway = True
        self._after_cr = False
        self._between = False
        """Whether the next byte begins an event, whatever it is."""
        self.failure: ProtocolError | None = None
        """Raised by the next call, once the payloads before it were returned."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return the data of every event they complete, including `[DONE]`."""
        # A model sends an event at a time, so this is what most reads hold.
        if self._between and len(data) <= self._limit and (found := _ONE_EVENT(data)) is not None and b"\r" not in data:
            return [found[1]]
        payloads = self._feed_any(data)
        self._between = not (self._midway or self._after_cr or self.failure)
        return payloads

    def _feed_any(self, data: bytes) -> list[bytes]:
        if self.failure is not None:
            raise self.failure
        if self._after_cr or b"\r" in data:
            data = self._normalise_line_ends(data)
        start = 0
        payloads: list[bytes] = []
        if self._midway:
            start = self._finish_open_event(data, payloads)
            if start < 0:
                return self._return_or_raise(payloads)
        # Usually all events have one data line each: split them at once, after a check that nothing else is there.
        end = data.rfind(b"\n\n", start)
        if end >= 0 and len(data) <= self._limit and (split := _split_plain_events(data, start, end)):
            if payloads:
                split = payloads + split
            if len(data) == end + 2:
                return split
            self._read_lines(data, end + 2, split)
            return self._return_or_raise(split)
        self._read_lines(data, start, payloads)
        return self._return_or_raise(payloads)

    def finish(self) -> list[bytes]:
        """Return the last event if its blank line is missing: no more bytes come."""
        if self.failure is not None:
            raise self.failure
        payloads: list[bytes] = []
        line = bytes(self._tail)
        self._tail.clear()
        self._read_line(line, payloads)
        self._end_event(payloads)
        return self._return_or_raise(payloads)

    def _normalise_line_ends(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _finish_open_event(self, data: bytes, payloads: list[bytes]) -> int:
        """Read lines to the end of the event begun earlier; return where it ends, or -1 if it goes on after `data`."""
        start = 0
        while self._midway:
            end = data.find(b"\n", start)
            if end < 0:
                self._hold(data[start:])
                return -1
            line = data[start:end]
            if self._tail:
                self._tail += line
                line = bytes(self._tail)
                self._tail.clear()
            self._read_line(line, payloads)
            if self.failure is not None:
                return -1
            # To the blank line: the data after an `event:` line is no event of its own.
            self._midway = bool(self._lines or line)
            start = end + 1
        return start

    def _read_lines(self, data: bytes, start: int, payloads: list[bytes]) -> None:
        lines = data[start:].split(b"\n")
        rest = lines.pop()
        for line in lines:
            self._read_line(line, payloads)
            if self.failure is not None:
                return
        self._midway = bool(self._lines or (lines and lines[-1]))
        if rest:
            self._hold(rest)

    def _hold(self, data: bytes) -> None:
        self._tail += data
        self._midway = True
        if self._lines_size + len(self._tail) > self._limit:
            self._fail(self._tail)

    def _read_line(self, line: bytes, payloads: list[bytes]) -> None:
        if self._lines_size + len(line) > self._limit:
            self._fail(line)
            return
        if self._first:
            self._first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b" ", 5) else line[5:]
            if self._lines and self._begins_document(value):
                self._end_event(payloads)
            self._lines.append(value)
            self._lines_size += len(line)
        elif not line:
            self._end_event(payloads)
        elif line.startswith(b"error:"):
            self._end_event(payloads)
            if error := line[6:].strip():
                payloads.append(_make_error_payload(error))

    def _begins_document(self, value: bytes) -> bool:
        """Whether a data line cannot belong to the document of the lines before it."""
        head = value.strip()
        if not head:  # otherwise each of many blank lines would search back through all of them
            return False
        last = next((line for earlier in reversed(self._lines) if (line := earlier.strip())), b"")
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
        self.failure = ProtocolError(
            f"the server never ended its event: it grew past {self._limit} bytes, the limit for one. "
            "To do: check base_url=, or report it to the host.",
            payload=begun,
        )
        self._tail.clear()
        self._lines.clear()

    def _return_or_raise(self, payloads: list[bytes]) -> list[bytes]:
        # Payloads from before the failure are returned first, so that the result does not depend on the chunking.
        if self.failure is not None and not payloads:
            raise self.failure
        return payloads


_ONE_EVENT = re.compile(rb"(?:event: [^\n]*\n)?data: (\{[^\n]*)\n\n").fullmatch
_PAIR = re.compile(rb"event: [^\n]*\ndata: ([^\n]+)")


def _split_plain_events(data: bytes, start: int, end: int) -> list[bytes]:
    """Return the data of events that have one data line each, with or without an `event:` line; [] for anything else.

    The number of line ends proves that the bytes hold nothing else.
    """
    split: list[bytes] = []
    lines = 0
    if data.startswith(b"data: ", start):
        split = data[start + 6 : end].split(b"\n\ndata: ")
        lines = 2 * len(split) - 2
    elif data.startswith(b"event: ", start):
        split = _PAIR.findall(data, start, end)
        lines = 3 * len(split) - 2
        if data.count(b"\n\nevent: ", start, end) != len(split) - 1:
            return []
    if not split or data.count(b"\n", start, end) != lines or not _are_plain(split):
        return []
    return split


def _are_plain(payloads: list[bytes]) -> bool:
    """Whether each payload is `[DONE]` or begins with a brace, so that none is blank or padded."""
    # The smallest decides for all: blank and padded ones sort before "{".
    return min(payloads) >= b"{" or all(payload >= b"{" or payload == DONE for payload in payloads)


def _make_error_payload(value: bytes) -> bytes:
    # llama.cpp sends an object; anything else becomes a string, so that the payload is JSON.
    if not value.startswith(b"{"):
        value = msgspec.json.encode(value.decode("utf-8", "replace"))
    return b'{"error":' + value + b"}"
