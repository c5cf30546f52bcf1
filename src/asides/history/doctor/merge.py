"""Puts exported messages beside the given ones: which belongs to which, and the unknown fields that it keeps."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

Node: TypeAlias = dict[str, Any]
_IDS = ("id", "call_id", "tool_call_id", "tool_use_id")
_LISTS = ("content", "parts", "tool_calls")


def align(given: Sequence[Any], written: Sequence[Any]) -> list[int | None]:
    """Return the place in `given` of each written object; None for a new one. Equal objects belong together, and
    between them those of one kind.
    """
    places: dict[bytes, deque[int]] = defaultdict(deque)
    for place, item in enumerate(given):
        places[_write_key(item)].append(place)
    found: list[int | None] = [None] * len(written)
    free = set(range(len(given)))
    for number, item in enumerate(written):
        if queue := places.get(_write_key(item)):
            place = queue.popleft()
            found[number] = place
            free.discard(place)
    end = len(given)
    limits = [end] * len(written)
    for number in range(len(written) - 1, -1, -1):
        limits[number] = end
        if (matched := found[number]) is not None:
            end = min(end, matched)
    start = 0
    for number, item in enumerate(written):
        if (matched := found[number]) is not None:
            start = max(start, matched + 1)
            continue
        chosen = _choose(given, item, [place for place in range(start, limits[number]) if place in free])
        if chosen is not None:
            found[number] = chosen
            free.discard(chosen)
            start = chosen + 1
    return found


def _write_key(item: Any) -> bytes:
    return msgspec.json.encode(item, order="sorted")


def _choose(given: Sequence[Any], item: Any, places: Sequence[int]) -> int | None:
    """Choose an object of the same kind, preferably with the same id."""
    words, ids = _list_words(item), _list_ids(item)
    same = [
        place
        for place in places
        if _find_kind(given[place]) == _find_kind(item) and not words.isdisjoint(_list_words(given[place]))
    ]
    return next((place for place in same if ids and ids == _list_ids(given[place])), next(iter(same), None))


def _find_kind(item: Any) -> tuple[Any, ...]:
    if not isinstance(item, dict):
        return (type(item),)
    marks = {"text", "functionCall", "function_call", "functionResponse", "function_response"} & item.keys()
    return item.get("role"), item.get("type", "message" if "role" in item else None), *sorted(marks)


def _list_words(item: Any) -> set[str]:
    """Return every text in an object, other than its kind."""
    words: set[str] = set()
    waiting = [item]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            words.add(node)
        elif isinstance(node, dict):
            waiting += [inner for name, inner in node.items() if name not in ("role", "type")]
        elif isinstance(node, list):
            waiting += node
    return words


def list_texts(item: Any) -> set[str]:
    """Return the content and the results of a message, without thinking."""
    texts: set[str] = set()
    waiting = [item]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and node.get("thought"):
            continue
        for name, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if name == "reasoning_details":
                continue
            if isinstance(inner, str) and name in ("text", "content", "output") and inner.strip():
                texts.add(inner.strip())
            elif isinstance(inner, (dict, list)):
                waiting.append(inner)
    return texts


def _list_ids(item: Any) -> list[Any]:
    return [item[name] for name in _IDS if name in item] if isinstance(item, dict) else []


def keep_unknown(given: Node, written: Node, read: Callable[[Node], Any]) -> Node:
    """Return the written message with those fields of the given one that no reader understands: the message parses the
    same without them. The fields keep the order of the given message.
    """
    meant = read(given)
    kept = _keep(given, written, lambda fields: read(fields) == meant)
    for name in _LISTS:
        ours, theirs = kept.get(name), given.get(name)
        if not isinstance(ours, list) or not isinstance(theirs, list) or ours == theirs:
            continue
        blocks: list[Any] = []
        for block, place in zip(ours, align(theirs, ours), strict=True):
            old = None if place is None else theirs[place]
            if place is None or not isinstance(block, dict) or not isinstance(old, dict) or block == old:
                blocks.append(block)
                continue

            def is_same(fields: Node, name: str = name, theirs: list[Any] = theirs, place: int = place) -> bool:
                return bool(read({**given, name: [*theirs[:place], fields, *theirs[place + 1 :]]}) == meant)

            blocks.append(_keep(old, block, is_same))
        kept[name] = blocks
    return kept


def _keep(given: Node, written: Node, is_same: Callable[[Node], bool]) -> Node:
    merged: Node = {}
    for name, value in given.items():
        if name in written:
            merged[name] = written[name]
        elif is_same({other: inner for other, inner in given.items() if other != name}):
            merged[name] = value
    return merged | {name: value for name, value in written.items() if name not in merged}
