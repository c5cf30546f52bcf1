"""The JSON documents that a reply was decoded from, compressed where they are many: `Documents`, `PackedDocuments`."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class Documents(Sequence[bytes]):
    """The JSON documents of a long reply, in order: most of them compressed, and read when they are asked for."""

    __slots__ = ("_blocks", "_last")

    def __init__(self, blocks: Sequence[bytes] = (), last: Iterable[bytes] = ()) -> None:
        """`blocks`: made by `compress_documents`, each with the last document of the one before it."""
        self._blocks = tuple(blocks)
        self._last = tuple(last)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[bytes, ...]: ...
    def __getitem__(self, index: int | slice) -> bytes | tuple[bytes, ...]:
        return tuple(self)[index]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[bytes]:
        document = b""
        for block in self._blocks:
            joined = zlib.decompressobj(_WINDOW, zdict=document[-_MAX_BEFORE:]).decompress(block)
            (count,) = struct.unpack_from("<Q", joined)
            start = 8 + 8 * count
            for size in struct.unpack_from(f"<{count}Q", joined, 8):
                document = joined[start : start + size]
                start += size
                yield document
        yield from self._last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, Documents)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Documents(<{len(self)}>)"


_WINDOW, _MEMORY, _MAX_BEFORE = -zlib.MAX_WBITS, 5, 32 * 1024


def compress_documents(documents: Sequence[bytes], before: bytes = b"") -> bytes:
    """Compress documents into a block for `Documents`: how many, their sizes, and all of them.

    The documents of a stream resemble each other. So with the one `before` them even a few take little memory.
    """
    sizes = struct.pack(f"<{len(documents) + 1}Q", len(documents), *map(len, documents))
    compressor = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=before[-_MAX_BEFORE:])
    return compressor.compress(b"".join([sizes, *documents])) + compressor.flush()


# Slow streams live long and many may be open, so few of their documents wait uncompressed. After a burst more documents
# follow soon; compressing them one by one would be most of the work, so more of them wait.
FEW_UNPACKED, _MAX_UNPACKED = 16, 4096
_FEW_EVENTS, _UNPACKED_READS = 8, 32


class PackedDocuments:
    """The documents of a reply in progress, compressed."""

    __slots__ = ("_blocks", "_last", "most_unpacked")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last = b""
        self.most_unpacked = FEW_UNPACKED
        """How many documents may wait before `take`."""

    def take(self, documents: list[bytes], event_count: int) -> bool:
        """Compress and remove all but the last, unless more is soon to come. Returns whether it did.

        `event_count`: how many events the last read brought.
        """
        few = event_count <= _FEW_EVENTS
        self.most_unpacked = FEW_UNPACKED if few else min(_UNPACKED_READS * event_count, _MAX_UNPACKED)
        if len(documents) <= self.most_unpacked:
            return False
        self._blocks.append(compress_documents(documents[:-1], self._last))
        self._last = documents[-2]
        del documents[:-1]
        self.most_unpacked = FEW_UNPACKED
        return True

    def add(self, documents: Sequence[bytes]) -> Sequence[bytes]:
        """All documents: these are the last."""
        return Documents(self._blocks, documents) if self._blocks else documents
