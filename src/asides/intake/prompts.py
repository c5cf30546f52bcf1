"""The forms of a prompt: content, messages, replies, dicts and objects of other libraries, in any mixture.

A list of texts, pictures and files is the content of one user message. Each run of dicts has its format detected on its
own. Loaded only for prompts that are neither text nor messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, get_args

import msgspec

from asides.intake.detect import ImportFormat, find_part_format, is_content, is_message, split_formats
from asides.intake.documents import import_messages, parse_items, refuse_unwritable
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.reply import Reply

_PARTS = get_args(Part)
# Fields of a request: its messages, and its system prompt.
_REQUEST_LISTS = ("messages", "input", "contents")
_SYSTEM_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")
# Roles in LangChain's pairs of role and text.
_TUPLE_ROLES: dict[str, Role] = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system",
}  # fmt: skip
_MAX_MESSAGES = 1_000_000


def read_any_prompt(prompt: object, after: Sequence[Message], *, each: bool = False) -> tuple[Message, ...]:
    """Read the messages of a prompt. Raises a ConfigError that says how to write it.

    `after` are the messages before it. With `each`, every text of a list is a message, as when messages are added.
    """
    if isinstance(prompt, Mapping):
        return _read_object(prompt, after)
    if _is_content(prompt):
        return (user(_read_content_item(prompt)),)
    if isinstance(prompt, (Message, Reply)):
        return _read_list((prompt,), after, each=each)
    items: object = prompt
    if not isinstance(prompt, (list, tuple)):
        from asides.intake.objects.plain_values import find_messages

        items = find_messages(prompt)
    if not _is_list(items):
        if _is_simple(prompt):
            raise ConfigError(
                f"a prompt is text, a message, a dict, a picture or a list of them, not {describe_type(prompt)}. "
                f"Write {_advise(prompt)}."
            )
        return _read_list((prompt,), after, each=each)
    return _read_list(collect_items(items), after, each=each)


def _is_simple(value: object) -> bool:
    """Whether a value has no fields to read."""
    return value is None or type(value) is object or isinstance(value, (int, float, complex, set, frozenset))


def _is_list(items: object) -> TypeGuard[Iterable[object]]:
    if hasattr(type(items), "model_dump"):
        return False  # iterating such a value yields its fields
    return isinstance(items, Iterable) and not isinstance(items, (str, bytes, Mapping, set, frozenset))


def collect_items(items: Iterable[object]) -> tuple[object, ...]:
    """All items. Raises ConfigError for the stream of a client, if possible before reading it."""
    if isinstance(items, (list, tuple)):
        return tuple(items)
    from asides.intake.objects.plain_values import is_stream, reject_unread

    if is_stream(items):
        reject_unread(items)
    collected: list[object] = []
    for item in items:
        if len(collected) >= _MAX_MESSAGES:
            raise ConfigError(f"the prompt has more than {_MAX_MESSAGES:,} messages. Pass a list that ends.")
        collected.append(item)
        if len(collected) == 1:
            _open_items((item,))  # raises for the first piece of a stream
    return tuple(collected)


def _advise(value: object) -> str:
    if isinstance(value, (int, float)):
        return "str(…) around it"
    return 'ask(model, "…"), ask(model, ["What is this?", Image("a.png")]) or ask(model, [user("…"), assistant("…")])'


def _open_items(given: tuple[object, ...]) -> tuple[object, ...]:
    """The items with objects of other libraries as our messages, or as plain dicts in a dialect's format."""
    if all(map(_is_ready, given)):
        return given
    from asides.intake.objects.read_objects import open_items

    return tuple(open_items(given, _is_ready))


def _is_ready(item: object) -> bool:
    """True for content, a message, a list, or a dict in a dialect's format: no object of another library."""
    if isinstance(item, (str, Message, Reply, list)) or _is_simple(item):
        return True
    if isinstance(item, tuple):
        return not hasattr(item, "_fields")
    if isinstance(item, Mapping):
        if type(item) is dict and len(item) == 2 and "role" in item and type(item.get("content")) is str:
            return True  # the common case
        from asides.intake.objects.plain_values import is_plain

        return type(item) is dict and is_message(item) and is_plain(item)
    return _is_content(item)


# --- a list -----------------------------------------------------------------------------------------------------------


def _read_list(given: tuple[object, ...], after: Sequence[Message], *, each: bool) -> tuple[Message, ...]:
    items = _open_items(given)
    messages: list[Message] = []
    for start, run in _split_runs(items, each=each):
        first = run[0]
        if _is_content(first):
            try:
                messages.append(user([_read_content_item(item) for item in run]))
            except ConfigError as problem:
                raise ConfigError(f"messages[{start}]: {problem}") from None
        elif isinstance(first, Mapping):
            for form, place, some in split_formats(run, start):
                messages += _read_dicts(some, place, (*after, *messages), form)
        else:
            message = _read_value(first, start)
            messages += () if message is None else (message,)
    if not messages:
        raise ConfigError("the prompt has no message. Pass at least one.")
    return tuple(messages)


def _split_runs(items: tuple[object, ...], *, each: bool) -> Iterator[tuple[int, list[Any]]]:
    """The items in runs that are read together: content, dicts, or one value. With the place of the first."""
    run: list[object] = []
    kind = ""
    for place, item in enumerate(items):
        found = "content" if _is_content(item) else "dict" if isinstance(item, Mapping) else ""
        if run and (found != kind or not found or (each and found == "content")):
            yield place - len(run), run
            run = []
        run.append(item)
        kind = found
    if run:
        yield len(items) - len(run), run


def _read_value(item: object, place: int) -> Message | None:
    if isinstance(item, Message):
        return item
    if isinstance(item, Reply):
        return item.to_message()
    if isinstance(item, tuple) and len(item) == 2 and all(isinstance(inner, str) for inner in item):
        role, text = item
        if role in _TUPLE_ROLES:
            return Message(_TUPLE_ROLES[role], (Text(text),))
    if isinstance(item, (list, tuple)) and item and all(map(_is_content, item)):
        return user([_read_content_item(inner) for inner in item])
    raise ConfigError(
        f"messages[{place}] is {describe_type(item)}, not a message. Use user(…), text, a picture or a dict."
    )


# --- content ----------------------------------------------------------------------------------------------------------


def _is_content(item: object) -> bool:
    if isinstance(item, Mapping):
        return is_content(item)
    return isinstance(item, (str, bytes, bytearray, memoryview, os.PathLike, *_PARTS))


def _read_content_item(item: Any) -> Any:
    """Content as `user` takes it: dicts become parts."""
    if not isinstance(item, Mapping):
        return item
    form = find_part_format(item)
    turn = {"role": "user", "parts" if form == "gemini" else "content": [item]}
    with refuse_unwritable():
        return [part for message in parse_items([turn], form) for part in message.parts]


# --- dicts ------------------------------------------------------------------------------------------------------------


def _read_dicts(
    run: list[Mapping[str, Any]], start: int, before: Sequence[Message], form: ImportFormat
) -> tuple[Message, ...]:
    """Read dicts that follow each other, all in this format."""
    for place, item in enumerate(run, start):
        if item.get("content") and item.get("parts"):
            raise ConfigError(f"messages[{place}]: there are both content and parts. Keep one of them.")
        if item.get("parts") and not isinstance(item["parts"], (list, tuple)):
            raise ConfigError(f'messages[{place}]: parts is a list. Write "content" for text.')
        if item.keys().isdisjoint(("role", "type", "parts")) and set(item) != {"id"}:
            raise ConfigError(f'messages[{place}]: role is missing. Write {{"role": "user", "content": "…"}}.')
    if form != "openai_chat":
        waiting = _find_waiting(before) if form in ("gemini", "ollama") else []
        with refuse_unwritable():
            if form == "gemini":
                from asides.dialects.gemini.import_contents import import_contents

                return import_contents(run, waiting)
            return _match_results(parse_items(run, form), waiting)
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


def _find_waiting(before: Sequence[Message]) -> list[ToolCall]:
    """The calls of the last turn with calls that have no result yet."""
    turn = next((place for place in range(len(before) - 1, -1, -1) if before[place].tool_calls), None)
    if turn is None:
        return []
    answered = {part.call_id for each in before[turn:] for part in each.parts if isinstance(part, ToolResult)}
    return [call for call in before[turn].tool_calls if call.id not in answered]


def _match_results(imported: tuple[Message, ...], waiting: list[ToolCall]) -> tuple[Message, ...]:
    """Give results that come before any call of their own list the ids of the calls that wait for them, by name."""
    messages = list(imported)
    for place, message in enumerate(imported):
        if message.role == "assistant":
            break
        parts: list[Part] = []
        for part in message.parts:
            fits = [call for call in waiting if isinstance(part, ToolResult) and part.name in (None, call.name)]
            if isinstance(part, ToolResult) and fits and part.call_id not in [call.id for call in waiting]:
                parts.append(msgspec.structs.replace(part, call_id=fits[0].id))
                waiting.remove(fits[0])
            else:
                parts.append(part)
        messages[place] = msgspec.structs.replace(message, parts=tuple(parts))
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
    if "role" in value or (name is None and set(value) != {"output"}) or "type" in value:
        return _read_list((value,), after, each=False)
    if name is None:
        return import_messages(value, "responses")
    if unread := sorted(str(field) for field in value if field not in (name, *_SYSTEM_FIELDS)):
        raise ConfigError(
            f"the prompt is a request with more fields: {', '.join(unread)}. Pass its {name} as the prompt, and "
            "the other fields as options of ask."
        )
    held = value[name]
    system = next((value[field] for field in _SYSTEM_FIELDS if value.get(field) is not None), None)
    first = () if system is None else _read_system(system)
    items = (held,) if isinstance(held, (str, Mapping)) else held
    if not _is_list(items):
        raise ConfigError(f"{name} is a list of messages, not {describe_type(held)}. Pass a list.")
    return (*first, *_read_list(tuple(items), (*after, *first), each=False))


def _read_system(system: object) -> tuple[Message, ...]:
    if isinstance(system, Mapping):
        parts = system.get("parts", [system])
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        system = [{"type": "text", **part} if isinstance(part, Mapping) else part for part in parts]
    return import_messages({"messages": [], "system": system}, "anthropic")
