"""Which shape a list of messages has: `shape_of(items)`. By what only one of the shapes has; plain words have none.

A shape goes by the dialect that it is from.

Not here: reading them (shapes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from asides.values.errors import ConfigError

Shape: TypeAlias = Literal["openai_chat", "anthropic", "openai_responses"]
"""Chat completions' list of messages · Messages' turns of blocks · the items of Responses."""

_SHAPES: tuple[Shape, ...] = ("openai_chat", "anthropic", "openai_responses")

_CHAT_ROLES = frozenset({"tool", "function"})
_CHAT_FIELDS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "reasoning_details", "refusal"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "video_url"})
_BLOCKS = frozenset({"redacted_thinking", "tool_use", "tool_result", "server_tool_use"})
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"})


def shape_named(word: object) -> Shape:
    """The shape that goes by this word: "openai", "anthropic", "responses", or the name of its dialect."""
    for shape in _SHAPES:
        if isinstance(word, str) and word.lower() in (shape, *shape.split("_")):
            return shape
    raise ConfigError(f"the shape {word!r} is not known. To do: use openai, anthropic or responses.")


def shape_of(items: Sequence[object]) -> Shape | None:
    """The shape of these messages; None where they are nothing but words, which every shape has alike.

    Raises ConfigError where one has the marks of one shape and another those of another.
    """
    found: dict[Shape, int] = {}
    for place, item in enumerate(items):
        for shape in _marks(item):
            found.setdefault(shape, place)
    if len(found) > 1:
        marked = " and ".join(f"messages[{place}] of the shape {shape!r}" for shape, place in found.items())
        raise ConfigError(f"the messages are not of one shape: {marked}. To do: name it with shape=, or mend the list.")
    return next(iter(found), None)


def _marks(item: object) -> Iterator[Shape]:
    if not isinstance(item, Mapping):
        return
    if isinstance(item.get("type"), str) and item["type"] != "" and _is_item(item):
        yield "openai_responses"
        return
    if item.get("role") in _CHAT_ROLES or any(item.get(name) is not None for name in _CHAT_FIELDS):
        yield "openai_chat"
    content = item.get("content")
    for part in content if isinstance(content, (list, tuple)) else ():
        if isinstance(part, Mapping) and (shape := _shape_of_part(part)) is not None:
            yield shape


def _is_item(item: Mapping[str, Any]) -> bool:
    # What Messages answers has a type and a role, too.
    return "role" not in item or (item["type"] == "message" and not _has_blocks(item.get("content")))


def _has_blocks(content: object) -> bool:
    parts = content if isinstance(content, (list, tuple)) else ()
    shapes = {_shape_of_part(part) for part in parts if isinstance(part, Mapping)}
    return "anthropic" in shapes or ("openai_responses" not in shapes and bool(shapes))


def _shape_of_part(part: Mapping[str, Any]) -> Shape | None:
    kind = part.get("type")
    if kind in _ITEM_PARTS:
        return "openai_responses"
    if kind in _CHAT_PARTS:
        return "openai_chat"
    if kind in _BLOCKS or "cache_control" in part or isinstance(part.get("source"), Mapping):
        return "anthropic"
    if kind == "thinking":
        # One maker puts a list of texts there, in chat's shape.
        return "anthropic" if isinstance(part.get("thinking"), str) else "openai_chat"
    return None
