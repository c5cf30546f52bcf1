"""`read(value)`: the messages in a prompt, a list of messages, a document or an object of another library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from asides.values.messages import Message, read_attribute, user

_ONLY_MESSAGES = {Message}


def read(
    value: object, *, after: Sequence[Message] = (), each: bool = False, format_name: str | None = None
) -> tuple[Message, ...]:
    """Read messages in any form. Raises a ConfigError that says how to write them.

    `after` are the messages before these: legacy calls have no ids, and are counted. With `each`, every text of a list
    is a message of its own; otherwise texts, pictures and files in a row are one message. `format_name` names the
    format of a document ("openai", "anthropic" or "responses"), which is otherwise detected.
    """
    if format_name is not None:
        from asides.intake.documents import import_messages

        return import_messages(value, format_name)
    if isinstance(value, str):
        return (user(value),)
    if isinstance(value, Message):
        return (value,)
    items = value if isinstance(value, (list, tuple)) else read_attribute(value, "messages")
    if isinstance(items, (list, tuple)) and set(map(type, items)) == _ONLY_MESSAGES:
        # A conversation's messages, perhaps thousands: nothing to read.
        return cast("tuple[Message, ...]", tuple(items))
    from asides.intake.prompts import read_any_prompt

    return read_any_prompt(value, after, each=each)
