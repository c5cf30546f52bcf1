"""AWS event-stream frames: reads them from bytes in any chunking, checks both checksums, and writes them.

A frame is: total length, headers length, CRC of those eight bytes, headers, payload, CRC of everything before it.
Numbers are big-endian. `FrameReader` also turns frames into JSON documents.
"""

from __future__ import annotations

from binascii import a2b_base64
from struct import Struct, pack, unpack_from
from struct import error as struct_error
from typing import Any
from zlib import crc32

import msgspec

from asides.values.errors import ProtocolError

_PRELUDE = 12
_CLOSING = 4
# The size of a header value by its type; strings and byte arrays carry their own length.
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
# Headers repeat literally, one form per type of event. More or longer ones are parsed each time.
_MAX_KNOWN = 64
_LONGEST_KNOWN = 1024

_unpack_prelude = Struct(">III").unpack_from
_unpack_closing = Struct(">I").unpack_from


class Frame(msgspec.Struct, frozen=True):
    """One message: its string headers (":event-type", ":message-type" …) and its payload."""

    headers: dict[str, str]
    payload: bytes


class _Envelope(msgspec.Struct):
    """What the headers of a frame say; frames with the same headers share it."""

    headers: dict[str, str]
    name: bytes = b""
    """The beginning of the document of a named event: `{"contentBlockDelta":`. Empty where it takes more than that."""


class FrameReader:
    """Reads complete frames from bytes in any chunking.

    A frame with a wrong checksum or length raises `ProtocolError`, after every frame before it was returned.
    `named`: the dialect identifies events only by the names of their frames, so the document of a frame of the event
    `x` is `{"x": …}`.
    """

    __slots__ = ("_held", "_known", "_limit", "_named", "_needed", "failure")

    def __init__(self, max_frame_bytes: int = 24 * 1024 * 1024, *, named: bool = False) -> None:
        self._held = bytearray()
        """The frame that has begun and not ended."""
        self._needed = _PRELUDE
        """The bytes of it to wait for: its prelude, then all of it."""
        self._limit = max_frame_bytes
        self._named = named
        self._known: dict[bytes, _Envelope] = {}
        self.failure: ProtocolError | None = None
        """Raised by the next call, once the frames before it were returned."""

    @property
    def is_midway(self) -> bool:
        """Whether a frame has begun and not ended, without any error so far."""
        return bool(self._held) and self.failure is None

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes; return every frame they complete."""
        return [Frame(dict(envelope.headers), payload) for envelope, payload in self._split(data)]

    def read_documents(self, data: bytes) -> list[bytes]:
        """Add bytes; return the document in every frame they complete. An event that wraps another server's bytes is
        unwrapped; an exception becomes an error document.
        """
        documents: list[bytes] = []
        try:
            for envelope, payload in self._split(data):
                name = envelope.name
                documents.append(
                    name + payload + b"}" if name and payload else _unwrap(envelope.headers, payload, self._named)
                )
        except ProtocolError as problem:
            # The documents before it are returned first, so that the result does not depend on the chunking.
            self.failure = problem
            if not documents:
                raise
        return documents

    def finish(self) -> None:
        """Check the end of the bytes. Raises `ProtocolError` after a broken frame, and inside a frame (`is_midway`)."""
        if self.failure is not None:
            raise self.failure
        if self._held:
            raise ProtocolError("the body ended inside an AWS frame.", payload=bytes(self._held[:64]))

    def _split(self, data: bytes) -> list[tuple[_Envelope, bytes]]:
        """Return the envelope and the payload of every frame that these bytes complete."""
        if self.failure is not None:
            raise self.failure
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
        data = bytes(self._held or data)
        frames: list[tuple[_Envelope, bytes]] = []
        try:
            start = self._read_frames(data, frames)
        except ProtocolError as problem:
            self.failure = problem
            if not frames:
                raise
        else:
            self._held = bytearray(data[start:])
        return frames

    def _read_frames(self, data: bytes, frames: list[tuple[_Envelope, bytes]]) -> int:
        """Read the complete frames; return where the next one begins. It is one loop, since a frame comes for every few
        characters.
        """
        known, size = self._known, len(data)
        start = 0
        while start + _PRELUDE <= size:
            total, headers_length, checksum = _unpack_prelude(data, start)
            if crc32(data[start : start + 8]) != checksum:
                raise ProtocolError("an AWS frame has a wrong checksum in its head.", payload=data[start : start + 64])
            body = start + _PRELUDE + headers_length
            closing = start + total - _CLOSING
            if total > self._limit or closing < body:
                raise ProtocolError(
                    f"an AWS frame has an invalid length: {total} bytes.", payload=data[start : start + 64]
                )
            if closing + _CLOSING > size:
                self._needed = total
                return start
            # The checksum continues that of the first eight bytes.
            if crc32(data[start + 8 : closing], checksum) != _unpack_closing(data, closing)[0]:
                raise ProtocolError("an AWS frame has a wrong checksum.", payload=data[start : closing + _CLOSING])
            headers = data[start + _PRELUDE : body]
            frames.append((known.get(headers) or self._read_envelope(headers), data[body:closing]))
            start = closing + _CLOSING
        self._needed = _PRELUDE
        return start

    def _read_envelope(self, data: bytes) -> _Envelope:
        envelope = _Envelope(_read_headers(data))
        event = envelope.headers.get(":event-type", "")
        if self._named and event != _WRAPPING and _is_event(envelope.headers):
            envelope.name = b"{%b:" % msgspec.json.encode(event)
        if len(data) <= _LONGEST_KNOWN and len(self._known) < _MAX_KNOWN:
            self._known[data] = envelope
        return envelope


# --- one frame --------------------------------------------------------------------------------------------------------

# The event whose payload wraps the bytes of another server.
_WRAPPING = "chunk"


class _Wrapped(msgspec.Struct):
    bytes: str


def _is_event(headers: dict[str, str]) -> bool:
    return headers.get(":message-type", "event") == "event"


def _unwrap(headers: dict[str, str], payload: bytes, named: bool) -> bytes:
    """Return the document in a frame."""
    if not _is_event(headers):
        name = headers.get(":exception-type") or headers.get(":error-code") or "exception"
        try:
            fields: Any = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            fields = {}
        message = fields.get("message") if isinstance(fields, dict) else None
        message = message or headers.get(":error-message") or name
        return msgspec.json.encode({"error": {"message": message, "code": name}})
    event = headers.get(":event-type", "")
    if event != _WRAPPING:
        return b"{%b:%b}" % (msgspec.json.encode(event), payload or b"{}") if named else payload
    try:
        return a2b_base64(msgspec.json.decode(payload, type=_Wrapped).bytes)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ProtocolError("an AWS chunk cannot be unwrapped.", payload=payload) from None


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


def encode_headers(headers: dict[str, str]) -> bytes:
    """Encode string headers, for `write_frame`."""
    return b"".join(
        pack(">B", len(name)) + name.encode() + b"\7" + pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )


def write_frame(headers: dict[str, str] | bytes, payload: bytes) -> bytes:
    """Write a frame with these string headers, or with encoded ones."""
    encoded = headers if isinstance(headers, bytes) else encode_headers(headers)
    prelude = pack(">II", _PRELUDE + len(encoded) + len(payload) + _CLOSING, len(encoded))
    frame = prelude + pack(">I", crc32(prelude)) + encoded + payload
    return frame + pack(">I", crc32(frame))
