"""Chunked transfer coding: any cut gives the same content, and broken bodies raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.transports.urllib3 import BrokenChunks, Dechunker


def chunked(*contents: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(content), content) for content in contents) + b"0\r\n" + trailer + b"\r\n"


@given(contents=st.lists(st.binary(min_size=1, max_size=40), max_size=8), sizes=st.lists(st.integers(1, 9), min_size=1))
def test_any_cut_gives_the_same_content(contents: list[bytes], sizes: list[int]) -> None:
    body = chunked(*contents)
    dechunker = Dechunker()
    found, place, turn = b"", 0, 0
    while place < len(body):
        assert not dechunker.ended
        size = sizes[turn % len(sizes)]
        found += dechunker.feed(body[place : place + size])
        place, turn = place + size, turn + 1
    assert found == b"".join(contents)
    assert dechunker.ended


def test_chunks_that_came_together_come_out_together() -> None:
    assert Dechunker().feed(chunked(b"one", b"two", b"three")) == b"onetwothree"


def test_content_comes_out_before_its_chunk_is_complete() -> None:
    dechunker = Dechunker()
    assert dechunker.feed(b"5\r\nhel") == b"hel"
    assert dechunker.feed(b"lo\r") == b"lo"
    assert dechunker.feed(b"\n0\r\n\r\n") == b""
    assert dechunker.ended


@pytest.mark.parametrize("line", [b"5;name=value", b"005", b"5 "])
def test_a_size_may_have_extensions(line: bytes) -> None:
    assert Dechunker().feed(line + b"\r\nhello\r\n0\r\n\r\n") == b"hello"


def test_the_trailer_and_everything_after_it_is_dropped() -> None:
    dechunker = Dechunker()
    assert dechunker.feed(chunked(b"hello", trailer=b"Checksum: 1\r\nMore: 2\r\n") + b"HTTP/1.1 200 OK") == b"hello"
    assert dechunker.ended


def test_the_body_ends_only_with_the_empty_line() -> None:
    dechunker = Dechunker()
    dechunker.feed(b"0\r\n")
    assert not dechunker.ended
    dechunker.feed(b"\r\n")
    assert dechunker.ended


@pytest.mark.parametrize("body", [b"hello\r\n", b"\r\n", b"-5\r\nhello\r\n", b"5" * 20_000])
def test_a_body_without_chunks_is_an_error(body: bytes) -> None:
    with pytest.raises(BrokenChunks):
        Dechunker().feed(body)
