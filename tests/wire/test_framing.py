"""Bodies of any form are split into documents, and lines are read as documents, in any chunking."""

from __future__ import annotations

from base64 import b64encode

import pytest

from asides.values.errors import ProtocolError
from asides.wire.aws_frames import write_frame
from asides.wire.framing import MAX_BLANK_BYTES, Form, Framing, LineReader

LINES = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\n{"c":[{}]}'
PRETTY = b'{\n  "a": {\n    "b": 1\n  }\n}\n'
FIRST = write_frame({":event-type": "messageStart", ":message-type": "event"}, b'{"role":"assistant"}')


def read(framing: Framing | LineReader, pieces: list[bytes]) -> list[bytes]:
    return [document for piece in pieces for document in framing.feed(piece)] + framing.finish()


def list_chunkings(body: bytes) -> list[list[bytes]]:
    cuts = [[body[:place], body[place:]] for place in range(len(body) + 1)]
    return [[body], [body[place : place + 1] for place in range(len(body))], *cuts]


# --- a document per line ----------------------------------------------------------------------------------------------


def test_every_line_is_a_document_in_any_chunking() -> None:
    for pieces in list_chunkings(LINES):
        assert read(LineReader(1000), pieces) == [b'{"a":1}', b'{"b":"\xc3\xa9"}', b'{"c":[{}]}']


def test_one_document_over_several_lines_is_one_document() -> None:
    for pieces in list_chunkings(PRETTY):
        assert read(LineReader(1000), pieces) == [PRETTY.strip()]


def test_a_document_comes_out_as_soon_as_its_line_has_ended() -> None:
    reader = LineReader(1000)
    assert reader.feed(b'{"a":') == []
    assert reader.feed(b'1}\n{"b"') == [b'{"a":1}']
    assert reader.documents == 1


def test_a_broken_line_between_others_comes_out_unchanged() -> None:
    for pieces in list_chunkings(b'{"a":1}\n{broken\n{"b":2}\n'):
        assert read(LineReader(1000), pieces) == [b'{"a":1}', b"{broken", b'{"b":2}']


def test_a_line_that_never_ends_is_an_error_in_any_chunking() -> None:
    for pieces in ([b"x" * 20], [b"x"] * 20):
        with pytest.raises(ProtocolError, match="longer than 10 bytes"):
            read(LineReader(10), pieces)


def test_nothing_gives_nothing() -> None:
    assert read(LineReader(10), [b"\n", b"", b" \n"]) == []


# --- a body of any form -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "form", "documents"),
    [
        (b'{"a":1}', "json", [b'{"a":1}']),
        (b' \r\n\xef\xbb\xbf[{"a":1}]', "json", [b'[{"a":1}]']),
        (b'data: {"a":1}\n\ndata: [DONE]\n\n', "sse", [b'{"a":1}', b"[DONE]"]),
        (b'\n\n: alive\n\ndata: {"a":1}', "sse", [b'{"a":1}']),
        (FIRST, "aws", [b'{"role":"assistant"}']),
        (b"<html>", "sse", []),
        (b"\n\n", "unknown", []),
    ],
)
def test_the_first_bytes_decide_the_form(body: bytes, form: Form, documents: list[bytes]) -> None:
    for pieces in list_chunkings(body):
        framing = Framing()
        assert (read(framing, pieces), framing.form) == (documents, form)


def test_html_does_not_look_like_server_sent_events_and_half_a_word_does() -> None:
    for body, expected in ((b"<html>", False), (b"da", True), (b"event: x", True), (b"dot", False)):
        for pieces in list_chunkings(body):
            framing = Framing()
            read(framing, pieces)
            assert framing.looks_like_sse is expected


def test_a_cut_frame_and_a_cut_document_are_recognised() -> None:
    framing = Framing()
    framing.feed(FIRST[:-1])
    assert framing.is_cut_off
    lines = Framing(lines=True)
    assert lines.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert lines.is_cut_document(lines.finish()[0])
    assert not lines.is_cut_document(b"broken")


def test_lines_are_documents_only_where_the_dialect_has_lines() -> None:
    for pieces in list_chunkings(LINES):
        framing = Framing(lines=True)
        assert read(framing, pieces) == [b'{"a":1}', b'{"b":"\xc3\xa9"}', b'{"c":[{}]}']
        assert framing.form == "lines"
        plain = Framing()
        assert read(plain, pieces) == [LINES]
        assert plain.form == "json"


def test_a_single_document_is_no_stream_with_or_without_a_line_end() -> None:
    for body in (b'{"a":1}', b'{"a":1}\n', PRETTY):
        for pieces in list_chunkings(body):
            framing = Framing(lines=True)
            assert read(framing, pieces) == [body.strip()]
            assert framing.form == "json"


def test_named_events_come_out_under_their_names() -> None:
    framing = Framing(named=True)
    assert framing.feed(FIRST) == [b'{"messageStart":{"role":"assistant"}}']
    assert framing.feed(write_frame({":event-type": "contentBlockStop"}, b"")) == [b'{"contentBlockStop":{}}']
    assert Framing().feed(FIRST) == [b'{"role":"assistant"}']


def test_a_chunk_is_unwrapped_and_an_exception_becomes_an_error() -> None:
    wrapped = b'{"bytes":"' + b64encode(b'{"a":1}') + b'"}'
    framing = Framing(named=True)
    assert framing.feed(write_frame({":event-type": "chunk"}, wrapped)) == [b'{"a":1}']
    headers = {":message-type": "exception", ":exception-type": "throttlingException"}
    assert framing.feed(write_frame(headers, b'{"message":"slow down"}')) == [
        b'{"error":{"message":"slow down","code":"throttlingException"}}'
    ]
    error = {":message-type": "error", ":error-code": "500", ":error-message": "down"}
    assert framing.feed(write_frame(error, b"")) == [b'{"error":{"message":"down","code":"500"}}']


@pytest.mark.parametrize("size", [1, 9, 100_000])
@pytest.mark.parametrize("wrapped", [b'{"nothing":1}', b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b',"bytes":""}'])
def test_a_chunk_that_cannot_be_unwrapped_raises_after_the_documents_before_it(size: int, wrapped: bytes) -> None:
    body = FIRST + write_frame({":event-type": "chunk"}, wrapped)
    framing = Framing(named=True)
    documents: list[bytes] = []

    def read_all() -> None:
        for start in range(0, len(body), size):
            documents.extend(framing.feed(body[start : start + size]))
        framing.finish()

    with pytest.raises(ProtocolError, match="cannot be unwrapped"):
        read_all()
    assert documents == [b'{"messageStart":{"role":"assistant"}}']


def test_white_space_before_the_first_document_has_a_limit_in_any_chunking() -> None:
    document = b'{"a":1}'
    assert read(Framing(), [b" " * MAX_BLANK_BYTES + document]) == [document]
    assert read(Framing(), [b"\n" * (MAX_BLANK_BYTES // 2)] * 2 + [document]) == [document]
    for pieces in ([b"\n" * MAX_BLANK_BYTES, b"\n" + document], [b" " * MAX_BLANK_BYTES + b"\n" + document]):
        with pytest.raises(ProtocolError, match="white space"):
            read(Framing(), pieces)
