"""LangChain's content blocks and the parts of a reply: what a message of ours carries, and its `content_blocks`.

A message holds the answer as text in `content`, the calls in `tool_calls`, and under `additional_kwargs["asides"]` the
rest: thinking and the order of all blocks. Other chat models ignore that field. Seals are in `extras` of a block, as
one text, which is void once the block was changed.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, cast

import msgspec
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.block_translators import register_translator
from langchain_core.messages.content import ContentBlock

from asides.history.document import write_message
from asides.intake.objects.langchain_state import CUSTOM_ARGUMENT, NAME, Block, fingerprint, list_blocks, read_entries
from asides.values.messages import Message
from asides.values.parts import (
    Commentary,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.thinking import Thought

_EMPTY: Block = {"type": "non_standard", "value": {"type": "seal"}}
"""An empty text, which has nothing but a seal."""


# --- what a block carries ---------------------------------------------------------------------------------------------


def carry(part: Part, turn: Message) -> dict[str, str]:
    """The `extras` of a part: all of it that LangChain's block cannot hold, with the facts of its turn."""
    emptied = _empty(part)
    if emptied is None:
        return {}
    document = write_message(msgspec.structs.replace(turn, parts=(emptied,)))
    fields = {"of": fingerprint(build_block(part)), "message": msgspec.Raw(document)}
    return {NAME: msgspec.json.encode(fields).decode()}


def _empty(part: Part) -> Part | None:
    """The part without what its block shows; None when the block shows all of it."""
    match part:
        case Thought():
            return msgspec.structs.replace(part, text="")
        case Text():
            return msgspec.structs.replace(part, text="") if part.seals else None
        case Commentary():
            return part if part.seals else None
        case ToolCall():
            is_plain = not part.seals and not part.custom
            return None if is_plain else msgspec.structs.replace(part, arguments={}, raw_arguments=None)
        case Image() | File():
            return msgspec.structs.replace(part, data=None)
        case Refusal() | ToolResult():
            return None
        case ServerTool() | UnknownPart():
            return part


# --- a part as a block ------------------------------------------------------------------------------------------------


def build_block(part: Part) -> Block:
    """The standard block of a part, without `extras`."""
    match part:
        case Thought():
            return {"type": "reasoning", "reasoning": part.text}
        case Text(text=""):
            return dict(_EMPTY)
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            shown = {"id": part.id, "name": part.name}
            if part.custom:
                return {"type": "tool_call", **shown, "args": {CUSTOM_ARGUMENT: part.raw_arguments or ""}}
            if part.raw_arguments is not None:
                return {"type": "invalid_tool_call", **shown, "args": part.raw_arguments, "error": None}
            return {"type": "tool_call", **shown, "args": part.arguments}
        case Image():
            return {"type": "image", **_build_source(part.url, part.data), "mime_type": part.media_type}
        case File():
            kind = part.media_type.partition("/")[0]
            source = {"file_id": part.id} if part.id is not None else _build_source(part.url, part.data)
            kind = kind if kind in ("audio", "video") else "file"
            return {"type": kind, **source, "mime_type": part.media_type}
        case Refusal():
            return {"type": "non_standard", "value": {"type": "refusal", "refusal": part.text}}
        case Commentary():
            return {"type": "non_standard", "value": {"type": "commentary", "commentary": part.text}}
        case ServerTool():
            return _build_server_tool(part)
        case UnknownPart():
            return {"type": "non_standard", "value": _decode(part.json)}
        case ToolResult():
            return {"type": "non_standard", "value": {"type": "tool_result", "tool_use_id": part.call_id}}


def _build_source(url: str | None, data: bytes | None) -> Block:
    return {"url": url} if data is None else {"base64": b64encode(data).decode()}


def _build_server_tool(part: ServerTool) -> Block:
    item = _decode(part.json)
    fields = item if isinstance(item, dict) else {}
    if part.name.endswith("_result"):
        failed = part.status in ("failed", "error") or fields.get("is_error") is True
        output = {"output": fields["content"]} if "content" in fields else {}
        call_id = fields.get("tool_use_id") or part.id or ""
        status = "error" if failed else "success"
        return {"type": "server_tool_result", "tool_call_id": call_id, "status": status, **output}
    names = ("input", "action", "arguments")
    given: Any = next((fields[name] for name in names if isinstance(fields.get(name), dict)), {})
    return {"type": "server_tool_call", "id": part.id or "", "name": part.name, "args": given}


def _decode(document: str) -> Any:
    try:
        return msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return {"json": document}


# --- a message of ours as blocks --------------------------------------------------------------------------------------


def _translate(message: AIMessage) -> list[ContentBlock]:
    """The blocks of a message of ours, which is whole."""
    if not isinstance(message.content, str):
        raise NotImplementedError  # the caller wrote blocks into it; LangChain reads them itself
    calls = [cast(Block, call) for call in (*message.tool_calls, *message.invalid_tool_calls)]
    blocks = list_blocks(message.content, read_entries(message.additional_kwargs), calls)
    return cast("list[ContentBlock]", blocks)


def _translate_chunk(message: AIMessageChunk) -> list[ContentBlock]:
    """The blocks of a piece of a message. Each has an index, by which LangChain merges them, until it is whole."""
    if not isinstance(message.content, str):
        raise NotImplementedError
    if message.chunk_position == "last":
        return _translate(message)
    blocks: list[Block] = []
    text = message.content
    pieces: dict[Any, Block] = {
        piece.get("index"): {"type": "tool_call_chunk", **piece} for piece in message.tool_call_chunks
    }
    for entry in read_entries(message.additional_kwargs):
        shown = {name: value for name, value in entry.items() if name not in ("place", "length", "call")}
        match entry.get("type"):
            case "text":
                shown, text = {**shown, "text": text}, ""
            case "tool_call":
                piece = pieces.pop(number := entry.get("call"), None)
                empty = {"type": "tool_call_chunk", "id": None, "name": None, "args": None, "index": number}
                shown = (piece or empty) | ({"extras": entry["extras"]} if "extras" in entry else {})
            case _:
                pass
        blocks.append(shown)
    if text:
        blocks.append({"type": "text", "text": text})
    return cast("list[ContentBlock]", [*blocks, *pieces.values()])


register_translator(NAME, _translate, _translate_chunk)
