"""Media types of pictures, sounds, videos and documents: from their first bytes, else from a name. Reads no file.

The only detection of media types in the library; the command line uses it too.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

MediaKind: TypeAlias = Literal["picture", "audio", "video", "pdf"]
"""Kinds of content that a model may or may not accept."""

# --- from the bytes ---------------------------------------------------------------------------------------------------

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"II+\x00", "image/tiff"),
    (b"MM\x00+", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-wmv"),
    (b"\x1f\x8b\x08", "application/gzip"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1"), "image/heif"),
    **dict.fromkeys((b"M4A ", b"M4B ", b"M4P "), "audio/mp4"),
    b"qt  ": "video/quicktime",
}
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
_OFFICE = "application/vnd.openxmlformats-officedocument"
_ZIPPED = (
    (b"word/", f"{_OFFICE}.wordprocessingml.document"),
    (b"xl/", f"{_OFFICE}.spreadsheetml.sheet"),
    (b"ppt/", f"{_OFFICE}.presentationml.presentation"),
    (b"mimetypeapplication/epub+zip", "application/epub+zip"),
    (b"mimetypeapplication/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
)
# Atomic: with backtracking, a few dozen comments would take hours.
_SVG = re.compile(rb"(?><\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE svg[^>]*>\s*)*+<svg[\s>]", re.DOTALL | re.IGNORECASE)
# The bytes identify the container; the name may show that it holds only sound.
_SAME_CONTAINER = {
    "video/mp4": ("audio/mp4",),
    "video/webm": ("audio/webm",),
    "audio/ogg": ("video/ogg",),
    "video/x-ms-wmv": ("audio/x-ms-wma",),
}
_HEAD = 4096


def detect_media_type(data: bytes, name: str = "") -> str | None:
    """The media type that the bytes show; None for text and for formats without a mark. `name` refines a container."""
    head = data[:_HEAD]
    if head[:5] != b"%PDF-" and head.lstrip()[:5] == b"%PDF-":
        return "application/pdf"
    found = next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), None) or _detect_container(
        head, len(data)
    )
    if found is None:
        return None
    named = guess_media_type(name)
    if found == "application/zip":
        return found if named is None or named.startswith(("image/", "audio/", "video/", "text/")) else named
    return named if named is not None and named in _SAME_CONTAINER.get(found, ()) else found


def _detect_container(head: bytes, size: int) -> str | None:
    match head[:4]:
        case b"RIFF":
            return _RIFF.get(head[8:12])
        case b"FORM" if head[8:12] in (b"AIFF", b"AIFC"):
            return "audio/aiff"
        case b"OggS":
            return "video/ogg" if b"theora" in head[:256] else "audio/ogg"
        case b"\x1aE\xdf\xa3":
            return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
        case b"PK\x03\x04":
            return next((kind for mark, kind in _ZIPPED if mark in head), "application/zip")
        case _:
            pass
    if head[4:8] == b"ftyp":
        return _detect_iso_media(head)
    if head[:2] == b"BM" and _is_bitmap(head, size):
        return "image/bmp"
    if len(head) >= 4 and head[0] == 0xFF:
        return _detect_audio_frame(head[1], head[2])
    return "image/svg+xml" if _SVG.match(head.removeprefix(b"\xef\xbb\xbf").lstrip()) else None


def _detect_iso_media(head: bytes) -> str:
    """The type of an ISO media file: its main brand, or, where that only says "image", another of its brands."""
    brand = head[8:12]
    found = _BRANDS.get(brand)
    if found == "image/heif":
        length = int.from_bytes(head[:4], "big")
        others = [head[place : place + 4] for place in range(16, min(length, len(head)), 4)]
        precise = [kind for other in others if (kind := _BRANDS.get(other)) in ("image/avif", "image/heic")]
        return precise[0] if precise else found
    return found or ("video/3gpp" if brand.startswith(b"3g") else "video/mp4")


def _is_bitmap(head: bytes, size: int) -> bool:
    written, header = int.from_bytes(head[2:6], "little"), int.from_bytes(head[14:18], "little")
    return header in _BITMAP_HEADERS and (written == size or head[6:10] == b"\x00\x00\x00\x00")


def _detect_audio_frame(second: int, third: int) -> str | None:
    """MPEG audio without a tag before it: a frame of layer II or III, or of AAC. A UTF-16 text begins FF FE."""
    if second & 0xF6 == 0xF0:
        return "audio/aac"
    version, layer = second >> 3 & 3, second >> 1 & 3
    is_frame = second & 0xE0 == 0xE0 and version != 1 and layer in (1, 2) and third >> 4 != 15 and third >> 2 & 3 != 3
    return "audio/mpeg" if is_frame else None


# --- from the name ----------------------------------------------------------------------------------------------------

# Not from the system's own tables: those differ between machines.
_ENDINGS = {
    **{ending: f"image/{ending}" for ending in ("png", "gif", "webp", "avif", "heic", "heif", "bmp", "jxl", "apng")},
    **dict.fromkeys(("jpg", "jpeg", "jpe", "jfif"), "image/jpeg"),
    **dict.fromkeys(("tif", "tiff"), "image/tiff"),
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
    "pdf": "application/pdf",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    **dict.fromkeys(("ogg", "oga", "opus"), "audio/ogg"),
    "flac": "audio/flac",
    **dict.fromkeys(("m4a", "m4b"), "audio/mp4"),
    "aac": "audio/aac",
    "amr": "audio/amr",
    "weba": "audio/webm",
    "wma": "audio/x-ms-wma",
    **dict.fromkeys(("aif", "aiff", "aifc"), "audio/aiff"),
    **dict.fromkeys(("mp4", "m4v"), "video/mp4"),
    "webm": "video/webm",
    "mov": "video/quicktime",
    "ogv": "video/ogg",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    **dict.fromkeys(("mpg", "mpeg"), "video/mpeg"),
    "wmv": "video/x-ms-wmv",
    "flv": "video/x-flv",
    **dict.fromkeys(("3gp", "3gpp"), "video/3gpp"),
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
    "zip": "application/zip",
    **dict.fromkeys(("txt", "text", "log"), "text/plain"),
    **dict.fromkeys(("md", "markdown"), "text/markdown"),
    **dict.fromkeys(("html", "htm"), "text/html"),
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "css": "text/css",
    "py": "text/x-python",
    **dict.fromkeys(("js", "mjs"), "text/javascript"),
    "xml": "text/xml",
    "json": "application/json",
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    "toml": "application/toml",
}
_TEXTS = frozenset(
    {"application/json", "application/yaml", "application/toml", "application/xml", "application/javascript"}
)


def guess_media_type(name: str) -> str | None:
    """The media type for the ending of a name; None if it is unknown."""
    _, dot, ending = name.rpartition(".")
    return _ENDINGS.get(ending.lower()) if dot else None


def find_ending(media_type: str) -> str:
    """The usual ending of files of this type, with its dot; "" when it is not known."""
    ending = next((ending for ending, kind in _ENDINGS.items() if kind == media_type), None)
    return "" if ending is None else f".{ending}"


# --- kinds ------------------------------------------------------------------------------------------------------------


def is_text_type(media_type: str) -> bool:
    """Whether content of this type is text that a model can read as it is."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+yaml"))


def find_kind(media_type: str) -> MediaKind | None:
    """The kind of content; None for text and for other documents."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/pdf":
        return "pdf"
    match kind.partition("/")[0]:
        case "image":
            return "picture"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return None


def describe_kind(media_type: str) -> str:
    """Describe content of this type: "a picture (image/png)"."""
    words = {"picture": "a picture", "audio": "a sound", "video": "a video", "pdf": "a PDF", None: "a document"}
    return f"{words[find_kind(media_type)]} ({media_type})"


_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def decode_text(data: bytes) -> str | None:
    """The text in the bytes: UTF-8, or UTF-16 or UTF-32 with its mark. None if they are not text."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8-sig")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
