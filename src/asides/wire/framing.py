"""Splits a body into JSON documents (`Framing`), and reads a document per line (`LineReader`).

The first bytes of a body show its form: one document, a document per line, server-sent events, or AWS frames. The
request does not decide the form: some servers stream without being asked, and many answer whole (errors above all) when
asked to stream.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from asides.values.errors import ProtocolError
from asides.wire.aws_frames import FrameReader
from asides.wire.lenient import replace_invalid_text
from asides.wire.sse import SseReader

# --- a document per line ----------------------------------------------------------------------------------------------


class LineReader:
    """Reads complete documents from bytes in any chunking.

    If the first line is a whole document, every line is one. Otherwise the body is a single indented document, which
    comes out at the end. Blank lines are skipped. A document longer than `max_bytes` raises `ProtocolError`.
    """

    __slots__ = ("_joined", "_limit", "_pieces", "_size", "documents")

    def __init__(self, max_bytes: int) -> None:
        self.documents = 0
        """The number of documents returned so far."""
        self._limit = max_bytes
        self._pieces: list[bytes] = []
        """The line, or the single document, that has not ended yet."""
        self._size = 0
        self._joined = False
        """Whether the body is a single document over several lines."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return every document they complete."""
        if self._joined or b"\n" not in data:
            self._hold(data)
            return []
        *ended, rest = data.split(b"\n")
        documents: list[bytes] = []
        for place, line in enumerate(ended):
            if self._pieces:
                line = b"".join([*self._pieces, line])
                self._pieces, self._size = [], 0
            bare = line.strip()
            if not bare:
                continue
            if not self.documents and not _is_document(bare):
                self._joined = True
                self._hold(b"\n".join([line, *ended[place + 1 :], rest]))
                return documents
            self.documents += 1
            documents.append(bare)
        if rest:
            self._hold(rest)
        return documents

    def finish(self) -> list[bytes]:
        """Return the last document if its line has not ended: no more bytes come."""
        last = b"".join(self._pieces).strip()
        self._pieces = []
        if not last:
            return []
        self.documents += 1
        return [last]

    def _hold(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._limit:
            raise ProtocolError(
                f"the server sent a line longer than {self._limit} bytes, the limit for one.",
                payload=self._pieces[0],
            )


def _is_document(line: bytes) -> bool:
    try:
        msgspec.json.decode(replace_invalid_text(line))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


# --- a body of any form -----------------------------------------------------------------------------------------------

Form: TypeAlias = Literal["unknown", "json", "lines", "sse", "aws"]

MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_BLANK_BYTES = 1024 * 1024
"""White space before the first document: servers keep the connection alive with it."""
MAX_EVENT_BYTES = 8 * 1024 * 1024
# The first words of a stream of server-sent events.
_FIRST_WORDS = (b":", b"data:", b"event:", b"id:", b"retry:")
_LONGEST_WORD = max(map(len, _FIRST_WORDS))


class Framing:
    """Splits the bytes of one body into JSON documents, and `[DONE]` where a stream sends it.

    `lines`: the dialect streams a document per line; elsewhere a body that begins with a brace is one document.
    `named`: the dialect identifies events only by the names of their frames, so a frame of the event `x` becomes the
    document `{"x": …}`. `max_event_bytes`: the longest event of a stream; a picture comes in one event.
    """

    # Class-level defaults: a framer is created per reply and rarely changes them.
    form: Form = "unknown"
    head = b""
    """The first bytes, for the error when the body has no known form."""
    failure: ProtocolError | None = None
    """The failure that the next call raises: the bytes of the last one held documents before it."""
    _blank: list[bytes] | None = None
    _blank_size = 0
    _grows_head = False
    _json: list[bytes] | None = None
    _json_size = 0
    _lines: LineReader | None = None
    _sse: SseReader | None = None
    _frames: FrameReader | None = None

    def __init__(self, *, lines: bool = False, named: bool = False, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        if lines:
            self._lines = LineReader(MAX_BODY_BYTES)
        self._named = named
        self._event_limit = max_event_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return every document they complete."""
        reader = self._sse
        if reader is not None:
            if self._grows_head and len(self.head) < _LONGEST_WORD:
                self.head += data
            documents = reader.feed(data)
            self.failure = reader.failure
            return documents
        if self.form == "lines" and self._lines is not None:
            return self._lines.feed(data)
        if self.form == "unknown":
            data = self._detect_form(data)
        if self.form == "sse":
            self._grows_head = len(self.head) < _LONGEST_WORD
            self._sse = reader = SseReader(self._event_limit)
            documents = reader.feed(data)
            self.failure = reader.failure
            return documents
        if self._frames is not None:
            documents = self._frames.read_documents(data)
            self.failure = self._frames.failure
            return documents
        if self.form in ("json", "lines"):
            if self._lines is not None:
                documents = self._lines.feed(data)
                self._count_lines(self._lines)
                return documents
            if self._json is None:
                self._json = [data]
            else:
                self._json.append(data)
            self._json_size += len(data)
            if self._json_size > MAX_BODY_BYTES:
                raise ProtocolError(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB.", payload=self.head)
        return []

    def _count_lines(self, lines: LineReader) -> None:
        # A single document may end with a line end or without one.
        if lines.documents > 1:
            self.form = "lines"

    def _detect_form(self, data: bytes) -> bytes:
        seen = data
        if data[:1] not in (b"{", b"d"):
            seen = data.lstrip(b"\r\n\t \xef\xbb\xbf")
            self._blank_size += len(data) - len(seen)
            if self._blank_size > MAX_BLANK_BYTES:
                raise ProtocolError(f"the body begins with more than {MAX_BLANK_BYTES >> 20} MiB of white space.")
        if not seen:
            # Servers send blank lines to keep the connection alive before the first event.
            if self._blank is None:
                self._blank = []
            self._blank.append(data)
            return b""
        self.head = seen[:4096]
        first = seen[:1]
        if first in (b"{", b"["):
            self.form = "json"
            return seen
        if first == b"\0":
            self.form = "aws"
            self._frames = FrameReader(named=self._named)
            return seen
        self.form = "sse"
        return data if self._blank is None else b"".join([*self._blank, data])

    @property
    def is_cut_off(self) -> bool:
        """Whether the bytes stop in the middle of an AWS frame: the connection broke, the server sent no error."""
        return self._frames is not None and self._frames.is_midway

    @property
    def looks_like_sse(self) -> bool:
        """Whether the body starts like server-sent events, even if only part of the first word has arrived."""
        words = (word.startswith(self.head) or self.head.startswith(word) for word in _FIRST_WORDS)
        return self.form == "sse" and any(words)

    def is_cut_document(self, document: bytes) -> bool:
        """Whether a document from `finish` that is not JSON was cut off: it is the last of a stream and begins well."""
        streams = self.form in ("sse", "lines") or (self._lines is not None and self.form == "json")
        return streams and document[:1] in (b"{", b"[")

    def finish(self) -> list[bytes]:
        """Return the last documents: no more bytes come."""
        if self._sse is not None:
            return self._sse.finish()
        if self._lines is not None and self.form in ("json", "lines"):
            documents = self._lines.finish()
            self._count_lines(self._lines)
            return documents
        if self._json is not None:
            return [b"".join(self._json)]
        if self._frames is not None:
            self._frames.finish()
        return []
