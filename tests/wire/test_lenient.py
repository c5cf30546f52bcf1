"""JSON that almost fits: wrong values are removed and reported, invalid characters replaced."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from asides.values.errors import ProtocolError
from asides.wire.lenient import (
    compact_json,
    raw_to_json_text,
    read_any,
    read_base64,
    read_document,
    read_leniently,
    read_part_json,
    remove_path,
    replace_invalid_text,
    unify_base64,
)


class Item(msgspec.Struct):
    name: str | None = None
    count: int | None = None


class Document(msgspec.Struct):
    items: list[Item] | None = None
    title: str | None = None


DOCUMENTS = msgspec.json.Decoder(Document)


def read(payload: bytes) -> tuple[Document, list[str]]:
    with pytest.raises(msgspec.ValidationError) as caught:
        DOCUMENTS.decode(payload)
    return read_leniently(payload, DOCUMENTS, caught.value)


def test_every_value_of_a_wrong_type_is_removed_and_its_path_returned() -> None:
    document, removed = read(b'{"items": [{"name": "a", "count": "one"}, {"name": 2}], "title": 3}')
    assert document == Document([Item("a"), Item()])
    assert removed == ["items.*.count", "items.*.name", "title"]


def test_a_document_of_another_shape_raises() -> None:
    with pytest.raises(ProtocolError, match="unknown form"):
        read(b"[1]")


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (("a", "b"), {"a": {"c": 1}, "d": [{"e": 1}]}),
        (("d", "*", "e"), {"a": {"b": 1, "c": 1}, "d": [{}]}),
        (("d", "*"), {"a": {"b": 1, "c": 1}, "d": []}),
        (("x", "y"), {"a": {"b": 1, "c": 1}, "d": [{"e": 1}]}),
    ],
)
def test_a_path_is_removed_wherever_it_leads(path: tuple[str, ...], left: dict[str, Any]) -> None:
    assert remove_path({"a": {"b": 1, "c": 1}, "d": [{"e": 1}]}, path) == left


@pytest.mark.parametrize(
    ("payload", "repaired"),
    [
        (b'"plain"', b'"plain"'),
        ('"é \\ud83d\\ude00"'.encode(), '"é \\ud83d\\ude00"'.encode()),
        (b'"\\\\ud83d"', b'"\\\\ud83d"'),
        (b'"\\ud83d"', b'"\\ufffd"'),
        (b'"\xe2\x82"', '"\ufffd"'.encode()),
    ],
)
def test_half_characters_are_replaced_and_everything_else_stays_the_same_bytes(payload: bytes, repaired: bytes) -> None:
    assert replace_invalid_text(payload) == repaired
    assert (replace_invalid_text(payload) is payload) == (payload == repaired)


def test_a_document_is_read_with_replaced_characters_or_not_at_all() -> None:
    assert read_document(b'{"a": "\\ud83d"}') == ({"a": "\ufffd"}, True)
    assert read_document(b'{"a": 1}') == ({"a": 1}, False)
    with pytest.raises(ProtocolError, match="not JSON"):
        read_document(b"{")
    with pytest.raises(ProtocolError, match="nested deeper"):
        read_document(b"[" * 100_000)


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'{"a": 1e999, "b": [-1e999, 1.5]}', {"a": "1e999", "b": ["-1e999", 1.5]}),
        (b"9" * 5000, "9" * 5000),
        ('{"a": 1e999}', {"a": "1e999"}),
    ],
)
def test_a_number_that_is_too_large_is_read_as_its_text(document: bytes | str, value: object) -> None:
    assert read_any(document) == value


@pytest.mark.parametrize("document", [b"{", b'{"a": 1e999', b"[" * 300 + b"]" * 300, b"[" * 9999, '{"a"\ud800'])
def test_what_is_no_json_or_too_deep_is_a_decode_error(document: bytes | str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_any(document)


@pytest.mark.parametrize(
    ("document", "compact"),
    [
        (b'{ "a": [1, 2] }', b'{"a":[1,2]}'),
        (b'{ "a": [1e999, 2] }', b'{"a":[1e999,2]}'),
    ],
)
def test_compact_json_keeps_numbers_that_are_too_large(document: bytes, compact: bytes) -> None:
    assert compact_json(document) == compact


@pytest.mark.parametrize(
    ("raw", "text"), [(b"null", ""), (b'"{}"', "{}"), (b'{ "a": 1 }', '{"a":1}'), (b"[ 1e999 ]", "[1e999]")]
)
def test_raw_arguments_become_json_text(raw: bytes, text: str) -> None:
    assert raw_to_json_text(msgspec.Raw(raw)) == text


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("aGk=", b"hi"),
        ("aGk", b"hi"),
        ("+/8=", b"\xfb\xff"),
        ("-_8", b"\xfb\xff"),
        ("aG\nk=", b"hi"),
        ("a", None),
        ("a===", None),
        ("aG=k", None),
        ("é", None),
        ("a%b=", None),
    ],
)
def test_base64_is_read_in_both_alphabets_with_and_without_padding(text: str, data: bytes | None) -> None:
    assert read_base64(text) == data


def test_the_two_alphabets_of_base64_are_one_text_and_white_space_is_none_of_it() -> None:
    assert unify_base64("-_8=") == unify_base64("+/8") == "+/8"
    assert unify_base64("+/8\n") != "+/8"


class _Item(msgspec.Struct):
    text: str = ""
    count: int = 0


class _List(msgspec.Struct):
    items: list[_Item] = []


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (b'{"items": [{"text": "a"}, {"text": 5}, {"text": "b"}]}', ["a", "", "b"]),
        (b'{"items": [{"text": "a"}, 5, {"text": "b"}, null, "c", [1]]}', ["a", "b"]),
        (
            b'{"items": [{"text": true}, {"text": "a"}, {"text": {}}, {"text": [1]}, {"text": 1.5}]}',
            ["", "a", "", "", ""],
        ),
        (b'{"items": [{"text": "a", "count": "x"}, {"text": "b", "count": 99999999999999999999}]}', ["a", "b"]),
    ],
)
def test_an_odd_value_takes_nothing_from_its_neighbours(document: bytes, texts: list[str]) -> None:
    decoder = msgspec.json.Decoder(_List)
    with pytest.raises(msgspec.ValidationError) as problem:
        decoder.decode(document)
    read, removed = read_leniently(document, decoder, problem.value)
    assert [item.text for item in read.items] == texts
    assert removed


def test_json_that_msgspec_reads_has_no_invalid_characters() -> None:
    rng = random.Random(3)
    pieces = [
        b"a", "é".encode(), "👋".encode(), b"\xff", b"\xe2\x82", b"\xed\xa0\x80", b"\\ud83d", b"\\udc00",
        b"\\ud83d\\ude00",
        b"\\uD83D\\uDE00", b"\\\\ud83d", b"\\n", b"\\u00e9", b"\\\\",
    ]  # fmt: skip
    legible = 0
    for _ in range(3000):
        name, text = (b"".join(rng.choices(pieces, k=rng.randint(0, 3))) for _ in range(2))
        body = b'{"%b":["%b"]}' % (name, text)
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        legible += 1
        assert replace_invalid_text(body) is body
    assert 300 < legible < 2700


def test_half_characters_are_found_wherever_they_are() -> None:
    rng = random.Random(4)
    for odd, repaired in ((b"\\ud83d", b"\\ufffd"), (b"\\uDE00", b"\\ufffd"), (b"\xff", b"\xef\xbf\xbd")):
        for size in (0, 1, 50, 5_000, 100_000):
            before, after = (rng.choice([b"a", b"\\n", "é".encode(), b"\\u0041"]) * size for _ in range(2))
            assert replace_invalid_text(before + odd + after) == before + repaired + after


@pytest.mark.parametrize(
    ("text", "value"), [('{"a": 1}', {"a": 1}), ("[1e999]", [float("inf")]), ("{", None), ("", None)]
)
def test_the_json_of_a_part_is_read_or_nothing(text: str, value: Any) -> None:
    assert read_part_json(text) == value
