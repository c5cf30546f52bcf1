"""Reads server-sent events: bytes in any chunking in, complete data payloads out.

The reader knows JSON only well enough to separate two documents in one event.
"""

from __future__ import annotations

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

    __slots__ = ("_after_cr", "_first", "_limit", "_lines", "_lines_size", "_tail", "failure")

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
        self._after_cr = False
        self.failure: ProtocolError | None = None
        """Raised by the next call, once the payloads before it were returned."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return the data of every event they complete, including `[DONE]`."""
        if self.failure is not None:
            raise self.failure
        if self._after_cr or b"\r" in data:
            data = self._normalise_line_ends(data)
        payloads: list[bytes] = []
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            self._tail += lines[0]
            lines[0] = bytes(self._tail)
            self._tail.clear()
        held, limit = self._lines, self._limit
        for line in lines:
            # The only fast way: most lines are the only data of their event, or its end. The row "server-sent events"
            # of bench/hot_path.py shows the cost of an event.
            if not held and line.startswith(b"data: {") and len(line) <= limit:
                held.append(line[6:])
                self._lines_size = len(line)
                self._first = False
            elif not line and len(held) == 1 and held[0].startswith(b"{"):
                payloads.append(held.pop())
                self._lines_size = 0
            else:
                self._read_line(line, payloads)
                if self.failure is not None:
                    return self._return_or_raise(payloads)
        if rest:
            self._tail += rest
            if self._lines_size + len(self._tail) > self._limit:
                self._fail(self._tail)
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
            f"the server sent an event longer than {self._limit} bytes, the limit for one. "
            "Check base_url=, or report it to the host.",
            payload=begun,
        )
        self._tail.clear()
        self._lines.clear()

    def _return_or_raise(self, payloads: list[bytes]) -> list[bytes]:
        # Payloads from before the failure are returned first, so that the result does not depend on the chunking.
        if self.failure is not None and not payloads:
            raise self.failure
        return payloads


def _make_error_payload(value: bytes) -> bytes:
    # llama.cpp sends an object; anything else becomes a string, so that the payload is JSON.
    if not value.startswith(b"{"):
        value = msgspec.json.encode(value.decode("utf-8", "replace"))
    return b'{"error":' + value + b"}"
