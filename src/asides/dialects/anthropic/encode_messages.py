"""The history as turns of content blocks, and the system prompt beside them: `encode_messages(prompt, notices)`.

Not here: which thoughts go back (plan has taken out the others), and the rest of the request (encode).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE
from asides.dialects.message_encoder import BlockFormat, Wire, encode_turns, find_entry, split_data_url
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Message, Prompt, Text, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought

FILES = "files-api-2025-04-14"
"""The beta that files by their id need."""


class EncodedMessages(msgspec.Struct):
    """A history as a request carries it."""

    system: str | list[Wire] | None
    messages: list[Wire]
    betas: list[str]


def encode_messages(prompt: Prompt, notices: list[Notice]) -> EncodedMessages:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    encoded = encode_turns(prompt, _BLOCKS, notices)
    turns, system = encoded.turns, encoded.system
    if turns and turns[-1]["role"] == "assistant":
        _strip_last_text(turns[-1]["content"][-1])
    for turn in turns:
        turn["content"] = _simplify_content(turn)
    is_plain = len(system) == 1 and "cache_control" not in system[0]
    betas = [FILES] if any(map(_has_file_id, prompt.messages)) else []
    return EncodedMessages((system[0]["text"] if is_plain else system) if system else None, turns, betas)


def _has_file_id(message: Message) -> bool:
    """Whether a file goes by its id, in a message that can hold files or in a result of a tool."""
    if message.role not in ("user", "tool"):
        return False
    results = [part.content for part in message.parts if isinstance(part, ToolResult)]
    inner = [part for content in results if not isinstance(content, str) for part in content]
    return any(isinstance(part, File) and part.id is not None for part in (*message.parts, *inner))


def _strip_last_text(block: Any) -> None:
    """The text that the model is to continue may not end in blanks."""
    if isinstance(block, dict) and block["type"] == "text":
        block["text"] = block["text"].rstrip()


def _simplify_content(turn: Wire) -> str | list[Any]:
    """Plain text as a string, everything else as the list of its blocks."""
    match turn["content"]:
        case [{"type": "text", "text": str() as text, **more}] if not more and turn["role"] == "user":
            return text
        case blocks:
            return list(blocks)


def _add_turn(turns: list[Wire], role: str, blocks: list[Any]) -> None:
    """User messages and tool results in a row are one turn, results first."""
    if role == "user" and turns and turns[-1]["role"] == "user":
        blocks = [*turns.pop()["content"], *blocks]
    if role == "user":
        blocks.sort(key=lambda block: not (isinstance(block, dict) and block["type"] == "tool_result"))
    turns.append({"role": role, "content": blocks})


def _mark_cache(block: Wire) -> list[Any]:
    return [{**block, "cache_control": {"type": "ephemeral"}}]


# --- user and tools -------------------------------------------------------------------------------------------------


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
    encoded: Wire = {"type": "document", "source": _encode_file_source(file)}
    return encoded if file.name == "file" else {**encoded, "title": file.name}


def _encode_file_source(file: File) -> Wire:
    if file.id is not None:
        return {"type": "file", "file_id": file.id}
    if file.data is not None and file.media_type == "text/plain":
        return {"type": "text", "media_type": "text/plain", "data": file.data.decode("utf-8", "replace")}
    if file.data is not None and file.media_type == "application/pdf":
        return {"type": "base64", "media_type": file.media_type, "data": b64encode(file.data).decode()}
    if file.data is not None:
        raise Unsupported(f"files are PDF or plain text here, not {file.media_type}; convert it first.")
    if file.url is None:
        raise Unsupported("a file has neither data nor an address nor an id; give File(data=…).")
    return _encode_url(file.url)


def _encode_url(url: str) -> Wire:
    inline = split_data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    media_type, data = inline
    return {"type": "base64", "media_type": media_type, "data": data}


# --- assistant ------------------------------------------------------------------------------------------------------


def _encode_thought(thought: Thought) -> list[Wire]:
    """The blocks that a thought came as. Where nothing was signed, the field is there and empty."""
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
    caller = find_entry(call.seals, CALLER)
    return encoded if caller is None else {**encoded, "caller": caller}


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
