"""The response document in an object of another library: `find_reply(obj)`.

The object is a response, a message of the model or the pieces of a stream. It becomes the wire document of its dialect,
which the decoder reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import msgspec

from asides.intake.detect import detect_response, find_formats, has_deltas
from asides.intake.documents import refuse_unwritable
from asides.intake.objects.read_objects import Held, list_choices, recognise
from asides.intake.objects.turn_documents import Fields
from asides.values.errors import ConfigError
from asides.values.messages import Message

_HISTORY = "give a history to ask(…) or to asides.Conversation(messages=…), whose .messages are its messages"
_ADVICE = f"Pass a response, a message of the model, or the pieces of a stream in a list; {_HISTORY}"


class FoundReply(msgspec.Struct, frozen=True):
    """A response as bytes, ready to decode."""

    dialect: str
    body: bytes
    turn: Message | None = None
    """The turn, if asides wrote the message for the other library: it has more fields than the response."""


def find_reply(obj: Any) -> FoundReply:
    """The response in an object, a dict or a list of them. Raises ConfigError if none is found."""
    if isinstance(obj, Message):
        raise ConfigError("this is a message of asides already. Use it as it is, or its .parts.")
    if isinstance(obj, (str, bytes, bytearray, memoryview)):
        raise ConfigError("read takes objects, not text or bytes. For a body, use asides.decode(None, body).")
    if isinstance(obj, (list, tuple)):
        return _find_in_list(obj)
    return _find_in(recognise(obj))


def find_response_in(item: object) -> FoundReply | None:
    """The whole response in an item of a history; None for other items and for those that cannot be read."""
    try:
        held = recognise(item)
        if held.response is not None and list_choices(*held.response) == 1:
            return FoundReply(held.response[0], _encode(held.response[1]), held.turn)
    except ConfigError:
        pass  # reading the messages raises it again, with its place
    return None


def _find_in(held: Held) -> FoundReply:
    if held.piece is not None:
        raise ConfigError("this is one piece of a stream. Collect all of them, asides.read(list(stream)).")
    found = held.response
    if found is None and held.fields is not None:
        found = _wrap_message(held.fields)
    if found is None:
        raise ConfigError(f"this is not a reply of a model. {_ADVICE}.")
    if (count := list_choices(*found)) > 1:
        raise ConfigError(f"the response has {count} answers. Pass one of its choices or candidates.")
    return FoundReply(found[0], _encode(found[1]), held.turn)


def _encode(document: object) -> bytes:
    with refuse_unwritable():
        return msgspec.json.encode(document)


# --- a message alone --------------------------------------------------------------------------------------------------


def _wrap_message(message: Fields) -> tuple[str, Fields] | None:
    """The response around a message of the model; None for other messages."""
    if "role" not in message and isinstance(message.get("output"), list):
        return "openai_responses", {"object": "response", "status": "completed", **message}
    if "role" not in message and isinstance(message.get("type"), str):
        return _wrap_items([message])
    if message.get("role") not in ("assistant", "model"):
        return None
    forms = find_formats(message)
    form = forms.pop() if len(forms) == 1 else "openai_chat"
    content, calls = message.get("content"), bool(message.get("tool_calls"))
    match form:
        case "gemini":
            return form, {"candidates": [{"content": message, "finishReason": "STOP"}]}
        case "anthropic":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            called = any(isinstance(block, Mapping) and block.get("type") == "tool_use" for block in blocks)
            stop = "tool_use" if called else "end_turn"
            return form, {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop}
        case "openai_responses":
            return _wrap_items([message])
        case "bedrock":
            called = any("toolUse" in block for block in content or ())
            return form, {"output": {"message": message}, "stopReason": "tool_use" if called else "end_turn"}
        case "cohere":
            return form, {"message": message, "finish_reason": "TOOL_CALL" if calls else "COMPLETE"}
        case "ollama":
            return form, {"message": message, "done": True, "done_reason": "stop"}
        case _:
            stop = "tool_calls" if calls else "stop"
            return form, {"choices": [{"index": 0, "message": message, "finish_reason": stop}]}


def _wrap_items(items: list[Fields]) -> tuple[str, Fields]:
    """The response around blocks or items: `message.content` or `response.output`."""
    blocks = ("text", "thinking", "redacted_thinking", "tool_use")
    if any(item.get("type") in blocks for item in items):
        called = any(item.get("type") == "tool_use" for item in items)
        stop = {"stop_reason": "tool_use" if called else "end_turn"}
        return "anthropic", {"type": "message", "role": "assistant", "content": items, **stop}
    return "openai_responses", {"object": "response", "status": "completed", "output": items}


# --- several: the pieces of a stream, blocks, or items ----------------------------------------------------------------


def _find_in_list(given: Sequence[Any]) -> FoundReply:
    if not given:
        raise ConfigError(f"the list is empty. {_ADVICE}.")
    if (added := _add_chunks(given)) is not None:
        return find_reply(added)
    all_held = [_recognise(item, place) for place, item in enumerate(given)]
    if (found := _find_stream(all_held)) is not None:
        dialect, documents = found
        return FoundReply(dialect, _encode_stream(documents))
    if len(all_held) == 1:
        return _find_in(all_held[0])
    fields = [held.fields for held in all_held if held.fields is not None and "role" not in held.fields]
    items = [each for held in all_held if (each := held.fields) is not None and isinstance(each.get("type"), str)]
    if len(items) == len(all_held) and (len(fields) == len(items) or _has_items(items)):
        dialect, document = _wrap_items(items)
        return FoundReply(dialect, _encode(document))
    raise ConfigError(f"this is a list of messages, not one reply. {_ADVICE}.")


def _recognise(item: object, place: int) -> Held:
    try:
        return recognise(item)
    except ConfigError as problem:
        raise ConfigError(f"item {place} of the list: {problem}") from None


def _add_chunks(given: Any) -> Any:
    """The sum of LangChain's chunks, which implement `+`; None for anything else."""
    kinds = {getattr(item, "type", None) if hasattr(type(item), "__add__") else None for item in given}
    if not all(isinstance(kind, str) and kind.endswith("MessageChunk") for kind in kinds):
        return None
    try:
        return reduce(add, given)
    except Exception as problem:  # noqa: BLE001 - code of the objects runs here
        raise ConfigError(
            f"the chunks cannot be added: {type(problem).__name__}. Pass those of one stream, in order."
        ) from None


# Dialects whose pieces of a stream look like whole responses.
_ALIKE = ("gemini", "ollama")


def _find_stream(all_held: Sequence[Held]) -> tuple[str, list[Fields]] | None:
    """The dialect and the documents of a stream; None for other values.

    Events that the helpers of clients add are skipped: they repeat others.
    """
    responses = [held.response for held in all_held if held.response is not None]
    names = {name for name, _ in responses}
    pieces = [piece for held in all_held if (piece := _get_piece(held)) is not None]
    dialect = next((name for piece in pieces if (name := detect_response(piece)) is not None), None)
    if dialect is not None and names <= {dialect} and not any(held.messages for held in all_held):
        # Some pieces, such as those with nothing but the usage, look whole.
        found = [held.response[1] if held.response is not None else _get_piece(held) for held in all_held]
        return dialect, [piece for piece in found if piece is not None]
    is_alike = not names.isdisjoint(_ALIKE) or all(has_deltas(document) for _, document in responses)
    if len(responses) == len(all_held) > 1 and len(names) == 1 and is_alike:
        return names.pop(), [document for _, document in responses]
    return None


def _get_piece(held: Held) -> Fields | None:
    chunk = None if held.fields is None else held.fields.get("chunk")
    return chunk if isinstance(chunk, dict) else held.piece


def _encode_stream(documents: Sequence[Fields]) -> bytes:
    return b"".join(b"data: " + _encode(document) + b"\n\n" for document in documents)


def _has_items(items: Sequence[Fields]) -> bool:
    """Whether these are the items of one response: no role but the assistant's."""
    return all(item.get("role", "assistant") == "assistant" for item in items)
