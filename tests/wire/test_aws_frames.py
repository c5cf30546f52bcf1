"""AWS frames: written and read back in any chunking; a broken frame is found, after the frames before it."""

from __future__ import annotations

import random
import struct
import zlib
from typing import cast

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


# --- documents --------------------------------------------------------------------------------------------------------

WRAPPED = b'{"bytes":"eyJhIjoxfQ==","p":"abc"}'
# The frame, its document where events are named, and its document where they are not.
DOCUMENTS: list[tuple[bytes, bytes, bytes]] = [
    (FIRST, b'{"messageStart":{"role":"assistant"}}', b'{"role":"assistant"}'),
    (SECOND, '{"contentBlockDelta":{"é":1}}'.encode(), '{"é":1}'.encode()),
    (write_frame(EVENT, b""), b'{"messageStart":{}}', b""),
    (write_frame({":event-type": 'a"é'}, b"1"), '{"a\\"é":1}'.encode(), b"1"),
    (write_frame({}, b"{}"), b'{"":{}}', b"{}"),
    (write_frame({":event-type": "chunk"}, WRAPPED), b'{"a":1}', b'{"a":1}'),
    (
        write_frame({":message-type": "exception", ":exception-type": "x"}, b'{"message":"m"}'),
        b'{"error":{"message":"m","code":"x"}}',
        b'{"error":{"message":"m","code":"x"}}',
    ),
    (
        write_frame({":message-type": "error", ":error-code": "y", ":error-message": "n", ":event-type": "a"}, b""),
        b'{"error":{"message":"n","code":"y"}}',
        b'{"error":{"message":"n","code":"y"}}',
    ),
]


def read_documents(body: bytes, size: int, *, named: bool = True) -> tuple[list[bytes], ProtocolError | None]:
    reader = FrameReader(named=named)
    documents: list[bytes] = []
    try:
        for start in range(0, len(body), size):
            documents += reader.read_documents(body[start : start + size])
        reader.finish()
    except ProtocolError as problem:
        return documents, problem
    return documents, None


@pytest.mark.parametrize("size", [1, 13, 100_000])
@pytest.mark.parametrize("seed", range(5))
def test_every_frame_has_its_document_whatever_frames_came_before(seed: int, size: int) -> None:
    sent = random.Random(seed).choices(DOCUMENTS, k=60)
    body = b"".join(frame for frame, _, _ in sent)
    assert read_documents(body, size) == ([named for _, named, _ in sent], None)
    assert read_documents(body, size, named=False) == ([bare for _, _, bare in sent], None)


def test_more_headers_than_are_remembered_are_read_all_the_same() -> None:
    names = [f"event{number}" for number in range(500)] * 2
    reader = FrameReader(named=True)
    documents = reader.read_documents(b"".join(write_frame({":event-type": name}, b"1") for name in names))
    assert documents == [b'{"%b":1}' % name.encode() for name in names]
    assert len(reader._known) == 64
    reader = FrameReader(named=True)
    reader.read_documents(write_frame({":event-type": "x" * 2000}, b"1"))
    assert not reader._known


def test_the_headers_of_a_frame_belong_to_it_alone() -> None:
    first, second = FrameReader().feed(FIRST + FIRST)
    first.headers.clear()
    assert second.headers == EVENT


BROKEN: list[tuple[bytes, str]] = [
    (write_frame({":event-type": "chunk"}, b'{"bytes":5}'), "cannot be unwrapped"),
    (write_frame({":event-type": "chunk"}, b'{"bytes":"a"}'), "cannot be unwrapped"),
    (SECOND[:-1] + b"\0", "wrong checksum"),
    (b"\0" * 12, "wrong checksum in its head"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
@pytest.mark.parametrize("size", [1, 100_000])
def test_documents_before_a_broken_frame_are_returned_and_nothing_after_it(
    broken: bytes, message: str, size: int
) -> None:
    # The first of two broken frames counts, although both come at once.
    documents, problem = read_documents(FIRST + broken + SECOND + SECOND[:-1] + b"\1", size)
    assert documents == [DOCUMENTS[0][1]]
    assert message in str(problem)


def make_frame(headers: bytes) -> bytes:
    prelude = struct.pack(">II", 12 + len(headers) + 2 + 4, len(headers))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + b"{}"
    return begun + struct.pack(">I", zlib.crc32(begun))


@pytest.mark.parametrize(
    "headers", [b"\x05a", b"\x01a\x0c", b"\x01\xff\x00", b"\x01a\x07\x00", b"\x01a\x07\x00\x01\xff"]
)
@pytest.mark.parametrize("size", [1, 100_000])
def test_headers_that_cannot_be_read_are_an_error(headers: bytes, size: int) -> None:
    documents, problem = read_documents(FIRST + make_frame(headers) + SECOND[:-1] + b"\1", size)
    assert documents == [DOCUMENTS[0][1]]
    assert "headers" in str(problem)


def test_a_long_frame_in_small_pieces_costs_what_its_bytes_cost() -> None:
    payload = b'"' + b"x" * 2_000_000 + b'"'
    documents, problem = read_documents(write_frame(EVENT, payload) + FIRST, 64)
    assert (documents, problem) == ([b'{"messageStart":%b}' % payload, DOCUMENTS[0][1]], None)


def test_bytes_of_another_type_are_read_too() -> None:
    assert FrameReader(named=True).read_documents(cast("bytes", bytearray(FIRST))) == [DOCUMENTS[0][1]]
