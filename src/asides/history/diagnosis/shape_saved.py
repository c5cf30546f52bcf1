"""Our own saved conversations: messages of parts, each with its origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.history.diagnosis.draft import Node, Piece, PieceKind, Turn
from asides.history.diagnosis.shape import CANCELLED, Shape, make_piece
from asides.history.document import VERSION, from_document, read_message
from asides.values.errors import ConfigError
from asides.values.messages import Message

_KINDS: dict[str, PieceKind] = {
    "text": "text",
    "reasoning": "thought",
    "thought": "thought",
    "tool_call": "call",
    "tool_result": "result",
}


class SavedShape(Shape):
    """The messages of a saved conversation."""

    def check(self) -> None:
        """Raise ConfigError if the document cannot be read, or has a version that this one does not know."""
        document = self.draft.document if self.draft.fields is not None else {"asides": VERSION, "messages": []}
        from_document(msgspec.json.encode(document))

    def read(self) -> list[Turn]:
        """Read the turns as they are now."""
        turns: list[Turn] = []
        for item in self.draft.items:
            message = self._read_message(item)
            holder: list[Any] = item.setdefault("parts", [])
            pieces = [
                make_piece(_KINDS.get(str(node.get("type")), "other"), node, holder, (part,))
                for node, part in zip(holder, message.parts, strict=True)
            ]
            turns.append(Turn(message.role, [item], pieces))
        return turns

    def find_learned(self) -> list[Message]:
        """The messages themselves, with what they know about their models."""
        return [self._read_message(item) for item in self.draft.items]

    def _read_message(self, item: Node) -> Message:
        try:
            return read_message(msgspec.json.encode(item))[0]
        except ConfigError as problem:
            self.refuse(item, str(problem))

    # --- changes ----------------------------------------------------------------------------------------------------

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        return {
            "type": "tool_result",
            "call_id": call.call_id,
            "content": CANCELLED,
            "name": call.name,
            "is_error": True,
        }

    def place_results(self, turns: Sequence[Turn], place: int, nodes: list[Node]) -> None:
        """Put each result into a message of its own, behind those of the turn at this place."""
        super().place_results(turns, place, [{"role": "tool", "parts": [node]} for node in nodes])

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        piece.node["id" if piece.kind == "call" else "call_id"] = piece.call_id = new
        self.draft.touch(piece.node)

    def make_text(self, role: str, text: str) -> Node:
        """Make a message of one text."""
        return {"role": role, "parts": [{"type": "text", "text": text}]}

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call; text that is not JSON is beside them, and stays."""
        return call.node.get("arguments", {})

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        call.node["arguments"] = arguments
        self.draft.touch(call.node)
