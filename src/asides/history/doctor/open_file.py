"""Opens a history: finds its list of messages and its format (`open_document`)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from asides.intake.detect import HistoryFormat, detect_history
from asides.intake.documents import refuse_unwritable
from asides.values.errors import ConfigError
from asides.values.messages import Message

Node: TypeAlias = dict[str, Any]

CHAT: HistoryFormat = "openai_chat"
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

# One of these beside the list shows that the document is a request. A bare history may have a system prompt.
_SETTINGS = frozenset({
    "generationConfig", "generation_config", "include", "max_completion_tokens", "max_output_tokens", "max_tokens",
    "model", "output_config", "previous_response_id", "reasoning", "reasoning_effort", "store", "stream", "temperature",
    "thinking", "toolConfig", "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
_RESPONSE_MARKS = ("output", "choices", "candidates")
_LISTS = ("messages", "contents", "input", "output")
LIST_NAMES: dict[HistoryFormat, str] = {
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


class OpenedHistory(msgspec.Struct):
    """The messages of a document, and the document around them."""

    document: Any
    items: list[Any]
    """Each is an object, once the document is open."""
    fields: Node | None
    """The object around the list; None for a bare list."""
    list_name: str
    format: HistoryFormat = "openai_chat"
    lines: list[tuple[Any, Node | None]] = []
    """The lines of a session file, each with its message, if it has one."""
    places: list[list[int]] = []
    """The lines of each message: a message of the model may have several."""
    halves: list[str] = []
    """The paths of texts that had half a character."""

    @property
    def is_request(self) -> bool:
        """Whether settings are beside the history."""
        return (
            self.fields is not None
            and self.list_name not in _RESPONSE_MARKS
            and not _SETTINGS.isdisjoint(self.fields)
            and self.format != "asides"
        )

    def write(self, items: Sequence[Node], origins: Sequence[int | None], settings: Node) -> Any:
        """Write the document with other messages and settings. `origins`: the place of each message in the given list;
        None for a new one.
        """
        if self.fields is not None:
            written = {name: settings[name] for name in self.fields if name in settings}
            written |= {name: value for name, value in settings.items() if name not in written}
            if self.list_name in self.fields:
                written = {name: list(items) if name == self.list_name else value for name, value in written.items()}
            return written
        return list(items) if not self.lines else self._write_lines(items, origins)

    def _write_lines(self, items: Sequence[Node], origins: Sequence[int | None]) -> list[Any]:
        wraps = next((name for line, inner in self.lines for name in ("message", "payload")
                      if inner is not None and line.get(name) is inner), None)  # fmt: skip
        written: list[Any] = []
        next_line = 0
        for item, origin in zip(items, origins, strict=True):
            if origin is None:
                written.append(_wrap(item, wraps))
                continue
            for place in self.places[origin]:
                # Surrounding lines do not move along with a message.
                written += [line for line, inner in self.lines[next_line:place] if inner is None]
                line, inner = self.lines[place]
                if item == self.items[origin]:
                    written.append(line)
                elif place == self.places[origin][0]:
                    name = next((name for name in ("message", "payload") if line.get(name) is inner), None)
                    written.append(item if name is None else {**line, name: item})
                next_line = max(next_line, place + 1)
        return [*written, *(line for line, inner in self.lines[next_line:] if inner is None)]


def _wrap(item: Node, name: str | None) -> Node:
    match name:
        case "message":
            return {"type": item.get("role"), "message": item}
        case "payload":
            return {"type": "response_item", "payload": item}
        case _:
            return item


def open_document(history: Any, format_name: str | None, preferred: str) -> OpenedHistory:
    """Copy a history and find its messages. `preferred` is the format of plain text, which looks the same in all."""
    chosen = None if format_name in (None, "auto") else _read_format(format_name)
    halves: list[tuple[Any, str]] = []
    document = _copy(history, halves)
    if isinstance(document, list) and any(_is_wrapped(line) for line in document):
        lines = [(line, _unwrap(line) if isinstance(line, dict) else None) for line in document]
        opened = OpenedHistory(document, [], None, "messages", lines=lines)
        _join_lines(opened)
    elif isinstance(document, list):
        opened = OpenedHistory(document, document, None, "messages")
    elif isinstance(document, dict):
        opened = _open_object(document)
    else:
        raise ConfigError(
            f"there is no conversation in {_name_type(document)}. Pass a list of messages, or an object with "
            "messages, input or contents."
        )
    if not opened.items:
        raise ConfigError("the conversation is empty. Name one that has messages.")
    for place, item in enumerate(opened.items):
        if not isinstance(item, dict):
            where = f"{opened.list_name}[{place}]"
            raise ConfigError(f"{where} is {_name_type(item)}, not a message. Check whether the file was cut.")
    opened.format = chosen or detect_history(opened.items, opened.fields or {}, opened.list_name, preferred)
    if opened.fields is None:
        opened.list_name = LIST_NAMES[opened.format]
    opened.halves = _find_paths(opened, halves) if halves else []
    return opened


def _join_lines(opened: OpenedHistory) -> None:
    """Find the messages of a session file. Lines with blocks of one message, as its id says, are one message."""
    for place, (_, inner) in enumerate(opened.lines):
        if inner is None:
            continue
        before = opened.items[-1] if opened.items else {}
        contents = (before.get("content"), inner.get("content"))
        is_same = isinstance(inner.get("id"), str) and inner["id"] == before.get("id")
        if is_same and before.get("role") == inner.get("role") == "assistant" and all(
            isinstance(content, list) for content in contents
        ):  # fmt: skip
            opened.items[-1] = {**before, "content": [*before["content"], *inner["content"]]}
            opened.places[-1].append(place)
        else:
            opened.items.append(inner)
            opened.places.append([place])


def _find_paths(opened: OpenedHistory, halves: list[tuple[Any, str]]) -> list[str]:
    """Return the paths of fields in the document."""
    names = {id(holder): name for holder, name in halves}
    start = [(item, f"{opened.list_name}[{place}]") for place, item in enumerate(opened.items)]
    waiting: deque[tuple[Any, str]] = deque([*start, *([] if opened.fields is None else [(opened.fields, "")])])
    found: list[str] = []
    seen: set[int] = set()
    while waiting:
        node, path = waiting.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) in names:
            found.append(".".join(filter(None, (path, names[id(node)]))))
        if isinstance(node, dict):
            waiting += [(inner, f"{path}.{name}" if path else name) for name, inner in node.items()]
        elif isinstance(node, list):
            waiting += [(inner, f"{path}[{place}]") for place, inner in enumerate(node)]
    return found


def _read_format(name: object) -> HistoryFormat:
    found = FORMATS.get(name.lower().replace("-", "_")) if isinstance(name, str) else None
    if found is None:
        raise ConfigError(f"the format {name!r} is not known. Use openai, anthropic, responses, gemini or asides.")
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
    """A text without lone surrogates; other values unchanged."""
    return _HALF.sub("\ufffd", value) if isinstance(value, str) and not value.isascii() else value


def _open_object(document: Node) -> OpenedHistory:
    name = next((name for name in _LISTS if isinstance(document.get(name), list)), None)
    if name is not None:
        return OpenedHistory(document, document[name], document, name)
    if isinstance(document.get("input"), str):
        raise ConfigError("the input is one text, so there is no history to repair.")
    if "role" in document and ("content" in document or "parts" in document):
        raise ConfigError("this is a single message. Pass the list of messages of the conversation.")
    raise ConfigError("the file has no list of messages. Pass a list, or an object with messages, input or contents.")


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


def _name_type(value: object) -> str:
    names: dict[type, str] = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
