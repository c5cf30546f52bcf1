"""Pictures for a model that takes none: the question raises, the past is told in words. Pure."""

from __future__ import annotations

import msgspec

from asides.values.errors import Unsupported
from asides.values.messages import Image, Message, Part, Text, ToolResult
from asides.values.notices import Notice
from asides.history.check import OnConflict
from asides.providers.provider import Target

_STAND_IN = Text("[a picture was here; it cannot be shown]")


def without_pictures(
    messages: tuple[Message, ...], target: Target, on_conflict: OnConflict, notices: list[Notice]
) -> tuple[Message, ...]:
    """The messages as a model can take them that takes no pictures; as they are, for any other.

    A picture in the newest thing that a person said is a mistake worth an `Unsupported`. One further up, or in what a
    tool gave back, was fine when it was said – perhaps to another model – and must not end the conversation.
    """
    takes = target.quirks.pictures if target.rule.pictures is None else target.rule.pictures
    if takes or not any(_has_picture(message) for message in messages):
        return messages
    who = f"{target.provider.name}:{target.model}"
    asked = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    if on_conflict == "raise" and any(isinstance(part, Image) for part in messages[asked].parts):
        raise Unsupported(
            f"{who} takes no pictures, and the question has one. To do: leave it out, ask a model that sees, or "
            "pass on_conflict='adjust'."
        )
    notices.append(Notice("pictures_dropped", f"{who} takes no pictures; a note stands in their place", "messages"))
    return tuple(_told(message) if _has_picture(message) else message for message in messages)


def _has_picture(message: Message) -> bool:
    return any(
        isinstance(part, Image)
        or (
            isinstance(part, ToolResult)
            and not isinstance(part.content, str)
            and any(isinstance(each, Image) for each in part.content)
        )
        for part in message.parts
    )


def _told(message: Message) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image):
            parts.append(_STAND_IN)
        elif isinstance(part, ToolResult) and not isinstance(part.content, str):
            content = tuple(_STAND_IN if isinstance(each, Image) else each for each in part.content)
            parts.append(msgspec.structs.replace(part, content=content))
        else:
            parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts))
