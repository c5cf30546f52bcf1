"""Traits of messages: which kinds of parts they have, and their calls and results."""

from __future__ import annotations

from collections.abc import Iterable

from asides.values.messages import Message
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
from asides.values.thinking import Thought

# Traits are bits: a history has the traits of all its messages.
HAS_CALLS, HAS_RESULTS = 1, 2
HAS_OTHERS = 4
"""Parts other than tool results."""
HAS_THOUGHTS, HAS_WITHHELD, HAS_PICTURES = 8, 16, 32
HAS_MEDIA = 64
"""Pictures or files, in parts or in results."""
HAS_FILE_IDS = 128
HAS_BREAKPOINTS = 256
IS_BLANK = 512
"""A user message without content."""
IS_BOUND = 1024
"""Some parts or seals go back only where they came from, or not at all."""
CHANGES_EFFORT = 2048
"""A system message that sets the effort from there on."""


def find_traits(messages: Iterable[Message]) -> int:
    """Return the traits of all these messages together."""
    traits = 0
    for message in messages:
        parts = message.parts
        if len(parts) == 1 and type(part := parts[0]) is Text and not part.cache and not part.seals:
            # Most messages are one text.
            text = part.text
            is_blank = (not text or text.isspace()) and message.role == "user"
            traits |= HAS_OTHERS | IS_BLANK if is_blank else HAS_OTHERS
            continue
        if message.role == "user" and all(isinstance(part, Text) and _is_blank(part.text) for part in parts):
            traits |= IS_BLANK
        elif message.role == "system" and message.effort is not None:
            traits |= CHANGES_EFFORT
        for part in parts:
            traits |= _find_part_traits(part)
    return traits


def list_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """List the tool calls of these messages, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


def find_results(message: Message) -> tuple[ToolResult, ...]:
    """Return the tool results of a message."""
    return tuple([part for part in message.parts if isinstance(part, ToolResult)])


def has_thoughts(message: Message) -> bool:
    """Whether a part of the message is a thought."""
    return any(isinstance(part, Thought) for part in message.parts)


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _find_part_traits(part: Part) -> int:
    match part:
        case Text():
            return HAS_OTHERS | _find_marks(part) if part.seals or part.cache else HAS_OTHERS
        case Commentary():
            return HAS_OTHERS | IS_BOUND if part.seals else HAS_OTHERS
        case ToolCall():
            return HAS_CALLS | HAS_OTHERS | IS_BOUND if part.seals else HAS_CALLS | HAS_OTHERS
        case Thought():
            return HAS_THOUGHTS | HAS_OTHERS | IS_BOUND | (HAS_WITHHELD if part.withheld else 0)
        case ToolResult():
            traits = HAS_RESULTS | HAS_BREAKPOINTS if part.cache else HAS_RESULTS
            for each in () if isinstance(part.content, str) else part.content:
                traits |= _find_part_traits(each) & (HAS_PICTURES | HAS_MEDIA | HAS_FILE_IDS)
            return traits
        case Image():
            return HAS_PICTURES | HAS_MEDIA | HAS_OTHERS | _find_marks(part)
        case File():
            return HAS_MEDIA | HAS_OTHERS | (0 if part.id is None else HAS_FILE_IDS) | _find_marks(part)
        case Refusal() | ServerTool() | UnknownPart():
            return HAS_OTHERS | IS_BOUND


def _find_marks(part: Text | Image | File) -> int:
    return (IS_BOUND if part.seals else 0) | (HAS_BREAKPOINTS if part.cache else 0)
