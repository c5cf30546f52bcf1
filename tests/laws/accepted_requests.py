"""Requests that real servers accepted, and what counts as equal between them (../shared/recordings/requests)."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ACCEPTED = Path(__file__).parents[3] / "shared" / "recordings" / "requests" / "accepted.jsonl.xz"

_CLIENT_NAMES = ("args", "response", "properties")
_TURNS = ("messages", "contents", "input")
_JOINED = ("user", "assistant", "model", "system")


def list_requests() -> Iterator[dict[str, Any]]:
    """Yield the requests, with the status and the error of their servers."""
    with lzma.open(ACCEPTED, "rt") as lines:
        yield from map(json.loads, lines)


def list_accepted() -> Iterator[dict[str, Any]]:
    """Yield the requests that a server answered with 200."""
    yield from (row for row in list_requests() if row["status"] == 200)


def simplify(value: Any, dialect: str, name: str = "") -> Any:
    """Return a request in a form that is the same for requests that a server takes for the same."""
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key, inner in value.items():
            if dialect == "gemini" and name not in _CLIENT_NAMES:
                key = re.sub(r"_([a-z])", lambda found: found[1].upper(), key)
            key = "max_tokens" if key == "max_completion_tokens" else key
            simple = simplify(inner, dialect, key)
            is_kind = key == "type" and simple == "message" and "role" in value
            if not is_empty(simple) and not is_kind:
                fields[key] = "system" if key == "role" and simple == "developer" else simple
        # The type of a plain text has three names.
        return {"text": fields["text"]} if fields.keys() == {"type", "text"} else fields
    if isinstance(value, str) and name == "input":
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        return value
    items = [simple for item in value if (simple := simplify(item, dialect)) != {"type": "text"}]
    match items:
        case [{"text": str() as text, **beside}] if beside.keys() <= {"type"}:
            return text
        case _:
            return _join(items) if name in _TURNS else items


def is_empty(value: Any) -> bool:
    """Whether a server takes the value for none."""
    return value is None or (value is not False and value in ("", [], {}))


def _join(messages: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for message in messages:
        last = joined[-1] if joined else None
        if isinstance(message, dict) and isinstance(last, dict) and _can_join(last, message):
            field = "parts" if "parts" in message or "parts" in last else "content"
            joined[-1] = {**last, field: [*_list_parts(last.get(field)), *_list_parts(message.get(field))]}
        else:
            joined.append(message)
    return joined


def _can_join(last: dict[str, Any], message: dict[str, Any]) -> bool:
    is_plain = not (last.keys() | message.keys()) - {"role", "content", "parts"}
    return is_plain and last.get("role") == message.get("role") and last.get("role") in _JOINED


def _list_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"text": content}]
    return content or []
