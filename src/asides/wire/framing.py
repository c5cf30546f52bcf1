"""How a body is cut into JSON documents, told from its first bytes: one document, server-sent events, or AWS frames.

What the request asked for is only a hope: servers stream when not asked to, and answer whole (errors above all) when
asked to stream. Not here: what the documents say.
"""

from __future__ import annotations

from binascii import a2b_base64
from typing import Any, Literal, TypeAlias

import msgspec

from asides.errors import ProtocolError
from asides.wire.aws_frames import Frame, FrameReader
from asides.wire.sse import SseReader

Form: TypeAlias = Literal["unknown", "json", "sse", "aws"]

MAX_BODY_BYTES = 256 * 1024 * 1024


class Framing:
    """Bytes of one body in, JSON documents out (and `[DONE]`, where a stream says it)."""

    __slots__ = ("_blank", "_frames", "_json", "_json_size", "_sse", "form", "head")

    def __init__(self) -> None:
        self.form: Form = "unknown"
        self.head = b""
        """The first bytes, to show when nothing could be read."""
        self._blank: list[bytes] = []
        self._json: list[bytes] = []
        self._json_size = 0
        self._sse: SseReader | None = None
        self._frames: FrameReader | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return every document they complete."""
        if self._sse is not None:
            return self._sse.feed(data)
        if self.form == "unknown":
            data = self._recognise(data)
        if self.form == "sse":
            self._sse = SseReader()
            return self._sse.feed(data)
        if self._frames is not None:
            return [document for frame in self._frames.feed(data) for document in _documents(frame)]
        if self.form == "json":
            self._json.append(data)
            self._json_size += len(data)
            if self._json_size > MAX_BODY_BYTES:
                raise ProtocolError(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB.", payload=self.head)
        return []

    def _recognise(self, data: bytes) -> bytes:
        seen = data if data[:1] in (b"{", b"d") else data.lstrip(b"\r\n\t \xef\xbb\xbf")
        if not seen:
            # Blank lines keep a connection alive before there is anything to say.
            self._blank.append(data)
            return b""
        self.head = seen[:4096]
        first = seen[:1]
        if first in (b"{", b"["):
            self.form = "json"
            return seen
        if first == b"\0":
            self.form = "aws"
            self._frames = FrameReader()
            return seen
        self.form = "sse"
        return b"".join([*self._blank, data])

    def finish(self) -> list[bytes]:
        """The end of the bytes."""
        if self._sse is not None:
            return self._sse.finish()
        if self.form == "json":
            return [b"".join(self._json)]
        if self._frames is not None and self._frames.midway:
            raise ProtocolError("the body ended inside an AWS frame.", payload=self.head)
        return []


def _documents(frame: Frame) -> list[bytes]:
    """The documents of a frame: an event that wraps another server's bytes is unwrapped, an exception told as an
    error.
    """
    if frame.headers.get(":message-type", "event") != "event":
        name = frame.headers.get(":exception-type") or frame.headers.get(":error-code") or "exception"
        try:
            told: Any = msgspec.json.decode(frame.payload)
        except msgspec.DecodeError:
            told = {}
        message = told.get("message") if isinstance(told, dict) else None
        return [msgspec.json.encode({"error": {"message": message or name, "code": name}})]
    if frame.headers.get(":event-type") != "chunk":
        return [frame.payload]
    try:
        return [a2b_base64(msgspec.json.decode(frame.payload, type=_Wrapped).bytes)]
    except (msgspec.DecodeError, ValueError):
        raise ProtocolError("an AWS chunk does not unwrap.", payload=frame.payload) from None


class _Wrapped(msgspec.Struct):
    bytes: str
