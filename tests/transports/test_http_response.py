"""The reader of HTTP responses: heads and framing. Any cut gives the same; broken bytes are refused."""

from __future__ import annotations

import gzip
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.transports import http_response
from asides.transports.http_response import (
    LONGEST_HEAD,
    BadEncoding,
    Body,
    BrokenBody,
    BrokenHead,
    ChunkedBody,
    HttpResponseReader,
    SizedBody,
)

OK = b"HTTP/1.1 200 OK\r\n"
CUTS = st.lists(st.integers(1, 9), min_size=1)
PACKED = gzip.compress(b"hello")


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, place, turn = [], 0, 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[place : place + size])
        place, turn = place + size, turn + 1
    return pieces


def read(*pieces: bytes) -> HttpResponseReader:
    reader = HttpResponseReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


# --- heads --------------------------------------------------------------------------------------------------------


@given(CUTS)
def test_a_head_is_the_same_however_it_is_cut(sizes: list[int]) -> None:
    head = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + b"X-A: one\r\n  two\r\nContent-Length:  12 \r\n\r\n"
    *pieces, last = cut(head, sizes)
    reader = read(*pieces)
    assert (reader.head, reader.take()) == (None, None)
    reader.feed(last)
    assert reader.head is not None
    assert (reader.head.status, reader.head.headers) == (200, {"x-a": "one two", "content-length": "12"})
    assert (type(reader.body), reader.take()) == (SizedBody, None)


@pytest.mark.parametrize(
    ("head", "kind", "reusable"),
    [
        (OK, Body, False),
        (OK + b"Content-Length: 3\r\n", SizedBody, True),
        (OK + b"content-length: 3\r\nContent-Length: 3\r\n", SizedBody, True),
        (OK + b"Content-Length: 3, 3\r\nConnection: x, Close\r\n", SizedBody, False),
        (OK + b"Transfer-Encoding: Chunked\r\n", ChunkedBody, True),
        (OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ChunkedBody, True),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n", ChunkedBody, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n", SizedBody, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n", SizedBody, True),
        (b"HTTP/1.1 204\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n", SizedBody, False),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n", SizedBody, False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n", SizedBody, True),
        (b"HTTP/1.1 204 No Content\r\n", SizedBody, True),
    ],
)
def test_a_head_says_how_its_body_ends(head: bytes, kind: type[Body], reusable: bool) -> None:
    for end in (b"\r\n", b"\n"):
        body = read(head.replace(b"\r\n", end) + end).body
        assert body is not None
        assert (type(body), body.reusable) == (kind, reusable)


@pytest.mark.parametrize(
    "head",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\r\n" + OK,
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        *(
            OK + header + b"\r\n\r\n"
            for header in [
                b"no colon",
                b": no name",
                b" no first header",
                b"Space : 1",
                b"X: \0",
                b"X: a\rb",
                b"Content-Length: -1",
                b"Content-Length: +1",
                b"Content-Length: 0x1",
                b"Content-Length: 1_0",
                b"Content-Length: \xb2",
                b"Content-Length:",
                b"Content-Length: " + b"9" * 5000,
                b"Content-Length: 3\r\nContent-Length: 4",
                b"Content-Length: 3\r\nTransfer-Encoding: chunked",
                b"Transfer-Encoding: gzip, chunked",
                b"Transfer-Encoding: identity",
                b"Transfer-Encoding:",
            ]
        ),
    ],
)
def test_a_head_that_breaks_the_rules_is_refused_however_it_is_cut(head: bytes) -> None:
    for size in (1, 7, len(head)):
        with pytest.raises(BrokenHead):
            read(*cut(head, [size]))


def test_a_head_has_a_limit_and_interim_heads_have_their_own() -> None:
    with pytest.raises(BrokenHead, match="256 KiB"):
        read(OK + b"X: 1\r\n" * LONGEST_HEAD)
    reader = read(b"HTTP/1.1 100 Continue\r\n\r\n" * LONGEST_HEAD)
    assert reader.head is None
    reader.feed(OK + b"\r\nrest")
    assert reader.take() == b"rest"


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("sent", "content", "is_whole"),
    [
        (OK, None, False),
        (OK + b"\r\nhel", b"hel", True),
        (OK + b"Content-Length: 4\r\n\r\nhel", b"hel", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", b"hel", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nbroken\r\n", b"hel", False),
    ],
)
def test_what_arrived_comes_out_before_the_end_or_the_error(
    sent: bytes, content: bytes | None, is_whole: bool, is_clean: bool
) -> None:
    reader = read(sent)
    if content is not None:
        assert reader.take() == content
    reader.finish(is_clean=is_clean)
    if is_whole and is_clean:
        assert reader.take() == b""
    else:
        with pytest.raises(BrokenBody):
            reader.take()


@pytest.mark.parametrize("encoding", [b"", b"identity", b"none", b"utf-8", b"gzip", b"identity, X-Gzip"])
def test_content_is_decompressed_only_if_its_encoding_is_a_compression(encoding: bytes) -> None:
    packed = gzip.compress(b"hello")
    reader = read(OK + b"Content-Encoding: " + encoding + b"\r\n\r\n", packed)
    assert reader.take() == (b"hello" if b"zip" in encoding.lower() else packed)


def collect(reader: HttpResponseReader, pieces: list[bytes], *, at_once: bool) -> list[tuple[bytes | None, bool]]:
    """What each read gives, and whether that was all."""
    found: list[tuple[bytes | None, bool]] = []
    try:
        for piece in [*pieces, b""]:
            if at_once:
                content = reader.read(piece)
            else:
                reader.feed(piece) if piece else reader.finish()
                content = reader.take()
            found.append((content, reader.is_taken))
    except BrokenBody:
        found.append((None, True))
    return found


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"\r\nhello",
        OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"Content-Length: 5\r\n\r\nhello, and more",
        OK + b"Content-Length: 6\r\n\r\nhello",
        OK + b"Content-Length: 0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\nbroken\r\n",
        OK
        + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(PACKED), PACKED),
    ],
)
@given(sizes=CUTS)
def test_reading_in_one_step_gives_the_same_as_feeding_and_taking(sent: bytes, sizes: list[int]) -> None:
    pieces = cut(sent, sizes)
    assert collect(HttpResponseReader(), pieces, at_once=True) == collect(HttpResponseReader(), pieces, at_once=False)


# --- bodies -------------------------------------------------------------------------------------------------------


def chunked(*contents: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(content), content) for content in contents) + b"0\r\n" + trailer + b"\r\n"


@given(contents=st.lists(st.binary(min_size=1, max_size=40), max_size=8), sizes=CUTS)
def test_any_cut_gives_the_same_content(contents: list[bytes], sizes: list[int]) -> None:
    body = ChunkedBody()
    found = b""
    for piece in cut(chunked(*contents, trailer=b"A: b\r\n"), sizes):
        assert not body.ended
        found += body.feed(piece)
    assert found == b"".join(contents)
    assert (body.ended, body.broken, body.reusable) == (True, False, True)


def read_plainly(data: bytes) -> tuple[bytes, bool, bool, bool]:
    """A chunked body read as its rules say, chunk after chunk: its content, and whether it ended, broke, has more."""
    content, place = b"", 0
    while (line_end := data.find(b"\r\n", place)) >= 0:
        found = re.fullmatch(rb"([0-9a-fA-F]{1,16})(?:[ \t]*(?:;.*)?)", data[place:line_end], re.DOTALL)
        place = line_end + 2
        if found is None:
            return content, False, True, False
        size = int(found[1], 16)
        if not size:
            break
        content += data[place : place + size]
        after = data[place + size : place + size + 2]
        place += size + 2
        if after != b"\r\n"[: len(after)]:
            return content, False, True, False
        if len(after) < 2:
            return content, False, False, False
    else:
        return content, False, False, False
    while (line_end := data.find(b"\r\n", place)) >= 0:
        if line_end == place:
            return content, True, False, place + 2 < len(data)
        place = line_end + 2
    return content, False, False, False


def frame(content: bytes, form: str = "%x", off: int = 0, end: bytes = b"\r\n") -> bytes:
    return (form % max(len(content) + off, 0)).encode() + b"\r\n" + content + end


CONTENTS = st.one_of(
    st.binary(min_size=1, max_size=30),
    st.text("ab\r\n", min_size=1, max_size=12).map(str.encode),
    # Content that looks like framing.
    st.sampled_from([b"\r\n", b"3\r\none\r\n", b"0\r\n\r\n", b"1\r\n", b"\r", b"\n"]),
)
GOOD_FRAMES = st.builds(frame, CONTENTS, st.sampled_from(["%x", "%x", "%X", "0%x", "%x;a=b", "%x \t"]))
FRAMES = st.one_of(
    GOOD_FRAMES,
    # The same line of a known size before other content.
    st.lists(st.binary(min_size=3, max_size=3), min_size=9, max_size=20).map(lambda many: b"".join(map(frame, many))),
    st.builds(frame, CONTENTS, st.sampled_from(["+%x", " %x", "0x%x", "-%x", "%x_0", ";%x", "%xg"])),
    st.builds(frame, CONTENTS, off=st.sampled_from([-1, 1, 2])),
    st.builds(frame, CONTENTS, end=st.sampled_from([b"", b"\r", b"\n", b"\n\r", b"\r\r\n", b"XX"])),
    st.sampled_from([b"0\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"000\r\n", b"\r\n", b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n"]),
)


@given(
    before=st.lists(GOOD_FRAMES, max_size=12),
    frames=st.lists(FRAMES, max_size=6),
    end=st.sampled_from([b"", b"0\r\n\r\n"]),
    sizes=st.lists(st.sampled_from([1, 2, 3, 7, 20, 60, 1000]), min_size=1, max_size=6),
)
def test_chunks_are_read_as_their_rules_say_however_they_are_cut(
    before: list[bytes], frames: list[bytes], end: bytes, sizes: list[int]
) -> None:
    sent = b"".join([*before, *frames, end])
    content, ended, broken, has_more = read_plainly(sent)
    for pieces in ([sent], cut(sent, sizes), before + cut(sent[len(b"".join(before)) :], sizes)):
        body = ChunkedBody()
        assert b"".join(body.feed(piece) for piece in pieces) == content
        assert (body.ended, body.broken) == (ended, broken)
        assert broken or body.reusable != has_more


@pytest.mark.parametrize("line", [b"0", b"00", b"0;a", b"5;a", b"g"])
def test_a_line_means_the_same_each_time_it_comes_alone(line: bytes) -> None:
    for _ in range(3):
        body = ChunkedBody()
        assert body.feed(line + b"\r\n\r\n") == (b"\r\n" if line[:1] == b"5" else b"")
        assert (body.ended, body.broken) == (line[:1] == b"0", line == b"g")


def test_no_more_than_some_sizes_are_remembered() -> None:
    for size in range(1, 10_000):
        assert len(ChunkedBody().feed(frame(b"a" * size))) == size
        assert len(ChunkedBody().feed(b"0" * 20 + frame(b"a"))) == 0
        assert len(ChunkedBody().feed(frame(b"a" * size, "%%x;%s" % ("b" * 20)))) == size
    assert len(http_response._sizes) <= 4096
    assert max(map(len, http_response._sizes)) <= 8


def test_chunks_that_came_together_come_out_together() -> None:
    assert ChunkedBody().feed(chunked(b"one", b"two", b"three")) == b"onetwothree"


def test_content_comes_out_before_its_chunk_is_complete() -> None:
    body = ChunkedBody()
    assert body.feed(b"5\r\nhel") == b"hel"
    assert body.feed(b"lo\r") == b"lo"
    assert body.feed(b"\n0\r\n\r\n") == b""
    assert body.ended


@pytest.mark.parametrize("line", [b"5;name=value", b"005", b"5 ", b"5 ;a", b"5\t"])
def test_a_size_may_have_extensions(line: bytes) -> None:
    assert ChunkedBody().feed(line + b"\r\nhello\r\n0\r\n\r\n") == b"hello"


@pytest.mark.parametrize(
    "body",
    [
        b"hello\r\n",
        b"\r\n",
        b"-5\r\nhello\r\n",
        b"+5\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"0_5\r\nhello\r\n",
        b"5\nhello\n0\n\n\r\n",
        b"5" * 17 + b"\r\n",
        b"5;" + b"a" * 20_000 + b"\r\nhello\r\n",
        b"5" * 20_000,
    ],
)
def test_content_before_broken_chunks_comes_out_however_they_are_cut(body: bytes) -> None:
    for size in (1, 1000, 100_000):
        for before in (b"", b"3\r\none\r\n"):
            reader = ChunkedBody()
            assert b"".join(reader.feed(piece) for piece in cut(before + body, [size])) == before[3:6]
            assert (reader.broken, reader.ended) == (True, False)


@pytest.mark.parametrize(
    "body", [b"5\r\nhelloXX0\r\n\r\n", b"5\r\nhello\rX", b"5\r\nhello0\r\n", b"5\r\nhello\n\r0\r\n\r\n"]
)
def test_a_chunk_ends_with_its_line(body: bytes) -> None:
    for size in (1, 2, 100):
        reader = ChunkedBody()
        assert b"".join(reader.feed(piece) for piece in cut(body, [size])) == b"hello"
        assert reader.broken


@pytest.mark.parametrize("trailer", [b"A: " + b"b" * 20_000 + b"\r\n", b"A: b\r\n" * 20_000])
def test_a_trailer_has_a_limit(trailer: bytes) -> None:
    for size in (999, 1_000_000):
        reader = ChunkedBody()
        assert b"".join(reader.feed(piece) for piece in cut(chunked(b"hello", trailer=trailer), [size])) == b"hello"
        assert (reader.broken, reader.ended) == (True, False)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", ["sized", "chunked"])
def test_bytes_after_the_end_are_dropped_and_their_connection_is_not_used_again(kind: str, together: bool) -> None:
    body = SizedBody(5, reusable=True) if kind == "sized" else ChunkedBody()
    sent = b"hello" if kind == "sized" else chunked(b"hello")
    found = body.feed(sent + b"HTTP/1.1 200 OK") if together else body.feed(sent) + body.feed(b"HTTP/1.1 200 OK")
    assert (found, body.ended, body.reusable, body.broken) == (b"hello", True, False, False)


@pytest.mark.parametrize(
    ("body", "sent", "ended"),
    [
        (Body(), b"hello", True),
        (SizedBody(6, reusable=True), b"hello", False),
        (ChunkedBody(), b"5\r\nhello\r\n", False),
        (ChunkedBody(), b"5\r\nhello\r\n0\r\n", False),
    ],
)
def test_the_end_of_the_connection_ends_only_a_body_without_another_end(body: Body, sent: bytes, ended: bool) -> None:
    assert body.feed(sent) == b"hello"
    assert not body.ended
    body.finish()
    assert (body.ended, body.broken) == (ended, not ended)


def test_a_header_of_many_lines_costs_no_more_than_its_bytes() -> None:
    started = time.process_time()
    reader = read(OK + b"X: a" + b"\n a" * 87_000 + b"\r\n\r\n")
    assert reader.head is not None
    assert len(reader.head.headers["x"]) == 174_001
    assert time.process_time() - started < 0.05


def test_compression_that_hides_nothing_is_given_up() -> None:
    """A few bytes unpack to very many empty members, which would take minutes to read."""
    packed = gzip.compress(gzip.compress(b"") * 100_000)
    reader = read(OK + b"Content-Encoding: gzip, gzip\r\n\r\n" + packed)
    with pytest.raises(BadEncoding):
        reader.take()
