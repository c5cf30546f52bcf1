"""AWS frames: written and read back in any chunking; a broken frame is found, after the frames before it."""

from __future__ import annotations

import struct
import zlib

import pytest

from asides.values.errors import ProtocolError
from asides.wire.aws_frames import Frame, FrameReader, write_frame

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


def test_a_frame_has_the_documented_layout() -> None:
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
def test_every_changed_byte_is_found_after_the_frame_before_it(size: int) -> None:
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
