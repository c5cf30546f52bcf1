"""Messages of pydantic-ai, as plain fields: a response → the response of its dialect, a request → our messages.

Also from `all_messages_json()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.intake.detect import find_pydantic_ai_kind
from asides.intake.documents import parse_items
from asides.intake.objects.langchain_objects import write_media
from asides.intake.objects.turn_documents import (
    LIBRARY_TYPE,
    Fields,
    Piece,
    Tokens,
    Turn,
    build_response,
    encode_redacted,
    find_dialect_of,
    get_object,
    get_text,
)
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Part, Text, ToolResult

_REDACTED = {"redacted_thinking": "anthropic", "redacted_content": "bedrock"}
_REASONING_TOKENS = ("output_reasoning_tokens", "reasoning_tokens", "thinking_tokens", "thoughts_tokens")
# Parts of a request in which pydantic-ai keeps its own records.
_RECORDS = ("-delta", "-digest", "-baseline")


def find_instructions(messages: Iterable[object]) -> str | None:
    """The instructions of the last request that has some: pydantic-ai sends those alone, as the system prompt."""
    found = None
    for fields in messages:
        if isinstance(fields, Mapping) and find_pydantic_ai_kind(fields) == "request":
            text = fields.get("instructions")
            found = text if isinstance(text, str) and text else found
    return found


# --- turns of the model -----------------------------------------------------------------------------------------------


def build_turn_response(fields: Mapping[str, Any]) -> tuple[str, Fields]:
    """The dialect of a response, and the response as a document."""
    parts: list[Mapping[str, Any]] = fields["parts"]
    dialect = _choose_dialect(fields, parts)
    thinking = [part for part in parts if part["part_kind"] == "thinking"]
    details = [_write_detail(part) for part in thinking] if any(map(_is_detail, thinking)) else []
    named = [get_text(part, "id") for part in thinking]
    turn = Turn(
        [piece for part in parts for piece in _read_part(part, dialect)],
        model=get_text(fields, "model_name"),
        id=get_text(fields, "provider_response_id"),
        stop=get_text(get_object(fields, "provider_details"), "finish_reason") or get_text(fields, "finish_reason"),
        tokens=_read_tokens(get_object(fields, "usage")),
        thinking_field=next((name for name in named if name.startswith("reasoning")), "reasoning_content"),
        details=details,
    )
    return dialect, build_response(dialect, turn)


def _choose_dialect(fields: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> str:
    thinking = [part for part in parts if part["part_kind"] == "thinking"]
    if any("thought_signature" in get_object(part, "provider_details") for part in parts):
        return "gemini"
    if any(map(_is_detail, thinking)):
        return "openai_chat"
    ids = [get_text(part, "id") for part in parts]
    if (found := next((_REDACTED[name] for name in ids if name in _REDACTED), None)) is not None:
        return found
    if any(name.startswith(("rs_", "msg_", "fc_")) for name in ids):
        return "openai_responses"
    named = [get_text(part, "provider_name") for part in thinking if part.get("signature")]
    names = [*named, get_text(fields, "provider_name")]
    dialect = next((found for name in names if (found := find_dialect_of(name)) is not None), None)
    if any(part.get("signature") for part in thinking):
        # Chat completions hosts do not sign thinking; Responses has it with an id.
        has_ids = any(get_text(part, "id") for part in thinking)
        return "openai_responses" if has_ids else "anthropic" if dialect in (None, "openai_chat") else dialect
    return dialect or "openai_chat"


def _is_detail(part: Mapping[str, Any]) -> bool:
    return get_text(get_object(part, "provider_details"), "type").startswith("reasoning.")


def _write_detail(part: Mapping[str, Any]) -> Fields:
    """An entry of `reasoning_details`, which was split into the fields of a part."""
    entry = get_object(part, "provider_details")
    text, seal = get_text(part, "content"), part.get("signature")
    match entry.get("type"):
        case "reasoning.encrypted":
            entry["data"] = seal
        case "reasoning.summary":
            entry["summary"] = text
        case _:
            entry |= {"text": text, **({"signature": seal} if seal else {})}
    return {**entry, **({"id": part["id"]} if part.get("id") else {})}


def _read_part(part: Mapping[str, Any], dialect: str) -> list[Piece]:
    details = get_object(part, "provider_details")
    signature = get_text(details, "thought_signature")
    text = get_text(part, "content")
    match part["part_kind"]:
        case "thinking" if _is_detail(part):
            return []
        case "thinking":
            return [_read_thinking(part, details, dialect)]
        case "text":
            return [Piece("text", text, signature, id=get_text(part, "id"))]
        case "tool-call":
            arguments = part.get("args")
            if isinstance(arguments, str) and dialect not in ("openai_chat", "openai_responses"):
                arguments = _parse(arguments)
            call_id, name = get_text(part, "tool_call_id"), get_text(part, "tool_name")
            return [
                Piece("call", "", signature, id=call_id, item_id=get_text(part, "id"), name=name, arguments=arguments)
            ]
        case "file":
            return [Piece("raw", raw=_write_file(get_object(part, "content"), signature, dialect))]
        case kind:
            return [Piece("raw", raw={"type": f"{LIBRARY_TYPE}{kind}", **part})]


def _read_thinking(part: Mapping[str, Any], details: Fields, dialect: str) -> Piece:
    name, text, seal = get_text(part, "id"), get_text(part, "content"), get_text(part, "signature")
    if name in _REDACTED:
        return Piece("thought", seal=encode_redacted(seal) if dialect == "bedrock" else seal, redacted=True)
    raw = details.get("raw_content")
    texts = [{"type": "reasoning_text", "text": each} for each in raw] if isinstance(raw, list) else None
    seal = seal or get_text(details, "thought_signature")
    return Piece("thought", text, seal, id=name, raw=None if texts is None else {"content": texts})


def _parse(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments) if arguments else {}
    except msgspec.DecodeError:
        return arguments


def _write_file(content: Fields, signature: str, dialect: str) -> Fields:
    data, media_type = content.get("data"), content.get("media_type")
    if dialect == "gemini":
        seal = {"thoughtSignature": signature} if signature else {}
        return {"inlineData": {"mimeType": media_type, "data": data}, **seal}
    return write_media("file", data, None, media_type)


def _read_tokens(usage: Fields) -> Tokens:
    details = {**get_object(usage, "details"), **usage}
    counts = {
        "input": usage.get("input_tokens"),
        "output": usage.get("output_tokens"),
        "cache_read": usage.get("cache_read_tokens"),
        "cache_write": usage.get("cache_write_tokens"),
        "reasoning": next((details[name] for name in _REASONING_TOKENS if details.get(name)), None),
    }
    # Unknown counts are written as zero.
    return Tokens(**{name: count for name, count in counts.items() if isinstance(count, int) and count})


# --- requests ---------------------------------------------------------------------------------------------------------


def read_request(fields: Mapping[str, Any]) -> list[Message]:
    """Read the parts of a request. Results in a row are one message."""
    messages: list[Message] = []
    for part in fields["parts"]:
        message = _read_request_part(part)
        if message is None:
            continue
        if message.role == "tool" and messages and messages[-1].role == "tool":
            messages[-1] = Message("tool", (*messages[-1].parts, *message.parts))
        else:
            messages.append(message)
    return messages


def _read_request_part(part: Mapping[str, Any]) -> Message | None:
    kind, content = str(part["part_kind"]), part.get("content")
    match kind:
        case "system-prompt" | "instruction":
            return Message("system", (Text(str(content)),)) if content else None
        case "user-prompt":
            return _read_user(content)
        case "tool-return" | "retry-prompt" if part.get("tool_call_id") and part.get("tool_name"):
            is_error = kind == "retry-prompt" or part.get("outcome", "success") != "success"
            call_id, name = get_text(part, "tool_call_id"), get_text(part, "tool_name")
            return Message("tool", (ToolResult(call_id, _write_text(content), name, is_error=is_error),))
        case "retry-prompt" | "retry-feedback":
            return Message("user", (Text(_write_text(content)),))
        case _ if kind.endswith(_RECORDS):
            return None
        case _:
            raise ConfigError(f"a part of the kind {kind!r} is not known. Leave it out, or report it.")


def _write_text(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def _read_user(content: Any) -> Message:
    if isinstance(content, str):
        return Message("user", (Text(content),))
    parts: list[Part] = []
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, Mapping) and item.get("kind") == "cache-point":
            parts = [*parts[:-1], msgspec.structs.replace(parts[-1], cache=True)] if parts else parts
            continue
        for message in parse_items([{"role": "user", "content": [_write_item(item)]}], "openai_chat"):
            parts += message.parts
    return Message("user", tuple(parts))


def _write_item(item: Any) -> Fields:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not isinstance(item, Mapping):
        raise ConfigError("the content of a user is text or an object with a kind.")
    kind, media_type = str(item.get("kind")), item.get("media_type")
    if isinstance(text := item.get("content"), str):
        return {"type": "text", "text": text}
    name = item.get("identifier")
    return write_media(kind.partition("-")[0], item.get("data"), item.get("url"), media_type, item.get("file_id"), name)
