"""AWS event-stream frames: bytes in any chunking in, whole messages out, both checksums checked.

Not here: what an event means. A frame is: total length, headers length, CRC of those eight bytes, headers, payload,
CRC of all before it; numbers are big-endian.
"""

from __future__ import annotations

from struct import unpack_from
from zlib import crc32

import msgspec

from asides.errors import ProtocolError

_PRELUDE = 12
_CLOSING = 4
# Bytes of a header value by its type; strings and byte arrays carry their own length.
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class Frame(msgspec.Struct, frozen=True):
    """One message: its string headers (":event-type", ":message-type" …) and its payload."""

    headers: dict[str, str]
    payload: bytes


class FrameReader:
    """Bytes in any chunking in, complete frames out. A frame that lies about itself raises `ProtocolError`."""

    __slots__ = ("_held", "_limit")

    def __init__(self, max_frame_bytes: int = 24 * 1024 * 1024) -> None:
        self._held = bytearray()
        self._limit = max_frame_bytes

    @property
    def midway(self) -> bool:
        """True when a frame has begun and not ended."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes; return every frame they complete."""
        held = self._held
        held += data
        frames: list[Frame] = []
        start = 0
        while len(held) - start >= _PRELUDE:
            total, headers_length, checksum = unpack_from(">III", held, start)
            if crc32(held[start : start + 8]) != checksum:
                raise ProtocolError(
                    "an AWS frame has a wrong checksum in its head.", payload=bytes(held[start : start + 64])
                )
            if total > self._limit or total < _PRELUDE + headers_length + _CLOSING:
                raise ProtocolError(f"an AWS frame says it has {total} bytes.", payload=bytes(held[start : start + 64]))
            if len(held) - start < total:
                break
            frames.append(_frame(bytes(held[start : start + total]), headers_length))
            start += total
        if start:
            del held[:start]
        return frames


def _frame(data: bytes, headers_length: int) -> Frame:
    (checksum,) = unpack_from(">I", data, len(data) - _CLOSING)
    if crc32(data[:-_CLOSING]) != checksum:
        raise ProtocolError("an AWS frame has a wrong checksum.", payload=data)
    body = _PRELUDE + headers_length
    return Frame(_headers(data[_PRELUDE:body]), data[body:-_CLOSING])


def _headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            name = data[at + 1 : name_end].decode()
            kind = data[name_end]
            at = name_end + 1
            if kind in (6, 7):
                (size,) = unpack_from(">H", data, at)
                if kind == 7:
                    headers[name] = data[at + 2 : at + 2 + size].decode()
                at += 2 + size
            else:
                at += _FIXED_SIZES[kind]
    except (IndexError, KeyError, UnicodeDecodeError) as problem:
        raise ProtocolError("the headers of an AWS frame do not read.", payload=data) from problem
    return headers
