"""Gemini's contents: parts with a signature on them, calls and results without ids, paired by their names and order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.dialects.gemini.import_contents import import_contents
from asides.dialects.message_encoder import STAND_IN
from asides.history.diagnosis.draft import Node, Piece, PieceKind, Turn
from asides.history.diagnosis.shape import CANCELLED, Shape, make_piece, read_part
from asides.values.messages import Role
from asides.values.parts import ToolCall, ToolResult

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user", "tool": "user"}
# The API takes both spellings.
_CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
}
SIGNATURES = ("thoughtSignature", "thought_signature")
CALLS = ("functionCall", "function_call")
RESULTS = ("functionResponse", "function_response")


def find_field(part: Node, names: Sequence[str]) -> Any:
    """The value of the first of these fields that is there."""
    return next((part[name] for name in names if part.get(name) is not None), None)


class GeminiShape(Shape):
    """A list of contents."""

    results_in_user_turns = True

    def read(self) -> list[Turn]:
        """Read the turns as they are now. A result belongs to the first open call of its name, unless it has an id."""
        turns: list[Turn] = []
        calls = 0
        waiting: list[Piece] = []
        for item in self.draft.items:
            role = _ROLES.get(str(item.get("role", "user")))
            if role is None:
                self.refuse(item, f"the role {str(item.get('role'))[:40]!r} is not known; use user or model.")
            parts = item.get("parts", [])
            if isinstance(parts, dict):
                parts = item["parts"] = [parts]  # the API takes one part without its list
            if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
                self.refuse(item, "parts is a list of objects.")
            if role == "assistant" and not (turns and turns[-1].role == "assistant"):
                waiting = []
            pieces: list[Piece] = []
            for part in parts:
                piece = self._read_part(item, role, part, parts)
                if piece.kind == "call":
                    calls += 1
                    piece = _number_call(piece, calls)
                    waiting.append(piece)
                elif piece.kind == "result":
                    piece = _pair_result(piece, waiting)
                pieces.append(piece)
            if role == "assistant" and turns and turns[-1].role == role:  # one content for each chunk of a stream
                turns[-1].nodes.append(item)
                turns[-1].pieces += pieces
            else:
                turns.append(Turn(role, [item], pieces))
        return turns

    def _read_part(self, item: Node, role: Role, part: Node, holder: list[Any]) -> Piece:
        content = {"role": "model" if role == "assistant" else "user", "parts": [_to_camel(part)]}
        parts, problem = read_part(lambda: import_contents([content]))
        if problem:
            self.refuse(item, problem.partition(": ")[2] or problem)
        kind: PieceKind = "other"
        if isinstance(find_field(part, CALLS), dict) and role == "assistant":
            kind = "call"
        elif isinstance(find_field(part, RESULTS), dict) and role == "user":
            kind = "result"
        elif isinstance(part.get("text"), str):
            kind = "thought" if part.get("thought") and role == "assistant" else "text"
        return make_piece(kind, part, holder, parts)

    # --- changes ----------------------------------------------------------------------------------------------------

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        answer: Node = {"name": call.name, "response": {"error": CANCELLED}}
        given = find_field(call.node, CALLS).get("id")
        return {"functionResponse": {"id": given, **answer} if given else answer}

    def place_results(self, turns: Sequence[Turn], place: int, nodes: list[Node]) -> None:
        """Put results behind those of the next content, or into a content of their own."""
        following = turns[place + 1] if place + 1 < len(turns) else None
        if following is None or not following.list_pieces("result"):
            item = self.find_item(turns, place + 1)
            self.draft.insert(self.draft.items, item, {"role": "user", "parts": nodes})
            return
        parts = following.nodes[0]["parts"]
        last = max((number for number, part in enumerate(parts) if find_field(part, RESULTS) is not None), default=-1)
        for number, node in enumerate(nodes, last + 1):
            self.draft.insert(parts, number, node)

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        find_field(piece.node, CALLS if piece.kind == "call" else RESULTS)["id"] = piece.call_id = new
        self.draft.touch(piece.node)

    def make_text(self, role: str, text: str) -> Node:
        """Make a content of one text."""
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call as the file has them."""
        return find_field(call.node, CALLS).get("args", {})

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        find_field(call.node, CALLS)["args"] = arguments
        if find_field(call.node, SIGNATURES) is not None:  # a signature covers the arguments
            set_placeholder(call.node)
        self.draft.touch(call.node)


def set_placeholder(part: Node) -> None:
    """Put the documented placeholder where a signature belongs."""
    for name in SIGNATURES:
        part.pop(name, None)
    part["thoughtSignature"] = STAND_IN


def _to_camel(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        _CAMEL.get(name, name): inner if name in ("args", "response") else _to_camel(inner)
        for name, inner in value.items()
    }


def _number_call(piece: Piece, number: int) -> Piece:
    """Give a call without an id one for us, so that each call has its own."""
    given = find_field(piece.node, CALLS).get("id")
    piece.call_id = given if isinstance(given, str) and given else f"call_{number}_{piece.name}"
    piece.parts = tuple(
        msgspec.structs.replace(part, id=piece.call_id) if isinstance(part, ToolCall) else part for part in piece.parts
    )
    return piece


def _pair_result(piece: Piece, waiting: list[Piece]) -> Piece:
    answer = find_field(piece.node, RESULTS)
    given, name = answer.get("id"), answer.get("name")
    same_name = [call for call in waiting if call.name == name]
    found = next((call for call in same_name if call.call_id == given), None) if given else None
    if found is None:
        open_calls = [call for call in same_name if not given or not find_field(call.node, CALLS).get("id")]
        found = next(iter(open_calls), None)
    if found is not None:
        waiting.remove(found)
    piece.name = str(name)
    piece.call_id = found.call_id if found is not None else str(given or f"call_{name}")
    piece.parts = tuple(
        msgspec.structs.replace(part, call_id=piece.call_id) if isinstance(part, ToolResult) else part
        for part in piece.parts
    )
    return piece
