"""Opens a history: parses a file (`parse_history`), finds its list of messages and its format (`open_draft`).

Not here: the changes (draft), and the parts of a format (shape_*).
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from asides.history.diagnosis.draft import CHAT, Draft, Node, write_path
from asides.history.diagnosis.findings import FACTS, HistoryFormat
from asides.history.import_export import detect_format, refuse_unwritable
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import is_too_deep

FORMATS: dict[str, HistoryFormat] = {
    CHAT.partition("_")[0]: CHAT,
    "openai_chat": "openai_chat",
    "chat": "openai_chat",
    "anthropic": "anthropic",
    "responses": "openai_responses",
    "openai_responses": "openai_responses",
    "gemini": "gemini",
    "asides": "asides",
}
"""The names of the formats, for callers."""

_LISTS = ("messages", "contents", "input", "output")
_LIST_OF: dict[HistoryFormat, str] = {
    "openai_chat": "messages",
    "anthropic": "messages",
    "openai_responses": "input",
    "gemini": "contents",
    "asides": "messages",
}
_LINE_ITEMS = frozenset({"message", "reasoning", "compaction"})
_LINE_ITEM_ENDINGS = ("_call", "_call_output")


# A text with half a character, as after a cut between two UTF-16 units: JavaScript and Python write it as an escape.
_HALF = re.compile("[\ud800-\udfff]")
_HALF_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_history(data: bytes) -> tuple[Any, bool]:
    """Parse the bytes of a file: JSON, or one JSON object in each line. Returns the value, and whether it was lines."""
    text = decode_history(data).strip()
    if not text:
        raise ConfigError("the file is empty. To do: name a file with a conversation.")
    if is_too_deep(text):
        raise ConfigError("the file is nested too deeply for a conversation.")
    with suppress(ValueError, RecursionError):
        return _parse(text), False
    lines: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(_parse(line))
        except (ValueError, RecursionError):
            raise ConfigError(
                f"the file is neither JSON nor one JSON object in each line (line {number} is not). To do: check "
                "whether it was cut."
            ) from None
    return lines, True


def decode_history(data: bytes) -> bytes:
    """The text of a file in UTF-8. PowerShell writes UTF-16."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16").encode()
    text = data.removeprefix(BOM_UTF8)
    try:
        text.decode()
    except UnicodeDecodeError as problem:
        raise ConfigError(
            f"the file is not UTF-8 text (byte {problem.start} is not). To do: save it as UTF-8."
        ) from None
    return text


def _parse(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if not _HALF_ESCAPE.search(text):
            raise
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def open_draft(history: Any, format_name: str | None, preferred: str) -> Draft:
    """Copy a history and find its parts. `preferred` is the format of plain text, which looks the same in all."""
    chosen = None if format_name in (None, "auto") else _read_format(format_name)
    halves: list[tuple[Any, str]] = []
    document = _copy(history, halves)
    if isinstance(document, list) and any(_is_wrapped(line) for line in document):
        draft = _open_lines(document)
    elif isinstance(document, list):
        draft = Draft(document, document, None, "messages")
    elif isinstance(document, dict):
        draft = _open_object(document)
    else:
        raise ConfigError(
            f"there is no conversation in {_name_type(document)}. To do: pass a list of messages, or an object with "
            "messages, input or contents."
        )
    if not draft.items:
        raise ConfigError("the conversation is empty. To do: name one that has messages.")
    for place, item in enumerate(draft.items):
        if not isinstance(item, dict):
            where = write_path((draft.list_name, place))
            raise ConfigError(f"{where} is {_name_type(item)}, not a message. To do: check whether the file was cut.")
    draft.format = chosen or _detect(draft, preferred)
    if draft.fields is None and draft.list_name != _LIST_OF[draft.format]:
        draft = _rename_list(draft, _LIST_OF[draft.format])
    for holder, name in halves:
        detail = "the text has half a character (a lone surrogate), which is not JSON for a server"
        draft.report(None, holder, detail, "U+FFFD is in its place", field=name, fact=FACTS["half_character"])
        draft.touch(holder)
    return draft


def _rename_list(draft: Draft, name: str) -> Draft:
    renamed = Draft(draft.document, draft.items, None, name)
    renamed.format, renamed.lines = draft.format, draft.lines
    return renamed


def _read_format(name: object) -> HistoryFormat:
    found = FORMATS.get(name.lower().replace("-", "_")) if isinstance(name, str) else None
    if found is None:
        raise ConfigError(
            f"the format {name!r} is not known. To do: use openai, anthropic, responses, gemini or asides."
        )
    return found


def _copy(history: Any, halves: list[tuple[Any, str]]) -> Any:
    """Copy a history. `halves` gets the places of texts with half a character, which the copy has not."""
    if isinstance(history, Sequence) and not isinstance(history, str) and any(
        isinstance(message, Message) for message in history
    ):  # fmt: skip
        from asides.history.document import to_document

        return msgspec.json.decode(to_document(tuple(history), keep_thinking=True))
    with refuse_unwritable():
        copy = _clone(history, halves)
        msgspec.json.encode(copy)
        return copy


def _clone(value: Any, halves: list[tuple[Any, str]]) -> Any:
    """Copy plain JSON. An object that is there twice becomes two: each has its own place."""
    if isinstance(value, Mapping):
        fields: Node = {}
        for name, inner in value.items():
            whole = _mend(name)
            fields[whole] = _mend(_clone(inner, halves))
            if whole != name or (isinstance(inner, str) and fields[whole] != inner):
                halves.append((fields, str(whole)))
        return fields
    if not isinstance(value, (list, tuple)):
        return value
    items = [_mend(_clone(inner, halves)) for inner in value]
    if any(isinstance(new, str) and new != old for new, old in zip(items, value, strict=True)):
        halves.append((items, ""))
    return items


def _mend(value: Any) -> Any:
    """A text without half characters; other values as they are."""
    return _HALF.sub("\ufffd", value) if isinstance(value, str) and not value.isascii() else value


def _open_object(document: Node) -> Draft:
    name = next((name for name in _LISTS if isinstance(document.get(name), list)), None)
    if name is not None:
        return Draft(document, document[name], document, name)
    if isinstance(document.get("input"), str):
        raise ConfigError("the input is one text, so there is no history to repair.")
    if "role" in document and ("content" in document or "parts" in document):
        raise ConfigError("this is a single message. To do: pass the list of messages of the conversation.")
    raise ConfigError(
        "the file has no list of messages. To do: pass a list, or an object with messages, input or contents."
    )


def _open_lines(document: list[Any]) -> Draft:
    lines = [(line, _unwrap(line) if isinstance(line, dict) else None) for line in document]
    draft = Draft(document, [inner for _, inner in lines if inner is not None], None, "messages")
    draft.lines = lines
    return draft


def _is_wrapped(line: object) -> bool:
    return isinstance(line, dict) and (inner := _unwrap(line)) is not None and inner is not line


def _unwrap(line: Node) -> Node | None:
    """The message in a line of a session file: the line itself, or the object in it; None for other lines."""
    message, payload = line.get("message"), line.get("payload")
    if isinstance(message, dict) and isinstance(message.get("role"), str):
        return message
    if line.get("type") == "response_item" and isinstance(payload, dict):
        return payload if _is_item(payload) else None
    is_item = _is_item(line) or "parts" in line
    return line if isinstance(line.get("role"), str) or is_item else None if "type" in line else line


def _is_item(node: Node) -> bool:
    kind = str(node.get("type"))
    return kind in _LINE_ITEMS or kind.endswith(_LINE_ITEM_ENDINGS)


def _detect(draft: Draft, preferred: str) -> HistoryFormat:
    items, fields = draft.items, draft.fields or {}
    if "asides" in fields:
        return "asides"
    with_parts = [item["parts"] for item in items if isinstance(item.get("parts"), list) and "content" not in item]
    if with_parts:
        ours = [part for parts in with_parts for part in parts if isinstance(part, dict) and "type" in part]
        return "asides" if ours else "gemini"
    if draft.list_name == "contents":
        return "gemini"
    if (found := detect_format([_without_odd_blocks(item) for item in items])) is not None:
        return found
    if draft.list_name in ("input", "output"):
        return "openai_responses"
    if "system" in fields or preferred == "anthropic":
        return "anthropic"
    return "openai_responses" if preferred == "openai_responses" and fields == {} else "openai_chat"


def _without_odd_blocks(item: Node) -> Node:
    """The message without blocks that are broken, which must not decide on its format."""
    content = item.get("content")
    if not isinstance(content, list):
        return item
    return {**item, "content": [{"type": "redacted_thinking"} if _is_odd(part) else part for part in content]}


def _is_odd(part: Any) -> bool:
    return (
        isinstance(part, dict) and part.get("type") == "thinking" and not isinstance(part.get("thinking"), (str, list))
    )


def _name_type(value: object) -> str:
    names: dict[type, str] = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
