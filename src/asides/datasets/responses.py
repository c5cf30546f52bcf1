"""Recorded responses of a row, also as lines of a provider's batch and as completions of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from asides.datasets.conversations import describe_problem, separate_messages
from asides.datasets.rows import encode_row
from asides.datasets.separation import Separation, TagSettings
from asides.dialects import plain_row
from asides.flows.offline import decode, recognise_dialect
from asides.values.errors import AsidesError
from asides.values.messages import Message
from asides.values.reply import Reply

_Object = Mapping[str, Any]
_CHOICES = ("choices", "candidates")


class _FailedRequest(Exception):
    """The response is an error."""


def separate_response(value: object, settings: TagSettings) -> Separation:
    """Separate a recorded response: a body as text, or as an object."""
    if isinstance(value, Mapping):
        # Fields of a row may be raw JSON.
        value = encode_row(value)
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    if not isinstance(value, bytes):
        return Separation("unreadable", reason=f"a response must be text or an object, not {type(value).__name__}")
    note = ""
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None  # the events of a stream
    try:
        if isinstance(document, Mapping):
            document = _unwrap(cast("_Object", document))
            count = max((len(document[name]) for name in _CHOICES if isinstance(document.get(name), list)), default=0)
            note = "the response has several choices, and only the first is separated" if count > 1 else ""
            value = msgspec.json.encode(_read_completion(document))
        reply = _decode(value)
    except _FailedRequest as problem:
        return Separation("unreadable", reason=str(problem))
    except AsidesError as problem:
        return Separation("unreadable", reason=describe_problem(problem))
    _, found = separate_messages((Message("assistant", reply.parts),), settings)
    if found.answer is not None:
        found.answer, found.thinking = found.answer[0], found.thinking[0]  # type: ignore[index]
        found.commentary = found.commentary[0] or None  # type: ignore[index]
    if reply.tool_calls and found.verdict == "empty_answer":
        found.verdict, found.reason = "closed" if found.thinking else "none", ""
    found.note = note
    return found


def _decode(body: bytes) -> Reply:
    """Decode a body, with tags in its text as they are."""
    dialect, pieces = recognise_dialect(body)
    row = plain_row(dialect)
    return decode(
        dialect, cast("Iterable[bytes]", pieces), provider=msgspec.structs.replace(row, quirks=_leave_tags(row.quirks))
    )


def _leave_tags(quirks: Any) -> Any:
    return msgspec.structs.replace(quirks, tags=())


def _unwrap(document: _Object) -> _Object:
    """The body in a line of a batch's results: OpenAI's, Anthropic's or Gemini's. Raises _FailedRequest."""
    match document:
        case {"response": {"body": Mapping() as body}}:
            return cast("_Object", body)
        case {"response": {"candidates": list()} as body}:
            return cast("_Object", body)
        case {"result": {"type": "succeeded", "message": Mapping() as body}}:
            return cast("_Object", body)
        case {"custom_id": _, "result": {"type": str(kind)}}:
            raise _FailedRequest(f"the request of the batch has no response: {kind[:40]}")
        case {"custom_id": _, "error": Mapping()} | {"key": _, "error": Mapping()}:
            raise _FailedRequest("the request of the batch has no response: error")
        case _:
            return document


def _read_completion(document: _Object) -> _Object:
    """A completion of text as one of messages."""
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not all(_is_text_choice(each) for each in choices):
        return document
    messages = [
        {
            "index": each.get("index", 0),
            "finish_reason": each.get("finish_reason"),
            "message": {"role": "assistant", "content": each["text"]},
        }
        for each in choices
    ]
    return {**document, "object": "chat.completion", "choices": messages}


def _is_text_choice(choice: object) -> bool:
    return isinstance(choice, Mapping) and isinstance(choice.get("text"), str) and "message" not in choice
