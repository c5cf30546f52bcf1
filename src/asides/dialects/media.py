"""Pictures and files in requests: their media types and data: addresses."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import urlsplit

from asides.values.errors import Unsupported
from asides.values.parts import File, Image

_VIDEO_PAGES = re.compile(r"https?://(www\.|m\.)?(youtube\.com|youtu\.be)/")
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def find_media_type(media: Image | File) -> str:
    """Return the media type: that of a data: address, else the given one. One that was not given is guessed."""
    inline = split_data_url(media.url) if media.url is not None else None
    given = media.media_type if inline is None else inline[0] or media.media_type
    return given.lower() or _guess_media_type(media)


def _guess_media_type(media: Image | File) -> str:
    from asides.values.media_types import guess_media_type

    address = media.url or ""
    guessed = None if address.startswith("data:") else guess_media_type(urlsplit(address).path)
    usual = "image/png" if isinstance(media, Image) else "application/pdf"
    return guessed or ("video/mp4" if _VIDEO_PAGES.match(address) else usual)


def read_text_file(file: File) -> str | None:
    """Return the text of a file that is text, for dialects that send it as such; None for others."""
    from asides.values.media_types import decode_text, is_text_type

    if file.data is None or not is_text_type(file.media_type):
        return None
    text = decode_text(file.data)
    return file.data.decode("utf-8", "replace") if text is None else text


def refuse_sound_and_video(file: File) -> None:
    """Raise Unsupported for a file that is sound or video, for dialects that have no form for them."""
    kind = find_media_type(file)
    if kind.startswith(("audio/", "video/")):
        raise Unsupported(f"{kind} cannot be sent here; leave the file out, or ask a model of another provider.")


def make_data_url(media_type: str, data: bytes) -> str:
    """Encode the bytes as a data: address."""
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type, "" without one, and the base64 of a data: address; None for other addresses."""
    inline = _DATA_URL.fullmatch(url)
    return None if inline is None else (inline[1], inline[2])


def make_image_url(image: Image) -> str:
    """Return the address of an image: its url, or a data: address with its bytes."""
    if image.data is not None:
        return make_data_url(image.media_type, image.data)
    if image.url is not None:
        return image.url
    raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
