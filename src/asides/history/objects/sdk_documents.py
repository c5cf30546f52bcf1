"""What a plain document of a client is: a whole response, a piece of a stream, or neither: `find_response(fields)`.

Also the forms of a dialect that only clients have: names in snake_case, a choice alone, thinking blocks beside a chat
message. Not here: objects (plain_values), messages in a library's own format (langchain_objects and
pydantic_ai_objects).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.dialects.detect import STREAM_EVENTS, find_document_dialect
from asides.history.objects.plain_values import to_camel_case
from asides.history.objects.turn_documents import Fields, Piece, Tokens, Turn, build_response, get_object, get_text
from asides.values.parts import read_arguments

_GEMINI_MARKS = ("candidates", "usage_metadata", "usageMetadata", "prompt_feedback", "promptFeedback")


def normalise(fields: Fields) -> Fields:
    """A document with the names of its wire: Gemini's clients also have snake_case."""
    if any(name in fields for name in _GEMINI_MARKS) or isinstance(fields.get("parts"), list):
        return dict(to_camel_case(fields))
    return fields


def find_response(fields: Fields) -> tuple[str, Fields] | None:
    """The dialect of a whole response, and its document; None if it is no whole response."""
    if is_choice(fields):
        return find_response({"object": "chat.completion", "choices": [fields]})
    if is_candidate(fields):
        return find_response({"candidates": [fields]})
    if is_piece(fields):
        return None
    dialect = find_document_dialect(fields)
    if dialect == "anthropic" and not _is_whole_message(fields):
        return None
    if dialect == "openai_responses" and fields.keys() == {"output"}:
        return None  # the items alone
    if dialect == "openai_chat":
        return _read_chat(fields)
    return None if dialect is None else (dialect, fields)


def is_choice(fields: Mapping[str, Any]) -> bool:
    """Whether it is one choice of a chat completion."""
    return isinstance(fields.get("message"), Mapping) and "index" in fields and "finish_reason" in fields


def is_candidate(fields: Mapping[str, Any]) -> bool:
    """Whether it is one candidate of Gemini."""
    content = fields.get("content")
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list) and "role" not in fields


def _is_whole_message(fields: Mapping[str, Any]) -> bool:
    is_answer = fields.get("role") == "assistant" and fields.get("type") == "message"
    return is_answer and ("stop_reason" in fields or "usage" in fields)


def is_piece(fields: Mapping[str, Any]) -> bool:
    """Whether it is a piece of a stream that cannot be a whole response: a chunk or an event."""
    if get_text(fields, "type") in STREAM_EVENTS or not STREAM_EVENTS.isdisjoint(fields):
        return True
    if get_text(fields, "type").startswith("response."):
        return True
    if set(fields) == {"metadata"} and find_document_dialect(dict(fields)) is not None:
        return True  # the last event of Converse
    choices = fields.get("choices")
    if not isinstance(choices, list):
        return False
    is_whole = not has_deltas(fields) or any("message" in choice for choice in choices)
    return not is_whole or get_text(fields, "object").endswith(".chunk")


def has_deltas(fields: Mapping[str, Any]) -> bool:
    """Whether the choices of a chat completion have a delta. Some hosts write one into whole responses too."""
    choices = fields.get("choices")
    choices = choices if isinstance(choices, list) else []
    return bool(choices) and all(isinstance(choice, Mapping) and "delta" in choice for choice in choices)


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
