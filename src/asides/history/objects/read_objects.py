"""Recognises what people hold: `recognise(value) → Held`, and the messages in it: `read_items(items)`.

A turn of a model becomes the response document of its dialect; a history takes its messages from there, with the
importers of the dialects. Not here: the reply in a response (flows/read_object).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from asides.history.import_export import parse_items, refuse_unwritable
from asides.history.objects import langchain_objects, pydantic_ai_objects
from asides.history.objects.langchain_state import read_own_turn
from asides.history.objects.plain_values import is_plain, to_plain
from asides.history.objects.sdk_documents import find_response, is_piece, list_choices, normalise, read_signed_message
from asides.history.objects.turn_documents import LIBRARY_TYPE, Fields, build_response, get_text, list_messages
from asides.history.split_formats import detect_prompt_format, split_formats
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message, system
from asides.values.parts import Part, ServerTool, UnknownPart
from asides.values.thinking import Origin

# Blocks in a library's own format for what a provider ran. No provider has this name, so they are kept and never sent.
_LIBRARY = Origin("another-library", "", "")
_LIBRARY_TYPES = ("server_tool_call", "server_tool_result", LIBRARY_TYPE)
_WAYS = {"openai_chat": "response.choices[0].message", "gemini": "response.candidates[0].content"}


class Held(msgspec.Struct, frozen=True):
    """What a value is. Exactly one of the first four is set."""

    response: tuple[str, Fields] | None = None
    """A turn of a model: its dialect, and the whole response."""
    piece: Fields | None = None
    """A piece of a stream."""
    messages: tuple[Message, ...] | None = None
    """Messages of a library's own format that are no turn of a model."""
    fields: Fields | None = None
    """A message of a dialect, or something else with fields."""
    instructions: str | None = None
    """The system prompt that goes with the messages."""
    is_library: bool = False
    """Whether it is a message in a library's own format."""
    turn: Message | None = None
    """The turn itself, where asides wrote the message for the library: it has more than its response."""


def recognise(value: object) -> Held:
    """What a dict or an object of another library is. Raises ConfigError for a value that has no fields."""
    plain = value if type(value) is dict and is_plain(value) else to_plain(value)
    if not isinstance(plain, dict):
        raise ConfigError("this is no message. To do: pass a message or a response.")
    if not isinstance(value, Mapping) and plain.get("role") == "assistant" and "parts" not in plain:
        plain.setdefault("content", None)  # an object leaves it out where it is null
    return recognise_fields(plain)


def recognise_fields(plain: Fields) -> Held:
    """What a plain document is."""
    fields = langchain_objects.unwrap(plain)
    inner = fields.get("message")
    if isinstance(inner, Mapping) and langchain_objects.find_kind(inner) is not None:
        fields = inner  # of a generation
    with refuse_unwritable():
        if (kind := langchain_objects.find_kind(fields)) is not None:
            if kind == "ai":
                turn = read_own_turn(fields)
                return Held(langchain_objects.build_turn_response(fields), is_library=True, turn=turn)
            return Held(messages=(langchain_objects.read_other(fields, kind),))
        if (kind := pydantic_ai_objects.find_kind(fields)) is not None:
            if kind == "response":
                return Held(pydantic_ai_objects.build_turn_response(fields), is_library=True)
            found = tuple(pydantic_ai_objects.read_request(fields))
            return Held(messages=found, instructions=pydantic_ai_objects.find_instructions([fields]))
    document = normalise(dict(fields))
    if (response := find_response(document)) is not None:
        return Held(response)
    if is_piece(document):
        return Held(piece=document)
    if document.get("role") == "assistant" and (signed := read_signed_message(document)) is not None:
        return Held((signed[0], build_response(*signed)), is_library=True)
    return Held(fields=document)


def open_items(items: Sequence[object], is_ours: Callable[[object], bool]) -> list[object]:
    """The items of a history, each as a message of ours, or as plain fields in a dialect's format.

    `is_ours` tells values that are read elsewhere. Raises ConfigError with the place of what cannot be read.
    """
    opened: list[object] = []
    instructions: str | None = None
    first = 0
    for place, item in enumerate(items):
        if is_ours(item):
            opened.append(item)
            continue
        try:
            held = recognise(item)
            found = _open(held)
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
        if held.instructions is not None:
            first = len(opened) if instructions is None else first
            instructions = held.instructions
        opened += found
    return opened if instructions is None else [*opened[:first], system(instructions), *opened[first:]]


def _open(held: Held) -> list[object]:
    if held.piece is not None:
        raise ConfigError(
            "this is a piece of a stream, not a message. To do: collect the stream and pass asides.read(pieces)."
        )
    if held.turn is not None:
        return [held.turn]
    if held.messages is not None:
        return list(held.messages)
    if held.response is None:
        return [held.fields]
    dialect, document = held.response
    if (count := list_choices(dialect, document)) != 1:
        raise ConfigError(
            f"the response has {count or 'no'} answers. To do: pass the message of one, {_WAYS[dialect]}."
        )
    try:
        documents = list_messages(dialect, document)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ConfigError("this response holds no message. To do: check that it is whole.") from None
    # Results without ids find their calls where both are read together.
    return [*_import(dialect, documents)] if held.is_library else [*documents]


def _import(dialect: Any, documents: list[Fields]) -> list[Message]:
    with refuse_unwritable():
        messages = parse_items(documents, dialect)
    return [msgspec.structs.replace(message, parts=mark_library_parts(message.parts)) for message in messages]


# --- a whole history --------------------------------------------------------------------------------------------------

_SAVED_FORMATS = ("openai_chat", "anthropic", "openai_responses", "gemini")


def open_history(history: Any, *, is_named: bool = False) -> Any:
    """A history without objects of other libraries: plain values, or our messages where the format is a library's own.

    Lists, requests and saved conversations in the formats of providers stay as they are. `is_named`: the caller names
    the format, so that plain values are not looked at.
    """
    items = _find_messages(history)
    if not isinstance(items, (list, tuple)):
        return items if is_plain(items) else to_plain(items)
    is_library = not is_named and any(isinstance(item, dict) and _is_library(item) for item in items)
    if is_plain(items) and not is_library:
        return items
    opened = open_items(items, _is_message)
    messages: list[Message] = []
    for are_ours, group in groupby(opened, _is_message):
        run: list[Any] = list(group)
        runs = [] if are_ours else list(split_formats(run))
        if len(runs) == 1 and len(run) == len(opened) and runs[0][0] in _SAVED_FORMATS:
            return opened
        with refuse_unwritable():
            messages += run if are_ours else [each for form, _, some in runs for each in parse_items(some, form)]
    return messages


def _find_messages(history: Any) -> Any:
    try:
        if callable(getattr(type(history), "all_messages", None)):
            return history.all_messages()
        return getattr(history, "messages", history)
    except Exception as problem:  # noqa: BLE001 - code of the object runs here
        raise ConfigError(
            f"{describe_type(history)} cannot be read: its messages raised {type(problem).__name__}. To do: pass a "
            "list of messages."
        ) from None


def _is_message(item: object) -> bool:
    return isinstance(item, Message)


def _is_rare(items: Sequence[Any]) -> bool:
    return detect_prompt_format(items) not in _SAVED_FORMATS


def _is_library(fields: Fields) -> bool:
    kinds = (langchain_objects.find_kind(langchain_objects.unwrap(fields)), pydantic_ai_objects.find_kind(fields))
    return any(kinds) or _is_rare([fields]) or find_response(normalise(dict(fields))) is not None


def mark_library_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts, with an origin for those in a library's own format, so that no provider gets them."""
    return tuple(
        msgspec.structs.replace(part, origin=_LIBRARY)
        if isinstance(part, (ServerTool, UnknownPart)) and _find_type(part.json).startswith(_LIBRARY_TYPES)
        else part
        for part in parts
    )


def _find_type(raw: str) -> str:
    fields = msgspec.json.decode(raw)
    return get_text(fields, "type") if isinstance(fields, dict) else ""
