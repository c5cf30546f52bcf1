"""Splits dicts of messages by their formats: `split_formats(items)`. Those of one format are read together.

A list of one library has one format. A list that people made from several has several. Not here: the marks of a format,
and its parser (import_export).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from asides.history.import_export import ImportFormat, detect_item_formats, detect_prompt_format

Item: TypeAlias = Mapping[str, Any]
Run: TypeAlias = tuple[ImportFormat, int, list[Item]]
"""Its format, the place of its first item, and its items."""


def split_formats(items: Sequence[Item], start: int = 0) -> Iterator[Run]:
    """Split dicts that follow each other. `start` is the place of the first.

    Gemini's contents are never read with others. A list with the marks of several other formats is split only where
    each dict has the marks of one; otherwise it was written for a host of chat completions, which read the most.
    """
    place = start
    for _, group in groupby(items, lambda item: "gemini" in detect_item_formats(item)):
        run = list(group)
        yield from _split_run(run, place)
        place += len(run)


def _split_run(run: list[Item], start: int) -> Iterator[Run]:
    found = [detect_item_formats(item) for item in run]
    all_found: set[ImportFormat] = set().union(*found)
    if len(all_found) < 2 or any(len(each) > 1 for each in found) or not _has_own_marks(run, all_found):
        yield detect_prompt_format(run), start, run
        return
    first, form = 0, next(iter(next(each for each in found if each)))
    for place, each in enumerate(found):
        if each and form not in each:
            yield form, start + first, run[first:place]
            first, form = place, next(iter(each))
    yield form, start + first, run[first:]


def _has_own_marks(run: list[Item], found: set[ImportFormat]) -> bool:
    """Whether blocks or items that no host of chat completions takes are among messages of chat completions."""
    if found != {"openai_chat", "anthropic"}:
        return True
    contents = [content for item in run if isinstance(content := item.get("content"), list)]
    parts = [part for content in contents for part in content if isinstance(part, Mapping)]
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)
