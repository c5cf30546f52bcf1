"""Imports steps, as clients write them: `import_steps(steps)`. The steps of one turn of the model become one message.

`input` may also be a text, a content or a list of contents: those are the user's. Lenient, but an object that is no
step is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.gemini_interactions.wire import CITED, DIALECT, MEDIA, SERVER_TOOLS, SIGNATURE
from asides.dialects.verbatim import keep_source
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role, user
from asides.values.parts import File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart, read_arguments
from asides.values.thinking import Seal, Thought
from asides.wire.lenient import read_base64

WRAPPED = {"type": "user_input"}
"""The turn of results that a client wrote as contents of the user."""
CONTENT_TYPES = ("text", *MEDIA)
_Entries = list[tuple[Part, dict[str, Any]]]


def import_input(value: Any) -> tuple[Message, ...]:
    """Import the field `input` of a request, in each of its forms."""
    if isinstance(value, str):
        return (keep_source(user(value), DIALECT, [value], always=True),)
    steps = [value] if isinstance(value, Mapping) else value
    if not isinstance(steps, list) or not steps:
        raise ConfigError("input is missing: a text, a content, or a list of steps.")
    if all(isinstance(step, Mapping) and step.get("type") in CONTENT_TYPES for step in steps):
        messages = import_steps([{"type": "user_input", "content": steps}])
        if len(messages) > 1:
            return messages
        return tuple(keep_source(message, DIALECT, [value], always=True) for message in messages)
    return import_steps(steps)


def read_system_instruction(found: Any) -> str | None:
    """Read the system instruction: a text, or a content. Raises ConfigError if it is neither."""
    if isinstance(found, dict):
        parts = found.get("parts")
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        found = "\n\n".join(text for text in texts if isinstance(text, str))
    if found is not None and not isinstance(found, str):
        raise ConfigError("system_instruction is a text.")
    return found or None


def import_steps(steps: Iterable[Any]) -> tuple[Message, ...]:
    """Import a list of steps. Raises ConfigError with the index of the step that is wrong."""
    messages: list[Message] = []
    sources: list[list[Any]] = []
    turns: list[dict[str, Any] | None] = []
    for place, step in enumerate(steps):
        try:
            imported = list(_import_step(step))
        except ConfigError as problem:
            raise ConfigError(f"input[{place}]: {problem}") from None
        for role, entries, turn in imported:
            parts, raw = tuple(part for part, _ in entries), [entry for _, entry in entries]
            raw = raw if turn is not None or role == "tool" else [dict(step)]
            last = messages[-1] if messages else None
            if last is not None and last.role == role and role != "user" and turns[-1] is None and turn is None:
                messages[-1] = msgspec.structs.replace(last, parts=(*last.parts, *parts))
                sources[-1] += raw
            else:
                messages.append(Message(role, parts))
                sources.append(raw)
                turns.append(turn)
    found = zip(messages, sources, turns, strict=True)
    return tuple(keep_source(message, DIALECT, source, turn) for message, source, turn in found)


def _import_step(step: Any) -> Iterable[tuple[Role, _Entries, dict[str, Any] | None]]:
    """Yield the messages of a step: their role, their parts with the JSON of each, and the turn around these."""
    if not isinstance(step, Mapping):
        raise ConfigError("a step is an object with a type.")
    fields = dict(step)
    match fields.get("type"):
        case "user_input":
            contents = _read_list(fields, "content")
            results: _Entries = [(_import_result(one), one) for one in contents if one.get("type") == "function_result"]
            others = [one for one in contents if one.get("type") != "function_result"]
            if results:
                yield "tool", results, WRAPPED
            if others or not results:
                yield "user", [(_import_content(one), one) for one in others], None
        case "function_result":
            yield "tool", [(_import_result(fields), fields)], None
        case "model_output":
            yield (
                "assistant",
                [(part, one) for one in _read_list(fields, "content") for part in _import_output(one)],
                None,
            )
        case "thought":
            yield "assistant", [(_import_thought(fields), fields)], None
        case "function_call":
            yield "assistant", [(_import_call(fields), fields)], None
        case str() as kind if kind in SERVER_TOOLS:
            own = _read_text(fields, "id") or _read_text(fields, "call_id")
            status = "error" if fields.get("is_error") is True else None
            yield "assistant", [(ServerTool(kind, own, status, _encode_json(fields)), fields)], None
        case str():
            yield "assistant", [(UnknownPart(_encode_json(fields)), fields)], None
        case _:
            raise ConfigError("a step has no type; write user_input, model_output, function_call or function_result.")


def _import_thought(step: dict[str, Any]) -> Thought:
    summary = _read_list(step, "summary")
    text = "".join(one["text"] for one in summary if isinstance(one.get("text"), str))
    signature = _read_text(step, "signature")
    has_more = any(one.get("type", "text") != "text" for one in summary)
    entry = msgspec.json.encode(summary).decode() if has_more else None
    seals = (Seal(SIGNATURE, signature, None, entry),) if signature else ()
    return Thought(text, "summary" if text.strip() else "hidden", "block", seals=seals, via="block")


def _import_call(step: dict[str, Any]) -> ToolCall:
    name, call_id, arguments = _read_text(step, "name"), _read_text(step, "id"), step.get("arguments")
    if not name or not call_id:
        raise ConfigError("a function_call has a name and an id.")
    signature = _read_text(step, "signature")
    seals = (Seal(SIGNATURE, signature),) if signature else ()
    if isinstance(arguments, str):
        parsed = read_arguments(arguments)
        return ToolCall(call_id, name, parsed or {}, arguments if parsed is None else None, seals)
    return ToolCall(call_id, name, dict(arguments) if isinstance(arguments, Mapping) else {}, seals=seals)


def _import_result(step: Mapping[str, Any]) -> ToolResult:
    call_id = _read_text(step, "call_id")
    if not call_id:
        raise ConfigError("a function_result has no call_id.")
    content, is_error = read_result(step.get("result")), step.get("is_error") is True
    return ToolResult(call_id, content, _read_text(step, "name"), is_error)


def read_result(result: Any) -> str | tuple[Text | Image | File, ...]:
    """Read the result of a call: a text, a list of contents, or any JSON as its text."""
    if result is None or isinstance(result, str):
        return result or ""
    if isinstance(result, list) and result and all(isinstance(one, Mapping) and "type" in one for one in result):
        parts = [_import_content(one) for one in result]
        known = tuple(part for part in parts if isinstance(part, (Text, Image, File)))
        if len(known) == len(parts):
            return known[0].text if len(known) == 1 and isinstance(known[0], Text) else known
    return msgspec.json.encode(result).decode()


def _import_output(content: Mapping[str, Any]) -> list[Part]:
    """Import a content of the model."""
    part = _import_content(content)
    if isinstance(part, UnknownPart):
        return [UnknownPart(_encode_json({"type": "model_output", "content": [content]}))]
    annotations = content.get("annotations")
    if isinstance(part, Text) and isinstance(annotations, list) and annotations:
        return [Text(part.text, (Seal(CITED, "", None, msgspec.json.encode(annotations).decode()),))]
    return [part]


def _import_content(content: Mapping[str, Any]) -> Part:
    match content:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": str() as kind, "data": str() as encoded} if kind in MEDIA:
            media_type, data = _find_media_type(content, kind), read_base64(encoded)
            if data is None:
                raise ConfigError(f"the data of a content of type {kind} is not base64.")
            if kind == "image":
                return Image(data=data, media_type=media_type, detail=_read_text(content, "resolution"))
            return File(_read_text(content, "name") or kind, data, media_type=media_type)
        case {"type": str() as kind, "uri": str() as address} if kind in MEDIA:
            media_type = _find_media_type(content, kind)
            if kind == "image" and "://" in address:
                return Image(url=address, media_type=media_type, detail=_read_text(content, "resolution"))
            if "://" in address:
                return File(url=address, media_type=media_type)
            return File(id=address, media_type=media_type)
        case {"type": str()}:
            return UnknownPart(_encode_json(content))
        case _:
            raise ConfigError("a content has no type.")


def _find_media_type(content: Mapping[str, Any], kind: str) -> str:
    usual = {"image": "image/png", "document": "application/pdf", "audio": "audio/wav", "video": "video/mp4"}
    return _read_text(content, "mime_type") or usual[kind]


def _read_list(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = holder.get(name)
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    items = [value] if isinstance(value, dict) else value or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"{name} is a list of objects.")
    return items


def _read_text(holder: Mapping[str, Any], field: str) -> str | None:
    value = holder.get(field)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{field} is not text.")
    return value


def _encode_json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
