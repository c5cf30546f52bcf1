"""Encode what a user says in the dialect of Responses: text, pictures and files."""

from __future__ import annotations

from typing import Any

from asides.dialects.media import make_data_url, make_image_url, refuse_sound_and_video
from asides.dialects.message_encoder import Wire, encode_native, leave_out
from asides.values.errors import Unsupported
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Text, UnknownPart


def encode_input_part(part: Part, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part of a user message, or of a result."""
    match part:
        case Text():
            return [{"type": "input_text", "text": part.text}]
        case Image():
            return [_encode_image(part)]
        case File():
            return [_encode_file(part)]
        case UnknownPart():
            return encode_native(part, role, notices)
        case _:
            return leave_out(part, role, notices)


def _encode_image(image: Image) -> Wire:
    encoded = {"type": "input_image", "image_url": make_image_url(image)}
    return encoded if image.detail is None else {**encoded, "detail": image.detail}


def _encode_file(file: File) -> Wire:
    refuse_sound_and_video(file)
    if file.id is not None:
        return {"type": "input_file", "file_id": file.id}
    if file.data is not None:
        return {"type": "input_file", "filename": file.name, "file_data": make_data_url(file.media_type, file.data)}
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    raise Unsupported("a file has neither data, an address nor an id; give File(data=…), File(url=…) or File(id=…).")
