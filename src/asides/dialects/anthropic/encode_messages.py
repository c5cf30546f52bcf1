"""Encodes a history as turns of content blocks and a system prompt: `encode_messages(prompt, notices)`.

In order: messages, user parts, assistant parts. history/plan has removed the thoughts that do not go back.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, CONTAINER, REDACTED, SIGNATURE, TOOLSET
from asides.dialects.media import read_text_file, refuse_sound_and_video, split_data_url
from asides.dialects.message_encoder import Wire, find_entry, report_field
from asides.dialects.turn_encoder import BlockFormat, encode_turns
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thought

FILES = "files-api-2025-04-14"
"""The beta that files by their id need."""

EFFORT_CHANGES = "mid-conversation-output-config-2026-07-01"
"""The beta that messages which change the effort need (platform.claude.com effort-per-message, 2026-11-16)."""


BLOCK_FIELDS = {
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
}
"""The fields of blocks. Claude's servers refuse others, and any beside the role and the content of a message."""


class EncodedMessages(msgspec.Struct):
    """A history as encoded in a request."""

    system: str | list[Wire] | None
    messages: list[Wire]
    betas: list[str]


def _accepts_field(
    holder: Mapping[str, Any], name: str, *, notices: list[Notice], is_strict: bool, marks: bool
) -> bool:
    # A request has few breakpoints. With `cache=` the rest is ours: those that were not read are dropped.
    known = BLOCK_FIELDS.get(str(holder.get("type")))
    if name == "cache_control":
        return marks and (known is None or name in known)
    if not is_strict:
        return True
    if "role" in holder:
        is_known = holder["role"] == "system" and name == "output_config"
    else:
        is_known = known is None or name in known
    if not is_known:
        report_field(notices, name)
    return is_known


def encode_messages(
    prompt: Prompt,
    notices: list[Notice],
    *,
    changes_effort: bool = False,
    is_strict: bool = False,
    model_first: bool = False,
) -> EncodedMessages:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one.

    `changes_effort`: the model takes messages that change the effort. `is_strict`: the host refuses unknown fields.
    `model_first`: it accepts a history that begins with the model.
    """
    accepts = partial(_accepts_field, notices=notices, is_strict=is_strict, marks=not prompt.cache)
    form = _EFFORT_BLOCKS if changes_effort else _BLOCKS
    encoded = encode_turns(prompt, form, notices, accepts, model_first=model_first)
    if encoded.last == "assistant":
        _strip_last_text(encoded.turns[-1]["content"][-1])
    system = encoded.system
    is_plain = len(system) == 1 and "cache_control" not in system[0]
    has_ids = any(map(_has_file_id, prompt.messages))
    shown = (system[0]["text"] if is_plain else system) if system else None
    betas = [FILES] if has_ids else []
    if changes_effort and any(message.role == "system" and message.effort for message in prompt.messages):
        betas.append(EFFORT_CHANGES)
    return EncodedMessages(shown, encoded.turns, betas)


def find_container(messages: Sequence[Message]) -> str | None:
    """Return the id of the container of the latest reply that had one, where the plan sends it back."""
    for message in reversed(messages):
        for part in reversed(message.parts) if message.role == "assistant" else ():
            if (entry := find_entry(part.seals, CONTAINER)) is not None:
                return msgspec.json.decode(entry, type=str)
    return None


def _has_file_id(message: Message) -> bool:
    """Whether a file is sent by its id, in a message that can hold files or in a tool result."""
    if message.role not in ("user", "tool"):
        return False
    for part in message.parts:
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            if any(isinstance(each, File) and each.id is not None for each in part.content):
                return True
        elif isinstance(part, File) and part.id is not None:
            return True
    return False


def _strip_last_text(block: Any) -> None:
    """Remove blanks at the end of the text that the model should continue: they are refused."""
    if isinstance(block, dict) and block.get("type") == "text":
        block["text"] = block["text"].rstrip()


_SYSTEM_TURN = "words of the system"


def _finish_turn(role: str, blocks: list[Any]) -> Wire:
    """Build a turn. Of the user's blocks, results are first; plain text is a string. The system changes effort."""
    if role == "system":
        return {"role": role, "content": [], "output_config": blocks[0]}
    if role == _SYSTEM_TURN:
        return {"role": "system", "content": list(blocks)}
    if role == "user":
        blocks = sorted(blocks, key=lambda block: not (isinstance(block, dict) and block["type"] == "tool_result"))
    match blocks:
        case [{"type": "text", "text": str() as text, **more}] if not more and role == "user":
            return {"role": role, "content": text}
        case _:
            return {"role": role, "content": list(blocks)}


def _encode_effort(effort: str) -> Wire:
    return {"effort": effort}


def _mark_cache(block: Wire, lifetime: bool | str) -> list[Any]:
    return [{**block, "cache_control": encode_cache(lifetime)}]


def encode_cache(lifetime: bool | str) -> Wire:
    """Encode a cache breakpoint."""
    return {"type": "ephemeral", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "ephemeral"}


# --- user parts -----------------------------------------------------------------------------------------------------


def _encode_text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _encode_tool_result(result: ToolResult, call_id: str, blocks: list[Any]) -> Wire:
    content = result.content if isinstance(result.content, str) else blocks
    encoded: Wire = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**encoded, "is_error": True} if result.is_error else encoded


def _encode_image(image: Image) -> Wire:
    if image.data is not None:
        data = b64encode(image.data).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
    if image.url is None:
        raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
    return {"type": "image", "source": _encode_url(image.url)}


def _encode_file(file: File) -> Wire:
    refuse_sound_and_video(file)
    encoded: Wire = {"type": "document", "source": _encode_file_source(file)}
    return encoded if file.name == "file" else {**encoded, "title": file.name}


def _encode_file_source(file: File) -> Wire:
    if file.id is not None:
        return {"type": "file", "file_id": file.id}
    if (text := read_text_file(file)) is not None:
        return {"type": "text", "media_type": "text/plain", "data": text}
    if file.data is not None and file.media_type == "application/pdf":
        return {"type": "base64", "media_type": file.media_type, "data": b64encode(file.data).decode()}
    if file.data is not None:
        raise Unsupported(f"files are PDF or text here, not {file.media_type}; convert it first.")
    if file.url is None:
        raise Unsupported("a file has neither data nor an address nor an id; give File(data=…).")
    return _encode_url(file.url)


def _encode_url(url: str) -> Wire:
    inline = split_data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    media_type, data = inline
    return {"type": "base64", "media_type": media_type, "data": data}


# --- assistant parts ------------------------------------------------------------------------------------------------


def _encode_thought(thought: Thought) -> list[Wire]:
    """Encode a thought as the blocks in which it arrived. Without a signature the field is present and empty."""
    redacted = [seal.value for seal in thought.seals if seal.kind == REDACTED]
    signature = next((seal.value for seal in thought.seals if seal.kind == SIGNATURE), "")
    encoded: list[Wire] = [{"type": "redacted_thinking", "data": data} for data in redacted]
    if signature or (thought.text and not redacted):
        encoded.append({"type": "thinking", "thinking": thought.text, "signature": signature})
    return encoded


def _encode_answer(part: Text) -> Wire:
    citations = find_entry(part.seals, CITATIONS)
    return _encode_text(part.text) if citations is None else {**_encode_text(part.text), "citations": citations}


def _encode_tool_call(call: ToolCall, call_id: str) -> Wire:
    encoded: Wire = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
    for name, kind in (("caller", CALLER), ("toolset_name", TOOLSET)):
        if (entry := find_entry(call.seals, kind)) is not None:
            encoded[name] = entry
    return encoded


_BLOCKS = BlockFormat(
    dialect="anthropic",
    text=_encode_text,
    image=_encode_image,
    file=_encode_file,
    tool_result=_encode_tool_result,
    thought=_encode_thought,
    answer=_encode_answer,
    tool_call=_encode_tool_call,
    mark_cache=_mark_cache,
    finish_turn=_finish_turn,
    system_turn=_SYSTEM_TURN,
)
_EFFORT_BLOCKS = msgspec.structs.replace(_BLOCKS, effort_change=_encode_effort)
