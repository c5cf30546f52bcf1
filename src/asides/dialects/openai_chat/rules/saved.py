"""What a saved chat shows and a request does not: arguments and `reasoning_details` that were lost or changed.

The doctor repairs what `check_saved` reports: `restore_details` returns the details as the server sent them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from asides.dialects.openai_chat.rules.messages import ARGUMENTS
from asides.dialects.openai_chat.rules.state import MODIFIED
from asides.dialects.rulebook import BrokenRule, SavedHistory, Wire, as_objects
from asides.values.parts import is_too_deep

_TEXT_FIELDS = {"reasoning.text": "text", "reasoning.summary": "summary", "reasoning.encrypted": "data"}
# openrouter.ai docs reasoning-tokens, 2026-06-25: in this format text is a signed block of the upstream.
_SIGNED_FORMATS = ("anthropic-claude-v1",)


def check_saved(items: Sequence[Wire], history: SavedHistory) -> Iterator[BrokenRule]:
    """Yield the rules that the messages break for certain, though a request alone does not show it."""
    for place, item in enumerate(items):
        for number, call in enumerate(as_objects(item.get("tool_calls"))):
            function = call.get("function")
            if isinstance(function, dict) and not is_object(function.get("arguments")):
                detail = f"the arguments of {function.get('name')} are not a JSON object"
                yield ARGUMENTS.shown(f"messages[{place}].tool_calls[{number}]", detail)
    if history.target.facts.replay_as != "details":
        return
    for place, item in enumerate(items):
        details = item.get("reasoning_details")
        if details and restore_details(details, item.get("reasoning")) != details:
            detail = "the details are not whole, once and in their order"
            yield MODIFIED.shown(f"messages[{place}].reasoning_details", detail)


def is_object(given: Any) -> bool:
    """Whether arguments are the JSON text of an object."""
    if not isinstance(given, str):
        return False
    try:
        encoded = given.encode()
        return not is_too_deep(encoded) and isinstance(msgspec.json.decode(encoded), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def restore_details(details: Any, beside: Any = None) -> list[Wire] | None:
    """Return details as the server sent them: fragments of a stream joined, each entry once, in order. None if entries
    are lost or changed. `beside` is the plain text of the same thinking.
    """
    if not isinstance(details, list) or not all(isinstance(entry, dict) for entry in details):
        return None
    ordered = sorted(_join_fragments(details), key=_read_index)
    return None if any(map(_is_broken, ordered)) or _lacks_entries(ordered) or _lacks_text(ordered, beside) else ordered


def _read_index(entry: Wire) -> int:
    index = entry.get("index")
    return index if isinstance(index, int) else 0


def _join_fragments(entries: list[Wire]) -> list[Wire]:
    joined: list[Wire] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if entry in joined:
            continue
        if last is None or not _is_fragment(last, entry):
            joined.append(entry)
            continue
        name = _TEXT_FIELDS.get(str(entry.get("type")), "text")
        filled = {key: value for key, value in entry.items() if value is not None}
        joined[-1] = {**last, **filled, name: f"{last.get(name) or ''}{entry.get(name) or ''}"}
    return joined


def _is_fragment(last: Wire, entry: Wire) -> bool:
    if not isinstance(entry.get("index"), int) or entry.get("type") not in ("reasoning.text", "reasoning.summary"):
        return False
    for name in ("type", "index", "id", "format"):
        here, there = entry.get(name), last.get(name)
        if here != there and None not in (here, there):
            return False
    return not last.get("signature")


def _is_broken(entry: Wire) -> bool:
    kind, signature = entry.get("type"), entry.get("signature")
    if kind == "reasoning.encrypted":
        return not entry.get("data")
    if kind == "reasoning.text" and not signature:
        return entry.get("text") is None or entry.get("format") in _SIGNED_FORMATS
    return not isinstance(kind, str)


def _lacks_entries(entries: list[Wire]) -> bool:
    numbers = [entry["index"] for entry in entries if isinstance(entry.get("index"), int)]
    return len(numbers) == len(entries) and sorted(set(numbers)) != list(range(len(set(numbers))))


def _lacks_text(entries: list[Wire], beside: Any) -> bool:
    texts = [entry.get(name) for entry in entries for name in ("text", "summary") if name in entry]
    has_text = any(isinstance(text, str) and text.strip() for text in texts)
    is_signed = any(entry.get("signature") for entry in entries)
    return is_signed and isinstance(beside, str) and bool(beside.strip()) and not has_text
