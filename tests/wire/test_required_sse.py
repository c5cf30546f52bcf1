"""M1: what the event reader owes to every dialect, over the public reader alone."""

from __future__ import annotations

import pytest

from asides.wire.sse import SseReader


def read_in_every_split(wire: bytes) -> list[bytes]:
    """The payloads of `wire`, after checking that whole, byte by byte and every 2-way split agree."""

    def read(*chunks: bytes) -> list[bytes]:
        reader = SseReader()
        return [payload for chunk in chunks for payload in reader.feed(chunk)] + reader.finish()

    whole = read(wire)
    assert read(*(wire[at : at + 1] for at in range(len(wire)))) == whole
    for at in range(len(wire)):
        assert read(wire[:at], wire[at:]) == whole
    return whole


def test_M1_partial_lines() -> None:
    assert read_in_every_split(b'data: {"a":1}\n\ndata: {"a":2}\n\n') == [b'{"a":1}', b'{"a":2}']


def test_M1_multi_line_data() -> None:
    assert read_in_every_split(b'data: {"a":\ndata: 1}\n\n') == [b'{"a":\n1}']


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_M1_crlf(end: bytes) -> None:
    wire = b'event: x\ndata: {"a":1}\n\ndata: {"a":2}\n\n'.replace(b"\n", end)
    assert read_in_every_split(wire) == [b'{"a":1}', b'{"a":2}']


def test_M1_comments() -> None:
    assert read_in_every_split(b': OPENROUTER PROCESSING\n\ndata: {"a":1}\n\n: ping\n\n') == [b'{"a":1}']


def test_M1_no_space_behind_data() -> None:
    assert read_in_every_split(b'data:{"a":1}\n\ndata:[DONE]\n\n') == [b'{"a":1}', b"[DONE]"]


def test_M1_utf8_split() -> None:
    payload = '{"a":"é€🙂"}'.encode()
    assert read_in_every_split(b"data: " + payload + b"\n\n") == [payload]


def test_M1_done_once() -> None:
    assert read_in_every_split(b'data: {"a":1}\n\ndata: [DONE]\n\n').count(b"[DONE]") == 1
    assert read_in_every_split(b'data: {"a":1}\n\ndata: [DONE]').count(b"[DONE]") == 1
