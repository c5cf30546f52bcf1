"""One chat message, as clients write it, as a Message: `read_message(mapping)`. Lenient, except with nonsense.

Not here: the rest of a request (read_request), and whether the history can be sent as it is (plan).
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.openai_chat.wire import read_signature
from asides.providers.provider import THINKING_FIELDS
from asides.values.errors import ConfigError
from asides.values.events import Event, ReplyEnded
from asides.values.fold import fold
from asides.values.messages import (
    File,
    Image,
    Message,
    Part,
    Refusal,
    Role,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
    read_arguments,
)
from asides.values.thinking import Seal, Thought, ThoughtKind
from asides.wire.inline_tags import Separator

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_DATA_URL = re.compile(r"data:(?P<media_type>[^;,]*)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL)
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def import_messages(messages: Iterable[Any]) -> tuple[Message, ...]:
    """A history. An error names the message that is wrong by its place."""
    read: list[Message] = []
    legacy_calls = 0
    for place, message in enumerate(messages):
        try:
            if isinstance(message, Mapping) and message.get("function_call"):
                legacy_calls += 1
            read.append(import_message(message, legacy_calls))
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return tuple(read)


def import_message(message: Mapping[str, Any], legacy_calls: int = 0) -> Message:
    """One message. Raises ConfigError, without repeating content, when it is none.

    Calls of the old `function_call` kind have no ids; `legacy_calls`, the number of them so far, tells them apart.
    """
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - people pass what they have
        raise ConfigError(f"a message is an object with a role and content, not {_type_name(message)}.")
    role = _ROLES.get(_word(message, "role"))
    if role is None:
        raise ConfigError(f"the role {_word(message, 'role')!r} is not known; use {', '.join(_ROLES)}.")
    name = _optional_word(message, "name")
    if role == "tool":
        return Message(role, (_result(message, name, legacy_calls),))
    content = _content_parts(message.get("content"), role)
    if role == "assistant":
        content = _assistant_parts(message, content, legacy_calls)
    return Message(role, tuple(content), name)


# --- content ------------------------------------------------------------------------------------------------------


def _content_parts(content: object, role: Role) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return _words(content) if role == "assistant" else [Text(content)]
    if isinstance(content, Mapping) or not isinstance(content, Iterable) or isinstance(content, bytes):
        raise ConfigError(f"content is text or a list of parts, not {_type_name(content)}.")
    parts: list[Part] = []
    for part in content:
        parts += _part(part)
    return parts


def _words(content: str) -> list[Part]:
    """The words of an assistant; thinking that a client left in front of them in tags is a thought all the same."""
    separator = Separator(position="leading", starts_inside=False)
    events: list[Event] = [*separator.feed(content), *separator.finish()]
    return list(fold([*events, ReplyEnded(truncated_thought=separator.truncated)]).parts)


def _part(part: object) -> list[Part]:
    if isinstance(part, str):
        return [Text(part)] if part else []
    if not isinstance(part, Mapping):
        raise ConfigError(f"a content part is an object with a type, not {_type_name(part)}.")
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            text = _word(part, "text")
            return [Text(text)] if text else []
        case "image_url" | "input_image":
            return [_image(part)]
        case "file" | "input_file":
            return [_file(part)]
        case "input_audio":
            return [_audio(part)]
        case "refusal":
            return [Refusal(_word(part, "refusal"))]
        case "thinking" | "reasoning":
            return [_thinking_part(part)]
        case str():
            # Native to some host; whoever wrote it means it, and it goes there as it is.
            return [UnknownPart(_json(part))]
        case _:
            raise ConfigError("a content part has no type; use text, image_url, file or input_audio.")


def _image(part: Mapping[str, Any]) -> Image:
    held: Any = part.get("image_url")
    detail: Any = part.get("detail")
    if isinstance(held, Mapping):
        detail = held.get("detail", detail)
        held = held.get("url")
    if not isinstance(held, str) or not held:
        raise ConfigError("an image_url part has no url.")
    detail = detail if isinstance(detail, str) else None
    if (inside := _data_in(held)) is not None:
        media_type, data = inside
        return Image(data=data, media_type=media_type or "image/png", detail=detail)
    return Image(url=held, detail=detail)


def _file(part: Mapping[str, Any]) -> File:
    held = part.get("file", part)
    if not isinstance(held, Mapping):
        raise ConfigError(f"the file of a file part is an object, not {_type_name(held)}.")
    name = held.get("filename")
    name = name if isinstance(name, str) else "file"
    if isinstance(held.get("file_id"), str):
        return File(name=name, id=held["file_id"])
    if isinstance(held.get("file_url"), str):
        return File(name=name, url=held["file_url"])
    told = held.get("file_data")
    if not isinstance(told, str):
        raise ConfigError("a file part has neither file_data nor file_id.")
    media_type, data = _data_in(told) or ("", _decoded(told))
    return File(name=name, data=data, media_type=media_type or "application/pdf")


def _audio(part: Mapping[str, Any]) -> File:
    held = part.get("input_audio")
    if not isinstance(held, Mapping) or not isinstance(held.get("data"), str):
        raise ConfigError("an input_audio part has no data.")
    form = str(held.get("format", "wav"))
    return File(name=f"audio.{form}", data=_decoded(held["data"]), media_type=_AUDIO_TYPES.get(form, f"audio/{form}"))


def _data_in(url: str) -> tuple[str, bytes] | None:
    found = _DATA_URL.fullmatch(url) if url.startswith("data:") else None
    return None if found is None else (found["media_type"], _decoded(found["data"]))


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise ConfigError("the data of an image, a file or a sound is not base64.") from None


# --- assistant ----------------------------------------------------------------------------------------------------


def _assistant_parts(message: Mapping[str, Any], content: list[Part], legacy_calls: int) -> list[Part]:
    thought = _thought(message)
    parts: list[Part] = [] if thought is None else [thought]
    parts += content
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Refusal(refusal))
    parts += _calls(message.get("tool_calls"))
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        parts.append(_call(_legacy_id(_word(legacy, "name"), legacy_calls), legacy, ()))
    return parts


def _thought(message: Mapping[str, Any]) -> Thought | None:
    """What a message carries of thinking beside its content: the first field that has text, and every seal."""
    named = ((name, message.get(name)) for name in THINKING_FIELDS)
    via, text = next(((name, told) for name, told in named if isinstance(told, str) and told.strip()), (None, ""))
    details = message.get("reasoning_details")
    entries = [entry for entry in details if isinstance(entry, Mapping)] if isinstance(details, list) else []
    kind: ThoughtKind = "summary" if any(entry.get("type") == "reasoning.summary" for entry in entries) else "raw"
    if not text and entries:
        via, text = "reasoning_details", "".join(_detail_text(entry) for entry in entries)
    seals = tuple(_detail_seal(entry) for entry in entries) + _signature_seals(message)
    if not text and not seals:
        return None
    return Thought(text, kind if text else "hidden", "field", seals=seals, via=via)


def _detail_text(entry: Mapping[str, Any]) -> str:
    told = entry.get("summary" if entry.get("type") == "reasoning.summary" else "text")
    return told if isinstance(told, str) else ""


def _detail_seal(entry: Mapping[str, Any]) -> Seal:
    value = entry.get("signature") or entry.get("data") or ""
    return Seal("reasoning_details", str(value), None, _json(entry))


def _signature_seals(holder: Mapping[str, Any]) -> tuple[Seal, ...]:
    extra = holder.get("extra_content")
    if isinstance(extra, Mapping) and extra:
        entry = _json(extra)
        return (Seal("thought_signature", read_signature(entry.encode()) or "", None, entry),)
    value = holder.get("thought_signature")
    return (Seal("thought_signature", value),) if isinstance(value, str) and value else ()


def _thinking_part(part: Mapping[str, Any]) -> Thought:
    held = part.get("thinking", part.get("text", part.get("reasoning", "")))
    if isinstance(held, list):
        held = "".join(item["text"] for item in held if isinstance(item, Mapping) and isinstance(item.get("text"), str))
    text = held if isinstance(held, str) else ""
    signature = part.get("signature")
    seals = (Seal("signature", signature),) if isinstance(signature, str) and signature else ()
    return Thought(text, "raw" if text.strip() else "hidden", "block", seals=seals, via="content")


# --- tools --------------------------------------------------------------------------------------------------------


def _calls(calls: object) -> list[Part]:
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise ConfigError(f"tool_calls is a list, not {_type_name(calls)}.")
    return [_tool_call(call) for call in calls]


def _tool_call(call: object) -> Part:
    if not isinstance(call, Mapping):
        raise ConfigError(f"a tool call is an object with an id and a function, not {_type_name(call)}.")
    function = call.get("function")
    if not isinstance(function, Mapping):
        if call.get("type", "function") == "function":
            raise ConfigError("a tool call has no function.")
        return UnknownPart(_json(call))
    return _call(_word(call, "id"), function, _signature_seals(call))


def _call(call_id: str, function: Mapping[str, Any], seals: tuple[Seal, ...]) -> ToolCall:
    name = _word(function, "name")
    told = function.get("arguments")
    if isinstance(told, Mapping):
        return ToolCall(call_id, name, dict(told), None, seals)
    if told is not None and not isinstance(told, str):
        raise ConfigError(f"the arguments of {name} are JSON text, not {_type_name(told)}.")
    arguments = read_arguments(told or "")
    if arguments is None:
        return ToolCall(call_id, name, {}, told, seals)
    return ToolCall(call_id, name, arguments, None, seals)


def _result(message: Mapping[str, Any], name: str | None, legacy_calls: int) -> ToolResult:
    if message["role"] == "function":
        call_id = _legacy_id(_word(message, "name"), legacy_calls)
    else:
        call_id = _word(message, "tool_call_id")
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return ToolResult(call_id, content or "", name)
    parts = _content_parts(content, "tool")
    shown = tuple(part for part in parts if isinstance(part, (Text, Image, File)))
    if len(shown) != len(parts):
        raise ConfigError("a tool result is text, or parts of type text, image_url or file.")
    match shown:
        case (Text(text=text),):
            return ToolResult(call_id, text, name)
        case _:
            return ToolResult(call_id, shown, name)


def _legacy_id(name: str, number: int) -> str:
    return f"call_{name}_{number}" if number else f"call_{name}"


# --- words --------------------------------------------------------------------------------------------------------


def _word(holder: Mapping[str, Any], field: str) -> str:
    value = holder.get(field)
    if not isinstance(value, str):
        raise ConfigError(f"{field} is missing." if value is None else f"{field} is text, not {_type_name(value)}.")
    return value


def _optional_word(holder: Mapping[str, Any], field: str) -> str | None:
    return None if holder.get(field) is None else _word(holder, field)


def _type_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return type(value).__name__


def _json(value: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        raise ConfigError("a part of a message cannot be written as JSON.") from None
