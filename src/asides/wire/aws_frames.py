"""AWS event-stream frames: reads them from bytes in any chunking, checks both checksums, and writes them.

A frame is: total length, headers length, CRC of those eight bytes, headers, payload, CRC of everything before it.
Numbers are big-endian. Not here: the meaning of an event (dialects).
"""

from __future__ import annotations

from struct import error as struct_error
from struct import pack, unpack_from
from zlib import crc32

import msgspec

from asides.values.errors import ProtocolError

_PRELUDE = 12
_CLOSING = 4
# The size of a header value by its type; strings and byte arrays carry their own length.
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class Frame(msgspec.Struct, frozen=True):
    """One message: its string headers (":event-type", ":message-type" …) and its payload."""

    headers: dict[str, str]
    payload: bytes


class FrameReader:
    """Reads complete frames from bytes in any chunking.

    A frame with a wrong checksum or length raises `ProtocolError`, after every frame before it was returned.
    """

    __slots__ = ("_held", "_limit", "failure")

    def __init__(self, max_frame_bytes: int = 24 * 1024 * 1024) -> None:
        self._held = bytearray()
        self._limit = max_frame_bytes
        self.failure: ProtocolError | None = None
        """Raised by the next call, once the frames before it were returned."""

    @property
    def is_midway(self) -> bool:
        """Whether a frame has begun and not ended, without any error so far."""
        return bool(self._held) and self.failure is None

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes; return every frame they complete."""
        if self.failure is not None:
            raise self.failure
        self._held += data
        frames: list[Frame] = []
        try:
            self._read_frames(frames)
        except ProtocolError as problem:
            self.failure = problem
            if not frames:
                raise
        return frames

    def finish(self) -> None:
        """Check the end of the bytes. Raises `ProtocolError` after a broken frame, and inside a frame (`is_midway`)."""
        if self.failure is not None:
            raise self.failure
        if self._held:
            raise ProtocolError("the body ended inside an AWS frame.", payload=bytes(self._held[:64]))

    def _read_frames(self, frames: list[Frame]) -> None:
        held = self._held
        start = 0
        while len(held) - start >= _PRELUDE:
            total, headers_length, checksum = unpack_from(">III", held, start)
            if crc32(held[start : start + 8]) != checksum:
                raise ProtocolError(
                    "an AWS frame has a wrong checksum in its head.", payload=bytes(held[start : start + 64])
                )
            if total > self._limit or total < _PRELUDE + headers_length + _CLOSING:
                raise ProtocolError(
                    f"an AWS frame has an invalid length: {total} bytes.",
                    payload=bytes(held[start : start + 64]),
                )
            if len(held) - start < total:
                break
            frames.append(_read_frame(bytes(held[start : start + total]), headers_length))
            start += total
        if start:
            del held[:start]


def _read_frame(data: bytes, headers_length: int) -> Frame:
    (checksum,) = unpack_from(">I", data, len(data) - _CLOSING)
    if crc32(data[:-_CLOSING]) != checksum:
        raise ProtocolError("an AWS frame has a wrong checksum.", payload=data)
    body = _PRELUDE + headers_length
    return Frame(_read_headers(data[_PRELUDE:body]), data[body:-_CLOSING])


def _read_headers(data: bytes) -> dict[str, str]:
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
    except (IndexError, KeyError, UnicodeDecodeError, struct_error) as problem:
        raise ProtocolError("the headers of an AWS frame cannot be read.", payload=data) from problem
    return headers


def write_frame(headers: dict[str, str], payload: bytes) -> bytes:
    """Write a frame with these string headers."""
    encoded = b"".join(
        pack(">B", len(name)) + name.encode() + b"\7" + pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack(">II", _PRELUDE + len(encoded) + len(payload) + _CLOSING, len(encoded))
    frame = prelude + pack(">I", crc32(prelude)) + encoded + payload
    return frame + pack(">I", crc32(frame))
