"""Reads JSON documents, one per line, from bytes in any chunking; each comes out as soon as its line has ended.

A body that is one document over several lines is read as that document. Not here: what a document means.
"""

from __future__ import annotations

import msgspec

from asides.values.errors import ProtocolError
from asides.wire.lenient import replace_invalid_text


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
        """The body is a single document over several lines."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return every document they complete."""
        if self._joined or b"\n" not in data:
            self._hold(data)
            return []
        documents: list[bytes] = []
        *ended, rest = data.split(b"\n")
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
                f"the server never ended its line: it grew past {self._limit} bytes, the limit for one.",
                payload=self._pieces[0],
            )


def _is_document(line: bytes) -> bool:
    try:
        msgspec.json.decode(replace_invalid_text(line))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
