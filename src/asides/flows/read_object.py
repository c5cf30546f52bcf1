"""`read(obj) → Reply`: the reply in a response, a message or the pieces of a stream that another library holds.

By structure: the object becomes the wire document of its dialect, and `decode` reads that. Not here: what an object is
(history/objects), and bytes (offline).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, get_args

import msgspec

from asides.dialects import plain_row
from asides.dialects.detect import find_document_dialect
from asides.flows.offline import decode
from asides.history.import_export import refuse_unwritable
from asides.history.objects.read_objects import Held, mark_library_parts, recognise
from asides.history.objects.sdk_documents import has_deltas, list_choices
from asides.history.objects.turn_documents import Fields
from asides.history.split_formats import detect_item_formats
from asides.providers.provider import Provider
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Part
from asides.values.reply import Reply

_PARTS = get_args(Part)
_HISTORY = "give a history to ask(…) or to asides.Conversation(messages=…), whose .messages are its messages"
_TO_DO = f"pass a response, a message of the model, or the pieces of a stream in a list; {_HISTORY}"


def read(obj: Any, *, provider: str | Provider | None = None, model: str | None = None) -> Reply:
    """Read the reply that an object of another library holds. No library is imported.

    `obj` is a response or a message of a model, as openai, anthropic, google-genai, LangChain, pydantic-ai, ollama,
    cohere, boto3 and clients like them have it, or the same as a dict; or a list with the pieces of a stream.
    `provider` and `model` say who made it, where seals should go back only there. Raises ConfigError for anything
    else, and the errors of `decode`.
    """
    if isinstance(obj, Reply):
        return obj
    if isinstance(obj, Message):
        raise ConfigError("this is a message of asides already. To do: use it as it is, or its .parts.")
    if isinstance(obj, (str, bytes, bytearray, memoryview)):
        raise ConfigError("read takes objects, not text or bytes. To do: asides.decode(None, body) reads a body.")
    if isinstance(obj, (list, tuple)):
        return _read_several(obj, provider, model)
    held = recognise(obj)
    return _add_turn(_decode(*_find_document(held), provider, model), held)


def _decode(dialect: str, document: bytes, provider: str | Provider | None, model: str | None) -> Reply:
    # An object does not say which host made it.
    row = msgspec.structs.replace(plain_row(dialect), base_url="") if provider is None else provider
    reply = decode(dialect, document, provider=row, model=model)
    return msgspec.structs.replace(reply, parts=mark_library_parts(reply.parts))


def _add_turn(reply: Reply, held: Held) -> Reply:
    """The reply with the turn that asides wrote into a message of another library."""
    turn = held.turn
    if turn is None:
        return reply
    return msgspec.structs.replace(
        reply, parts=turn.parts, prefix=turn.prefix, learned=turn.learned, effort=turn.effort
    )


def _find_document(held: Held) -> tuple[str, bytes]:
    if held.piece is not None:
        raise ConfigError("this is one piece of a stream. To do: collect all of them, asides.read(list(stream)).")
    found = held.response
    if found is None and held.fields is not None:
        found = _wrap_message(held.fields)
    if found is None:
        raise ConfigError(f"this is not what a model said. To do: {_TO_DO}.")
    if (count := list_choices(*found)) > 1:
        raise ConfigError(f"the response has {count} answers. To do: pass one of its choices or candidates.")
    return found[0], _encode(found[1])


def _encode(document: object) -> bytes:
    with refuse_unwritable():
        return msgspec.json.encode(document)


def read_replies(items: Sequence[Any]) -> list[Any]:
    """The items, with responses and turns of other libraries as replies, which know their usage."""
    return [_read_reply(item) if _may_be_response(item) else item for item in items]


def _may_be_response(item: object) -> bool:
    if isinstance(item, dict):
        return "role" not in item or "usage" in item
    return not isinstance(item, (str, bytes, Message, Reply, list, tuple, os.PathLike, *_PARTS)) and item is not None


def _read_reply(item: Any) -> Any:
    try:
        held = recognise(item)
        if held.response is not None and list_choices(*held.response) == 1:
            return _add_turn(_decode(held.response[0], _encode(held.response[1]), None, None), held)
    except ConfigError:
        pass  # whoever reads the messages says why, and where
    return item


# --- a message alone --------------------------------------------------------------------------------------------------


def _wrap_message(message: Fields) -> tuple[str, Fields] | None:
    """The response that holds a message of the model; None if it is no such message."""
    if "role" not in message and isinstance(message.get("output"), list):
        return "openai_responses", {"object": "response", "status": "completed", **message}
    if "role" not in message and isinstance(message.get("type"), str):
        return _wrap_items([message])
    if message.get("role") not in ("assistant", "model"):
        return None
    forms = detect_item_formats(message)
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
    """The response that holds these blocks or items: `message.content`, or `response.output`."""
    blocks = ("text", "thinking", "redacted_thinking", "tool_use")
    if any(item.get("type") in blocks for item in items):
        called = any(item.get("type") == "tool_use" for item in items)
        stop = {"stop_reason": "tool_use" if called else "end_turn"}
        return "anthropic", {"type": "message", "role": "assistant", "content": items, **stop}
    return "openai_responses", {"object": "response", "status": "completed", "output": items}


# --- several: the pieces of a stream, blocks, or items ----------------------------------------------------------------


def _read_several(given: Any, provider: str | Provider | None, model: str | None) -> Reply:
    if not given:
        raise ConfigError(f"the list is empty. To do: {_TO_DO}.")
    if (added := _add_chunks(given)) is not None:
        return read(added, provider=provider, model=model)
    all_held = [_recognise(item, place) for place, item in enumerate(given)]
    if (found := _find_stream(all_held)) is not None:
        dialect, documents = found
        return _decode(dialect, _encode_stream(documents), provider, model)
    if len(all_held) == 1:
        return _add_turn(_decode(*_find_document(all_held[0]), provider, model), all_held[0])
    fields = [held.fields for held in all_held if held.fields is not None and "role" not in held.fields]
    items = [each for held in all_held if (each := held.fields) is not None and isinstance(each.get("type"), str)]
    if len(items) == len(all_held) and (len(fields) == len(items) or _has_items(items)):
        dialect, document = _wrap_items(items)
        return _decode(dialect, _encode(document), provider, model)
    raise ConfigError(f"this is a list of messages, not one reply. To do: {_TO_DO}.")


def _recognise(item: object, place: int) -> Held:
    try:
        return recognise(item)
    except ConfigError as problem:
        raise ConfigError(f"item {place} of the list: {problem}") from None


def _add_chunks(given: Any) -> Any:
    """The sum of LangChain's chunks, which know how to add themselves; None for anything else."""
    kinds = {getattr(item, "type", None) if hasattr(type(item), "__add__") else None for item in given}
    if not all(isinstance(kind, str) and kind.endswith("MessageChunk") for kind in kinds):
        return None
    try:
        return reduce(add, given)
    except Exception as problem:  # noqa: BLE001 - code of the objects runs here
        raise ConfigError(
            f"the chunks cannot be added: {type(problem).__name__}. To do: pass those of one stream, in order."
        ) from None


# A piece of a stream looks like a whole response there.
_ALIKE = ("gemini", "ollama")


def _find_stream(all_held: Sequence[Held]) -> tuple[str, list[Fields]] | None:
    """The dialect and the documents of a stream; None if the values are no pieces of one.

    The helpers of clients add events of their own, which say nothing new.
    """
    responses = [held.response for held in all_held if held.response is not None]
    names = {name for name, _ in responses}
    pieces = [piece for held in all_held if (piece := _get_piece(held)) is not None]
    dialect = next((name for piece in pieces if (name := find_document_dialect(piece)) is not None), None)
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
    """Whether these are the items of one response: those with a role are the model's."""
    return all(item.get("role", "assistant") == "assistant" for item in items)
