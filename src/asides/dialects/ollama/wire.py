"""Private structs for the fields that are read from chat lines: lenient, minimal, made for the hot path.

Not here: what the fields mean (decode), and how they are written (server).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.wire.lenient import to_json_text

NOTHING = msgspec.Raw(b"null")


class Function(msgspec.Struct):
    """The called function. Arguments are an object; some models' templates make text of them."""

    name: str | None = None
    arguments: msgspec.Raw = NOTHING


class Call(msgspec.Struct):
    """A call; it comes whole. Older servers give it no id."""

    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """The message, or a piece of it."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None
    images: list[str] | None = None


class Line(msgspec.Struct):
    """One line of a stream, or a whole response. `/api/generate` puts its text in `response` and `thinking`."""

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


def read_arguments(arguments: msgspec.Raw) -> str:
    """Return arguments as JSON text without white space, so that streamed and whole replies are equal."""
    return to_json_text(msgspec.json.decode(arguments))
