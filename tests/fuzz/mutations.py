"""Changes to JSON documents, streams and bytes, drawn from a seeded generator: the same seed gives the same change."""

from __future__ import annotations

import json
import random
from typing import Any

# Text that is written into the JSON as it is: values that Python cannot hold, or that its writer would not write.
_RAW_VALUES = (
    "1e999",
    "-1e999",
    "1e-999",
    "9" * 5000,
    "-" + "9" * 400,
    "123456789012345678901234567890",
    "-0",
    "-0.0",
    "NaN",
    "01",
    "[" * 250 + "]" * 250,
    "[" * 1200 + "]" * 1200,
    "[" * 30_000 + "]" * 30_000,
    '{"a":' * 800 + "1" + "}" * 800,
    "[" * 2000,
    '"\\ud800"',
    '"\\udc00\\ud800x"',
    '"\\u0000\\u202e\\ufeff"',
    '"\\ud83d\\ude00"',
    '{"a":1,"a":2}',
    "",
)
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64, 1.5, 1e308, "", " ", "made up", "true", "null", "[DONE]",
    "<think>", "</think>", "a" * 5000, "\u202e\u0000\u2028", "👋é日", [], {}, [None], [[]], [{}], {"type": None},
    {"type": "error"}, {"error": {"message": "boom"}}, ["made up", 7, {}], {"text": 7}, "{}", '{"a": 1}', "2026-11-15",
)  # fmt: skip
_BYTES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b"\r\n\r\n", b"data:", b"data: ", b"event: x\n", b": c\n",
    b"data: [DONE]\n\n", b"{", b"}", b"[", b"]", b'"', b"\\", b"\xed\xa0\x80", b"\xe2\x82", b"error: no\n", b"id: 1\n",
)  # fmt: skip


class Raw(str):
    """JSON text that is written as it is."""

    __slots__ = ()


def draw_value(rng: random.Random) -> Any:
    """Return a value that a field may not expect."""
    if rng.random() < 0.3:
        return Raw(rng.choice(_RAW_VALUES))
    return rng.choice(_VALUES)


def write_json(value: Any) -> bytes:
    """Write a value as JSON, `Raw` text as it is."""
    raw: list[str] = []

    def mark(item: Any) -> Any:
        match item:
            case Raw():
                raw.append(str(item))
                return f"\0raw{len(raw) - 1}\0"
            case dict():
                return {name: mark(inner) for name, inner in item.items()}
            case list():
                return [mark(inner) for inner in item]
            case _:
                return item

    text = json.dumps(mark(value), ensure_ascii=False, separators=(",", ":"))
    for place, item in enumerate(raw):
        text = text.replace(f'"\\u0000raw{place}\\u0000"', item)
    return text.encode("utf-8", "surrogatepass")


def list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a document, itself included."""
    places = [path]
    if isinstance(value, dict):
        for name, inner in value.items():
            places += list_places(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            places += list_places(inner, (*path, number))
    return places


def mutate_document(rng: random.Random, document: Any) -> Any:
    """Return a copy of a document with one change: a value, a field, or an item."""
    copy = json.loads(json.dumps(document))
    path = rng.choice(list_places(copy))
    if not path:
        return draw_value(rng)
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    last = path[-1]
    match rng.randrange(8):
        case 0:
            del holder[last]
        case 1 if isinstance(holder, list):
            holder.insert(last, json.loads(json.dumps(holder[last])))
        case 2 if isinstance(holder, dict):
            holder[str(draw_value(rng))[:40]] = holder[last]
        case 3:
            holder[last] = [holder[last]]
        case 4:
            holder[last] = {rng.choice(("text", "type", "content", "x")): holder[last]}
        case 5 if isinstance(holder[last], str):
            at = rng.randrange(len(holder[last]) + 1)
            holder[last] = holder[last][:at] + str(draw_value(rng))[:200] + holder[last][at:]
        case _:
            holder[last] = draw_value(rng)
    return copy


def mutate_list(rng: random.Random, items: list[Any]) -> list[Any]:
    """Return a copy of a list with items repeated, removed, moved or cut off."""
    copy = list(items)
    if not copy:
        return copy
    at, other = rng.randrange(len(copy)), rng.randrange(len(copy))
    match rng.randrange(5):
        case 0:
            copy.insert(other, copy[at])
        case 1:
            del copy[at]
        case 2:
            copy[at], copy[other] = copy[other], copy[at]
        case 3:
            del copy[at:]
        case _:
            copy[at:at] = copy[at:other]
    return copy


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return a copy of bytes with a flip, a cut, an insertion, a repetition or a removal."""
    if not data:
        return rng.choice(_BYTES)
    at, other = rng.randrange(len(data)), rng.randrange(len(data))
    match rng.randrange(6):
        case 0:
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + rng.choice(_BYTES) + data[at:]
        case 3:
            return data[:at] + data[min(at, other) : max(at, other)] + data[at:]
        case 4:
            return data[: min(at, other)] + data[max(at, other) :]
        case _:
            return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


def split_randomly(rng: random.Random, data: bytes) -> list[bytes]:
    """Cut bytes into pieces: one byte each, or at a few places."""
    if rng.random() < 0.3 and len(data) < 3000:
        return [data[place : place + 1] for place in range(len(data))]
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 6)))
    return [piece for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if (piece := data[start:end])]
