"""Whole events of a stream, however it is cut into reads."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from asides.relay.whole_events import find_splitter

SSE = b"event: a\ndata: 1\n\n: comment\n\ndata: {\n\ndata: two\ndata: lines\n\n"
FRAME = (20).to_bytes(4) + b"sixteen bytes..."
STREAMS = {
    "text/event-stream": (SSE, [18, 29, 38, 61]),
    "Text/Event-Stream; charset=utf-8": (SSE.replace(b"\n", b"\r\n"), [21, 34, 45, 71]),
    "text/event-stream;x": (SSE.replace(b"\n", b"\r"), [18, 29, 38, 61]),
    "application/x-ndjson": (b'{"a":1}\n{"b":2}\n\n{"c":3}\n', [8, 16, 17, 25]),
    "application/vnd.amazon.eventstream": (FRAME * 3, [20, 40, 60]),
}


@pytest.mark.parametrize("content_type", STREAMS)
def test_any_cut_gives_whole_events_at_once_and_every_byte(content_type: str) -> None:
    stream, ends = STREAMS[content_type]
    chance = random.Random(5)
    for _ in range(300):
        cuts = sorted({0, len(stream), *(chance.randrange(len(stream)) for _ in range(chance.randrange(9)))})
        splitter, given = find_splitter(content_type), b""
        for begin, end in pairwise(cuts):
            given += splitter.feed(stream[begin:end])
            # All that is whole, and no byte of what is not.
            assert len(given) == max([place for place in ends if place <= end], default=0)
            assert splitter.is_between
        assert given + splitter.flush() == stream


@pytest.mark.parametrize("content_type", STREAMS)
def test_what_is_left_at_the_end(content_type: str) -> None:
    stream, _ = STREAMS[content_type]
    splitter = find_splitter(content_type)
    given = splitter.feed(stream[:-3])
    rest = splitter.flush()
    assert rest
    assert given + rest == stream[:-3]
    assert not splitter.is_between
    assert splitter.flush() == b""


def test_other_streams_go_out_as_they_come() -> None:
    splitter = find_splitter("application/json")
    assert splitter.feed(b"[{") == b"[{"
    assert not splitter.is_between
    assert splitter.feed(b"},\r\n") == b"},\r\n"
    assert splitter.is_between
    assert splitter.flush() == b""


def test_bytes_that_are_no_frames_go_out_as_they_come() -> None:
    splitter = find_splitter("application/vnd.amazon.eventstream")
    assert splitter.feed(b"<html>Bad Gateway</html>") == b"<html>Bad Gateway</html>"


def test_an_event_of_many_reads_takes_time_in_proportion() -> None:
    """An event of 6 MB in reads of 1 KB; one of 20 MB goes out in parts, and holds no more than 8 MB."""
    splitter = find_splitter("text/event-stream")
    began = time.process_time()
    assert all(splitter.feed(b"x" * 1024) == b"" for _ in range(6 * 1024))
    assert len(splitter.feed(b"\n\n")) == 6 * 1024 * 1024 + 2
    spent = time.process_time() - began
    assert spent < 0.5, f"{spent:.2f} s"
    given = [len(splitter.feed(b"x" * 65536)) for _ in range(20 * 16)]
    assert 8 * 1024 * 1024 < max(given) < 9 * 1024 * 1024
    assert not splitter.is_between
    assert splitter.feed(b"\n\n")
    assert splitter.is_between
