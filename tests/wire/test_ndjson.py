"""A document per line in any chunking, and one document over several lines."""

from __future__ import annotations

import pytest

from asides.values.errors import ProtocolError
from asides.wire.framing import LineReader

LINES = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\n{"c":[{}]}'
PRETTY = b'{\n  "a": {\n    "b": 1\n  }\n}\n'


def read(reader: LineReader, pieces: list[bytes]) -> list[bytes]:
    found = [document for piece in pieces for document in reader.feed(piece)]
    return found + reader.finish()


def chunkings(body: bytes) -> list[list[bytes]]:
    cuts = [[body[:place], body[place:]] for place in range(len(body) + 1)]
    return [[body], [body[place : place + 1] for place in range(len(body))], *cuts]


def test_every_line_is_a_document_in_any_chunking() -> None:
    for pieces in chunkings(LINES):
        assert read(LineReader(1000), pieces) == [b'{"a":1}', b'{"b":"\xc3\xa9"}', b'{"c":[{}]}']


def test_one_document_over_several_lines_is_one_document() -> None:
    for pieces in chunkings(PRETTY):
        assert read(LineReader(1000), pieces) == [PRETTY.strip()]


def test_a_document_comes_out_as_soon_as_its_line_has_ended() -> None:
    reader = LineReader(1000)
    assert reader.feed(b'{"a":') == []
    assert reader.feed(b'1}\n{"b"') == [b'{"a":1}']
    assert reader.documents == 1


def test_a_broken_line_between_others_comes_out_unchanged() -> None:
    for pieces in chunkings(b'{"a":1}\n{broken\n{"b":2}\n'):
        assert read(LineReader(1000), pieces) == [b'{"a":1}', b"{broken", b'{"b":2}']


def test_a_line_that_never_ends_is_an_error_in_any_chunking() -> None:
    for pieces in ([b"x" * 20], [b"x"] * 20):
        with pytest.raises(ProtocolError, match="past 10 bytes"):
            read(LineReader(10), pieces)


def test_nothing_gives_nothing() -> None:
    assert read(LineReader(10), [b"\n", b"", b" \n"]) == []
