"""The history as turns of content blocks, and the system prompt beside them: `encode_messages(prompt, notices)`.

A thought goes back only with its signature, since one that is not signed would turn up in the answer. Not here: which
thoughts go back (plan), and the rest of the request (encode).
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.message_encoder import (
    BlockFormat,
    EncodedTurns,
    Wire,
    encode_turns,
    find_entry,
    split_data_url,
)
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Prompt, Text, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+|\s{2,}")

_FORMATS = {
    "image/jpg": "jpeg",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/plain": "txt",
    "text/markdown": "md",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/3gpp": "three_gp",
}


def encode_messages(prompt: Prompt, notices: list[Notice]) -> EncodedTurns:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return encode_turns(prompt, _BLOCKS, notices)


def _add_turn(turns: list[Wire], role: str, blocks: list[Any]) -> None:
    """Messages of one role in a row are one turn, since two such turns are refused."""
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _mark_cache(block: Wire) -> list[Any]:
    return [block, {"cachePoint": {"type": "default"}}]


def _encode_text(text: str) -> Wire:
    return {"text": text}


def _encode_tool_result(result: ToolResult, call_id: str, blocks: list[Any]) -> Wire:
    encoded: Wire = {"toolUseId": call_id, "content": blocks}
    return {"toolResult": {**encoded, "status": "error"} if result.is_error else encoded}


def _encode_image(image: Image) -> Wire:
    return {"image": _encode_media(image.media_type, image.data, image.url)}


def _encode_file(file: File) -> Wire:
    media = _encode_media(file.media_type, file.data, file.url)
    if file.media_type.startswith("video/"):
        return {"video": media}
    if file.media_type.startswith("image/"):
        return {"image": media}
    name = _NOT_IN_NAMES.sub(" ", file.name.rpartition(".")[0] or file.name).strip() or "file"
    return {"document": {"name": name, **media}}


def _encode_media(media_type: str, data: bytes | None, url: str | None) -> Wire:
    inline = split_data_url(url) if url is not None else None
    kind = inline[0] if inline is not None else media_type
    form = _FORMATS.get(kind) or kind.rpartition("/")[2]
    if data is not None:
        return {"format": form, "source": {"bytes": b64encode(data).decode()}}
    if inline is not None:
        return {"format": form, "source": {"bytes": inline[1]}}
    if url is not None and url.startswith("s3://"):
        return {"format": form, "source": {"s3Location": {"uri": url}}}
    raise Unsupported("pictures and files are taken by their bytes, or from s3:// addresses; give data=….")


def _encode_thought(thought: Thought) -> list[Wire]:
    """The blocks that a thought came as, byte for byte."""
    encoded: list[Wire] = []
    for seal in thought.seals:
        if seal.kind == REDACTED:
            encoded.append({"reasoningContent": {"redactedContent": seal.value}})
        elif seal.kind == SIGNATURE:
            text = {"text": thought.text, "signature": seal.value}
            encoded.append({"reasoningContent": {"reasoningText": text}})
    return encoded


def _encode_answer(part: Text) -> Wire:
    text = _encode_text(part.text)
    citations = find_entry(part.seals, CITATIONS)
    return text if citations is None else {"citationsContent": {"content": [text], "citations": citations}}


def _encode_tool_call(call: ToolCall, call_id: str) -> Wire:
    return {"toolUse": {"toolUseId": call_id, "name": call.name, "input": call.arguments}}


_BLOCKS = BlockFormat(
    text=_encode_text,
    image=_encode_image,
    file=_encode_file,
    tool_result=_encode_tool_result,
    thought=_encode_thought,
    answer=_encode_answer,
    tool_call=_encode_tool_call,
    mark_cache=_mark_cache,
    add_turn=_add_turn,
)
