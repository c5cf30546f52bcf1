"""AWS frames: written and read back in any chunking; a frame that lies is found, and what came before it is kept."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import pytest

from asides.values.errors import ProtocolError
from asides.wire.aws_frames import Frame, FrameReader, write_frame
from asides.wire.framing import Framing

EVENT = {":event-type": "messageStart", ":message-type": "event"}
FIRST = write_frame(EVENT, b'{"role":"assistant"}')
SECOND = write_frame({":event-type": "contentBlockDelta", ":message-type": "event"}, '{"é":1}'.encode())


def read(body: bytes, size: int) -> tuple[list[Frame], ProtocolError | None]:
    reader = FrameReader()
    frames: list[Frame] = []
    try:
        for start in range(0, len(body), size):
            frames += reader.feed(body[start : start + size])
        reader.finish()
    except ProtocolError as problem:
        return frames, problem
    return frames, None


def test_a_frame_is_laid_out_as_documented() -> None:
    """Total length, headers length, CRC of both; headers; payload; CRC of all: all big-endian."""
    frame = write_frame({"a": "bc"}, b"{}")
    headers = b"\x01a\x07\x00\x02bc"
    prelude = struct.pack(">II", 12 + len(headers) + 2 + 4, len(headers))
    expected = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + b"{}"
    assert frame == expected + struct.pack(">I", zlib.crc32(expected))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_frames_are_read_in_any_chunking(size: int) -> None:
    frames, problem = read(FIRST + SECOND, size)
    assert problem is None
    assert [frame.headers[":event-type"] for frame in frames] == ["messageStart", "contentBlockDelta"]
    assert frames[1].payload == '{"é":1}'.encode()


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_every_changed_byte_is_found_and_the_frame_before_is_kept(size: int) -> None:
    for place in range(len(SECOND)):
        broken = bytearray(SECOND)
        broken[place] ^= 1
        frames, problem = read(FIRST + bytes(broken), size)
        assert isinstance(problem, ProtocolError), place
        assert len(frames) == 1, place


@pytest.mark.parametrize("size", [1, 1000])
def test_a_body_that_ends_inside_a_frame_is_an_error(size: int) -> None:
    frames, problem = read(FIRST + SECOND[:-1], size)
    assert len(frames) == 1
    assert "ended inside" in str(problem)


def test_named_events_come_out_under_their_names() -> None:
    framing = Framing(named=True)
    assert framing.feed(FIRST) == [b'{"messageStart":{"role":"assistant"}}']
    assert framing.feed(write_frame({":event-type": "contentBlockStop"}, b"")) == [b'{"contentBlockStop":{}}']
    assert Framing().feed(FIRST) == [b'{"role":"assistant"}']


def test_a_chunk_is_unwrapped_and_an_exception_told_as_an_error() -> None:
    wrapped = b'{"bytes":"' + b64encode(b'{"a":1}') + b'"}'
    framing = Framing(named=True)
    assert framing.feed(write_frame({":event-type": "chunk"}, wrapped)) == [b'{"a":1}']
    told = {":message-type": "exception", ":exception-type": "throttlingException"}
    assert framing.feed(write_frame(told, b'{"message":"slow down"}')) == [
        b'{"error":{"message":"slow down","code":"throttlingException"}}'
    ]
    error = {":message-type": "error", ":error-code": "500", ":error-message": "down"}
    assert framing.feed(write_frame(error, b"")) == [b'{"error":{"message":"down","code":"500"}}']


@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_a_chunk_that_does_not_unwrap_does_not_swallow_what_came_before(size: int) -> None:
    body = FIRST + write_frame({":event-type": "chunk"}, b'{"nothing":1}')
    framing = Framing(named=True)
    documents: list[bytes] = []

    def read_all() -> None:
        for start in range(0, len(body), size):
            documents.extend(framing.feed(body[start : start + size]))
        framing.finish()

    with pytest.raises(ProtocolError, match="cannot be unwrapped"):
        read_all()
    assert documents == [b'{"messageStart":{"role":"assistant"}}']
