"""LangChain's content blocks and the parts of a reply: what a message of ours carries, and its `content_blocks`.

A message holds the answer as text in `content`, the calls in `tool_calls`, and under `additional_kwargs["asides"]` the
rest: thinking and the order of all blocks. Other chat models ignore that field. Seals stand in `extras` of a block, as
one text, which is void when somebody has changed the block. Not here: how messages are read for a request
(langchain_messages), and how they are written (langchain_replies).
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.block_translators import register_translator
from langchain_core.messages.content import ContentBlock

from asides.history.document import read_message, write_message
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought

NAME = "asides"
"""Our name in LangChain: the `model_provider` of messages, and the key of what they carry."""
CUSTOM_ARGUMENT = "__arg1"
"""The argument of a call with free text: LangChain's calls take an object."""

Block: TypeAlias = dict[str, Any]
_EMPTY: Block = {"type": "non_standard", "value": {"type": "seal"}}
"""An empty text, which has nothing but a seal."""
_SIZE = 9


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
        case ToolCall():
            is_plain = not part.seals and not part.custom
            return None if is_plain else msgspec.structs.replace(part, arguments={}, raw_arguments=None)
        case Image() | File():
            return msgspec.structs.replace(part, data=None)
        case Refusal() | ToolResult():
            return None
        case ServerTool() | UnknownPart():
            return part


class Carried(msgspec.Struct, frozen=True):
    """What `extras` of a block hold."""

    of: str
    """The fingerprint of the block when it was written."""
    message: Message
    """The turn, with the one part that the block is of, without what the block shows."""

    def fill(self, block: Mapping[str, Any]) -> Part | None:
        """The part, as it was; None when the block is of another kind, or was changed since."""
        part = self.message.parts[0]
        if self.of != fingerprint(block):
            return None
        match part:
            case Thought():
                return msgspec.structs.replace(part, text=block.get("reasoning") or "")
            case Text():
                return msgspec.structs.replace(part, text=block.get("text") or "")
            case ToolCall(custom=True):
                return msgspec.structs.replace(part, raw_arguments=str(block["args"].get(CUSTOM_ARGUMENT, "")))
            case ToolCall() if block.get("type") == "invalid_tool_call":
                return msgspec.structs.replace(part, raw_arguments=block.get("args") or "")
            case ToolCall():
                return msgspec.structs.replace(part, arguments=dict(block["args"]))
            case Image() | File() if isinstance(data := block.get("base64"), str):
                return msgspec.structs.replace(part, data=b64decode(data))
            case _:
                return part


def read_carried(block: Mapping[str, Any]) -> Carried | None:
    """Read `extras` of a block; None when there is nothing of ours, or nothing that can be read."""
    extras = block.get("extras")
    document = extras.get(NAME) if isinstance(extras, Mapping) else None
    if not isinstance(document, str):
        return None
    try:
        fields = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        message, _ = read_message(bytes(fields["message"]))
        of = msgspec.json.decode(fields["of"], type=str)
    except (msgspec.MsgspecError, UnicodeError, KeyError, RecursionError, ConfigError):
        return None
    return Carried(of, message) if len(message.parts) == 1 else None


def fingerprint(block: Mapping[str, Any]) -> str:
    """A digest of what a block shows."""
    match block.get("type"):
        case "reasoning":
            shown: object = block.get("reasoning") or ""
        case "text":
            shown = block.get("text") or ""
        case "tool_call" | "invalid_tool_call":
            shown = [block.get("id"), block.get("name"), block.get("args")]
        case kind:
            shown = [kind, block.get("base64"), block.get("url")]
    document = json.dumps(shown, sort_keys=True, default=repr)
    return hashlib.blake2b(document.encode(), digest_size=_SIZE).hexdigest()


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


def read_entries(message: AIMessage) -> list[Block]:
    """What a message carries of its blocks, in their order. Text and arguments are in the message itself."""
    carried = message.additional_kwargs.get(NAME)
    found = carried.get("blocks") if isinstance(carried, Mapping) else None
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    # Two messages may have been merged. Places count within one.
    replies = list(dict.fromkeys(map(_find_reply, entries)))
    return sorted(entries, key=lambda entry: (replies.index(_find_reply(entry)), _read_place(entry)))


def _find_reply(entry: Block) -> str:
    return str(entry.get("index", "")).rpartition("_")[0]


def _read_place(entry: Block) -> int:
    place = entry.get("place")
    return place if isinstance(place, int) else 1 << 30


def _translate(message: AIMessage) -> list[ContentBlock]:
    """The blocks of a message of ours, which is whole."""
    if not isinstance(message.content, str):
        raise NotImplementedError  # somebody wrote blocks into it; LangChain reads them itself
    entries = read_entries(message)
    texts = _split_text(message.content, entries)
    calls = {call["id"]: cast(Block, call) for call in (*message.tool_calls, *message.invalid_tool_calls)}
    blocks: list[Block] = []
    for entry in entries:
        match entry.get("type"):
            case "text":
                text = next(texts, "")
                shown: Block | None = {"type": "text", "text": text} if text else None
            case "tool_call":
                call = calls.pop(entry.get("id"), None)
                shown = None if call is None else _show_call(call)
            case _:
                shown = {name: value for name, value in entry.items() if name not in ("index", "place")}
        if shown is not None:
            blocks.append(shown | ({"extras": entry["extras"]} if "extras" in entry else {}))
    blocks += [{"type": "text", "text": text} for text in texts if text]
    blocks += [_show_call(call) for call in calls.values()]
    return cast("list[ContentBlock]", blocks)


def _show_call(call: Block) -> Block:
    return {name: value for name, value in call.items() if name in ("type", "id", "name", "args", "error")}


def _split_text(content: str, entries: Sequence[Block]) -> Iterator[str]:
    """The text of each block of text. All of it in one, if the message does not tell, or was changed."""
    lengths = [entry.get("length") for entry in entries if entry.get("type") == "text"]
    sizes = [length for length in lengths if isinstance(length, int) and length >= 0]
    if len(sizes) != len(lengths) or sum(sizes) != len(content):
        return iter((content,))
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return iter([content[start : start + size] for start, size in zip(starts, sizes, strict=True)])


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
    for entry in read_entries(message):
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
