"""The parts of a chat line that are read, as private structs: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode), and how they are written (serve).
"""

from __future__ import annotations

from typing import Any

import msgspec

NOTHING = msgspec.Raw(b"null")


class Function(msgspec.Struct):
    """The call itself. Arguments are an object; some models' templates make text of them."""

    name: str | None = None
    arguments: msgspec.Raw = NOTHING


class Call(msgspec.Struct):
    """A call; it comes whole. Older servers give it no id."""

    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """The message, or the next piece of it."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None
    images: list[str] | None = None


class Line(msgspec.Struct):
    """One line of a stream, or a whole response. `response` and `thinking` are where `/api/generate` has its text."""

    model: str | None = None
    message: Message | None = None
    response: str | None = None
    thinking: str | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


LINES = msgspec.json.Decoder(Line)


def encode_arguments(arguments: msgspec.Raw) -> str:
    """Arguments as the JSON text that calls are made of; without white space, so that streamed and whole agree."""
    if arguments is NOTHING or bytes(arguments) == b"null":
        return ""
    value = msgspec.json.decode(arguments)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
