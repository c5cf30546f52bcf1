"""Decompressing: any cut gives the same, several compressions are undone in order, and a bomb comes out in pieces."""

from __future__ import annotations

import gzip
import zlib

import pytest

from asides.transports.decompressor import Decompressor
from asides.transports.http_response import BadEncoding

CONTENT = bytes(range(256)) * 20
ZLIB = zlib.compress(CONTENT)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(CONTENT)),
        ("X-GZIP", gzip.compress(CONTENT)),
        ("gzip", gzip.compress(CONTENT[:99]) + gzip.compress(CONTENT[99:])),
        ("gzip", gzip.compress(CONTENT) + b"no member"),
        ("gzip", gzip.compress(CONTENT)[:-4]),
        ("deflate", ZLIB),
        ("deflate", ZLIB[2:-4]),
        ("deflate", ZLIB + b"more"),
        ("gzip, gzip", gzip.compress(gzip.compress(CONTENT))),
        ("deflate, identity, gzip", gzip.compress(ZLIB)),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100, 100_000])
def test_compressed_content_comes_out_however_it_is_cut(encoding: str, packed: bytes, size: int) -> None:
    decompressor = Decompressor(encoding.lower().split(", "))
    found = b""
    for piece in (packed[place : place + size] for place in range(0, len(packed), size)):
        found += decompressor.feed(piece)
        while decompressor.has_more:
            found += decompressor.feed(b"")
    assert found == CONTENT


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip, gzip, gzip, gzip", "gzip", "deflate"])
def test_what_cannot_be_decompressed_says_so(encoding: str) -> None:
    decompressor = Decompressor(encoding.lower().split(", "))
    with pytest.raises(BadEncoding):
        decompressor.feed(b"\xffno compression at all")


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_bomb_comes_out_in_small_pieces(encoding: str) -> None:
    packed = b"\0" * 50_000_000
    for _ in encoding.split(","):
        packed = gzip.compress(packed)
    decompressor = Decompressor(encoding.lower().split(", "))
    sizes = [len(decompressor.feed(packed))]
    while decompressor.has_more:
        sizes.append(len(decompressor.feed(b"")))
    assert (sum(sizes), max(sizes)) == (50_000_000, 256 * 1024)
