"""Items of Responses: reasoning, messages and calls of the model are items of their own, and so are results."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.openai_responses.import_items import import_items
from asides.dialects.openai_responses.tool_items import CLIENT_CALLS
from asides.history.diagnosis.draft import Node, Piece, PieceKind, Turn
from asides.history.diagnosis.shape import CANCELLED, Shape, make_piece, read_part
from asides.values.messages import Role

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_KINDS: dict[str, PieceKind] = {
    "reasoning": "thought",
    "function_call": "call",
    "custom_tool_call": "call",
    "function_call_output": "result",
    "custom_tool_call_output": "result",
}


class ResponsesShape(Shape):
    """A list of items."""

    def read(self) -> list[Turn]:
        """Read the turns as they are now. All items of the model in a row are one turn."""
        turns: list[Turn] = []
        provided: set[str] = set()
        for item in self.draft.items:
            role, piece = self._read_item(item)
            given = item.get("call_id")
            if isinstance(given, str) and item.get("type") in CLIENT_CALLS:
                provided.add(given)
            if piece.kind == "result" and given in provided:
                piece.kind = "other"  # of a tool of the provider, which the client ran
            last = turns[-1] if turns else None
            if last is not None and last.role == role and role in ("assistant", "tool"):
                last.nodes.append(item)
                last.pieces.append(piece)
            else:
                turns.append(Turn(role, [item], [piece]))
        return turns

    def _read_item(self, item: Node) -> tuple[Role, Piece]:
        kind = item.get("type", "item_reference" if item.keys() == {"id"} else "message")
        if not isinstance(kind, str):
            self.refuse(item, "type is not text.")
        parts, problem = read_part(lambda: import_items([item]))
        if problem:
            self.refuse(item, problem.partition(": ")[2] or problem)
        if kind == "message":
            return _ROLES[str(item.get("role"))], make_piece("text", item, self.draft.items, parts)
        piece_kind = _KINDS.get(kind, "other")
        role: Role = "tool" if piece_kind == "result" else "assistant"
        return role, make_piece(piece_kind, item, self.draft.items, parts)

    # --- changes ----------------------------------------------------------------------------------------------------

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        kind = "custom_tool_call_output" if call.node.get("type") == "custom_tool_call" else "function_call_output"
        return {"type": kind, "call_id": call.call_id, "output": CANCELLED}

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        piece.node["call_id"] = piece.call_id = new
        self.draft.touch(piece.node)

    def make_text(self, role: str, text: str) -> Node:
        """Make a message of one text."""
        return {"type": "message", "role": role, "content": text}

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call as the file has them; those of custom tools are any text."""
        return "{}" if call.node.get("type") == "custom_tool_call" else call.node.get("arguments")

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        call.node["arguments"] = msgspec.json.encode(arguments).decode()
        self.draft.touch(call.node)

    def takes_text_arguments(self) -> bool:
        """Arguments are JSON text."""
        return True
