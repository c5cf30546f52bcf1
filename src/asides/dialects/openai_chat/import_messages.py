"""Imports chat messages, as clients write them: `import_messages(messages)`, `import_message(message)`.

Lenient, but an object that is not a message is refused.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.media import split_data_url
from asides.dialects.openai_chat.wire import read_signature
from asides.dialects.verbatim import keep_source
from asides.providers.provider import THINKING_FIELDS
from asides.values.errors import ConfigError
from asides.values.events import Event, ReplyEnded
from asides.values.fold import fold
from asides.values.messages import Message, Role
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult, UnknownPart, read_arguments
from asides.values.thinking import Seal, Thought, ThoughtKind
from asides.values.tools import read_cache_control
from asides.wire.inline_tags import DEFAULT_TAGS, Separator, begins_answer, may_hold_tags

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_THINKING_PART = ("thinking", "text", "reasoning", "signature")
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def import_messages(messages: Iterable[Any]) -> tuple[Message, ...]:
    """Import a history. Raises ConfigError with the index of the message that is wrong."""
    imported: list[Message] = []
    legacy_calls = 0
    for place, message in enumerate(messages):
        try:
            if (plain := _import_plain(message)) is not None:
                imported.append(plain)
                continue
            if isinstance(message, Mapping) and message.get("function_call"):
                legacy_calls += 1
            message = _rewrite_flat_calls(message)
            imported.append(keep_source(import_message(message, legacy_calls), "openai_chat", [message]))
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return tuple(imported)


def _import_plain(message: object) -> Message | None:
    """Import a message that is a role and a text, as most are; None for any other. It needs no source."""
    if type(message) is not dict or len(message) != 2:
        return None
    role, content = message.get("role"), message.get("content")
    if type(role) is not str or type(content) is not str or not content:
        return None
    known = ROLES.get(role)
    if known is None or known == "tool" or (known == "assistant" and not _is_answer(content)):
        return None
    return Message(known, (Text(content),))


def _is_answer(content: str) -> bool:
    """Whether an assistant's text certainly has no thinking in tags."""
    return begins_answer(content, DEFAULT_TAGS) or not may_hold_tags(content, DEFAULT_TAGS)


def import_message(message: Mapping[str, Any], legacy_calls: int = 0) -> Message:
    """Import one message. Raises ConfigError, without repeating content, if it is not a message.

    Calls of the old `function_call` kind have no ids; `legacy_calls`, the number of them so far, becomes part of an id.
    """
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise ConfigError(f"a message must be an object with a role and content, not {_describe_type(message)}.")
    message = _rewrite_flat_calls(message)
    role = ROLES.get(_read_text(message, "role"))
    if role is None:
        raise ConfigError(f"the role {_read_text(message, 'role')!r} is not known; use {', '.join(ROLES)}.")
    name = _read_optional_text(message, "name")
    cache = read_cache_control(message)
    has_content = "content" in message
    if role == "tool" and has_content:
        return Message(role, _mark_last([_import_tool_result(message, name, legacy_calls)], cache))
    content = list(_mark_last(_import_content(message.get("content"), role), cache))
    if role == "assistant":
        content = _import_assistant(message, content, legacy_calls)
    if not content and not has_content:
        # Its content may be in a field with another name, and would be lost.
        raise ConfigError('content is missing. Write {"role": "…", "content": "…"}.')
    return Message(role, tuple(content), name)


# --- content ------------------------------------------------------------------------------------------------------


def _import_content(content: object, role: Role) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return _import_text(content) if role == "assistant" else [Text(content)]
    if isinstance(content, Mapping) or not isinstance(content, Iterable) or isinstance(content, bytes):
        raise ConfigError(f"content must be text or a list of parts, not {_describe_type(content)}.")
    parts: list[Part] = []
    for part in content:
        imported = _import_part(part)
        parts += _mark_last(imported, read_cache_control(part)) if isinstance(part, Mapping) else imported
    return parts


def _mark_last(parts: list[Part], cache: bool | str) -> tuple[Part, ...]:
    """Put the cache breakpoint of a message or a part on the last part that can have one."""
    for place in reversed(range(len(parts)) if cache else ()):
        part = parts[place]
        if isinstance(part, (Text, Image, File, ToolResult)):
            return (*parts[:place], msgspec.structs.replace(part, cache=cache), *parts[place + 1 :])
    return tuple(parts)


def _import_text(content: str) -> list[Part]:
    """Import text of an assistant. Thinking in tags that a client left before it becomes a thought."""
    if _is_answer(content):
        return [Text(content)]
    separator = Separator(position="leading", starts_inside=False)
    events: list[Event] = [*separator.feed(content), *separator.finish()]
    return list(fold([*events, ReplyEnded(truncated_thought=separator.truncated)]).parts)


def _import_part(part: object) -> list[Part]:
    if isinstance(part, str):
        return [Text(part)] if part else []
    if not isinstance(part, Mapping):
        raise ConfigError(f"a content part must be an object with a type, not {_describe_type(part)}.")
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            text = _read_text(part, "text")
            return [Text(text)] if text else []
        case "image_url" | "input_image":
            return [_import_image(part)]
        case "file" | "input_file":
            return [_import_file(part)]
        case "input_audio":
            return [_import_audio(part)]
        case "refusal":
            return [Refusal(_read_text(part, "refusal"))]
        case "thinking" | "reasoning" if not part.keys().isdisjoint(_THINKING_PART):
            return [_import_thinking_part(part)]
        case str():
            # Native to some host; it is sent there unchanged.
            return [UnknownPart(_encode_json(part))]
        case _:
            raise ConfigError("a content part has no type; use text, image_url, file or input_audio.")


def _import_image(part: Mapping[str, Any]) -> Image:
    url: Any = part.get("image_url")
    detail: Any = part.get("detail")
    if isinstance(url, Mapping):
        detail = url.get("detail", detail)
        url = url.get("url")
    if not isinstance(url, str) or not url:
        raise ConfigError("an image_url part has no url.")
    detail = detail if isinstance(detail, str) else None
    if (inline := _split_data_url(url)) is not None:
        media_type, data = inline
        return Image(data=data, media_type=media_type or "image/png", detail=detail)
    return Image(url=url, detail=detail)


def _import_file(part: Mapping[str, Any]) -> File | UnknownPart:
    file = part.get("file", part)
    if not isinstance(file, Mapping):
        raise ConfigError(f"the file of a file part must be an object, not {_describe_type(file)}.")
    name = file.get("filename")
    name = name if isinstance(name, str) else "file"
    if isinstance(file.get("file_id"), str):
        return File(name=name, id=file["file_id"])
    if isinstance(file.get("file_url"), str):
        return File(name=name, url=file["file_url"])
    encoded = file.get("file_data")
    if not isinstance(encoded, str):
        raise ConfigError("a file part has neither file_data nor file_id.")
    if encoded.startswith(("https://", "http://")):
        return UnknownPart(msgspec.json.encode(part).decode())  # few hosts take an address here
    media_type, data = _split_data_url(encoded) or ("", _decode_base64(encoded))
    return File(name=name, data=data, media_type=media_type or "application/pdf")


def _import_audio(part: Mapping[str, Any]) -> File:
    audio = part.get("input_audio")
    if not isinstance(audio, Mapping) or not isinstance(audio.get("data"), str):
        raise ConfigError("an input_audio part has no data.")
    form = str(audio.get("format", "wav"))
    return File(
        name=f"audio.{form}", data=_decode_base64(audio["data"]), media_type=_AUDIO_TYPES.get(form, f"audio/{form}")
    )


def _split_data_url(url: str) -> tuple[str, bytes] | None:
    found = split_data_url(url)
    return None if found is None else (found[0], _decode_base64(found[1]))


def _decode_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise ConfigError("the data of an image, a file or a sound is not base64.") from None


# --- assistant ----------------------------------------------------------------------------------------------------


def _import_assistant(message: Mapping[str, Any], content: list[Part], legacy_calls: int) -> list[Part]:
    thought = _import_thought(message)
    parts: list[Part] = [] if thought is None else [thought]
    parts += content
    parts += _import_images(message.get("images"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Refusal(refusal))
    parts += _import_calls(message.get("tool_calls"))
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        parts.append(_import_function(_make_legacy_id(_read_text(legacy, "name"), legacy_calls), legacy, ()))
    return parts


def _import_images(images: object) -> list[Part]:
    """Import the pictures of a reply, which some hosts have beside the content."""
    found = images if isinstance(images, list) else []
    return [_import_image(image) for image in found if isinstance(image, Mapping) and image.get("image_url")]


def _import_thought(message: Mapping[str, Any]) -> Thought | None:
    """Import the thinking beside the content: the first field that has text, and every seal."""
    named = ((name, message.get(name)) for name in THINKING_FIELDS)
    via, text = next(((name, text) for name, text in named if isinstance(text, str) and text.strip()), (None, ""))
    details = message.get("reasoning_details")
    entries = [entry for entry in details if isinstance(entry, Mapping)] if isinstance(details, list) else []
    kind: ThoughtKind = "summary" if any(entry.get("type") == "reasoning.summary" for entry in entries) else "raw"
    if not text and entries:
        via, text = "reasoning_details", "".join(_read_detail_text(entry) for entry in entries)
    seals = tuple(_make_detail_seal(entry) for entry in entries) + _list_signature_seals(message)
    if not text and not seals:
        return None
    return Thought(text, kind if text else "hidden", "field", seals=seals, via=via)


def _read_detail_text(entry: Mapping[str, Any]) -> str:
    text = entry.get("summary" if entry.get("type") == "reasoning.summary" else "text")
    return text if isinstance(text, str) else ""


def _make_detail_seal(entry: Mapping[str, Any]) -> Seal:
    value = entry.get("signature") or entry.get("data") or ""
    return Seal("reasoning_details", str(value), None, _encode_json(entry))


def _list_signature_seals(holder: Mapping[str, Any]) -> tuple[Seal, ...]:
    extra = holder.get("extra_content")
    if isinstance(extra, Mapping) and extra:
        entry = _encode_json(extra)
        return (Seal("thought_signature", read_signature(entry.encode()) or "", None, entry),)
    value = holder.get("thought_signature")
    return (Seal("thought_signature", value),) if isinstance(value, str) and value else ()


def _import_thinking_part(part: Mapping[str, Any]) -> Thought:
    content = part.get("thinking", part.get("text", part.get("reasoning", "")))
    if isinstance(content, list):
        texts = (item.get("text") for item in content if isinstance(item, Mapping))
        content = "".join(text for text in texts if isinstance(text, str))
    text = content if isinstance(content, str) else ""
    signature = part.get("signature")
    seals = (Seal("signature", signature),) if isinstance(signature, str) and signature else ()
    return Thought(text, "raw" if text.strip() else "hidden", "block", seals=seals, via="content")


# --- tools --------------------------------------------------------------------------------------------------------


def _rewrite_flat_calls(message: Any) -> Any:
    """The message with its calls as chat has them, if some are as LangChain has them: `{"name", "args", "id"}`."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(calls, list) or not any(map(_is_flat_call, calls)):
        return message
    return {**message, "tool_calls": [_rewrite_flat_call(call) if _is_flat_call(call) else call for call in calls]}


def _is_flat_call(call: object) -> bool:
    is_named = isinstance(call, Mapping) and "function" not in call and isinstance(call.get("name"), str)
    return is_named and isinstance(call, Mapping) and isinstance(call.get("args"), Mapping)


def _rewrite_flat_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": _encode_json(call["args"])}
    return {"id": call.get("id"), "type": "function", "function": function}


def _import_calls(calls: object) -> list[Part]:
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise ConfigError(f"tool_calls must be a list, not {_describe_type(calls)}.")
    return [_import_tool_call(call) for call in calls]


def _import_tool_call(call: object) -> Part:
    if not isinstance(call, Mapping):
        raise ConfigError(f"a tool call must be an object with an id and a function, not {_describe_type(call)}.")
    function = call.get("function")
    custom = call.get("custom")
    if call.get("type") == "custom" and isinstance(custom, Mapping):
        raw = custom.get("input")
        seals = _list_signature_seals(call)
        name, text = _read_text(custom, "name"), raw if isinstance(raw, str) else ""
        return ToolCall(_read_text(call, "id"), name, {}, text, seals, custom=True)
    if not isinstance(function, Mapping):
        if call.get("type", "function") == "function":
            raise ConfigError("a tool call has no function.")
        return UnknownPart(_encode_json(call))
    return _import_function(_read_text(call, "id"), function, _list_signature_seals(call))


def _import_function(call_id: str, function: Mapping[str, Any], seals: tuple[Seal, ...]) -> ToolCall:
    name = _read_text(function, "name")
    raw = function.get("arguments")
    if isinstance(raw, Mapping):
        return ToolCall(call_id, name, dict(raw), None, seals)
    if raw is not None and not isinstance(raw, str):
        raise ConfigError(f"the arguments of {name} are JSON text, not {_describe_type(raw)}.")
    arguments = read_arguments(raw or "")
    if arguments is None:
        return ToolCall(call_id, name, {}, raw, seals)
    return ToolCall(call_id, name, arguments, None, seals)


def _import_tool_result(message: Mapping[str, Any], name: str | None, legacy_calls: int) -> ToolResult:
    if message["role"] == "function":
        call_id = _make_legacy_id(_read_text(message, "name"), legacy_calls)
    else:
        call_id = _read_text(message, "tool_call_id")
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return ToolResult(call_id, content or "", name)
    parts = _import_content(content, "tool")
    taken = tuple(part for part in parts if isinstance(part, (Text, Image, File)))
    if len(taken) != len(parts):
        raise ConfigError("a tool result is text, or parts of type text, image_url or file.")
    match taken:
        case (Text(text=text, cache=cache),):
            return ToolResult(call_id, text, name, cache=cache)
        case _:
            return ToolResult(call_id, taken, name)


def _make_legacy_id(name: str, number: int) -> str:
    return f"call_{name}_{number}" if number else f"call_{name}"


# --- fields -------------------------------------------------------------------------------------------------------


def _read_text(holder: Mapping[str, Any], field: str) -> str:
    value = holder.get(field)
    if not isinstance(value, str):
        raise ConfigError(f"{field} is missing." if value is None else f"{field} is text, not {_describe_type(value)}.")
    return value


def _read_optional_text(holder: Mapping[str, Any], field: str) -> str | None:
    return None if holder.get(field) is None else _read_text(holder, field)


def _describe_type(value: object) -> str:
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


def _encode_json(value: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        raise ConfigError("a part of a message cannot be written as JSON.") from None
