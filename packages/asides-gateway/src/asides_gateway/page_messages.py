"""Messages as the page shows them: `show_message(message, place, note, …)`, and the notes that are kept about them.

Readable thinking only as far as the policy allows; a thought that was saved without its text keeps its kind and its
time. No seal ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import (
    Commentary,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.reply import Reply
from asides.values.thinking import Thought, ThoughtKind
from asides.values.usage import Cost, Timing, Usage
from asides.values.visibility import Visibility

_MOST_NOTICES = 20
_MOST_DETAIL = 500
_MOST_PICTURE = 2 * 1024 * 1024
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the page draws. Not SVG, which is a document."""


class NotedThought(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a thought without its text."""

    kind: ThoughtKind = "hidden"
    seconds: float | None = None
    tokens: int | None = None


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept about a message beside it. It holds no content and no thinking."""

    model: str | None = None
    thoughts: tuple[NotedThought, ...] = ()
    usage: dict[str, Any] | None = None
    cost: float | None = None
    """In US dollars."""
    timing: dict[str, Any] | None = None
    outcome: str | None = None
    stopped: str | None = None
    """Why there is no whole answer: "stopped" by the person, "error", "length" …"""
    error: str | None = None
    """The words of the error."""
    notices: tuple[dict[str, str], ...] = ()


def make_note(reply: Reply | None, model: str | None, stopped: str | None, error: str | None = None) -> Note:
    """The note about a reply, or about its question if there is none."""
    if reply is None:
        return Note(model=model, stopped=stopped, error=error)
    thoughts = [part for part in reply.parts if isinstance(part, Thought)]
    # The tokens are those of all thoughts together.
    tokens = reply.usage.thinking if len(thoughts) == 1 else None
    return Note(
        model=model,
        thoughts=tuple(NotedThought(thought.kind, _round(thought.seconds), tokens) for thought in thoughts),
        usage=show_usage(reply.usage),
        cost=show_cost(reply.cost),
        timing=show_timing(reply.timing),
        outcome=reply.outcome,
        stopped=stopped,
        error=error,
        notices=show_notices(reply.warnings),
    )


def read_note(note: bytes | None) -> Note:
    """Read a note. An unreadable one, such as of a later version, counts as none."""
    try:
        return Note() if note is None else msgspec.json.decode(note, type=Note)
    except msgspec.MsgspecError:
        return Note()


def show_message(message: Message, place: int | None, note: Note, visibility: Visibility) -> dict[str, Any]:
    """A message as the page has it. `place`: None for one that is not in the conversation."""
    shown: dict[str, Any] = {"id": place, "role": message.role}
    if note.model is not None and message.role == "assistant":
        shown["model"] = note.model
    shown["blocks"] = show_parts(message.parts, note.thoughts, visibility)
    others = {
        "usage": note.usage,
        "cost": note.cost,
        "timing": note.timing,
        "outcome": note.outcome,
        "stopped": note.stopped,
        "error": note.error,
        "notices": note.notices or None,
    }
    return shown | {name: value for name, value in others.items() if value is not None}


def show_parts(parts: Sequence[Part], noted: Sequence[NotedThought], visibility: Visibility) -> list[dict[str, Any]]:
    """The blocks of a message, in order."""
    blocks: list[dict[str, Any]] = []
    thoughts = iter(noted)
    for part in parts:
        if isinstance(part, Thought):
            blocks.append(show_thought(part, next(thoughts, None), visibility))
        elif not isinstance(part, Text) or part.text:  # A text without words carries a seal.
            blocks.append(_show_part(part))
    # Thoughts that were not saved, since they are never sent back.
    missing = [_show_thought("", noted.kind, noted.seconds, noted.tokens) for noted in thoughts]
    return [*missing, *blocks]


def show_thought(thought: Thought, noted: NotedThought | None, visibility: Visibility) -> dict[str, Any]:
    """A thought: its text if the page may see it."""
    known = noted or NotedThought(thought.kind)
    seconds = known.seconds if thought.seconds is None else _round(thought.seconds)
    text = thought.text if visibility.allows("gateway", thought.kind) else ""
    # A thought that was saved without its text has lost its kind with it.
    kind = thought.kind if text else "hidden" if thought.text else known.kind
    return _show_thought(text, kind, seconds, known.tokens)


def _show_thought(text: str, kind: str, seconds: float | None, tokens: int | None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "thought", "text": text, "kind": kind}
    block |= {} if seconds is None else {"seconds": seconds}
    return block | ({} if tokens is None else {"tokens": tokens})


def _show_part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Refusal():
            return {"type": "text", "text": part.text, "refusal": True}
        case Commentary():
            return {"type": "text", "text": part.text, "commentary": True}
        case ToolCall():
            return show_call(part)
        case ToolResult():
            return {
                "type": "result",
                "id": part.call_id,
                "name": part.name or "",
                "text": part.text,
                "is_error": part.is_error,
            }
        case ServerTool():
            return show_server_tool(part)
        case Image():
            shown = {"type": "file", "name": "", "media_type": part.media_type, "bytes": _measure(part.data)}
            is_small = part.data is not None and len(part.data) <= _MOST_PICTURE
            return {**shown, "data": part.data} if is_small and part.media_type in _PICTURES else shown
        case File():
            return {"type": "file", "name": part.name, "media_type": part.media_type, "bytes": _measure(part.data)}
        case UnknownPart() | Thought():
            return {"type": "unknown"}


def show_call(call: ToolCall) -> dict[str, Any]:
    """A call of a tool. Arguments that are not a JSON object are text."""
    arguments: Any = call.arguments if call.raw_arguments is None else call.raw_arguments
    return {"type": "call", "id": call.id, "name": call.name, "arguments": arguments}


def show_server_tool(tool: ServerTool) -> dict[str, Any]:
    """A tool that the provider ran itself."""
    return {
        "type": "call",
        "id": tool.id or "",
        "name": tool.name,
        "arguments": {},
        "by_provider": True,
        "status": tool.status or "",
    }


def _measure(data: bytes | None) -> int:
    return 0 if data is None else len(data)


# --- figures ----------------------------------------------------------------------------------------------------------


def show_usage(usage: Usage) -> dict[str, Any] | None:
    """The tokens; None when nothing is known."""
    if usage == Usage():
        return None
    names = ("input", "output", "thinking", "cached", "total", "origin")
    return {name: value for name in names if (value := getattr(usage, name)) is not None}


def show_cost(cost: Cost | None) -> float | None:
    """The price in US dollars, reported or estimated; None if it is not known."""
    return None if cost is None else float(cost.amount)


def show_timing(timing: Timing | None) -> dict[str, Any] | None:
    """The seconds."""
    if timing is None:
        return None
    known = {name: _round(getattr(timing, name)) for name in Timing.__struct_fields__}
    return {name: value for name, value in known.items() if value is not None}


def show_notice(notice: Notice) -> dict[str, str]:
    """A notice, which never holds content."""
    return {"code": notice.code, "detail": notice.detail[:_MOST_DETAIL]}


def show_notices(notices: Sequence[Notice]) -> tuple[dict[str, str], ...]:
    """The notices of a reply."""
    return tuple(show_notice(notice) for notice in notices[:_MOST_NOTICES])


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
