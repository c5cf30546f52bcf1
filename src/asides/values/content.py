"""Normalises the arguments of messages and parts: texts, parts, paths and lists of them.

Each value becomes a part or raises a ConfigError that says how to write it. Constructors call this only for arguments
that are not already a tuple of parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard, get_args

import msgspec

from asides.values.error_words import describe_type, find_near_name
from asides.values.errors import ConfigError
from asides.values.parts import File, Image, Part, Text, read_arguments

_PARTS = get_args(Part)
_TEXT_TYPES = ("text", "input_text", "output_text")
_NEAR_ROLES = {
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function": "tool",
}
_ROLES = ("system", "user", "assistant", "tool")
_MAX_DEPTH = 100


def read_text(value: object, maker: str) -> str:
    """A text. Raises ConfigError for anything else, with the right spelling."""
    if isinstance(value, str):
        return str.__str__(value)  # of a class of its own, such as an enumeration
    raise ConfigError(f"{maker}(…) takes text, not {describe_type(value)}. {_advise(value, maker)}.")


def check_role(role: object) -> None:
    """Raise ConfigError for a role that does not exist, with the nearest one."""
    if isinstance(role, str) and role in _ROLES:
        return
    hint = ""
    if isinstance(role, str):
        near = _NEAR_ROLES.get(role.lower()) or find_near_name(role.lower(), _ROLES)
        hint = "" if near is None else f"did you mean {near!r}? "
    shown = repr(role) if isinstance(role, str) and len(role) < 40 else describe_type(role)
    raise ConfigError(f"the role of a message is not {shown}; {hint}Use {', '.join(map(repr, _ROLES))}.")


def read_parts(role: str, content: object) -> tuple[Part, ...]:
    """The parts that the content of a message says. Raises ConfigError for a value that cannot be sent.

    A user's message without content raises too, unless the content is a tuple of parts: then the caller means it.
    """
    parts: list[Part] = []
    maker = role if role in ("user", "assistant", "system") else "Message"
    _add_content(content, maker, parts, 0)
    if role == "user" and type(content) is not tuple and not any(map(_is_filled, parts)):
        raise ConfigError('the user message is empty. Write user("…"), or leave it out.')
    return tuple(parts)


def _is_filled(part: Part) -> bool:
    return not isinstance(part, Text) or bool(part.text)


def _add_content(content: object, maker: str, parts: list[Part], depth: int) -> None:
    if _is_part(content):
        parts.append(content)
    elif isinstance(content, str):
        parts.append(Text(content))
    elif isinstance(content, (bytes, bytearray, memoryview)):
        parts.append(_read_bytes(bytes(content), maker))
    elif isinstance(content, os.PathLike):
        from asides.values.attachments import read_attachment

        parts.append(read_attachment(content, maker))
    elif isinstance(content, Mapping):
        parts.append(_read_dict(content, maker))
    elif _is_list(content) and depth < _MAX_DEPTH:
        for each in content:
            _add_content(each, maker, parts, depth + 1)
    else:
        raise ConfigError(f"{maker}(…) got {describe_type(content)}. {_advise(content, maker)}.")


def _is_part(content: object) -> TypeGuard[Part]:
    return isinstance(content, _PARTS)


def _is_list(content: object) -> TypeGuard[Iterable[object]]:
    """A list, a tuple or a generator: not a set, which has no order, and not a conversation or another object."""
    is_value = isinstance(content, msgspec.Struct) or hasattr(content, "messages") or hasattr(content, "read")
    is_unordered = isinstance(content, (set, frozenset))
    return isinstance(content, Iterable) and not is_value and not is_unordered


def _read_bytes(data: bytes, maker: str) -> Part:
    from asides.values.attachments import read_attachment
    from asides.values.media_types import detect_media_type

    if detect_media_type(data) is None:
        raise ConfigError(
            f"{maker}(…) got bytes that are not a known picture or file. For text write data.decode(), for "
            'another file File(data, name="…", media_type="…").'
        )
    return read_attachment(data, maker)


def _read_dict(content: Mapping[Any, Any], maker: str) -> Part:
    if content.get("type") in _TEXT_TYPES and isinstance(content.get("text"), str) and len(content) == 2:
        return Text(content["text"])
    if "role" in content or "parts" in content:
        advice = "Give the dict itself to ask(…) or to a conversation, which read dicts"
    else:
        advice = (
            "Write Text(…), Image(…) or File(…); or give ask(…) the whole message as a dict, "
            '{"role": "user", "content": […]}'
        )
    raise ConfigError(f"{maker}(…) got a dict, which only has a meaning in a provider's format. {advice}.")


def _advise(value: object, maker: str) -> str:
    if isinstance(value, (bool, int, float, complex)):
        return f"Write it as text, {maker}(str(…))"
    if isinstance(value, (bytes, bytearray)):
        return f"Decode it, {maker}(data.decode())"
    if value is None:
        return f'Check where it comes from; a message has content, {maker}("…")'
    if hasattr(value, "to_message"):
        return "Put the reply itself into the list of messages, or write its .text"
    if isinstance(value, msgspec.Struct) and hasattr(value, "role"):
        return "It is a message already; use it as it is, or its .parts"
    if maker == "Text":
        return 'Write Text("…")'
    return f'Write text, Image(…), File(…), a path, or a list of them: {maker}("What is this?", Image("a.png"))'


# --- calls and results of tools ---------------------------------------------------------------------------------------


def read_call_arguments(arguments: object) -> dict[str, Any]:
    """The arguments of a call as a dict, also from their JSON text."""
    read = dict(arguments) if isinstance(arguments, Mapping) else None
    read = read_arguments(arguments) if isinstance(arguments, str) else read
    if read is None:
        raise ConfigError(
            f"ToolCall(…) needs its arguments as a dict, not {describe_type(arguments)}. Write "
            'ToolCall("call_1", "add", {"a": 1}); text that is not a JSON object goes into raw_arguments=.'
        )
    return read


def check_call_id(call_id: object) -> None:
    """Raise ConfigError for an id that is not text; often the call itself was passed."""
    if not isinstance(call_id, str):
        is_call = isinstance(getattr(call_id, "id", None), str)
        advice = "Write ToolResult(call.id, …)" if is_call else "Pass the id of the call"
        raise ConfigError(f"ToolResult(…) needs the id of its call as text, not {describe_type(call_id)}. {advice}.")


def read_result(content: object) -> str | tuple[Text | Image | File, ...]:
    """The content of a result as text or parts. Other values become their JSON."""
    if isinstance(content, str):
        return str.__str__(content)
    if isinstance(content, (Text, Image, File)):
        return (content,)
    if isinstance(content, (list, tuple)) and (not content or any(isinstance(each, _PARTS) for each in content)):
        return tuple(_read_result_part(each) for each in content)
    return _write_json(content)


def _read_result_part(part: object) -> Text | Image | File:
    if isinstance(part, (Text, Image, File)):
        return part
    if isinstance(part, _PARTS):
        raise ConfigError(
            f"ToolResult(…) got {describe_type(part)} in its content. A result is text, pictures and files."
        )
    return Text(part if isinstance(part, str) else _write_json(part))


def _write_json(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview, os.PathLike, type(None), *_PARTS)):
        raise ConfigError(
            f"ToolResult(…) got {describe_type(value)}. Write text, a value that JSON can hold, Image(…) or File(…)."
        )
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"ToolResult(…) got {describe_type(value)}, which JSON cannot hold. Write text, Image(…) or File(…)."
        ) from None
