"""The state in a LangChain message of `ChatAsides`: its blocks in order, and the parts of the reply they came from.

Works on plain fields, so the messages can be read without LangChain (read_objects).
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from asides.history.document import read_message
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import File, Image, Part, Text, ToolCall
from asides.values.thinking import Thought

NAME = "asides"
"""Our name in LangChain: the `model_provider` of messages, and the key of our state in them."""
CUSTOM_ARGUMENT = "__arg1"
"""The argument of a call with free text: LangChain's calls take an object."""

Block: TypeAlias = dict[str, Any]
_SIZE = 9


class Carried(msgspec.Struct, frozen=True):
    """The content of `extras` of a block."""

    of: str
    """The fingerprint of the block when it was written."""
    message: Message
    """The turn with only the part of this block, without the text that the block itself has."""

    def fill(self, block: Mapping[str, Any]) -> Part | None:
        """The original part; None if the block is of another kind, or was changed."""
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
    """Read `extras` of a block; None if it has no state of ours, or an unreadable one."""
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
    """A digest of the visible content of a block."""
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


class CarriedParts:
    """Finds the state of a block: in the block itself, or beside it if the block lost it."""

    def __init__(self, entries: Sequence[Block]) -> None:
        """`entries` are those of `read_entries`."""
        found = [carried for entry in entries if (carried := read_carried(entry)) is not None]
        self._spare = {carried.of: carried for carried in found}

    def find(self, block: Block) -> Carried | None:
        """The state of a block; None if it is lost."""
        return read_carried(block) or (self._spare.get(fingerprint(block)) if self._spare else None)


# --- the blocks of a message --------------------------------------------------------------------------------------


def read_entries(beside: Mapping[str, Any]) -> list[Block]:
    """The entries in `additional_kwargs` of a message, one for each block, in order. Text and arguments are in the
    message itself.
    """
    carried = beside.get(NAME)
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


def list_blocks(content: str, entries: Sequence[Block], calls: Sequence[Block]) -> list[Block]:
    """The blocks of a whole message, from its text, entries and calls."""
    texts = _split_text(content, entries)
    left = {call.get("id"): call for call in calls}
    blocks: list[Block] = []
    for entry in entries:
        match entry.get("type"):
            case "text":
                text = next(texts, "")
                shown: Block | None = {"type": "text", "text": text} if text else None
            case "tool_call":
                call = left.pop(entry.get("id"), None)
                shown = None if call is None else _show_call(call)
            case _:
                shown = {name: value for name, value in entry.items() if name not in ("index", "place")}
        if shown is not None:
            blocks.append(shown | ({"extras": entry["extras"]} if "extras" in entry else {}))
    blocks += [{"type": "text", "text": text} for text in texts if text]
    return [*blocks, *map(_show_call, left.values())]


def _show_call(call: Block) -> Block:
    return {name: value for name, value in call.items() if name in ("type", "id", "name", "args", "error")}


def _split_text(content: str, entries: Sequence[Block]) -> Iterator[str]:
    """The text of each text block; all of it in one if the lengths are missing or no longer fit."""
    lengths = [entry.get("length") for entry in entries if entry.get("type") == "text"]
    sizes = [length for length in lengths if isinstance(length, int) and length >= 0]
    if len(sizes) != len(lengths) or sum(sizes) != len(content):
        return iter((content,))
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return iter([content[start : start + size] for start, size in zip(starts, sizes, strict=True)])


def read_facts_of_turn(beside: Mapping[str, Any]) -> Message | None:
    """The turn in the `additional_kwargs` of a message, without its parts; None if there is none."""
    carried = beside.get(NAME)
    document = carried.get("turn") if isinstance(carried, Mapping) else None
    if not isinstance(document, str):
        return None
    try:
        turn, _ = read_message(document)
    except (ConfigError, UnicodeError):
        return None  # messages were merged or changed
    return msgspec.structs.replace(turn, parts=()) if turn.role == "assistant" else None


# --- a turn from plain fields -----------------------------------------------------------------------------------------


def read_own_turn(fields: Mapping[str, Any]) -> Message | None:
    """The turn of a message that `ChatAsides` wrote, with its seals; None for other messages and unknown blocks.

    Changed thinking can be shown, but is not sent back.
    """
    beside, content = fields.get("additional_kwargs"), fields.get("content")
    if not isinstance(beside, Mapping) or NAME not in beside:
        return None
    entries = read_entries(beside)
    listed: list[Any] = [*(fields.get("tool_calls") or ()), *(fields.get("invalid_tool_calls") or ())]
    calls = [dict(call) for call in listed if isinstance(call, Mapping)]
    if isinstance(content, str):
        blocks = list_blocks(content, entries, calls)
    else:
        blocks = [dict(block) for block in content or () if isinstance(block, Mapping)]
    spare = CarriedParts(entries)
    turn = read_facts_of_turn(beside)
    parts: list[Part] = []
    for block in blocks:
        carried = spare.find(block)
        part = None if carried is None else carried.fill(block)
        if carried is not None and part is not None:
            turn = msgspec.structs.replace(carried.message, parts=())
        else:
            part = _read_plain_block(block)
        if part is None:
            return None
        parts.append(part)
    return msgspec.structs.replace(turn or Message("assistant", ()), parts=tuple(parts))


def _read_plain_block(block: Block) -> Part | None:
    match block:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "reasoning", "reasoning": str() as text}:
            return Thought(text, replayable=False)
        case {"type": "tool_call", "args": Mapping() as given}:
            return ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), dict(given))
        case {"type": "invalid_tool_call"}:
            raw = str(block.get("args") or "")
            return ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), {}, raw)
        case _:
            return None
