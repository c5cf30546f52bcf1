"""ShareGPT's list of `from` and `value`, also with calls and their results (`sharegpt`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from asides.datasets.formats.chat import split_tags, tag_text
from asides.datasets.formats.tool_tags import TOOL_TAGS, leave_tags, read_results, read_said
from asides.datasets.formats.turns import CallNumbers, FormatError, Turn, make_call, split_messages
from asides.values.messages import Message, Role
from asides.values.parts import Part, Text, ToolResult

_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}
_CALL = "function_call"


def is_sharegpt(value: object) -> bool:
    """Whether it is a list of objects with `from` and `value`, or an object with one as `conversations`."""
    items = _find_items(value)
    return isinstance(items, list) and bool(items) and all(isinstance(each, dict) and "from" in each for each in items)


def _find_items(value: object) -> Any:
    return value.get("conversations") if isinstance(value, Mapping) else value


def write_sharegpt(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Write a list."""
    written: list[dict[str, str]] = []
    for turn in turns:
        match turn.role:
            case "assistant":
                for pieces in split_messages(turn, ("thinking", "text", "call", "commentary")):
                    texts = {piece.kind: piece.text for piece in pieces if piece.kind != "call"}
                    if "commentary" in texts:
                        raise FormatError("it has commentary")
                    if texts:
                        said = tag_text(texts.get("thinking", ""), texts.get("text", ""))
                        written.append({"from": "gpt", "value": said})
                    for piece in pieces:
                        if piece.kind == "call":
                            call = {"name": piece.name, "arguments": piece.arguments}
                            written.append({"from": _CALL, "value": json.dumps(call, ensure_ascii=False)})
            case "tool":
                written += [{"from": "observation", "value": each.text} for each in turn.results]
            case "system":
                written.append({"from": "system", "value": turn.text})
            case "user":
                written.append({"from": "human", "value": turn.text})
    return written


def read_sharegpt(value: Any) -> tuple[Message, ...]:
    """Read a list. The texts of the model still have their tags. Raises FormatError."""
    messages: list[Message] = []
    numbers = CallNumbers()
    if not is_sharegpt(value):
        raise FormatError("the conversation is not a list of from and value")
    if isinstance(value, Mapping) and isinstance(system := value.get("system"), str) and system:
        messages.append(Message("system", (Text(system),)))
    for item in _find_items(value):
        speaker, text = item["from"], item.get("value")
        if not isinstance(text, str):
            raise FormatError("a value is not text")
        if speaker == _CALL:
            messages.append(_read_call(text, numbers))
            continue
        role = _ROLES.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            raise FormatError("a message is from an unknown speaker")
        messages.append(Message(role, tuple(_read_parts(role, text, numbers))))
    return tuple(messages)


def _read_parts(role: Role, text: str, numbers: CallNumbers) -> Iterable[Part]:
    if role == "assistant" and TOOL_TAGS[0] in text:
        return read_said(text, numbers, leave_tags)
    if role == "tool":
        return read_results(text, numbers) or (ToolResult(numbers.take(), text),)
    return (Text(text),)


def _read_call(text: str, numbers: CallNumbers) -> Message:
    try:
        call = json.loads(text)
    except ValueError:
        raise FormatError("a call is not JSON") from None
    if not isinstance(call, dict):
        raise FormatError("a call is not an object")
    name = call.get("name")
    return Message("assistant", (make_call(name, call.get("arguments", {}), numbers.add(str(name))),))


def read_separated(value: Any) -> tuple[Message, ...]:
    """Read a list, with the thoughts in tags as thoughts."""
    return tuple(
        Message("assistant", tuple(part for each in message.parts for part in _split(each)))
        if message.role == "assistant"
        else message
        for message in read_sharegpt(value)
    )


def _split(part: Any) -> Sequence[Any]:
    return split_tags(part.text) if isinstance(part, Text) else (part,)
