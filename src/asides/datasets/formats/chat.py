"""Chat messages with the thinking in tags, or in a field of its own: `think-tags` and `reasoning_content`.

Commentary is in a field of that name, which templates ignore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from asides.datasets.formats.turns import CallNumbers, FormatError, Piece, Turn, make_call, split_messages
from asides.values.messages import Message, Role
from asides.values.parts import Commentary, Part, Text, ToolResult
from asides.values.thinking import Thought
from asides.wire.inline_tags import Channel, Splitter

OPEN, CLOSE = "<think>\n", "\n</think>"
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_THINK = ("think",)


def write_think_tags(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Write the thinking in tags."""
    return _write(turns, lambda thinking, text: {"content": tag_text(thinking, text)})


def write_reasoning_content(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Write the thinking in its field."""
    return _write(
        turns,
        lambda thinking, text: {"reasoning_content": thinking, "content": text} if thinking else {"content": text},
    )


def tag_text(thinking: str, text: str) -> str:
    """A text with the thinking in tags before it."""
    return "\n\n".join(part for part in (f"{OPEN}{thinking}{CLOSE}" if thinking else "", text) if part)


def _write(turns: Sequence[Turn], write: Callable[[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for turn in turns:
        match turn.role:
            case "assistant":
                for pieces in split_messages(turn, ("thinking", "commentary", "text", "call")):
                    written.append({"role": "assistant", **write(_get(pieces, "thinking"), _get(pieces, "text"))})
                    if commentary := _get(pieces, "commentary"):
                        written[-1]["commentary"] = commentary
                    if calls := [_write_call(piece) for piece in pieces if piece.kind == "call"]:
                        written[-1]["tool_calls"] = calls
            case "tool":
                written += [
                    {"role": "tool", "tool_call_id": each.call_id, "name": each.name, "content": each.text}
                    for each in turn.results
                ]
            case _:
                named = {"name": turn.name} if turn.name else {}
                written.append({"role": turn.role, **named, "content": turn.text})
    return written


def _get(pieces: Iterable[Piece], kind: str) -> str:
    return next((piece.text for piece in pieces if piece.kind == kind), "")


def _write_call(piece: Piece) -> dict[str, Any]:
    return {"id": piece.call_id, "type": "function", "function": {"name": piece.name, "arguments": piece.text}}


def read_think_tags(value: Any) -> tuple[Message, ...]:
    """Read messages with thinking in tags."""
    return _read(value, lambda message: split_tags(_read_text(message, "content")))


def read_reasoning_content(value: Any) -> tuple[Message, ...]:
    """Read messages with thinking in its field."""
    return _read(
        value,
        lambda message: [Thought(_read_text(message, "reasoning_content")), Text(_read_text(message, "content"))],
    )


def split_tags(text: str) -> list[Part]:
    """The thoughts in tags at the start of a text, and the text after them."""
    splitter = Splitter(_THINK, "leading", starts_inside=False)
    parts: list[Part] = []
    last = -1
    for segment, channel, piece in splitter.feed(text) + splitter.finish():
        kind = Thought if channel is Channel.THINKING else Text
        if segment == last:
            piece = getattr(parts.pop(), "text", "") + piece
        parts.append(kind(piece))
        last = segment
    return parts


def _read(value: Any, read: Callable[[dict[str, Any]], list[Part]]) -> tuple[Message, ...]:
    if not isinstance(value, list):
        raise FormatError("the conversation is not a list of messages")
    messages: list[Message] = []
    numbers = CallNumbers()
    for message in value:
        role = _ROLES.get(message.get("role", "")) if isinstance(message, dict) else None
        match role:
            case None:
                raise FormatError("a message has no known role")
            case "assistant":
                # The commentary comes between the thinking and the text.
                parts = read(message)
                said = [Commentary(message["commentary"])] if message.get("commentary") else []
                thoughts = [part for part in parts if isinstance(part, Thought)]
                parts = [*thoughts, *said, *(part for part in parts if not isinstance(part, Thought))]
                messages.append(Message(role, (*parts, *_read_calls(message.get("tool_calls"), numbers))))
            case "tool":
                call_id = message.get("tool_call_id") or numbers.take(message.get("name"))
                messages.append(Message(role, (ToolResult(call_id, _read_text(message, "content")),)))
            case _:
                name = _read_text(message, "name") or None
                messages.append(Message(role, (Text(_read_text(message, "content")),), name=name))
    return tuple(messages)


def _read_text(message: dict[str, Any], name: str) -> str:
    value = message.get(name) or ""
    if not isinstance(value, str):
        raise FormatError(f"the field {name} is not text")
    return value


def _read_calls(calls: Any, numbers: CallNumbers) -> list[Part]:
    read: list[Part] = []
    for call in calls or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise FormatError("a call has no function")
        name = function.get("name")
        call_id = call.get("id") or numbers.add(str(name))
        read.append(make_call(name, function.get("arguments", "{}"), call_id))
    return read
