"""Thinking that comes as a part of the content, in the many shapes that hosts give it: its text and its seals.

Not here: where it stands among the other parts (decode).
"""

from __future__ import annotations

from typing import Any

_KINDS = ("thinking", "reasoning", "redacted_thinking")
_HOLDERS = ("thinking", "reasoning", "text", "summary", "content")
# What holds a seal, and what kind of seal that is.
_SEALS = (("signature", "signature"), ("data", "redacted"))


def is_thought(part: dict[str, Any]) -> bool:
    """Whether a part of the content is thinking: by its type, or by a mark on an ordinary text."""
    return part.get("type") in _KINDS or part.get("thought") is True


def text_of(held: Any) -> str:
    """The text in a part: plain, in a list of pieces, or one object deeper."""
    if isinstance(held, str):
        return held
    if isinstance(held, list):
        return "".join(text_of(item) for item in held)
    if isinstance(held, dict):
        return next((text for name in _HOLDERS if (text := text_of(held.get(name)))), "")
    return ""


def seals_of(part: dict[str, Any]) -> list[tuple[str, str]]:
    """The seals of a part as (kind, value): on itself, or on the pieces of its text."""
    pieces = [item for name in _HOLDERS if isinstance(part.get(name), list) for item in part[name]]
    return [
        (kind, value)
        for holder in (part, *pieces)
        if isinstance(holder, dict)
        for name, kind in _SEALS
        if isinstance(value := holder.get(name), str) and value
    ]
