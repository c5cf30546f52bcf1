"""Thinking that a caller put into the text of its turns: `separate_inlined(messages, notices)` takes it out.

When they send a history back, some clients write separate thoughts into the assistant's text, in tags. These are
removed: a model would read them as its answer, and a turn is found by its visible text.
"""

from __future__ import annotations

import re
from operator import is_

import msgspec

from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import Part, Text
from asides.wire.inline_tags import separate

INLINED = "inlined_thinking_left_out"
"""The code of the notice."""

# The tags that clients write. A text that only quotes one further on is the model's own.
_TAGS = ("think", "thinking")
_BEGINNING = re.compile(rf"\s*<(?:{'|'.join(_TAGS)})>", re.IGNORECASE)


def separate_inlined(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Return the messages without thinking in the assistant's text, and add a notice if there was any."""
    fitted = tuple([_separate(message) if message.role == "assistant" else message for message in messages])
    if all(map(is_, fitted, messages)):
        return messages
    notices.append(Notice(INLINED, "the client wrote thinking into the text of earlier turns, in tags"))
    return fitted


def _separate(message: Message) -> Message:
    if len(message.parts) == 1 and type(only := message.parts[0]) is Text and "<" not in only.text:
        return message  # as most
    if not any(isinstance(part, Text) and _BEGINNING.match(part.text) for part in message.parts):
        return message
    kept: list[Part] = []
    for part in message.parts:
        if not isinstance(part, Text) or not _BEGINNING.match(part.text):
            kept.append(part)
        elif text := separate(part.text, _TAGS, "leading", False).text:
            kept.append(msgspec.structs.replace(part, text=text))
    # A turn of nothing else stays as it is: a history without it would say something different.
    return msgspec.structs.replace(message, parts=tuple(kept)) if kept else message
