"""Imports turns of content blocks, as clients write them: `import_messages(turns)`.

Lenient, but an object that is not a message is refused.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE, VIA, build_raw_part
from asides.dialects.verbatim import keep_source
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role
from asides.values.parts import File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import EFFORTS, Effort, Seal, Thought
from asides.values.tools import read_cache_control

_DIRECT = {"type": "direct"}
# Sources that only this provider knows; such a block stays as it is.
_RAW_SOURCES = {"image": ("file",), "document": ("content",)}


def import_messages(turns: Iterable[object]) -> tuple[Message, ...]:
    """Import these turns. Tool results become separate messages, before the other parts of their turn."""
    messages: list[Message] = []
    for place, turn in enumerate(turns):
        try:
            messages += _import_turn(turn)
        except ConfigError as problem:
            raise ConfigError(f"messages.{place}: {problem}") from None
    return tuple(messages)


def import_texts(content: object) -> tuple[Text, ...]:
    """Import a text: a string, or a list of text blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts = [_import_block(block) for block in _read_blocks(content)]
    texts = tuple(part for part in parts if isinstance(part, Text))
    if len(texts) != len(parts):
        raise ConfigError("only text blocks are allowed here.")
    return texts


def _import_turn(turn: object) -> list[Message]:
    if not isinstance(turn, (dict, Mapping)):
        raise ConfigError("a message is an object with a role and content.")
    if "content" not in turn:
        raise ConfigError("content is missing.")
    content, role = turn.get("content"), turn.get("role")
    if len(turn) == 2 and (role == "user" or role == "assistant"):  # noqa: PLR1714 - types
        # Most are one text; they need no source.
        match content:
            case str() as text if text:
                return [Message(role, (Text(text),))]
            case [{"type": "text", "text": str() as text, **more}] if text and not more:
                return [Message(role, (Text(text),))]
            case _:
                pass
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _read_blocks(content)
    parts = [_import_block(block) for block in blocks]
    beside = {name: value for name, value in turn.items() if name not in ("role", "content")}
    match role:
        case "assistant":
            return [keep_source(Message("assistant", tuple(parts)), "anthropic", blocks, beside)]
        case "user":
            messages: list[Message] = []
            split: list[tuple[Role, bool]] = [("tool", True), ("user", False)]
            for role, is_result in split:
                pairs = [
                    pair for pair in zip(parts, blocks, strict=True) if isinstance(pair[0], ToolResult) == is_result
                ]
                if pairs:
                    message = Message(role, tuple(part for part, _ in pairs))
                    messages.append(keep_source(message, "anthropic", [block for _, block in pairs], beside))
            return messages or [Message("user")]
        case "system":
            message = Message("system", tuple(parts), effort=_find_effort(turn))
            # Without parts it only changes the effort, which is encoded by the rule of the model.
            return [keep_source(message, "anthropic", blocks, beside, always=True) if parts else message]
        case _:
            raise ConfigError(f"the role {role!r} is not known; use user or assistant.")


def _find_effort(turn: Mapping[str, Any]) -> Effort | None:
    """The effort that a system message changes to; None if it changes none."""
    config = turn.get("output_config")
    word = config.get("effort") if isinstance(config, Mapping) else None
    return next((effort for effort in EFFORTS if effort == word), None)


def _read_blocks(content: object) -> list[Any]:
    if content is None:
        return []
    if not isinstance(content, list):
        raise ConfigError("content is text or a list of blocks.")
    return content


def _import_block(block: object) -> Part:
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise ConfigError("a block is an object with a type.")
    cached = read_cache_control(block)
    match block["type"]:
        case "text":
            return Text(_read_text(block, "text"), _make_entry_seals(block, "citations", CITATIONS), cached)
        case "thinking":
            signature = _read_optional_text(block, "signature")
            seals = (Seal(SIGNATURE, signature),) if signature else ()
            text = _read_text(block, "thinking")
            return Thought(text, "summary" if text.strip() else "hidden", "block", None, seals, VIA)
        case "redacted_thinking":
            return Thought("", "hidden", "block", None, (Seal(REDACTED, _read_text(block, "data")),))
        case "tool_use":
            return _import_tool_call(block)
        case "tool_result":
            return _import_tool_result(block, cached=cached)
        case "image" | "document" if _read_source_type(block) in _RAW_SOURCES.get(block["type"], ()):
            return build_raw_part(dict(block), None)
        case "image":
            return _import_image(block, cached=cached)
        case "document":
            return _import_file(block, cached=cached)
        case _:
            return build_raw_part(dict(block), None)


def _import_tool_call(block: Mapping[str, Any]) -> ToolCall:
    arguments = block.get("input")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ConfigError("the input of a tool_use is an object.")
    seals = () if block.get("caller") == _DIRECT else _make_entry_seals(block, "caller", CALLER)
    return ToolCall(_read_text(block, "id"), _read_text(block, "name"), dict(arguments or {}), None, seals)


def _import_tool_result(block: Mapping[str, Any], *, cached: bool | str) -> ToolResult:
    content = block.get("content")
    imported: str | tuple[Text | Image | File, ...]
    if isinstance(content, str) or content is None:
        imported = content or ""
    else:
        imported = tuple(_import_result_block(part) for part in _read_blocks(content))
    return ToolResult(_read_text(block, "tool_use_id"), imported, is_error=block.get("is_error") is True, cache=cached)


def _import_result_block(block: object) -> Text | Image | File:
    """Import a block of a result. Blocks that only this provider knows become texts: their JSON."""
    part = _import_block(block)
    if isinstance(part, (ServerTool, UnknownPart)):
        return Text(msgspec.json.encode(block).decode())
    if not isinstance(part, (Text, Image, File)):
        raise ConfigError("a tool_result is text, or blocks of type text, image or document.")
    return part


def _read_source_type(block: Mapping[str, Any]) -> object:
    source = block.get("source")
    return source.get("type") if isinstance(source, Mapping) else None


def _import_image(block: Mapping[str, Any], *, cached: bool | str) -> Image:
    match block.get("source"):
        case {"type": "base64", "media_type": str() as media_type, "data": str() as data}:
            return Image(data=_decode_base64(data), media_type=media_type, cache=cached)
        case {"type": "url", "url": str() as url}:
            return Image(url=url, cache=cached)
        case _:
            raise ConfigError("the source of an image is base64 or url.")


def _import_file(block: Mapping[str, Any], *, cached: bool | str) -> File:
    name = _read_optional_text(block, "title") or "file"
    match block.get("source"):
        case {"type": "base64", "media_type": str() as media_type, "data": str() as data}:
            return File(name, _decode_base64(data), media_type=media_type, cache=cached)
        case {"type": "text", "data": str() as text}:
            return File(name, text.encode(), media_type="text/plain", cache=cached)
        case {"type": "url", "url": str() as url}:
            return File(name, url=url, cache=cached)
        case {"type": "file", "file_id": str() as file_id}:
            return File(name, id=file_id, cache=cached)
        case _:
            raise ConfigError("the source of a document is base64, text, url or file.")


def _make_entry_seals(block: Mapping[str, Any], field: str, kind: str) -> tuple[Seal, ...]:
    value = block.get(field)
    return (Seal(kind, "", None, msgspec.json.encode(value).decode()),) if value else ()


def _decode_base64(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except (NotBase64, ValueError):
        raise ConfigError("data is not base64.") from None


def _read_text(holder: Mapping[str, Any], field: str) -> str:
    value = holder.get(field)
    if not isinstance(value, str):
        raise ConfigError(f"{field}: Field required." if value is None else f"{field} is text.")
    return value


def _read_optional_text(holder: Mapping[str, Any], field: str) -> str | None:
    return None if holder.get(field) is None else _read_text(holder, field)
