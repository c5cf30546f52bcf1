"""A history under repair: `Draft` holds a copy of the document, the places of its parts in the file, and the findings.

Rules change the copy and report each change; unknown fields stay. `open_draft` finds the list of messages, its format
and the settings beside it. Not here: the parts of a format (shape_*), and the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.history.diagnosis.findings import FACTS, Effect, Fact, Finding, HistoryFormat
from asides.history.import_export import detect_format, refuse_unwritable
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role
from asides.values.parts import Part, is_too_deep

Node: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
PieceKind: TypeAlias = Literal["text", "thought", "call", "result", "other"]

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

_LISTS = ("messages", "contents", "input", "output")
_LIST_OF: dict[HistoryFormat, str] = {
    "openai_chat": "messages",
    "anthropic": "messages",
    "openai_responses": "input",
    "gemini": "contents",
    "asides": "messages",
}
# One of these beside the list shows that the document is a request. A bare history may have a system prompt.
_SETTINGS = frozenset({
    "generationConfig", "generation_config", "include", "max_completion_tokens", "max_output_tokens", "max_tokens",
    "model", "output_config", "previous_response_id", "reasoning", "reasoning_effort", "store", "stream", "temperature",
    "thinking", "toolConfig", "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
_RESPONSE_MARKS = ("output", "choices", "candidates")
_LINE_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
                         "custom_tool_call_output"})  # fmt: skip


class Piece(msgspec.Struct, eq=False):
    """One part of a message in the file, and what it is to us."""

    kind: PieceKind
    node: Node
    """The object that is the part, or that has it in some of its fields."""
    holder: list[Any] | None = None
    """The list with the node; None where the part is a field of the node."""
    fields: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    """The part as our importer reads it; none if nothing of it is ever sent."""
    call_id: str = ""
    name: str = ""


class Turn(msgspec.Struct, eq=False):
    """One message of the file; in a list of items, all items of a turn of the model."""

    role: Role
    nodes: list[Node]
    pieces: list[Piece]
    model: str = ""
    """The model that made it, where the file says so."""

    def list_pieces(self, kind: PieceKind) -> list[Piece]:
        """The parts of this kind."""
        return [piece for piece in self.pieces if piece.kind == kind]


class Draft:
    """The copy of a document while it is repaired."""

    def __init__(self, document: Any, items: list[Any], fields: Node | None, list_name: str) -> None:
        self.document = document
        self.items = items
        self.fields = fields
        """The object around the list; None for a bare list."""
        self.list_name = list_name
        self.format: HistoryFormat = "openai_chat"
        self.lines: list[tuple[Node, Node | None]] = []
        """The lines of a session file, each with its message, if it has one."""
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.changes = 0
        self.changed: set[int] = set()
        """The ids of nodes that changed, or before which something changed."""
        self._paths: dict[int, Path] = {}
        self._removed: list[Any] = []  # nodes that are gone keep their ids
        self._seen: set[tuple[str | None, str, str]] = set()
        for number, item in enumerate(items):
            self._note_paths(item, (list_name, number))

    @property
    def is_request(self) -> bool:
        """Whether settings are beside the history."""
        return (
            self.fields is not None
            and self.list_name not in _RESPONSE_MARKS
            and not _SETTINGS.isdisjoint(self.fields)
            and self.format != "asides"
        )

    def _note_paths(self, value: Any, path: Path) -> None:
        waiting = [(value, path)]
        while waiting:
            node, where = waiting.pop()
            if isinstance(node, dict):
                self._paths[id(node)] = where
                waiting += [(inner, (*where, name)) for name, inner in node.items()]
            elif isinstance(node, list):
                self._paths[id(node)] = where
                waiting += [(inner, (*where, place)) for place, inner in enumerate(node)]

    # --- changes ----------------------------------------------------------------------------------------------------

    def touch(self, node: Any) -> None:
        """Note that this node changed."""
        self.changes += 1
        self.changed.add(id(node))

    def remove(self, holder: list[Any], node: Any) -> None:
        """Remove a node from its list."""
        place = find_place(holder, node)
        self._removed.append(holder.pop(place))
        self.changes += 1
        self.changed.add(id(holder))
        if place < len(holder):
            self.changed.add(id(holder[place]))

    def insert(self, holder: list[Any], place: int, node: Any) -> None:
        """Insert a new node into a list."""
        holder.insert(place, node)
        self.changes += 1
        self.changed |= {id(holder), id(node)}

    def remove_piece(self, piece: Piece) -> None:
        """Remove a part: from its list, or its fields from their object."""
        if piece.holder is not None:
            self.remove(piece.holder, piece.node)
            return
        for name in piece.fields:
            piece.node.pop(name, None)
        self.touch(piece.node)

    # --- findings ---------------------------------------------------------------------------------------------------

    def report(
        self,
        kind: str | None,
        node: Any,
        detail: str,
        repair: str,
        *,
        field: str = "",
        effect: Effect = "refused",
        fact: Fact | None = None,
    ) -> None:
        """Add a finding about a node, or a field of it. Each is reported once."""
        path = self._paths.get(id(node), (self.list_name, len(self.items)))
        path = (*path, field) if field else path
        self._add(kind, path, detail, repair, effect, fact)

    def report_setting(self, kind: str | None, name: str, detail: str, repair: str, fact: Fact | None = None) -> None:
        """Add a finding about a setting beside the history."""
        self._add(kind, (name,), detail, repair, "refused", fact)

    def _add(self, kind: str | None, path: Path, detail: str, repair: str, effect: Effect, fact: Fact | None) -> None:
        shown = write_path(path)
        if (kind, shown, detail) in self._seen:
            return
        self._seen.add((kind, shown, detail))
        numbers = [step for step in path if isinstance(step, int)]
        fact = fact if fact is not None and fact.source else FACTS.get(kind or "", fact or Fact("", ""))
        message, part = (*numbers, None, None)[:2]
        self.findings.append(Finding(kind, effect, shown, message, part, detail, repair, fact.since, fact.source))

    # --- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> Any:
        """Return the repaired document."""
        if not self.lines:
            return self.document
        places = {id(inner): place for place, (_, inner) in enumerate(self.lines) if inner is not None}
        wraps = next((name for line, inner in self.lines for name in ("message", "payload")
                      if inner is not None and line.get(name) is inner), None)  # fmt: skip
        written: list[Any] = []
        next_line = 0
        for item in self.items:
            place = places.get(id(item))
            if place is None:
                written.append(_wrap(item, wraps))
                continue
            written += [line for line, inner in self.lines[next_line:place] if inner is None]
            written.append(self.lines[place][0])
            next_line = place + 1
        return [*written, *(line for line, inner in self.lines[next_line:] if inner is None)]


def find_place(holder: Sequence[Any], node: Any) -> int:
    """The place of this very object in a list."""
    return next(place for place, each in enumerate(holder) if each is node)


def write_path(path: Path) -> str:
    """Write a path as people do: messages[3].content[0]."""
    written = ""
    for step in path:
        written += f"[{step}]" if isinstance(step, int) else f".{step}" if written else step
    return written


# --- opening ----------------------------------------------------------------------------------------------------------


def parse_history(data: bytes) -> tuple[Any, bool]:
    """Parse the bytes of a file: JSON, or one JSON object in each line. Returns the value, and whether it was lines."""
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise ConfigError("the file is empty. To do: name a file with a conversation.")
    if is_too_deep(text):
        raise ConfigError("the file is nested too deeply for a conversation.")
    try:
        return msgspec.json.decode(text), False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    lines: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ConfigError(
                f"the file is neither JSON nor one JSON object in each line (line {number} is not). To do: check "
                "whether it was cut."
            ) from None
    return lines, True


def open_draft(history: Any, format_name: str | None, preferred: str) -> Draft:
    """Copy a history and find its parts. `preferred` is the format of plain text, which looks the same in all."""
    chosen = None if format_name in (None, "auto") else _read_format(format_name)
    document = _copy(history)
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


def _copy(history: Any) -> Any:
    if isinstance(history, Sequence) and not isinstance(history, str) and any(
        isinstance(message, Message) for message in history
    ):  # fmt: skip
        from asides.history.document import to_document

        return msgspec.json.decode(to_document(tuple(history), keep_thinking=True))
    with refuse_unwritable():
        msgspec.json.encode(history)
        return _clone(history)


def _clone(value: Any) -> Any:
    """Copy plain JSON. An object that is there twice becomes two: each has its own place."""
    if isinstance(value, Mapping):
        return {name: _clone(inner) for name, inner in value.items()}
    return [_clone(inner) for inner in value] if isinstance(value, (list, tuple)) else value


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
    lines = [(line, _unwrap(line)) for line in document if isinstance(line, dict)]
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
        return payload if str(payload.get("type")) in _LINE_ITEMS else None
    is_item = str(line.get("type")) in _LINE_ITEMS or "parts" in line
    return line if isinstance(line.get("role"), str) or is_item else None if "type" in line else line


def _wrap(item: Node, name: str | None) -> Node:
    match name:
        case "message":
            return {"type": item.get("role"), "message": item}
        case "payload":
            return {"type": "response_item", "payload": item}
        case _:
            return item


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
    if (found := detect_format([_replace_odd_blocks(item) for item in items])) is not None:
        return found
    if draft.list_name in ("input", "output"):
        return "openai_responses"
    if "system" in fields or preferred == "anthropic":
        return "anthropic"
    return "openai_responses" if preferred == "openai_responses" and fields == {} else "openai_chat"


def _replace_odd_blocks(item: Node) -> Node:
    """The message with a plain block for each broken one: those must not decide on its format."""
    content = item.get("content")
    if not isinstance(content, list):
        return item
    odd = [part for part in content if isinstance(part, dict) and part.get("type") == "thinking"
           and not isinstance(part.get("thinking"), (str, list))]  # fmt: skip
    return {**item, "content": [{"type": "redacted_thinking"} if part in odd else part for part in content]}


def _name_type(value: object) -> str:
    names: dict[type, str] = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
