"""A history under repair: `Draft` holds a copy of the document, the places of its parts in the file, and the findings.

Rules change the copy and report each change; unknown fields stay. Not here: opening a file (open_history), the parts of
a format (shape_*), and the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec

from asides.history.diagnosis.findings import FACTS, Effect, Fact, Finding, HistoryFormat
from asides.values.messages import Role
from asides.values.notices import escape_controls
from asides.values.parts import Part

Node: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
PieceKind: TypeAlias = Literal["text", "thought", "call", "result", "other"]

CHAT: HistoryFormat = "openai_chat"
# One of these beside the list shows that the document is a request. A bare history may have a system prompt.
_SETTINGS = frozenset({
    "generationConfig", "generation_config", "include", "max_completion_tokens", "max_output_tokens", "max_tokens",
    "model", "output_config", "previous_response_id", "reasoning", "reasoning_effort", "store", "stream", "temperature",
    "thinking", "toolConfig", "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
_RESPONSE_MARKS = ("output", "choices", "candidates")


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
        self.lines: list[tuple[Any, Node | None]] = []
        """The lines of a session file, each with its message, if it has one."""
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.changes = 0
        self.changed: set[int] = set()
        """The ids of nodes that changed, or before which something changed."""
        self._paths: dict[int, Path] = {}
        self._removed: dict[int, Any] = {}
        """Nodes that are gone, by their ids, which they keep."""
        self._place = 0
        """Where in the list of messages the last change was: the next one is near it."""
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
        place = self.find_item(node) if holder is self.items else find_place(holder, node)
        self._removed[id(node)] = holder.pop(place)
        self.changes += 1
        self.changed.add(id(holder))
        if place < len(holder):
            self.changed.add(id(holder[place]))

    def insert(self, holder: list[Any], place: int, node: Any) -> None:
        """Insert a new node into a list, or one that was removed."""
        holder.insert(place, node)
        self._removed.pop(id(node), None)
        self.changes += 1
        self.changed |= {id(holder), id(node)}

    def is_removed(self, node: Any) -> bool:
        """Whether this node was removed from its list."""
        return id(node) in self._removed

    def find_item(self, node: Any) -> int:
        """The place of this very message. Changes follow the list, so the search begins where the last one ended."""
        items, start = self.items, min(self._place, len(self.items))
        places = chain(range(start, len(items)), range(start))
        self._place = next(place for place in places if items[place] is node)
        return self._place

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
        shown, detail = write_path(path), escape_controls(detail)  # names of the file may hold anything
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
            # A message that was moved forward does not take the lines around it along.
            written += [line for line, inner in self.lines[next_line:place] if inner is None]
            written.append(self.lines[place][0])
            next_line = max(next_line, place + 1)
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


def _wrap(item: Node, name: str | None) -> Node:
    match name:
        case "message":
            return {"type": item.get("role"), "message": item}
        case "payload":
            return {"type": "response_item", "payload": item}
        case _:
            return item
