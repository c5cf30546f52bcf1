"""Imports input items as messages: `import_items(items)`. The items of one turn of the model become one message.

An item that must go back unchanged stays with its part as an entry.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from asides.dialects.openai_responses.items import ENTRY, build_message_entry, is_commentary
from asides.dialects.openai_responses.tool_items import (
    CLIENT_CALLS,
    CLIENT_OUTPUTS,
    SERVER_TOOLS,
    is_client_call,
    read_call,
    read_output,
)
from asides.dialects.verbatim import keep_source
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role
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
    read_arguments,
)
from asides.values.thinking import EFFORTS, Effort, Seal, Thought

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def import_items(items: Iterable[Any]) -> tuple[Message, ...]:
    """Import a list of items. Raises ConfigError with the index of the item that is wrong."""
    messages: list[Message] = []
    sources: list[list[Any]] = []
    client_calls: set[str] = set()
    for place, item in enumerate(items):
        if (plain := _import_plain(item)) is not None and (plain.role != "assistant" or not _follows(messages)):
            messages.append(plain)
            sources.append([item])
            continue
        if not isinstance(item, Mapping):
            raise ConfigError(f"input[{place}] is not an object.")
        if (effort := _find_effort(item)) is not None:
            messages.append(Message("system", (), effort=effort))
            sources.append([item])
            continue
        try:
            role, parts = _import_client_item(dict(item), client_calls) or _import_item(dict(item))
        except ConfigError as problem:
            raise ConfigError(f"input[{place}]: {problem}") from None
        last = messages[-1] if messages else None
        if last is not None and role in ("assistant", "tool") and last.role == role:
            messages[-1] = msgspec.structs.replace(last, parts=(*last.parts, *parts))
            sources[-1].append(item)
        else:
            messages.append(Message(role, tuple(parts)))
            sources.append([item])
    pairs = zip(messages, sources, strict=True)
    return tuple(keep_source(message, "openai_responses", source) for message, source in pairs)


def _import_plain(item: object) -> Message | None:
    """Import a message that is a role and a text, as most are; None for any other."""
    if type(item) is not dict or len(item) != 2:
        return None
    role, content = item.get("role"), item.get("content")
    if type(role) is not str or type(content) is not str:
        return None
    known = _ROLES.get(role)
    return None if known is None else Message(known, (Text(content),))


def _follows(messages: list[Message]) -> bool:
    """Whether the model's next item belongs to its current turn."""
    return bool(messages) and messages[-1].role == "assistant"


def _find_effort(item: Mapping[str, Any]) -> Effort | None:
    """The effort that an item changes to; None for other items."""
    config = item.get("reasoning") if item.get("type") == "configuration_update" else None
    word = config.get("effort") if isinstance(config, Mapping) else None
    return next((effort for effort in EFFORTS if effort == word), None)


def _import_client_item(item: dict[str, Any], calls: set[str]) -> tuple[Role, list[Part]] | None:
    """Import a call of a tool of the provider which the caller ran, or its result; None for other items."""
    kind, call_id = item.get("type"), _read_text(item, "call_id") or _read_text(item, "id")
    if not call_id or not isinstance(kind, str):
        return None
    if kind in CLIENT_CALLS and is_client_call(item):
        calls.add(call_id)
        name, arguments = read_call(item)
        return "assistant", [ToolCall(call_id, name, arguments, None, (Seal(ENTRY, "", None, _encode_json(item)),))]
    result = read_output(item) if kind in CLIENT_OUTPUTS and call_id in calls else None
    return None if result is None else ("tool", [result])


def _import_item(item: dict[str, Any]) -> tuple[Role, list[Part]]:
    match item.get("type", "item_reference" if item.keys() == {"id"} else "message"):
        case "message":
            return _import_message(item)
        case "reasoning":
            return "assistant", [_import_reasoning(item)]
        case "function_call" | "custom_tool_call":
            return "assistant", [_import_tool_call(item)]
        case "function_call_output" | "custom_tool_call_output":
            return "tool", [_import_tool_result(item)]
        case str() as kind if kind in SERVER_TOOLS or kind in CLIENT_CALLS:
            return "assistant", [
                ServerTool(kind, _read_text(item, "id"), _read_text(item, "status"), _encode_json(item))
            ]
        case str():
            return "assistant", [UnknownPart(_encode_json(item))]
        case _:
            raise ConfigError("type is not text.")


def _import_message(item: dict[str, Any]) -> tuple[Role, list[Part]]:
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise ConfigError("role is user, assistant, system or developer.")
    content = item.get("content")
    says = Commentary if role == "assistant" and is_commentary(item) else Text
    if isinstance(content, str):
        return role, _add_entry([says(content)], item)
    if not isinstance(content, list):
        raise ConfigError("content is a text, or a list of parts.")
    parts = [_import_part(part) for part in content]
    parts = [says(part.text) if isinstance(part, Text) else part for part in parts]
    return role, _add_entry(parts, item) if role == "assistant" else parts


def _add_entry(parts: list[Part], item: dict[str, Any]) -> list[Part]:
    """Add to the first text the fields that go back beside it."""
    if item.get("id") is None and item.get("phase") is None:
        return parts
    first = next((place for place, part in enumerate(parts) if isinstance(part, (Text, Commentary))), None)
    entry = build_message_entry(msgspec.json.decode(msgspec.json.encode({"type": "message", **item})))
    if first is None or entry is None:
        return parts
    text = cast("Text | Commentary", parts[first])
    sealed = msgspec.structs.replace(text, seals=(Seal(ENTRY, "", None, entry),))
    return [*parts[:first], sealed, *parts[first + 1 :]]


def _import_part(part: object) -> Part:
    if not isinstance(part, Mapping):
        raise ConfigError("a content part is not an object.")
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str() as text}:
            return Text(text)
        case {"type": "refusal", "refusal": str() as text}:
            return Refusal(text)
        case {"type": "input_image"} if not isinstance(part.get("file_id"), str):
            return _import_image(part)
        case {"type": "input_file"}:
            return _import_file(part)
        case {"type": str()}:
            return UnknownPart(_encode_json(part))
        case _:
            raise ConfigError("a content part has no type.")


def _import_image(part: Mapping[str, Any]) -> Image:
    url, detail = _read_text(part, "image_url"), _read_text(part, "detail")
    if url is None:
        raise ConfigError("an input_image has no image_url.")
    kind, data = _split_data_url(url)
    return Image(data=data, media_type=kind, detail=detail) if data is not None else Image(url=url, detail=detail)


def _import_file(part: Mapping[str, Any]) -> File:
    name = _read_text(part, "filename") or "file"
    if (file_id := _read_text(part, "file_id")) is not None:
        return File(name, id=file_id)
    if (url := _read_text(part, "file_url")) is not None:
        return File(name, url=url)
    kind, data = _split_data_url(_read_text(part, "file_data") or "")
    if data is None:
        raise ConfigError("an input_file has neither file_data, file_url nor file_id.")
    return File(name, data=data, media_type=kind)


def _split_data_url(url: str) -> tuple[str, bytes | None]:
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return "", None
    try:
        return head[5:-7], b64decode(data, validate=True)
    except (NotBase64, ValueError):
        raise ConfigError("a data: address is not valid base64.") from None


def _read_list(item: Mapping[str, Any], name: str) -> list[Any]:
    value = item.get(name)
    return value if isinstance(value, list) else []


def _import_reasoning(item: dict[str, Any]) -> Thought:
    summary = [part.get("text") for part in _read_list(item, "summary") if isinstance(part, Mapping)]
    raw = [part.get("text") for part in _read_list(item, "content") if isinstance(part, Mapping)]
    texts = [text for text in summary or raw if isinstance(text, str)]
    value = _read_text(item, "encrypted_content") or ""
    seal = Seal("encrypted" if value else ENTRY, value, None, _encode_json(item))
    text = "\n\n".join(texts)
    if summary and texts:
        return Thought(text, "summary", "responses_summary", seals=(seal,), via="summary")
    return Thought(text, "raw" if text else "hidden", "responses_raw", seals=(seal,), via="reasoning_text")


def _import_tool_call(item: dict[str, Any]) -> ToolCall:
    name, call_id = _read_text(item, "name"), _read_text(item, "call_id") or _read_text(item, "id")
    if not name or not call_id:
        raise ConfigError("a call has a name and a call_id.")
    is_named = item.get("id") or item.get("namespace")
    seals = (Seal(ENTRY, "", None, _encode_json(item)),) if is_named else ()
    if item["type"] == "custom_tool_call":
        return ToolCall(call_id, name, {}, _read_text(item, "input") or "", seals, custom=True)
    raw = _read_text(item, "arguments") or ""
    arguments = read_arguments(raw)
    return ToolCall(call_id, name, arguments or {}, raw if arguments is None else None, seals)


def _import_tool_result(item: dict[str, Any]) -> ToolResult:
    call_id = _read_text(item, "call_id")
    if not call_id:
        raise ConfigError("a call's output has no call_id.")
    output = item.get("output")
    if isinstance(output, str):
        return ToolResult(call_id, output)
    if not isinstance(output, list):
        raise ConfigError("output is a text, or a list of parts.")
    return ToolResult(call_id, tuple(map(_import_result_part, output)))


def _import_result_part(part: object) -> Text | Image | File:
    """Import a part of an output. Parts that only this provider knows become texts: their JSON."""
    imported = _import_part(part)
    return imported if isinstance(imported, (Text, Image, File)) else Text(msgspec.json.encode(part).decode())


def _read_text(holder: Mapping[str, Any], field: str) -> str | None:
    value = holder.get(field)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{field} is not text.")
    return value


def _encode_json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
