"""Turns a whole reply into events: `simulate(reply, size) → events`, for sources that cannot stream."""

from __future__ import annotations

import msgspec

from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.messages import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought, ThoughtSource
from asides.values.usage import Usage


def simulate(reply: Reply, size: int = 20) -> list[Event]:
    """Return the events of a whole reply, its parts in order and its texts in pieces of `size` characters."""
    if size < 1:
        raise ValueError(f"size is {size}; a piece has at least one character.")
    events: list[Event] = [ReplyStarted(reply.model, reply.id, reply.origin, reply.stored)]
    for number, part in enumerate(reply.parts):
        match part:
            case Thought():
                events += [
                    ThinkingDelta(piece, number, part.kind, part.source, part.via) for piece in _pieces(part.text, size)
                ]
            case Text():
                # An empty text with a seal is a part too.
                events += [TextDelta(piece, number) for piece in _pieces(part.text, size) or [""][: len(part.seals)]]
            case Refusal():
                events += [RefusalDelta(piece, number) for piece in _pieces(part.text, size)]
            case ToolCall():
                raw = part.raw_arguments
                if raw is None:
                    raw = msgspec.json.encode(part.arguments).decode()
                events.append(ToolCallDelta(number, part.id, part.name, custom=part.custom))
                events += [ToolCallDelta(number, arguments=piece, custom=part.custom) for piece in _pieces(raw, size)]
            case ServerTool() | Image() | File() | UnknownPart():
                events.append(PartArrived(msgspec.structs.replace(part, seals=()), number))
            case _:
                continue
        if not isinstance(part, (Refusal, ToolResult)):
            source: ThoughtSource = part.source if isinstance(part, Thought) else "field"
            events += [ThoughtSealed(seal, number, "hidden", source) for seal in part.seals]
    if reply.usage != Usage():
        events.append(UsageReported(reply.usage))
    events += [Warned(notice) for notice in reply.warnings]
    truncated = any(isinstance(part, Thought) and not part.complete for part in reply.parts)
    events.append(ReplyEnded(reply.stop, truncated))
    return events


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
