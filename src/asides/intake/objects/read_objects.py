"""Recognises objects of other libraries: `recognise(value) → Held`, and the messages in them: `open_items(items)`.

A turn of a model becomes the response document of its dialect; the importer of the dialect reads its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from asides.intake.detect import (
    detect_response,
    find_formats,
    find_langchain_kind,
    find_pydantic_ai_kind,
    is_candidate,
    is_choice,
    is_piece,
    split_formats,
)
from asides.intake.documents import parse_items, refuse_unwritable
from asides.intake.objects import langchain_objects, pydantic_ai_objects
from asides.intake.objects.langchain_state import read_own_turn
from asides.intake.objects.plain_values import find_messages, is_plain, to_camel_case, to_plain
from asides.intake.objects.turn_documents import (
    LIBRARY_TYPE,
    Fields,
    Piece,
    Tokens,
    Turn,
    build_response,
    get_object,
    get_text,
    list_messages,
)
from asides.values.errors import ConfigError
from asides.values.messages import Message, system
from asides.values.parts import Part, ServerTool, UnknownPart, read_arguments
from asides.values.thinking import Origin

# Blocks in a library's own format for what a provider ran. No provider has this name, so they are kept and never sent.
_LIBRARY = Origin("another-library", "", "")
_LIBRARY_TYPES = ("server_tool_call", "server_tool_result", LIBRARY_TYPE)
_WAYS = {"openai_chat": "response.choices[0].message", "gemini": "response.candidates[0].content"}
_GEMINI_MARKS = ("candidates", "usage_metadata", "usageMetadata", "prompt_feedback", "promptFeedback")


class Held(msgspec.Struct, frozen=True):
    """What a value is. Exactly one of the first four is set."""

    response: tuple[str, Fields] | None = None
    """A turn of a model: its dialect, and the whole response."""
    piece: Fields | None = None
    """A piece of a stream."""
    messages: tuple[Message, ...] | None = None
    """Messages in a library's own format other than turns of a model."""
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
        raise ConfigError("this is not a message. Pass a message or a response.")
    if not isinstance(value, Mapping) and plain.get("role") == "assistant" and "parts" not in plain:
        plain.setdefault("content", None)  # an object leaves it out where it is null
    return recognise_fields(plain)


def recognise_fields(plain: Fields) -> Held:
    """What a plain document is."""
    fields = langchain_objects.unwrap(plain)
    inner = fields.get("message")
    if isinstance(inner, Mapping) and find_langchain_kind(inner) is not None:
        fields = inner  # of a generation
    with refuse_unwritable():
        if (kind := find_langchain_kind(fields)) is not None:
            if kind == "ai":
                turn = read_own_turn(fields)
                return Held(langchain_objects.build_turn_response(fields), is_library=True, turn=turn)
            return Held(messages=(langchain_objects.read_other(fields, kind),))
        if (kind := find_pydantic_ai_kind(fields)) is not None:
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


# --- documents of clients ---------------------------------------------------------------------------------------------


def normalise(fields: Fields) -> Fields:
    """A document with the names of its wire: Gemini's clients also have snake_case."""
    if any(name in fields for name in _GEMINI_MARKS) or isinstance(fields.get("parts"), list):
        return dict(to_camel_case(fields))
    return fields


def find_response(fields: Fields) -> tuple[str, Fields] | None:
    """The dialect of a whole response, and its document; None for anything else."""
    if is_choice(fields):
        return find_response({"object": "chat.completion", "choices": [fields]})
    if is_candidate(fields):
        return find_response({"candidates": [fields]})
    if is_piece(fields):
        return None
    dialect = detect_response(fields)
    if dialect == "anthropic" and not _is_whole_message(fields):
        return None
    if dialect == "openai_responses" and fields.keys() == {"output"}:
        return None  # the items alone
    if dialect == "openai_chat":
        return _read_chat(fields)
    return None if dialect is None else (dialect, fields)


def _is_whole_message(fields: Mapping[str, Any]) -> bool:
    is_answer = fields.get("role") == "assistant" and fields.get("type") == "message"
    return is_answer and ("stop_reason" in fields or "usage" in fields)


def list_choices(dialect: str, document: Fields) -> int:
    """How many answers a response has."""
    found = document.get({"openai_chat": "choices", "gemini": "candidates"}.get(dialect, ""), [1])
    return len(found) if isinstance(found, list) else 1


# --- chat completions of other providers' models ----------------------------------------------------------------------


def _read_chat(fields: Fields) -> tuple[str, Fields] | None:
    """A chat completion. Where it holds thinking blocks or signatures of another dialect, the response of that one."""
    choices = fields.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        return "openai_chat", fields
    found = read_signed_message(choice["message"])
    if found is None:
        return "openai_chat", fields
    dialect, turn = found
    turn.model, turn.id = get_text(fields, "model"), get_text(fields, "id")
    turn.stop = get_text(choice, "finish_reason")
    counts = get_object(fields, "usage")
    spent, cached = get_object(counts, "completion_tokens_details"), get_object(counts, "prompt_tokens_details")
    turn.tokens = Tokens(
        counts.get("prompt_tokens"),
        counts.get("completion_tokens"),
        spent.get("reasoning_tokens"),
        cached.get("cached_tokens"),
    )
    return dialect, build_response(dialect, turn)


def read_signed_message(message: Mapping[str, Any]) -> tuple[str, Turn] | None:
    """A chat message that holds the signatures of another dialect beside its fields, as a turn in that dialect."""
    own = get_object(message, "provider_specific_fields")
    blocks = [each for each in message.get("thinking_blocks") or () if isinstance(each, Mapping)]
    calls = [each for each in message.get("tool_calls") or () if isinstance(each, Mapping)]
    signatures = [get_text(get_object(call, "provider_specific_fields"), "thought_signature") for call in calls]
    answers = [each for each in own.get("thought_signatures") or () if isinstance(each, str)]
    content = message.get("content")
    is_gemini = any(signatures) or bool(answers)
    if not is_gemini and not any(each.get("signature") or each.get("data") for each in blocks):
        return None
    pieces = [_read_block(each) for each in blocks]
    if isinstance(content, str) and content:
        on_text = "" if any(signatures) or not answers else answers[0]
        pieces.append(Piece("text", content, on_text))
    for call, signature in zip(calls, signatures, strict=True):
        function = get_object(call, "function")
        raw = get_text(function, "arguments")
        arguments = read_arguments(raw)
        name, call_id = get_text(function, "name"), get_text(call, "id")
        pieces.append(
            Piece("call", "", signature, id=call_id, name=name, arguments=raw if arguments is None else arguments)
        )
    return ("gemini" if is_gemini else "anthropic"), Turn(pieces)


def _read_block(block: Mapping[str, Any]) -> Piece:
    if block.get("type") == "redacted_thinking":
        return Piece("thought", seal=get_text(block, "data"), redacted=True)
    return Piece("thought", get_text(block, "thinking"), get_text(block, "signature"))


# --- a list of messages -----------------------------------------------------------------------------------------------


def open_items(items: Sequence[object], is_ours: Callable[[object], bool]) -> list[object]:
    """The items of a history, each as a message of ours, or as plain fields in a dialect's format.

    Values for which `is_ours` is true are kept. Raises ConfigError with the place of an unreadable value.
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
            "this is a piece of a stream, not a message. Collect the stream and pass asides.read(pieces)."
        )
    if held.turn is not None:
        return [held.turn]
    if held.messages is not None:
        return list(held.messages)
    if held.response is None:
        return [held.fields]
    dialect, document = held.response
    if (count := list_choices(dialect, document)) != 1:
        raise ConfigError(f"the response has {count or 'no'} answers. Pass the message of one, {_WAYS[dialect]}.")
    try:
        documents = list_messages(dialect, document)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ConfigError("this response holds no message. Check that it is whole.") from None
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
    items = find_messages(history)
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


def _is_message(item: object) -> bool:
    return isinstance(item, Message)


def _is_library(fields: Fields) -> bool:
    kinds = (find_langchain_kind(langchain_objects.unwrap(fields)), find_pydantic_ai_kind(fields))
    return (
        any(kinds)
        or not find_formats(fields).issubset(_SAVED_FORMATS)
        or find_response(normalise(dict(fields))) is not None
    )


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
