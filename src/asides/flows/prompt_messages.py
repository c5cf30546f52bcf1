"""Reads the messages of a prompt in the forms that people have: dicts and items of other libraries, replies, content.

A list of texts, pictures and files is the content of one user message. Dicts may be in the format of chat completions,
Responses, Anthropic or Gemini; each run of them is detected by itself. Loaded only when a prompt is neither text nor
messages. Not here: those two (build_call), the formats (history/import_export).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, get_args

from asides.history.import_export import (
    ImportFormat,
    detect_prompt_format,
    import_messages,
    parse_items,
    refuse_unwritable,
)
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message, user
from asides.values.parts import Part
from asides.values.reply import Reply

_PARTS = get_args(Part)
_CONTENT_TYPES = frozenset(
    {
        *("text", "input_text", "image_url", "input_image", "video_url", "input_video", "audio_url", "input_audio"),
        *("file", "input_file", "image", "document"),
    }
)
_GEMINI_PARTS = ("inlineData", "inline_data", "fileData", "file_data")
# Fields of a request that hold its messages, and those that may stand beside them.
_REQUEST_LISTS = ("messages", "input", "contents")
_SYSTEM_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")
# Dicts of one library have these types and no role.
_FOREIGN_TYPES = {"human": "user", "ai": "assistant", "HumanMessage": "user", "AIMessage": "assistant"}


def read_any_prompt(prompt: object, after: Sequence[Message], *, each: bool = False) -> tuple[Message, ...]:
    """Read the messages of a prompt. Raises a ConfigError that says how to write it.

    `after` are the messages before it. With `each`, every text of a list is a message, as when messages are added.
    """
    prompt = _to_plain(prompt)
    if isinstance(prompt, Mapping):
        return _read_object(prompt, after)
    if _is_content(prompt):
        return (user(_read_content_item(prompt)),)
    if isinstance(prompt, (Message, Reply)):
        return _read_list((prompt,), after, each=each)
    items = getattr(prompt, "messages", prompt)
    if not _is_list(items):
        raise ConfigError(
            f"a prompt is text, a message, a dict, a picture or a list of them, not {describe_type(prompt)}. To do: "
            f"write {_advise(prompt)}."
        )
    return _read_list(tuple(items), after, each=each)


def _is_list(items: object) -> TypeGuard[Iterable[object]]:
    return isinstance(items, Iterable) and not isinstance(items, (str, bytes, Mapping, set, frozenset))


def _advise(value: object) -> str:
    if isinstance(value, (int, float)):
        return "str(…) around it"
    return 'ask(model, "…"), ask(model, ["What is this?", Image("a.png")]) or ask(model, [user("…"), assistant("…")])'


def _to_plain(value: object) -> object:
    """A value of another library as a dict, where it can turn itself into one; others unchanged."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        dumped: object = dump(mode="json", by_alias=True, exclude_none=True)
        return dumped
    return value


# --- a list -----------------------------------------------------------------------------------------------------------


def _read_list(given: tuple[object, ...], after: Sequence[Message], *, each: bool) -> tuple[Message, ...]:
    items = tuple(map(_to_plain, given))
    messages: list[Message] = []
    for start, run in _split_runs(items, each=each):
        first = run[0]
        if _is_content(first):
            try:
                messages.append(user([_read_content_item(item) for item in run]))
            except ConfigError as problem:
                raise ConfigError(f"messages[{start}]: {problem}") from None
        elif isinstance(first, Mapping):
            messages += _read_dicts(run, start, (*after, *messages))
        else:
            message = _read_value(first, start)
            messages += () if message is None else (message,)
    if not messages:
        raise ConfigError("the prompt has no message. To do: pass at least one.")
    return tuple(messages)


def _split_runs(items: tuple[object, ...], *, each: bool) -> Iterator[tuple[int, list[Any]]]:
    """The items in runs that are read together: content, dicts, or one value. With the place of the first."""
    run: list[object] = []
    kind = ""
    for place, item in enumerate(items):
        found = "content" if _is_content(item) else _find_dict_kind(item) if isinstance(item, Mapping) else ""
        if run and (found != kind or not found or (each and found == "content")):
            yield place - len(run), run
            run = []
        run.append(item)
        kind = found
    if run:
        yield len(items) - len(run), run


def _find_dict_kind(item: Mapping[Any, Any]) -> str:
    """The formats of dicts that are not read together: contents have `parts` where all others have `content`."""
    return "contents" if isinstance(item.get("parts"), (list, tuple)) else "messages"


def _read_value(item: object, place: int) -> Message | None:
    if isinstance(item, Message):
        return item
    if isinstance(item, Reply):
        return item.to_message()
    if isinstance(item, (list, tuple)) and item and all(map(_is_content, item)):
        return user([_read_content_item(inner) for inner in item])
    raise ConfigError(
        f"messages[{place}] is {describe_type(item)}, not a message. To do: use user(…), text, a picture or a dict."
    )


# --- content ----------------------------------------------------------------------------------------------------------


def _is_content(item: object) -> bool:
    if isinstance(item, Mapping):
        kind = item.get("type")
        is_typed = isinstance(kind, str) and kind in _CONTENT_TYPES
        return "role" not in item and (is_typed or _is_gemini_part(item))
    return isinstance(item, (str, bytes, bytearray, memoryview, os.PathLike, *_PARTS))


def _is_gemini_part(item: Mapping[Any, Any]) -> bool:
    return "type" not in item and any(isinstance(item.get(name), Mapping) for name in _GEMINI_PARTS)


def _read_content_item(item: Any) -> Any:
    """Content as `user` takes it: dicts become parts."""
    if not isinstance(item, Mapping):
        return item
    form: ImportFormat = "anthropic" if isinstance(item.get("source"), Mapping) else "openai_chat"
    form = "gemini" if _is_gemini_part(item) else form
    turn = {"role": "user", "parts" if form == "gemini" else "content": [item]}
    with refuse_unwritable():
        return [part for message in parse_items([turn], form) for part in message.parts]


# --- dicts ------------------------------------------------------------------------------------------------------------


def _read_dicts(run: list[Mapping[str, Any]], start: int, before: Sequence[Message]) -> tuple[Message, ...]:
    """Read dicts that follow each other, in whatever format they are."""
    for place, item in enumerate(run, start):
        if "role" not in item and (role := _FOREIGN_TYPES.get(str(item.get("type")))) is not None:
            raise ConfigError(
                f"messages[{place}]: a dict with the type {item['type']!r} has no role. To do: write "
                f'{{"role": "{role}", "content": "…"}}.'
            )
        if item.get("content") and item.get("parts"):
            raise ConfigError(f"messages[{place}]: there are both content and parts. To do: keep one of them.")
        if item.get("parts") and not isinstance(item["parts"], (list, tuple)):
            raise ConfigError(f'messages[{place}]: parts is a list. To do: write "content" for text.')
        if item.keys().isdisjoint(("role", "type", "parts")) and set(item) != {"id"}:
            raise ConfigError(f'messages[{place}]: role is missing. To do: write {{"role": "user", "content": "…"}}.')
    form = detect_prompt_format(run)
    if form != "openai_chat":
        with refuse_unwritable():
            return parse_items(run, form)
    from asides.dialects.openai_chat.import_messages import import_message

    messages: list[Message] = []
    legacy_calls = _count_legacy_calls(before) if any(map(_is_legacy, run)) else 0
    for place, item in enumerate(run, start):
        if item.get("function_call"):
            legacy_calls += 1
        try:
            with refuse_unwritable():
                messages.append(import_message(item, legacy_calls))
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return tuple(messages)


def _is_legacy(item: Mapping[str, Any]) -> bool:
    return bool(item.get("function_call") or item.get("role") == "function")


def _count_legacy_calls(messages: Sequence[Message]) -> int:
    """The highest number in an id that was made for a call without one: 2 for "call_NAME_2"."""
    ids = [call.id.rpartition("_") for message in messages for call in message.tool_calls]
    return max((int(number) for _, _, number in ids if number.isdecimal() and len(number) < 10), default=0)


def _read_object(value: Mapping[str, Any], after: Sequence[Message]) -> tuple[Message, ...]:
    """Read one dict: a message, an item, a part of content, or a request or response that holds messages."""
    name = next((name for name in _REQUEST_LISTS if name in value), None)
    if "role" in value or (name is None and "output" not in value) or "type" in value:
        _reject_response(value)
        return _read_list((value,), after, each=False)
    if name is None:
        return import_messages({"output": value["output"]})
    if unread := sorted(str(field) for field in value if field not in (name, *_SYSTEM_FIELDS)):
        raise ConfigError(
            f"the prompt is a request with more fields: {', '.join(unread)}. To do: pass its {name} as the prompt, and "
            "the other fields as options of ask."
        )
    held = value[name]
    system = next((value[field] for field in _SYSTEM_FIELDS if value.get(field) is not None), None)
    first = () if system is None else _read_system(system)
    items = (held,) if isinstance(held, (str, Mapping)) else held
    if not _is_list(items):
        raise ConfigError(f"{name} is a list of messages, not {describe_type(held)}. To do: pass a list.")
    return (*first, *_read_list(tuple(items), (*after, *first), each=False))


def _read_system(system: object) -> tuple[Message, ...]:
    if isinstance(system, Mapping):
        parts = system.get("parts", [system])
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        system = [{"type": "text", **part} if isinstance(part, Mapping) else part for part in parts]
    return import_messages({"messages": [], "system": system}, "anthropic")


def _reject_response(value: Mapping[str, Any]) -> None:
    """Raise for a whole response, with the way to its message."""
    ways = {"choices": "response['choices'][0]['message']", "candidates": "response['candidates'][0]['content']"}
    for field, way in ways.items():
        if isinstance(value.get(field), list):
            raise ConfigError(f"the prompt is a whole response. To do: pass its message, {way}, in a list of messages.")
