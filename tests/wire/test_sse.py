"""The reader of server-sent events: a table of streams in every chunking, the size limit, and random bytes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Self

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.values.errors import ProtocolError
from asides.wire.sse import SseReader

A, B = b'{"a":1}', b'{"b":"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"}'

TABLE: dict[str, tuple[bytes, list[bytes]]] = {
    "one event": (b"data: " + A + b"\n\n", [A]),
    "events and the end": (b"data: " + A + b"\n\ndata: " + B + b"\n\ndata: [DONE]\n\n", [A, B, b"[DONE]"]),
    "no space": (b"data:" + A + b"\n\ndata:[DONE]\n\n", [A, b"[DONE]"]),
    "two spaces: one belongs to the value": (b"data:  " + A + b"\n\n", [b" " + A]),
    "crlf": (b"data: " + A + b"\r\n\r\ndata: " + B + b"\r\n\r\n", [A, B]),
    "cr": (b"data: " + A + b"\r\rdata: " + B + b"\r\r", [A, B]),
    "line ends mixed": (
        b"data: " + A + b"\r\n\ndata: " + B + b"\n\r\ndata: " + A + b"\r\r\ndata: " + B + b"\n\r",
        [A, B, A, B],
    ),
    "comments": (b": OPENROUTER PROCESSING\n\n: again\ndata: " + A + b"\n:in between\n\n:\n\n", [A]),
    "other fields": (b"event: delta\nid: 7\nretry: 10\nfoo: bar\nfoo\ndata: " + A + b"\n\n", [A]),
    "event before each data": (b"event: x\ndata: " + A + b"\n\nevent: y\ndata: " + B + b"\n\n", [A, B]),
    "event after data": (b"data: " + A + b"\nevent: x\n\n", [A]),
    "fields that only begin like data": (b"database: 1\ndat: 2\ndata\n\nDATA: 3\n\n data: 4\n\n", []),
    "multi-line data": (b'data: {\ndata: "a": 1\ndata: }\n\n', [b'{\n"a": 1\n}']),
    "multi-line data, crlf": (b"data: [\r\ndata: 1\r\ndata: ]\r\n\r\n", [b"[\n1\n]"]),
    "a brace opens on its own line": (b'data: {"a":\ndata: {"b": 1}\ndata: }\n\n', [b'{"a":\n{"b": 1}\n}']),
    "a list over lines": (b'data: [{"a": 1},\ndata: {"b": 2}]\n\n', [b'[{"a": 1},\n{"b": 2}]']),
    "blank lines inside multi-line data": (b"data: [\ndata:\ndata: 1]\n\n", [b"[\n\n1]"]),
    "plain text over lines": (b"data: a\ndata: b\n\n", [b"a\nb"]),
    "no blank line between documents": (b"data: " + A + b"\ndata: " + B + b"\ndata: [DONE]\n\n", [A, B, b"[DONE]"]),
    "no blank line, padded": (b"data: " + A + b" \ndata:\t" + B + b"\n\n", [A + b" ", b"\t" + B]),
    "no blank line, blank data between": (b"data: " + A + b"\ndata:\ndata: " + B + b"\n\n", [A + b"\n", B]),
    "no blank line after the end": (b"data: [DONE]\ndata: " + A + b"\n\n", [b"[DONE]", A]),
    "the end twice": (b"data: [DONE]\ndata: [DONE]\n\n", [b"[DONE]", b"[DONE]"]),
    "the end padded": (b"data: " + A + b"\n\ndata: [DONE] \n\ndata:  [DONE]\n\n", [A, b"[DONE]", b"[DONE]"]),
    "empty data": (b"data:\n\ndata: \n\ndata:   \n\ndata:\ndata:\n\ndata: " + A + b"\n\ndata: \n\n", [A]),
    "blank lines in plenty": (b"\n\n\ndata: " + A + b"\n\n\n\n\ndata: " + B + b"\n\n\n", [A, B]),
    "byte order mark": (b"\xef\xbb\xbfdata: " + A + b"\n\n", [A]),
    "byte order mark before a comment": (b"\xef\xbb\xbf: hi\n\ndata: " + A + b"\n\n", [A]),
    "byte order mark later is no mark": (b"data: " + A + b"\n\n\xef\xbb\xbfdata: " + B + b"\n\n", [A]),
    "half a byte order mark": (b"\xef\xbbdata: " + A + b"\n\ndata: " + B + b"\n\n", [B]),
    "error line": (b"data: " + A + b'\n\nerror: {"code":500,"m":"no"}\n\n', [A, b'{"error":{"code":500,"m":"no"}}']),
    "error line after data": (b"data: " + A + b'\nerror:{"code":500}\n\n', [A, b'{"error":{"code":500}}']),
    "error line in words": (b'error: out of "memory"\n\n', [b'{"error":"out of \\"memory\\""}']),
    "error line empty": (b"error:\nerror: \n\ndata: " + A + b"\n\n", [A]),
    "last event without blank line": (b"data: " + A + b"\n\ndata: " + B + b"\n", [A, B]),
    "last event without line end": (b"data: " + A + b"\n\ndata: " + B, [A, B]),
    "last event cut": (b"data: " + A + b'\n\ndata: {"b":', [A, b'{"b":']),
    "last event ends in cr": (b"data: " + A + b"\r", [A]),
    "cut inside a field name": (b"data: " + A + b"\n\nda", [A]),
    "numbers and strings": (b'data: 1\n\ndata: "x"\n\ndata: [1]\n\n', [b"1", b'"x"', b"[1]"]),
    "a payload that quotes the wire": (b'data: {"a":"\\n\\ndata: x"}\n\n', [b'{"a":"\\n\\ndata: x"}']),
    "other separators are no line ends": (
        b'data: {"\xe2\x80\xa8\x0b\x0c\x85":1}\n\n',
        [b'{"\xe2\x80\xa8\x0b\x0c\x85":1}'],
    ),
    "html": (b"<html>\n<body>502 Bad Gateway</body>\n</html>\n", []),
    "nothing": (b"", []),
}


def read(chunks: Iterable[bytes], reader: SseReader | None = None) -> list[bytes]:
    reader = reader or SseReader()
    payloads = [payload for chunk in chunks for payload in reader.feed(chunk)]
    return payloads + reader.finish()


def cut(wire: bytes, places: Iterable[int]) -> Iterator[bytes]:
    for start, end in pairwise(sorted({0, len(wire), *(place % (len(wire) + 1) for place in places)})):
        yield wire[start:end]


@pytest.mark.parametrize(("wire", "payloads"), TABLE.values(), ids=TABLE.keys())
def test_every_chunking_gives_the_same_payloads(wire: bytes, payloads: list[bytes]) -> None:
    assert read([wire]) == payloads
    assert read(wire[at : at + 1] for at in range(len(wire))) == payloads
    for at in range(len(wire) + 1):
        assert read([wire[:at], wire[at:]]) == payloads, f"cut at {at}"
        assert read([wire[:at], b"", wire[at:], b""]) == payloads, f"cut at {at}, with empty reads"


LATER = {name: row for name, row in TABLE.items() if not row[0].startswith(b"\xef\xbb\xbf")}


@pytest.mark.parametrize(("wire", "payloads"), LATER.values(), ids=LATER.keys())
def test_earlier_events_of_a_stream_change_nothing(wire: bytes, payloads: list[bytes]) -> None:
    before = b"data: " + B + b"\n\n"
    assert read([before + wire]) == [B, *payloads]
    assert read([before, wire]) == [B, *payloads]
    assert read([before[:-1], before[-1:] + wire]) == [B, *payloads]


@given(st.lists(st.sampled_from([wire for wire, _ in TABLE.values()])), st.lists(st.integers(min_value=0)))
def test_streams_glued_together_read_the_same_in_any_chunking(wires: list[bytes], places: list[int]) -> None:
    wire = b"".join(wires)
    assert read(cut(wire, places)) == read([wire]) == read(wire[at : at + 1] for at in range(len(wire)))


LINE_ENDS = [b"\n", b"\n\n", b"\r", b"\r\n"]
FRAGMENTS = [
    *LINE_ENDS,
    b"data:",
    b"data: ",
    b" ",
    b"{",
    b"}",
    A,
    b"[DONE]",
    b":",
    b"error:",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"x",
]
GARBAGE = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=3), max_size=40).map(b"".join)


@given(GARBAGE, st.lists(st.integers(min_value=0)))
def test_garbage_reads_the_same_in_any_chunking(wire: bytes, places: list[int]) -> None:
    assert read(cut(wire, places)) == read([wire]) == read(wire[at : at + 1] for at in range(len(wire)))


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join), st.lists(st.integers(min_value=0)))
def test_the_bound_too_strikes_at_the_same_place_in_any_chunking(wire: bytes, places: list[int]) -> None:
    def outcome(chunks: Iterable[bytes]) -> tuple[list[bytes], bool]:
        reader = SseReader(max_event_bytes=16)
        payloads: list[bytes] = []
        try:
            for chunk in chunks:
                payloads += reader.feed(chunk)
            payloads += reader.finish()
        except ProtocolError:
            return payloads, True
        return payloads, False

    assert outcome(cut(wire, places)) == outcome([wire]) == outcome(wire[at : at + 1] for at in range(len(wire)))


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(), min_size=1)), st.lists(st.integers(min_value=0)))
def test_documents_come_back_as_they_went(documents: list[dict[str, str | int]], places: list[int]) -> None:
    sent = [msgspec.json.encode(document) for document in documents]
    wire = b"".join(b"data: " + payload + b"\n\n" for payload in sent) + b"data: [DONE]\n\n"
    assert read(cut(wire, places)) == [*sent, b"[DONE]"]


def test_a_payload_comes_out_with_the_byte_that_completes_it() -> None:
    reader = SseReader()
    assert reader.feed(b"data: " + A + b"\n") == []
    assert reader.feed(b"\n") == [A]
    assert reader.feed(b"data: " + B + b"\r\n\r") == [B]
    assert reader.feed(b"\n") == []
    assert reader.finish() == []


def test_a_server_that_never_sends_blank_lines_still_streams() -> None:
    reader = SseReader(max_event_bytes=64)
    arrived = [reader.feed(b"data: " + A + b"\n") for _ in range(50)]
    assert arrived == [[], *[[A]] * 49]
    assert reader.finish() == [A]


def test_finish_twice_gives_the_last_event_once() -> None:
    reader = SseReader()
    reader.feed(b"data: " + A)
    assert (reader.finish(), reader.finish()) == ([A], [])


ENDLESS: dict[str, bytes] = {
    "a line": b"data: {" + b"x" * 100,
    "a line that ends": b"data: {" + b"x" * 100 + b"}\n\n",
    "many data lines": b"data: 12345\n" * 20,
    "blank data lines": b"data:\n" * 40,
    "a comment": b": " + b"x" * 100,
    "no field at all": b"x" * 100,
    "carriage returns between": b"data: 12345\r" * 20,
}


@pytest.mark.parametrize("wire", ENDLESS.values(), ids=ENDLESS.keys())
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_past_the_bound_raises_and_stays_raised(wire: bytes, size: int) -> None:
    reader = SseReader(max_event_bytes=80)
    fed: list[bytes] = []

    def feed() -> None:
        for start in range(0, len(wire), size):
            fed.append(wire[start : start + size])
            reader.feed(fed[-1])

    with pytest.raises(ProtocolError, match=r"an event longer than.* 80 bytes") as caught:
        feed()
    if size == 1:
        assert 80 < len(fed) <= 120, "as soon as the bound is passed"
    assert caught.value.payload
    with pytest.raises(ProtocolError):
        reader.feed(b"data: " + A + b"\n\n")
    with pytest.raises(ProtocolError):
        reader.finish()
    assert pickle.loads(pickle.dumps(caught.value)).payload == caught.value.payload


@pytest.mark.parametrize("size", [1, 10_000])
def test_the_payloads_before_an_endless_event_are_delivered_first(size: int) -> None:
    wire = b"data: " + A + b"\n\ndata: " + b"x" * 200
    reader = SseReader(max_event_bytes=100)
    payloads: list[bytes] = []

    def feed() -> None:
        for start in range(0, len(wire), size):
            payloads.extend(reader.feed(wire[start : start + size]))
        reader.finish()

    with pytest.raises(ProtocolError):
        feed()
    assert payloads == [A]


def test_the_bound_is_on_one_event_not_on_the_stream() -> None:
    reader = SseReader(max_event_bytes=50)
    assert reader.feed((b": keep-alive\n\ndata: " + A + b"\n\n") * 100) == [A] * 100
    assert reader.feed(b"data: {" + b"1" * 42 + b"}\n\n") == [b"{" + b"1" * 42 + b"}"]
    with pytest.raises(ProtocolError):
        reader.feed(b"data: {" + b"1" * 43 + b"}\n\n")


def test_the_error_carries_the_beginning_of_the_event_cut_short() -> None:
    with pytest.raises(ProtocolError) as caught:
        SseReader(max_event_bytes=10_000).feed(b'data: {"a":"' + b"y" * 20_000)
    assert caught.value.payload == b'data: {"a":"' + b"y" * (4096 - 12)
    assert "yyy" not in str(caught.value)


def test_a_bound_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="max_event_bytes is 0"):
        SseReader(max_event_bytes=0)


class Counted(bytearray):
    """A line buffer that counts the bytes that anyone looks at or copies out of it."""

    looked_at = 0

    def _look(self) -> None:
        self.looked_at += len(self)

    def find(self, *args: Any) -> int:
        self._look()
        return super().find(*args)

    def __contains__(self, key: Any) -> bool:
        self._look()
        return super().__contains__(key)

    def split(self, sep: Any = None, maxsplit: Any = -1) -> list[bytearray]:
        self._look()
        return super().split(sep, maxsplit)

    def __bytes__(self) -> bytes:
        self._look()
        return bytes(memoryview(self))

    def __getitem__(self, key: Any) -> Any:
        self._look()
        return super().__getitem__(key)

    def __add__(self, other: Any) -> bytearray:
        self._look()
        return super().__add__(other)

    def __iadd__(self, other: Any) -> Self:
        self.looked_at += len(other)
        return super().__iadd__(other)


@pytest.mark.parametrize("size", [1, 3])
def test_an_event_in_many_small_reads_is_looked_at_a_bounded_number_of_times(size: int) -> None:
    wire = b'data: {"a":"' + b"z" * 200_000 + b'"}\n\n'
    reader = SseReader()
    buffer = Counted()
    reader._tail = buffer
    payloads = [payload for start in range(0, len(wire), size) for payload in reader.feed(wire[start : start + size])]
    assert [len(payload) for payload in payloads] == [200_000 + 8]
    assert len(wire) <= buffer.looked_at < 4 * len(wire)


@pytest.mark.timeout(20)
def test_a_run_of_blank_data_lines_is_not_walked_through_again_and_again() -> None:
    # Linear in well under a second; quadratic, this would be ten thousand million steps.
    assert read([b"data: 1\n" + b"data:\n" * 100_000 + b"data: 2\n\n"]) == [b"1" + b"\n" * 100_001 + b"2"]


@pytest.mark.parametrize(
    "odd",
    [
        b"xevent: b\ndata: {}\n\n",
        b"event: b\nid: 1\ndata: {}\n\n",
        b"event: b\ndata: {}\ndata: {}\n\n",
        b"event: b\n\n",
        b"data: {}\n\n",
        b": ping\n\n",
        b"event: b\ndata:\n\n",
    ],
)
def test_event_and_data_pairs_are_split_at_once_only_if_nothing_else_is_there(odd: bytes) -> None:
    """One read with many pairs takes the fast path; other lines among them must not change the result."""
    pair = b'event: a\ndata: {"n": 1}\n\n'
    for body in (pair * 3, pair + odd + pair, odd + pair * 2, pair * 2 + odd):
        by_byte, whole = SseReader(), SseReader()
        singles = [payload for byte in body for payload in by_byte.feed(bytes([byte]))]
        assert whole.feed(body) + whole.finish() == singles + by_byte.finish()


@pytest.mark.parametrize(
    "before", [b"data: " + A + b"\n\n", b"data: " + A + b"\r", b"data: " + A, b"event: x\n", b": x\n"]
)
def test_a_read_with_one_event_gives_what_its_bytes_give_one_by_one(before: bytes) -> None:
    reads = [body for body, _ in TABLE.values()]
    reads += [
        start + A + end for start in (b"data: ", b"event: x\ndata: ", b"event:x\rdata: ") for end in (b"\n\n", b"\n")
    ]
    for read in reads:
        at_once, one_by_one = SseReader(200), SseReader(200)
        found = [*at_once.feed(before), *at_once.feed(read), *at_once.feed(read), *at_once.finish()]
        data = before + read + read
        pieces = [one_by_one.feed(data[place : place + 1]) for place in range(len(data))]
        assert found == [payload for piece in pieces for payload in piece] + one_by_one.finish(), read
