"""Reads pictures and files from bytes, a path, an open file or a URL.

The constructors `Image` and `File` use it, messages (`user("…", Path("a.png"))`), the option `files=`, and the command
line. Only a value in these places is read as a path; a name in a document or a reply never is.
"""

from __future__ import annotations

import os
import re
import stat
from base64 import b64decode
from binascii import Error as NotBase64
from pathlib import Path
from typing import Any, Final

import msgspec

from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.media_types import (
    decode_text,
    describe_kind,
    detect_media_type,
    find_ending,
    guess_media_type,
    is_text_type,
)
from asides.values.parts import File, Image, Text

_SCHEMES = ("https", "http", "data", "file", "gs", "s3", "ftp")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_DATA_URL = re.compile(r"(?s)data:(?P<type>[^;,]*)(?P<more>(?:;[^;,]*)*),(?P<data>.*)", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]{40,}+={0,2}\s*")
_DRIVE = re.compile(r"/[A-Za-z]:[/\\]")
_SHOWN = 200
_SVG = "image/svg+xml"
_PNG = "image/png"
_PDF = "application/pdf"
_NAME: Final = "file"
MOST_BYTES = 512 * 1024**2
"""The longest file that is read: no larger request is documented (platform.openai.com/docs/guides/images-vision)."""


class Source(msgspec.Struct, frozen=True):
    """Where a picture or a file is: its bytes or its address, with the name and the type that come with it."""

    data: bytes | None = None
    url: str | None = None
    name: str = ""
    media_type: str = ""
    """The type that a data: address names."""
    shown: str = ""
    """How errors name it."""


# --- reading ----------------------------------------------------------------------------------------------------------


def read_source(value: object, maker: str) -> Source:
    """Read bytes, a path, an open file or a URL. Raises a ConfigError that shows how `maker` is written."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Source(_check_filled(bytes(value), f"{maker}(bytes)"), shown="the bytes")
    if isinstance(value, str):
        return _read_words(value, maker)
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return _read_path(os.fsdecode(path), maker)
    if callable(getattr(value, "read", None)):
        return _read_open_file(value, maker)
    raise ConfigError(f"{maker} got {describe_type(value)}. {_explain_source(maker)}.")


def _explain_source(maker: str) -> str:
    return (
        f'Write {maker}(Path("…")), {maker}(data) with bytes, or {maker}("…") with a URL (https:, data:) or a file '
        "that exists"
    )


def _read_words(text: str, maker: str) -> Source:
    scheme = _URL.match(text)
    if scheme is not None and (scheme[1].lower() in _SCHEMES or text[scheme.end() :].startswith("//")):
        return _read_url(text, scheme[1].lower(), maker)
    if text and len(text) < 4096 and "\x00" not in text and _find_file(text) is not None:
        return _read_path(text, maker)
    if len(text) >= 40 and _BASE64.fullmatch(text):
        raise ConfigError(
            f"{maker} got text that looks like base64. Decode it, {maker}(base64.b64decode(text)), or put "
            '"data:…;base64," with its media type before it.'
        )
    raise ConfigError(f"{maker}: {_show(text)} is neither a URL nor a file that exists. {_explain_source(maker)}.")


def _show(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN and text.isprintable() else f"a text of {len(text)} characters"


def _read_url(url: str, scheme: str, maker: str) -> Source:
    if scheme == "file":
        from urllib.parse import unquote, urlsplit

        path = unquote(urlsplit(url).path)
        return _read_path(path[1:] if _DRIVE.match(path) else path, maker)
    if scheme != "data":
        if len(url.partition(":")[2].strip("/")) == 0:
            raise ConfigError(f"{maker}: {_show(url)} is not a complete URL. {_explain_source(maker)}.")
        return Source(url=url, name=_find_url_name(url), shown="the URL")
    source = split_data_url(url)
    if source is None:
        raise ConfigError(f"{maker}: the data: URL cannot be decoded. Write data:image/png;base64,… .")
    _check_filled(source.data or b"", f"{maker}: the data: URL")
    return source


def split_data_url(url: str) -> Source | None:
    """The bytes and the media type of a data: address; None for another address, and for one that does not decode."""
    found = _DATA_URL.fullmatch(url)
    if found is None:
        return None
    from urllib.parse import unquote_to_bytes

    data = unquote_to_bytes(found["data"])
    if found["more"].lower().endswith(";base64"):
        try:
            data = b64decode(b"".join(data.split()), validate=True)
        except (NotBase64, ValueError):
            return None
    return Source(data, media_type=found["type"].strip().lower(), shown="the data: URL")


def _find_url_name(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return unquote(path.rstrip("/").rpartition("/")[2])


def _find_file(path: str) -> os.stat_result | None:
    try:
        return Path(path).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return None


def _read_path(text: str, maker: str) -> Source:
    try:
        path = Path(text).expanduser()
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError(f"{maker}: {text} is a folder. Name a file in it.")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise ConfigError(f"{maker}: {text} is a device, not a file. Name a file.")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "its name is not a path"
        raise ConfigError(f"{maker}: the file {text} cannot be read: {reason}. Check the path.") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{maker}: the file {text} has more than {MOST_BYTES // 1024**2} MB, which no provider takes in a request. "
            "Upload it to the provider, and pass File(id=…)."
        )
    return Source(_check_filled(data, f"{maker}: the file {text}"), name=path.name, shown=f"the file {path.name}")


def _read_open_file(file: Any, maker: str) -> Source:
    name = getattr(file, "name", "")
    name = Path(name).name if isinstance(name, str) else ""
    try:
        data = file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{maker}: the open file cannot be read: {error}. Open it for reading.") from None
    if isinstance(data, str):
        raise ConfigError(f'{maker}: the file was opened as text. Open it with "rb", or pass its path.')
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ConfigError(f"{maker} got {describe_type(file)}, whose read() gives no bytes. Pass bytes.")
    # A second read() of the same file gives nothing, so say what that means.
    return Source(_check_filled(bytes(data), f"{maker}: what is left of the open file"), name=name, shown="the file")


def _check_filled(data: bytes, what: str) -> bytes:
    if not data:
        raise ConfigError(f"{what} is empty: there is nothing to send. Pass one with content.")
    return data


# --- the constructors of pictures and files ---------------------------------------------------------------------------


def read_image_arguments(args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Image` as its fields."""
    fields = {**dict(zip(Image.__struct_fields__, args, strict=False)), **fields}
    source, is_plain = _find_source(Image, args, fields)
    data = source.data
    if data is None:
        kind = _read_media_type(fields, Image) or guess_media_type(source.name) or _PNG
        return {**fields, "url": source.url, "media_type": kind if kind.startswith("image/") else _PNG}
    kind = _find_picture_type(source, data, _read_media_type(fields, Image), is_plain=is_plain)
    return {**fields, "url": None, "data": data, "media_type": kind}


def _find_picture_type(source: Source, data: bytes, given: str, *, is_plain: bool) -> str:
    """The type of a picture. The bytes decide; a type that the caller names counts where they show nothing."""
    found = detect_media_type(data, source.name)
    named = given or source.media_type
    if found is not None and not found.startswith("image/"):
        if named and not named.startswith("image/"):
            return named  # some hosts accept other files: the caller's type wins
        raise ConfigError(
            f"Image: no picture in {source.shown}, but {describe_kind(found)}. Use File in place of Image."
        )
    if found is not None or named:
        return found or named
    guessed = guess_media_type(source.name)
    if guessed is not None and guessed.startswith("image/") and decode_text(data) is None:
        return guessed
    if is_plain:
        return _PNG  # as given with data=
    what = "text" if decode_text(data) is not None else "a format that is not known"
    raise ConfigError(
        f"Image: no picture in {source.shown}, but {what}. Check it, or name its format, Image(data=…, "
        'media_type="image/…"); for a document use File.'
    )


def read_file_arguments(args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `File` as its fields. A first argument without data, url or id is the file itself."""
    named = {**dict(zip(File.__struct_fields__[1:], args[1:], strict=False)), **fields}
    if args and all(named.get(field) is None for field in ("data", "url", "id")):
        source, is_plain = read_source(args[0], "File"), False
    else:
        if args:
            named.setdefault("name", args[0])
        source, is_plain = _find_source(File, (), named)
    name = named.get("name", _NAME if is_plain else source.name or _NAME)
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f'File: name must be text, the name of the file, not {describe_type(name)}. Pass name="a.pdf".'
        )
    kind = _read_media_type(named, File) or _find_file_type(source, name, is_plain=is_plain)
    if name == _NAME and not is_plain:
        name += find_ending(kind)
    return {**named, "name": name, "url": source.url, "data": source.data, "media_type": kind}


def _find_file_type(source: Source, name: str, *, is_plain: bool) -> str:
    data, guessed = source.data, guess_media_type(name) or guess_media_type(source.name)
    if data is None:
        return guessed or _PDF
    found = detect_media_type(data, name)
    if found is not None or source.media_type:
        return found or source.media_type
    if guessed is not None and (is_text_type(guessed) or is_plain or decode_text(data) is None):
        return guessed
    if decode_text(data) is not None:
        return "text/plain"
    if is_plain:
        return _PDF  # as given with data=
    raise ConfigError(
        f'File: neither text nor a known format in {source.shown}. Name it, File(data, name="…", media_type="…").'
    )


def _find_source(kind: type[Image | File], args: tuple[Any, ...], fields: dict[str, Any]) -> tuple[Source, bool]:
    """The source in the fields, and whether it came by name. A lone first argument may be anything that can be read."""
    maker, url, data = kind.__name__, fields.get("url"), fields.get("data")
    if len(args) == 1 and data is None:
        return read_source(fields.pop("url"), maker), False
    if data is not None and not isinstance(data, (bytes, bytearray, memoryview)):
        advice = f"{maker}(base64.b64decode(…))" if isinstance(data, str) else f"{maker}(…) without data="
        raise ConfigError(f"{maker}: data= takes bytes, not {describe_type(data)}. Write {advice}.")
    if url is not None and not isinstance(url, str):
        raise ConfigError(f"{maker}: url= takes text, not {describe_type(url)}. Write {maker}(…) without url=.")
    if data is not None:
        _check_filled(bytes(data), f"{maker}: the value of data=")
        return Source(bytes(data), url, fields.get("name", ""), shown="the value of data="), True
    if url:
        inline = split_data_url(url) if url[:5].lower() == "data:" else None
        if inline is None and _URL.match(url) is None:
            raise ConfigError(f"{maker}: url= takes a URL, not {_show(url)}. For a file write {maker}(Path(…)).")
        return inline or Source(url=url, name=_find_url_name(url)), True
    if fields.get("id") is not None:
        if not isinstance(fields["id"], str) or not fields["id"]:
            raise ConfigError(f"{maker}: id= takes the provider's id as text. Write {maker}(id=…).")
        return Source(), True
    raise ConfigError(f"{maker} has no content. {_explain_source(maker)}.")


def _read_media_type(fields: dict[str, Any], kind: type[Image | File]) -> str:
    """The media type that the caller names; "" for none. A name like "png" or "image/jpg" is corrected."""
    given = fields.get("media_type")
    if given is None or given == "":
        return ""
    if not isinstance(given, str):
        raise ConfigError(
            f'{kind.__name__}: media_type is text, not {describe_type(given)}. Pass media_type="image/png".'
        )
    if given.lower() == "image/jpg":
        return "image/jpeg"
    if "/" in given:
        return given
    return guess_media_type(f".{given.removeprefix('.')}") or given


# --- a part for any file ----------------------------------------------------------------------------------------------


def read_attachment(value: object, maker: str = "files=") -> Text | Image | File:
    """Read a file, in any of its forms, as the part that fits it: a picture, a file, or text with the file's name."""
    if isinstance(value, (Text, Image, File)):
        return value
    source = read_source(value, "File" if maker == "files=" else maker)
    if source.data is None:
        kind = guess_media_type(source.name)
        if kind is None or kind.startswith("image/"):
            return Image(url=source.url)
        return File(url=source.url, name=source.name, media_type=kind)
    found = detect_media_type(source.data, source.name) or source.media_type or None
    if found is not None and found.startswith("image/") and found != _SVG:
        return Image(data=source.data, media_type=found)
    guessed = guess_media_type(source.name)
    if found is None or found == _SVG or is_text_type(found):
        text = decode_text(source.data)
        if text is not None:
            return wrap_text(text, source.name)
        if guessed is None or is_text_type(guessed):
            raise ConfigError(
                f"{source.shown} is not text in UTF-8, and neither its bytes nor its name say what else it is. "
                'Convert it, or pass File(data=…, name="…", media_type="…").'
            )
        if guessed.startswith("image/"):
            return Image(data=source.data, media_type=guessed)
    kind = found or guessed or "application/octet-stream"
    return File(name=source.name or f"{_NAME}{find_ending(kind)}", data=source.data, media_type=kind)


def wrap_text(text: str, name: str) -> Text:
    """The text of a file as a part, with the name of the file around it."""
    shown = "".join(" " if not letter.isprintable() else letter for letter in name).replace('"', "'")
    label = f' name="{shown}"' if shown else ""
    return Text(f"<file{label}>\n{text.rstrip()}\n</file>")
