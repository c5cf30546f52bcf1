"""Chunked transfer coding, undone: any cut gives the same content, and what is broken is said to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.wire.chunked import BrokenChunks, Dechunker


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


def test_all_chunks_that_came_together_are_given_together() -> None:
    assert Dechunker().feed(chunked(b"one", b"two", b"three")) == b"onetwothree"


def test_content_is_given_before_its_chunk_is_whole() -> None:
    dechunker = Dechunker()
    assert dechunker.feed(b"5\r\nhel") == b"hel"
    assert dechunker.feed(b"lo\r") == b"lo"
    assert dechunker.feed(b"\n0\r\n\r\n") == b""
    assert dechunker.ended


@pytest.mark.parametrize("line", [b"5;name=value", b"005", b"5 "])
def test_a_size_may_come_with_more(line: bytes) -> None:
    assert Dechunker().feed(line + b"\r\nhello\r\n0\r\n\r\n") == b"hello"


def test_a_trailer_is_no_content_and_neither_is_what_follows() -> None:
    dechunker = Dechunker()
    assert dechunker.feed(chunked(b"hello", trailer=b"Checksum: 1\r\nMore: 2\r\n") + b"HTTP/1.1 200 OK") == b"hello"
    assert dechunker.ended


def test_nothing_ends_before_the_empty_line() -> None:
    dechunker = Dechunker()
    dechunker.feed(b"0\r\n")
    assert not dechunker.ended
    dechunker.feed(b"\r\n")
    assert dechunker.ended


@pytest.mark.parametrize("body", [b"hello\r\n", b"\r\n", b"-5\r\nhello\r\n", b"5" * 20_000])
def test_what_is_not_in_chunks_is_an_error(body: bytes) -> None:
    with pytest.raises(BrokenChunks):
        Dechunker().feed(body)
