"""Anthropic's messages: turns of blocks, with blocks of the type thinking (`messages-anthropic`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asides.datasets.formats.turns import FormatError, Piece, Turn
from asides.intake.documents import import_messages
from asides.values.messages import Message


def write_blocks(turns: Sequence[Turn]) -> dict[str, Any]:
    """Write an object with the system prompt, if there is one, and the messages."""
    written: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    for place, turn in enumerate(turns):
        match turn.role:
            case "system" if place == 0:
                written["system"] = turn.text
            case "system":
                raise FormatError("a system message is not the first")
            case "user":
                messages.append({"role": "user", "content": [{"type": "text", "text": turn.text}]})
            case "assistant":
                messages.append({"role": "assistant", "content": [_write_piece(piece) for piece in turn.pieces]})
            case "tool":
                blocks = [
                    {"type": "tool_result", "tool_use_id": each.call_id, "content": each.text}
                    | ({"is_error": True} if each.is_error else {})
                    for each in turn.results
                ]
                messages.append({"role": "user", "content": blocks})
    return {**written, "messages": messages}


def _write_piece(piece: Piece) -> dict[str, Any]:
    match piece.kind:
        case "thinking":
            return {"type": "thinking", "thinking": piece.text, "signature": piece.signature}
        case "redacted":
            return {"type": "redacted_thinking", "data": piece.signature}
        case "text":
            return {"type": "text", "text": piece.text}
        case "call":
            return {"type": "tool_use", "id": piece.call_id, "name": piece.name, "input": piece.arguments}
        case "commentary":
            raise FormatError("it has commentary")


def read_blocks(value: Any) -> tuple[Message, ...]:
    """Read an object with messages, or a list of them."""
    return import_messages(value, "anthropic")
