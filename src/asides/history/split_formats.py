"""Splits dicts of messages by their formats: `split_formats(items)`. Those of one format are read together.

A list of one library has one format. A list that people made from several has several. Not here: the marks of the most
common formats, and the parsers (import_export).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from asides.history.import_export import ImportFormat, detect_in_item

Item: TypeAlias = Mapping[str, Any]
Run: TypeAlias = tuple[ImportFormat, int, list[Item]]
"""Its format, the place of its first item, and its items."""


def split_formats(items: Sequence[Item], start: int = 0) -> Iterator[Run]:
    """Split dicts that follow each other. `start` is the place of the first.

    Gemini's contents are never read with others. A list with the marks of several other formats is split only where
    each dict has the marks of one; otherwise it was written for a host of chat completions, which read the most.
    """
    found = [detect_item_formats(item) for item in items]
    all_found: set[ImportFormat] = set().union(*found)
    if len(all_found) < 2 and ("gemini" not in all_found or all(found)):
        if items:
            yield choose_format(all_found), start, list(items)
        return
    place = 0
    for _, group in groupby(found, lambda formats: "gemini" in formats):
        formats = list(group)
        yield from _split_run(items[place : place + len(formats)], formats, start + place)
        place += len(formats)


def _split_run(run: Sequence[Item], found: list[set[ImportFormat]], start: int) -> Iterator[Run]:
    all_found: set[ImportFormat] = set().union(*found)
    if len(all_found) < 2 or any(len(each) > 1 for each in found) or not _has_own_marks(run, all_found):
        yield choose_format(all_found), start, list(run)
        return
    first, form = 0, next(iter(next(each for each in found if each)))
    for place, each in enumerate(found):
        if each and form not in each:
            yield form, start + first, list(run[first:place])
            first, form = place, next(iter(each))
    yield form, start + first, list(run[first:])


def _has_own_marks(run: Sequence[Item], found: set[ImportFormat]) -> bool:
    """Whether blocks or items that no host of chat completions takes are among messages of chat completions."""
    if found != {"openai_chat", "anthropic"}:
        return True
    contents = [content for item in run if isinstance(content := item.get("content"), list)]
    parts = [part for content in contents for part in content if isinstance(part, Mapping)]
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)


# --- the format of dicts ----------------------------------------------------------------------------------------------


def detect_prompt_format(items: Sequence[Mapping[str, Any]]) -> ImportFormat:
    """Detect the format of dicts in a prompt. Chat completions, which read the most, unless marks show another one.

    A cache breakpoint is no mark here: hosts of chat completions take it too. Where marks contradict each other, the
    list was written for such a host.
    """
    return choose_format({form for item in items for form in detect_item_formats(item)})


def choose_format(found: set[ImportFormat]) -> ImportFormat:
    """The format of dicts with the marks of these: the only one; of several, one that few have, or chat completions."""
    if len(found) == 1:
        return next(iter(found))
    rare: tuple[ImportFormat, ...] = ("gemini", "bedrock", "cohere", "ollama")
    for form in rare:
        if form in found:
            return form
    return "openai_chat"


def detect_item_formats(item: Mapping[str, Any]) -> set[ImportFormat]:
    """The formats whose marks a dict in a prompt has; none if it holds only text."""
    if len(item) == 2 and type(item.get("content")) is str and "role" in item:
        return set()  # what most are
    if isinstance(item.get("parts"), (list, tuple)) and "content" not in item:
        return {"gemini"}
    content = item.get("content")
    parts = content if isinstance(content, (list, tuple)) else ()
    if parts and all(isinstance(part, Mapping) and len(part) == 1 and _is_converse_block(part) for part in parts):
        return {"bedrock"}
    if isinstance(item.get("role"), str) and (own := _detect_own_fields(item, parts)) is not None:
        return {own}
    if any(isinstance(part, Mapping) and "cache_control" in part for part in parts):
        item = {**item, "content": [_without_cache(part) if isinstance(part, Mapping) else part for part in parts]}
    return set(detect_in_item(item))


_CONVERSE_BLOCKS = frozenset(
    {
        *("text", "image", "document", "video", "toolUse", "toolResult", "reasoningContent", "cachePoint"),
        *("guardContent", "citationsContent", "searchResult", "audio"),
    }
)


_OWN_FIELDS = frozenset({"tool_calls", "tool_plan", "thinking", "tool_name", "images"})


def _is_converse_block(part: Mapping[str, Any]) -> bool:
    """Whether it is a block of Converse: an object with one field, which names what it is."""
    return not _CONVERSE_BLOCKS.isdisjoint(part)


def _detect_own_fields(item: Mapping[str, Any], parts: Sequence[Any]) -> ImportFormat | None:
    """Cohere's plan before calls, and Ollama's thinking, names of tools, pictures and calls without ids."""
    if _OWN_FIELDS.isdisjoint(item):
        return None
    calls = item.get("tool_calls")
    calls = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    thinks = any(isinstance(part, Mapping) and isinstance(part.get("thinking"), str) for part in parts)
    if isinstance(item.get("tool_plan"), str) or (thinks and calls):
        return "cohere"
    has_own = isinstance(item.get("thinking"), str) or isinstance(item.get("tool_name"), str)
    has_pictures = isinstance(item.get("images"), list) and not parts
    nameless = any(isinstance(call.get("function"), Mapping) and not call.get("id") for call in calls)
    return "ollama" if has_own or nameless or (has_pictures and item["images"]) else None


def _without_cache(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "cache_control"}
