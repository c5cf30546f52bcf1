"""Pictures, sounds, videos and PDFs that a model is known to refuse: an error before sending, or a note in their place.

Pure, and loaded only where a history has such parts. Not here: what a dialect cannot carry at all (plan.encode_plan).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from asides.history.check import OnConflict
from asides.providers.provider import Facts, Target
from asides.values.errors import Unsupported
from asides.values.media_types import MediaKind, find_kind
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Text, ToolResult

_PICTURE_NOTE = Text("[a picture was here; it cannot be shown]")
_FILE_NOTE = Text("[a file was here; it cannot be shown]")
_WORDS: dict[MediaKind, str] = {"picture": "pictures", "audio": "sound", "video": "video", "pdf": "PDF files"}


def replace_refused(
    messages: tuple[Message, ...], target: Target, on_conflict: OnConflict, notices: list[Notice]
) -> tuple[Message, ...]:
    """Replace each picture and file of a kind that the model's row refuses by a note.

    One in the latest user message raises `Unsupported`. An earlier one, or one in a tool's result, was fine when it was
    sent, perhaps to another model, and must not end the conversation.
    """
    facts, model_name = target.facts, f"{target.provider.name}:{target.model}"
    found: set[MediaKind | None] = {_find_refused(part, facts) for message in messages for part in _list_media(message)}
    refused: list[MediaKind] = [kind for kind in found if kind is not None]
    if not refused:
        return messages
    last_user = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    for part in messages[last_user].parts if on_conflict == "raise" else ():
        kind = _find_refused(part, facts) if isinstance(part, (Image, File)) else None
        if kind is not None:
            raise Unsupported(
                f"{model_name} takes no {_WORDS[kind]}, and the question has one. To do: leave it out, ask one that "
                f"{'sees' if kind == 'picture' else 'takes it'}, or pass on_conflict='adjust'."
            )
    for each in sorted(refused, key=list(_WORDS).index):
        code = "pictures_dropped" if each == "picture" else "files_dropped"
        notices.append(Notice(code, f"{model_name} takes no {_WORDS[each]}; a note replaces them", "messages"))
    return tuple(replace_media(message, lambda part: _find_refused(part, facts) is not None) for message in messages)


def _find_refused(part: Image | File, facts: Facts) -> MediaKind | None:
    """The kind of a picture or file that the model refuses; None for one that it may accept."""
    kind = "picture" if isinstance(part, Image) else find_kind(part.media_type)
    if kind == "picture":
        return None if facts.pictures else kind
    # A file that the provider has stored is its own affair.
    is_stored = isinstance(part, File) and part.id is not None
    return kind if kind in facts.refuses_files and not is_stored else None


def _list_media(message: Message) -> Iterator[Image | File]:
    for part in message.parts:
        inner = part.content if isinstance(part, ToolResult) and not isinstance(part.content, str) else (part,)
        yield from (each for each in inner if isinstance(each, (Image, File)))


def replace_media(message: Message, is_unfit: Callable[[Image | File], bool]) -> Message:
    """Replace every picture and file that does not fit by a note; return the message itself if all fit."""

    def replace(part: Text | Image | File) -> Text | Image | File:
        if isinstance(part, Text) or not is_unfit(part):
            return part
        return _PICTURE_NOTE if isinstance(part, Image) else _FILE_NOTE

    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, (Image, File)):
            parts.append(replace(part))
        elif isinstance(part, ToolResult) and not isinstance(part.content, str):
            parts.append(msgspec.structs.replace(part, content=tuple(map(replace, part.content))))
        else:
            parts.append(part)
    return message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))
