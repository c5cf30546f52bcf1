"""Random damage to a history: what clients lose, repeat, cut and reorder."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

Node = dict[str, Any]

_PART_LISTS = ("content", "parts", "tool_calls", "reasoning_details")
_FIELDS = (
    "signature", "thinking", "data", "encrypted_content", "summary", "id", "thoughtSignature", "reasoning_content",
    "reasoning", "reasoning_details", "extra_content", "is_error",
)  # fmt: skip


def _list_parts(items: list[Any]) -> list[tuple[list[Any], int]]:
    """Every part of every message: the list that holds it, and its place there."""
    found: list[tuple[list[Any], int]] = []
    for item in items:
        for name in _PART_LISTS:
            inner = item.get(name)
            if isinstance(inner, list):
                found += [(inner, place) for place, part in enumerate(inner) if isinstance(part, dict)]
    return found


def lose_item(items: list[Any], random: Random) -> None:
    del items[random.randrange(len(items))]


def repeat_item(items: list[Any], random: Random) -> None:
    place = random.randrange(len(items))
    items.insert(random.randrange(len(items) + 1), deepcopy(items[place]))


def swap_items(items: list[Any], random: Random) -> None:
    place = random.randrange(max(len(items) - 1, 1))
    items[place : place + 2] = items[place : place + 2][::-1]


def lose_part(items: list[Any], random: Random) -> None:
    if parts := _list_parts(items):
        holder, place = random.choice(parts)
        del holder[place]


def repeat_part(items: list[Any], random: Random) -> None:
    if parts := _list_parts(items):
        holder, place = random.choice(parts)
        holder.insert(random.randrange(len(holder) + 1), deepcopy(holder[place]))


def shuffle_parts(items: list[Any], random: Random) -> None:
    if parts := _list_parts(items):
        random.shuffle(random.choice(parts)[0])


def lose_field(items: list[Any], random: Random) -> None:
    nodes = [item for item in items if any(name in item for name in _FIELDS)]
    nodes += [holder[place] for holder, place in _list_parts(items)]
    if nodes:
        node = random.choice(nodes)
        held = [name for name in _FIELDS if name in node]
        if held and not (node.get("type") == "tool_use" or "function" in node):
            node.pop(random.choice(held))


def blank_field(items: list[Any], random: Random) -> None:
    nodes = [*items, *(holder[place] for holder, place in _list_parts(items))]
    node = random.choice(nodes)
    held = [name for name in ("text", "content", "signature", "thinking") if isinstance(node.get(name), str)]
    if held and node.get("type") != "tool_result" and node.get("role") not in ("tool", "user"):
        node[random.choice(held)] = random.choice(["", " \n"])


def cut_tail(items: list[Any], random: Random) -> None:
    del items[random.randrange(1, len(items) + 1) :]


def cut_head(items: list[Any], random: Random) -> None:
    del items[: random.randrange(len(items))]


def cut_arguments(items: list[Any], random: Random) -> None:
    for item in items:
        calls = [call["function"] for call in item.get("tool_calls") or () if "function" in call]
        calls += [item] if item.get("type") == "function_call" else []
        for call in calls:
            text = call["arguments"]
            call["arguments"] = text[: random.randrange(len(text) + 1)] if isinstance(text, str) else text


DAMAGE: list[Callable[[list[Any], Random], None]] = [
    lose_item,
    repeat_item,
    swap_items,
    lose_part,
    repeat_part,
    shuffle_parts,
    lose_field,
    blank_field,
    cut_tail,
    cut_head,
    cut_arguments,
]


def damage(items: list[Any], seed: int, most: int = 3) -> list[str]:
    """Damage a history in place; returns the names of what was done."""
    random = Random(seed)
    done: list[str] = []
    for _ in range(random.randint(1, most)):
        if not items:
            break
        harm = random.choice(DAMAGE)
        harm(items, random)
        done.append(harm.__name__)
    return done
