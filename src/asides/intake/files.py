"""Files beside a prompt: the option `files=`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from asides.history.turns import find_question
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import File, Image, Part, Text


def fill_prompt(prompt: Any, files: object) -> Any:
    """The prompt; beside files, a text may be empty."""
    return Message("user", ()) if prompt == "" and files else prompt


def attach_files(messages: tuple[Message, ...], files: object) -> tuple[Message, ...]:
    """Put the files into the last user message, before its text. Raises if there is none."""
    place = find_question(messages)
    if place < 0:
        raise ConfigError("files= goes with a question, and no message is a user's. Add one, user(…).")
    parts = attach(read_attachments(files), messages[place].parts)
    return (*messages[:place], msgspec.structs.replace(messages[place], parts=parts), *messages[place + 1 :])


def read_attachments(files: object) -> tuple[Part, ...]:
    """The parts of the option `files=`: a list of files, or one file."""
    if isinstance(files, (str, bytes, bytearray, memoryview, os.PathLike, Image, File, Text)) or hasattr(files, "read"):
        files = (files,)
    if not isinstance(files, (list, tuple)):
        raise ConfigError(
            f"files= must be a list of files, not {describe_type(files)}. "
            'Write files=["a.png", Path("b.pdf"), Image(…)].'
        )
    from asides.values.attachments import read_attachment

    parts: list[Part] = []
    for place, file in enumerate(files):
        try:
            parts.append(read_attachment(file))
        except ConfigError as problem:
            raise ConfigError(f"files[{place}]: {problem}") from None
    return tuple(parts)


def attach(files: Sequence[Part], parts: Sequence[Part]) -> tuple[Part, ...]:
    """Put files before the parts of a message. Neighbouring texts are joined: not every host takes a list of texts."""
    joined: list[Part] = []
    for part in (*files, *parts):
        last = joined[-1] if joined else None
        if _is_plain_text(part) and isinstance(part, Text):
            if not part.text:
                continue
            if last is not None and _is_plain_text(last) and isinstance(last, Text):
                joined[-1] = Text(f"{last.text}\n\n{part.text}")
                continue
        joined.append(part)
    return tuple(joined)


def _is_plain_text(part: Part) -> bool:
    return isinstance(part, Text) and not part.cache and not part.seals
