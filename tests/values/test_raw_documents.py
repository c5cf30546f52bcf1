"""The documents of a reply: compressed, and all there."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.values.raw_documents import Documents, PackedDocuments, compress_documents
from asides.values.reply import CallContext, Reply


def test_compressed_documents_read_like_a_tuple() -> None:
    plain = tuple(f'{{"number":{number}}}'.encode() for number in range(10))
    packed = Documents([compress_documents(list(plain[:4])), compress_documents(list(plain[4:7]))], plain[7:])
    assert packed == plain
    assert (len(packed), packed[0], packed[-1], packed[3:5]) == (10, plain[0], plain[-1], plain[3:5])
    assert packed == Documents(last=plain)
    assert packed != plain[1:]
    assert pickle.loads(pickle.dumps(packed)) == packed
    assert "number" not in repr(packed)
    assert Reply(call=CallContext(payloads=packed, streamed=True)).raw == [{"number": number} for number in range(10)]


DOCUMENTS = st.one_of(
    st.integers(0, 10**6).map(lambda number: b'{"id":"chatcmpl-1","object":"chunk","delta":"%d"}' % number),
    st.binary(max_size=40),
    # Longer than what a compression looks back.
    st.integers(1, 200_000).map(lambda size: bytes(range(256)) * (size // 256) + b"x"),
)


@given(reads=st.lists(st.tuples(st.lists(DOCUMENTS, max_size=12), st.integers(0, 300)), max_size=30))
def test_packed_documents_are_all_there_and_few_of_a_slow_stream_wait(reads: list[tuple[list[bytes], int]]) -> None:
    packed, waiting, plain = PackedDocuments(), list[bytes](), list[bytes]()
    for documents, event_count in reads:
        waiting += documents
        plain += documents
        if len(waiting) > packed.most_unpacked:
            packed.take(waiting, event_count)
            assert len(waiting) <= (16 if event_count <= 8 else 4096)
        # The decoder looks at its last document.
        assert waiting[-1:] == plain[-1:]
        assert packed.add(waiting) in (plain, tuple(plain))
    assert list(packed.add(waiting)) == plain


def test_documents_that_come_many_at_once_wait_for_more() -> None:
    packed, waiting = PackedDocuments(), [b"{}"] * 200
    assert not packed.take(waiting, 200)
    assert (len(waiting), packed.most_unpacked) == (200, 4096)
    assert packed.take(waiting := [b"{}"] * 5000, 200)
    assert (len(waiting), packed.most_unpacked, len(packed.add(waiting))) == (1, 16, 5000)


@pytest.mark.parametrize("size", [1, 100, 50_000])
def test_blocks_follow_each_other_however_long_their_documents_are(size: int) -> None:
    plain = [b'{"number":%d,"text":"%s"}' % (number, b"ab" * size) for number in range(50)]
    packed, waiting = PackedDocuments(), list[bytes]()
    for document in plain:
        waiting.append(document)
        if len(waiting) > packed.most_unpacked:
            assert packed.take(waiting, 1)
    assert list(packed.add(waiting)) == plain


def test_documents_that_resemble_each_other_take_little_memory() -> None:
    documents = [b'{"id":"chatcmpl-1","object":"chat.completion.chunk","delta":"%d"}' % number for number in range(9)]
    assert len(compress_documents(documents, documents[-1])) < sum(map(len, documents)) / 4
