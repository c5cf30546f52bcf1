"""Anthropic's messages: turns of blocks, results in the user's next message, thinking in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asides.dialects.anthropic.import_messages import import_messages
from asides.history.diagnosis.draft import Node, Piece, PieceKind, Turn
from asides.history.diagnosis.shape import CANCELLED, Shape, make_piece, read_part
from asides.values.messages import Role

BLOCK_DIALECTS = ("anthropic", "bedrock")
"""The dialects that take such blocks, in their own spelling."""
THOUGHTS = ("thinking", "redacted_thinking")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_KINDS: dict[str, PieceKind] = {
    "text": "text",
    "thinking": "thought",
    "redacted_thinking": "thought",
    "tool_use": "call",
    "tool_result": "result",
}


class AnthropicShape(Shape):
    """A list of turns of blocks."""

    results_in_user_turns = True

    def read(self) -> list[Turn]:
        """Read the turns as they are now. Lines of one message of the model are one turn."""
        turns: list[Turn] = []
        for item in self.draft.items:
            role = _ROLES.get(str(item.get("role")))
            if role is None:
                self.refuse(item, f"the role {str(item.get('role'))[:40]!r} is not known; use user or assistant.")
            pieces = self._read_content(item, role)
            model, before = item.get("model"), turns[-1] if turns else None
            if before is not None and role == before.role == "assistant" and _is_same_message(item, before.nodes[-1]):
                before.nodes.append(item)
                before.pieces += pieces
                continue
            turns.append(Turn(role, [item], pieces, model if isinstance(model, str) else ""))
        return turns

    def _read_content(self, item: Node, role: Role) -> list[Piece]:
        content = item.get("content")
        if isinstance(content, str):
            parts, _ = read_part(lambda: import_messages([{"role": role, "content": content}]))
            return [Piece("text", item, None, ("content",), parts)]
        if content is None:
            return []
        if not isinstance(content, list):
            self.refuse(item, "content is text or a list of blocks.")
        pieces: list[Piece] = []
        for block in content:
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                self.refuse(item, "a block is an object with a type.")
            kind = _KINDS.get(block["type"], "other")
            parts, problem = read_part(lambda block=block: import_messages([{"role": role, "content": [block]}]))  # type: ignore[misc]
            if problem and kind not in ("thought", "call"):  # those are repaired
                self.refuse(item, problem)
            more: dict[str, Any] = {}
            if kind == "call" and not parts:
                if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str):
                    self.refuse(item, problem)
                more = {"call_id": block["id"], "name": block["name"]}
            pieces.append(make_piece(kind, block, content, parts, **more))
        return pieces

    # --- changes ----------------------------------------------------------------------------------------------------

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        return {"type": "tool_result", "tool_use_id": call.call_id, "content": CANCELLED, "is_error": True}

    def place_results(self, turns: Sequence[Turn], place: int, nodes: list[Node]) -> None:
        """Put results behind those at the beginning of the next message, which is the user's."""
        following = turns[place + 1] if place + 1 < len(turns) else None
        if following is None or following.role != "user":
            item = self.find_item(turns, place + 1)
            self.draft.insert(self.draft.items, item, {"role": "user", "content": nodes})
            return
        message = following.nodes[0]
        if not isinstance(message.get("content"), list):
            text = message.get("content")
            message["content"] = [{"type": "text", "text": text}] if text else []
        blocks = message["content"]
        count = 0
        while count < len(blocks) and blocks[count].get("type") == "tool_result":
            count += 1
        for number, node in enumerate(nodes):
            self.draft.insert(blocks, count + number, node)
        self.draft.touch(message)

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        piece.node["id" if piece.kind == "call" else "tool_use_id"] = piece.call_id = new
        self.draft.touch(piece.node)

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call as the file has them."""
        return call.node.get("input")

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        call.node["input"] = arguments
        self.draft.touch(call.node)


def _is_same_message(item: Node, before: Node) -> bool:
    return isinstance(item.get("id"), str) and item["id"] == before.get("id")
