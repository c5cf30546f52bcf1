"""Restores `reasoning_details`: whole entries, each once, in the order of their numbers."""

from __future__ import annotations

from typing import Any

from asides.dialects.rulebook import Wire

_TEXT_FIELDS = {"reasoning.text": "text", "reasoning.summary": "summary", "reasoning.encrypted": "data"}
# openrouter.ai docs reasoning-tokens, 2026-06-25: in this format text is a signed block of the upstream.
_SIGNED_FORMATS = ("anthropic-claude-v1",)


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
