"""Messages of LangChain, as plain fields: a turn of the model → the response of its dialect, others → our messages.

Both forms of content are read: the provider's own blocks, and standard blocks (`output_version="v1"`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from asides.intake.documents import parse_items
from asides.intake.objects.turn_documents import (
    Fields,
    Piece,
    Tokens,
    Turn,
    build_response,
    find_calls,
    find_dialect_of,
    get_object,
    get_text,
)
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role
from asides.values.parts import File, Image, Text, ToolResult

_ROLES: dict[str, Role] = {"human": "user", "system": "system", "tool": "tool", "ai": "assistant", "function": "tool"}
# Gemini's signatures of calls, and the ids of items, which LangChain keeps beside the message.
_SIGNATURES = "__gemini_function_call_thought_signatures__"
_ITEM_IDS = "__openai_function_call_ids__"
_CALL_TYPES = ("tool_use", "tool_call", "function_call", "tool_call_chunk", "invalid_tool_call")
_ITEM_TYPES = ("function_call", "web_search_call", "file_search_call", "code_interpreter_call", "computer_call")


def unwrap(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message out of the forms in which LangChain stores it: {"type", "data"}, or the arguments of a constructor."""
    data, kwargs = fields.get("data"), fields.get("kwargs")
    if isinstance(data, Mapping) and "content" in data and isinstance(fields.get("type"), str):
        return {**data, "type": fields["type"]}
    if fields.get("lc") == 1 and isinstance(kwargs, Mapping) and isinstance(fields.get("id"), list):
        return {"type": str(fields["id"][-1]), "additional_kwargs": {}, **kwargs}
    return fields


# --- turns of the model -----------------------------------------------------------------------------------------------


def build_turn_response(fields: Mapping[str, Any]) -> tuple[str, Fields]:
    """The dialect of an assistant turn, and the response that it comes from."""
    metadata, more = get_object(fields, "response_metadata"), get_object(fields, "additional_kwargs")
    pieces = _read_pieces(fields, more)
    dialect = _choose_dialect(fields, metadata, more, pieces)
    if dialect == "openai_responses":
        pieces = [*_read_stored_items(more), *pieces]
    elif not any(piece.kind == "thought" for piece in pieces):
        pieces = [*_read_thinking_field(more), *pieces]
    turn = Turn(
        pieces,
        model=get_text(metadata, "model_name") or get_text(metadata, "model"),
        id=get_text(metadata, "id"),
        stop=_find_stop(metadata),
        tokens=_read_tokens(get_object(fields, "usage_metadata")),
        details=details if isinstance(details := more.get("reasoning_details"), list) else [],
    )
    return dialect, build_response(dialect, turn)


def _choose_dialect(fields: Mapping[str, Any], metadata: Fields, more: Fields, pieces: list[Piece]) -> str:
    kinds = {block.get("type") for block in _list_blocks(fields)}
    has_items = any("summary" in block for block in _list_blocks(fields)) or not kinds.isdisjoint(_ITEM_TYPES)
    if metadata.get("object") == "response" or isinstance(more.get("reasoning"), Mapping) or has_items:
        return "openai_responses"
    if _SIGNATURES in more or "safety_ratings" in metadata:
        return "gemini"
    if "stopReason" in metadata or "reasoning_content" in kinds:
        return "bedrock"
    if "stop_reason" in metadata or not kinds.isdisjoint({"thinking", "redacted_thinking", "tool_use"}):
        return "anthropic"
    named = find_dialect_of(get_text(metadata, "model_provider"))
    if named is not None:
        return named
    # Only providers with blocks sign their thinking.
    return "anthropic" if any(piece.kind == "thought" and piece.seal for piece in pieces) else "openai_chat"


def _find_stop(metadata: Fields) -> str:
    names = ("stop_reason", "stopReason", "finish_reason", "done_reason")
    found = next((metadata[name] for name in names if isinstance(metadata.get(name), str)), "")
    incomplete = get_object(metadata, "incomplete_details")
    return get_text(incomplete, "reason") or found


def _read_tokens(usage: Fields) -> Tokens:
    cached, spent = get_object(usage, "input_token_details"), get_object(usage, "output_token_details")
    names = {"input": usage.get("input_tokens"), "output": usage.get("output_tokens")}
    names |= {"cache_read": cached.get("cache_read"), "cache_write": cached.get("cache_creation")}
    names["reasoning"] = spent.get("reasoning")
    return Tokens(**{name: count for name, count in names.items() if isinstance(count, int)})


def _read_pieces(fields: Mapping[str, Any], more: Fields) -> list[Piece]:
    calls = {str(call.get("id")): call for call in _list_objects(fields, "tool_calls")}
    signatures, item_ids = get_object(more, _SIGNATURES), get_object(more, _ITEM_IDS)
    pieces: list[Piece] = []
    content = fields.get("content")
    if isinstance(content, str):
        # The id of the text, where that is an item.
        item_id = get_text(fields, "id")
        pieces += [Piece("text", content, id=item_id if item_id.startswith("msg_") else "")] if content else []
    for block in _list_blocks(fields):
        pieces += _read_block(block, calls, get_text(fields, "id"))
    if (refusal := get_text(more, "refusal")) and not any(piece.kind == "refusal" for piece in pieces):
        pieces.append(Piece("refusal", refusal))
    seen = find_calls(pieces)
    broken = _list_objects(fields, "invalid_tool_calls")
    for call in (*calls.values(), *broken):
        if str(call.get("id")) not in seen:
            pieces.append(_read_call(call, calls))
    legacy = more.get("function_call")
    if isinstance(legacy, Mapping) and not find_calls(pieces):
        name = get_text(legacy, "name")
        pieces.append(Piece("call", id=f"call_{name}", name=name, arguments=legacy.get("arguments")))
    for piece in pieces:
        if piece.kind == "call":
            piece.seal = piece.seal or str(signatures.get(piece.id) or "")
            piece.item_id = piece.item_id or str(item_ids.get(piece.id) or "")
    return pieces


def _read_block(block: Mapping[str, Any], calls: Mapping[str, Any], message_id: str) -> list[Piece]:
    extras = get_object(block, "extras")
    match block.get("type"):
        case "text":
            return [_read_text_block(block, extras, message_id)]
        case "thinking":
            return [Piece("thought", get_text(block, "thinking"), get_text(block, "signature"))]
        case "redacted_thinking":
            return [Piece("thought", seal=get_text(block, "data"), redacted=True)]
        case "reasoning" if "summary" in block:
            return [Piece("raw", raw=_clean_item(block))]
        case "reasoning":
            names = ("signature", "encrypted_content")
            seal = next((text for held in (extras, block) for name in names if (text := get_text(held, name))), "")
            return [Piece("thought", get_text(block, "reasoning"), seal, id=get_text(block, "id"))]
        case "reasoning_content":
            held = get_object(block, "reasoning_content")
            if data := get_text(held, "redacted_content") or get_text(held, "redactedContent"):
                return [Piece("thought", seal=data, redacted=True)]
            return [Piece("thought", get_text(held, "text"), get_text(held, "signature"))]
        case "refusal":
            return [Piece("refusal", get_text(block, "refusal"))]
        case "non_standard" if isinstance(value := block.get("value"), Mapping):
            return _read_block(value, calls, message_id)
        case str() as kind if kind in _CALL_TYPES:
            return [_read_call(block, calls)]
        case _:
            return [Piece("raw", raw=_clean_item(block))]


def _read_text_block(block: Mapping[str, Any], extras: Fields, message_id: str) -> Piece:
    text, citations = get_text(block, "text"), block.get("citations")
    if isinstance(citations, list) and citations:
        return Piece("raw", text, raw={"type": "text", "text": text, "citations": citations})
    item_id = get_text(block, "id") or (message_id if message_id.startswith("msg_") else "")
    return Piece("text", text, get_text(extras, "signature"), id=item_id)


def _read_call(block: Mapping[str, Any], calls: Mapping[str, Any]) -> Piece:
    """Read a call. Its parsed arguments are in `tool_calls`; a streamed block has only their text."""
    extras = get_object(block, "extras")
    call_id = get_text(block, "call_id") or get_text(block, "id")
    parsed = calls.get(call_id, {}).get("args")
    names = ("args", "input", "arguments")
    arguments = parsed if parsed is not None else next((block[name] for name in names if name in block), None)
    item_id = get_text(extras, "item_id") or (get_text(block, "id") if "call_id" in block else "")
    seal = get_text(extras, "signature")
    return Piece("call", "", seal, id=call_id, item_id=item_id, name=get_text(block, "name"), arguments=arguments)


def _clean_item(block: Mapping[str, Any]) -> Fields:
    """A block of the provider without the numbers that LangChain gives to blocks of a stream."""
    item = {name: value for name, value in block.items() if name != "index"}
    if isinstance(item.get("summary"), list):
        item["summary"] = [_clean_item(part) for part in item["summary"] if isinstance(part, Mapping)]
        item.pop("status", None)  # a stream keeps the status of its start
    return item


def _read_stored_items(more: Fields) -> list[Piece]:
    """The items of Responses that older versions keep beside the content."""
    reasoning = more.get("reasoning")
    items = [reasoning, *_list_objects(more, "tool_outputs")]
    return [Piece("raw", raw={"type": "reasoning", **_clean_item(item)}) for item in items if isinstance(item, Mapping)]


def _read_thinking_field(more: Fields) -> list[Piece]:
    thinking = get_text(more, "reasoning_content")
    return [Piece("thought", thinking)] if thinking else []


# --- other messages ---------------------------------------------------------------------------------------------------


def read_other(fields: Mapping[str, Any], kind: str) -> Message:
    """Read a message that is not a turn of the model."""
    if kind == "remove":
        raise ConfigError("a message that removes another one is not content. Leave it out of the list.")
    role = _ROLES.get(kind) or str(fields.get("role"))
    content = fields.get("content")
    parts = content if isinstance(content, str) else [part for block in _as_list(content) for part in write_part(block)]
    if role == "tool":
        return _read_result(fields, parts)
    name = fields.get("name")
    named = {"name": name} if isinstance(name, str) else {}
    return parse_items([{"role": role, "content": parts, **named}], "openai_chat")[0]


def _read_result(fields: Mapping[str, Any], parts: Any) -> Message:
    call_id = get_text(fields, "tool_call_id") or f"call_{get_text(fields, 'name')}"
    (message,) = parse_items([{"role": "user", "content": parts}], "openai_chat") if parts else (Message("user"),)
    held = tuple(part for part in message.parts if isinstance(part, (Text, Image, File)))
    content = message.text if all(isinstance(part, Text) for part in held) else held
    is_error = fields.get("status") == "error"
    return Message("tool", (ToolResult(call_id, content, get_text(fields, "name") or None, is_error=is_error),))


def write_part(block: Any) -> list[Any]:
    """A block of content as parts of chat completions. Blocks that other dialects know are read as they are."""
    if isinstance(block, str):
        return [{"type": "text", "text": block}]
    if not isinstance(block, Mapping):
        raise ConfigError("a block of content is text or an object with a type.")
    kind, source = block.get("type"), block.get("source")
    if isinstance(source, Mapping):  # of Anthropic
        data, url = source.get("data"), source.get("url")
        media_type = source.get("media_type")
    else:
        data, url = block.get("base64") or block.get("data"), block.get("url")
        media_type = block.get("mime_type")
    if kind == "text-plain" and isinstance(text := block.get("text"), str):
        return [{"type": "text", "text": text}]
    if kind not in ("image", "audio", "video", "file", "media", "document", "text-plain"):
        return [{name: value for name, value in block.items() if name != "index"}]
    file_id = block.get("file_id") or block.get("id") if data is None and url is None else None
    if data is None and url is None and file_id is None:
        return [dict(block)]
    return [write_media(str(kind), data, url, media_type, file_id, block.get("filename"))]


def write_media(kind: str, data: Any, url: Any, media_type: Any, file_id: Any = None, name: Any = None) -> Fields:
    """A picture or a file as a part of chat completions."""
    is_image = kind == "image" or str(media_type).startswith("image/")
    address = url if data is None else f"data:{media_type or 'application/octet-stream'};base64,{data}"
    if is_image and address is not None:
        return {"type": "image_url", "image_url": {"url": address}}
    file = {"file_id": file_id} if address is None else {"file_data" if data is not None else "file_url": address}
    return {"type": "file", "file": {"filename": name if isinstance(name, str) else "file", **file}}


# --- fields -----------------------------------------------------------------------------------------------------------


def _as_list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _list_blocks(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = fields.get("content")
    blocks = content if isinstance(content, list) else []
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]


def _list_objects(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [each for each in _as_list(fields.get(name)) if isinstance(each, Mapping)]
