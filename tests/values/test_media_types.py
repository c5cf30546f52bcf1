"""The media type of a file, from its first bytes and from its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.values.media_types import (
    decode_text,
    describe_kind,
    detect_media_type,
    find_ending,
    find_kind,
    guess_media_type,
    is_text_type,
)

_OFFICE = "application/vnd.openxmlformats-officedocument"


def _bitmap(size: int) -> bytes:
    return b"BM" + size.to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "", "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "photo.png", "image/jpeg"),
        (b"GIF89a\x01", "", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "", "image/webp"),
        (b"\x00\x00\x00\x1cftypavif", "", "image/avif"),
        (b"\x00\x00\x00\x18ftypheic", "", "image/heic"),
        (b"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic", "", "image/heic"),
        (b"\x00\x00\x00\x14ftypmif1\x00\x00\x00\x00mif1", "", "image/heif"),
        (_bitmap(18), "", "image/bmp"),
        (b"BM is no bitmap but a text", "", None),
        (b"II*\x00\x08", "", "image/tiff"),
        (b'<?xml version="1.0"?>\n<svg xmlns="x">', "", "image/svg+xml"),
        (b"%PDF-1.7", "", "application/pdf"),
        (b"\n\n%PDF-1.4", "", "application/pdf"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", "", "audio/wav"),
        (b"ID3\x04", "", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "", "audio/aac"),
        (b"\xff\xfeA\x00B\x00", "", None),
        (b"OggS\x00\x02", "", "audio/ogg"),
        (b"OggS\x00\x02" + bytes(22) + b"\x80theora", "", "video/ogg"),
        (b"fLaC\x00", "", "audio/flac"),
        (b"FORM\x00\x00\x00\x10AIFF", "", "audio/aiff"),
        (b"\x00\x00\x00\x18ftypM4A ", "", "audio/mp4"),
        (b"\x00\x00\x00\x18ftypisom", "", "video/mp4"),
        (b"\x00\x00\x00\x18ftypisom", "talk.m4a", "audio/mp4"),
        (b"\x00\x00\x00\x18ftypqt  ", "", "video/quicktime"),
        (b"\x00\x00\x00\x18ftyp3gp4", "", "video/3gpp"),
        (b"\x1aE\xdf\xa3\x93B\x82\x88webm", "", "video/webm"),
        (b"\x1aE\xdf\xa3\x93B\x82\x88webm", "talk.weba", "audio/webm"),
        (b"\x1aE\xdf\xa3\x93B\x82\x88matroska", "", "video/x-matroska"),
        (b"RIFF\x10\x00\x00\x00AVI LIST", "", "video/x-msvideo"),
        (b"PK\x03\x04" + bytes(26) + b"word/document.xml", "", f"{_OFFICE}.wordprocessingml.document"),
        (b"PK\x03\x04" + bytes(26) + b"a.txt", "", "application/zip"),
        (b"PK\x03\x04" + bytes(26) + b"a.txt", "a.ods", "application/vnd.oasis.opendocument.spreadsheet"),
        (b"PK\x03\x04" + bytes(26) + b"a.txt", "a.png", "application/zip"),
        (b"hello", "", None),
        (b"hello", "a.png", None),
        (b"", "", None),
        (b"\x00\x01\x02", "a.bin", None),
    ],
)
def test_the_bytes_show_the_type(data: bytes, name: str, kind: str | None) -> None:
    assert detect_media_type(data, name) == kind


def test_the_name_stands_for_a_type_on_every_machine() -> None:
    names = ["a.PNG", "b.tar.jpg", "report.pdf", "x.mp3", "x.webm", "x.md", "x.docx", "png", "", "x.unknown", ".hidden"]
    assert [guess_media_type(name) for name in names] == [
        "image/png",
        "image/jpeg",
        "application/pdf",
        "audio/mpeg",
        "video/webm",
        "text/markdown",
        f"{_OFFICE}.wordprocessingml.document",
        None,
        None,
        None,
        None,
    ]
    assert [find_ending(kind) for kind in ("image/jpeg", "application/pdf", "x/y")] == [".jpg", ".pdf", ""]


def test_types_have_kinds() -> None:
    kinds = ["image/png", "audio/wav", "video/mp4; codecs=x", "Application/PDF", "text/plain", "application/zip"]
    assert [find_kind(kind) for kind in kinds] == ["picture", "audio", "video", "pdf", None, None]
    texts = ["text/x-python", "application/json", "application/ld+json", "image/svg+xml", "application/pdf"]
    assert [is_text_type(kind) for kind in texts] == [True, True, True, False, False]
    assert describe_kind("application/zip") == "a document (application/zip)"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é😀\n".encode(), "é😀\n"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("sixteen é".encode("utf-16"), "sixteen é"),
        ("thirty-two".encode("utf-32"), "thirty-two"),
        (b"caf\xe9", None),
        (b"a\x00b", None),
    ],
)
def test_text_is_utf_8_or_says_what_it_is(data: bytes, text: str | None) -> None:
    assert decode_text(data) == text


@given(st.text(alphabet=st.characters(exclude_characters="\x00\ufeff\ufffe", exclude_categories=["Cs"])))
def test_text_without_a_known_beginning_is_text(text: str) -> None:
    assert decode_text(text.encode()) == text


@given(st.binary(max_size=64), st.text(max_size=12))
def test_any_bytes_and_any_name_have_an_answer(data: bytes, name: str) -> None:
    assert detect_media_type(data, name) is None or "/" in str(detect_media_type(data, name))


@pytest.mark.parametrize("text", [b"<!---->", b"<!--<?xml>-->", b"<?xml?>", b"<!DOCTYPE svg>", b"<!-- ", b"<?xml>\n  "])
def test_no_text_takes_long(text: bytes) -> None:
    # One comment may end at any of the later ends of comments: without care, each one more doubles the time.
    assert detect_media_type(text * 60) is None
    assert detect_media_type(text * 1000) is None
    assert detect_media_type(b"<!--a--><!-- -->\n<?xml?>\n<svg >") == "image/svg+xml"
