"""Chat completions: a list of messages, results in messages of their own, thinking in fields beside the content."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import add_signature
from asides.dialects.openai_chat.import_messages import ROLES, import_message
from asides.history.diagnosis.draft import Node, Piece, PieceKind, Turn
from asides.history.diagnosis.shape import CANCELLED, Shape, make_piece, read_part
from asides.values.messages import Role

DETAILS = "reasoning_details"
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", DETAILS)
"""The fields of a message that hold thinking."""
_BESIDE_THOUGHT = ("extra_content", "thought_signature")


class ChatShape(Shape):
    """A list of chat messages."""

    def read(self) -> list[Turn]:
        """Read the turns as they are now."""
        turns: list[Turn] = []
        legacy_calls = 0
        for item in self.draft.items:
            given = item.get("role")
            role = ROLES.get(given) if isinstance(given, str) else None
            if role is None:
                self.refuse(item, f"the role {str(given)[:40]!r} is not known; use {', '.join(ROLES)}.")
            if item.get("function_call"):
                legacy_calls += 1
            pieces = self._read_result(item, legacy_calls) if role == "tool" else self._read_content(item, role)
            if role == "assistant":
                pieces = [*self._read_thought(item), *pieces, *self._read_calls(item, legacy_calls)]
            model = item.get("model")
            turns.append(Turn(role, [item], pieces, model if isinstance(model, str) else ""))
        return turns

    def _import(self, item: Node, fields: Node, legacy_calls: int = 0) -> tuple[Any, ...]:
        parts, problem = read_part(lambda: [import_message(fields, legacy_calls)])
        if problem:
            self.refuse(item, problem)
        return parts

    def _read_result(self, item: Node, legacy_calls: int) -> list[Piece]:
        parts = self._import(item, {"content": "", **item}, legacy_calls)
        return [make_piece("result", item, self.draft.items, parts)]

    def _read_content(self, item: Node, role: Role) -> list[Piece]:
        content = item.get("content")
        if not isinstance(content, list):
            if content is None:
                return []
            parts = self._import(item, {"role": role, "content": content})
            return [Piece("text", item, None, ("content",), parts)]
        pieces: list[Piece] = []
        for part in content:
            parts = self._import(item, {"role": role, "content": [part]})
            if isinstance(part, dict):
                pieces.append(make_piece(_find_kind(part), part, content, parts))
            else:
                pieces.append(Piece("text", item, None, ("content",), parts))
        return pieces

    def _read_thought(self, item: Node) -> list[Piece]:
        held = [name for name in (*THOUGHT_FIELDS, *_BESIDE_THOUGHT) if item.get(name) is not None]
        if not held:
            return []
        parts = self._import(item, {"role": "assistant", "content": None, **{name: item[name] for name in held}})
        return [Piece("thought", item, None, tuple(held), parts)]

    def _read_calls(self, item: Node, legacy_calls: int) -> list[Piece]:
        pieces: list[Piece] = []
        if isinstance(item.get("refusal"), str) and item["refusal"]:
            parts = self._import(item, {"role": "assistant", "content": None, "refusal": item["refusal"]})
            pieces.append(Piece("other", item, None, ("refusal",), parts))
        calls = item.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            self.refuse(item, "tool_calls is a list.")
        for call in calls or ():
            parts = self._import(item, {"role": "assistant", "content": None, "tool_calls": [call]})
            pieces.append(make_piece("call", call, calls, parts))
        if isinstance(legacy := item.get("function_call"), dict):
            fields = {"role": "assistant", "content": None, "function_call": legacy}
            pieces.append(make_piece("call", legacy, None, self._import(item, fields, legacy_calls)))
        return pieces

    # --- changes ----------------------------------------------------------------------------------------------------

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        if call.holder is None:
            return {"role": "function", "name": call.name, "content": CANCELLED}
        return {"role": "tool", "tool_call_id": call.call_id, "content": CANCELLED}

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        piece.node["id" if piece.kind == "call" else "tool_call_id"] = piece.call_id = new
        self.draft.touch(piece.node)

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call as the file has them."""
        return call.node.get("function", call.node).get("arguments")

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        call.node.get("function", call.node)["arguments"] = msgspec.json.encode(arguments).decode()
        if isinstance(call.node.get("extra_content"), dict):  # a signature covers the arguments
            call.node["extra_content"] = add_signature(call.node["extra_content"], STAND_IN)
        self.draft.touch(call.node)

    def takes_text_arguments(self) -> bool:
        """Arguments are JSON text."""
        return True


def _find_kind(part: Node) -> PieceKind:
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return "text"
        case "thinking" | "reasoning":
            return "thought"
        case _:
            return "other"
