"""A turn of a model in pieces → the response document of a dialect: `build_response(dialect, turn)`.

For libraries with a message format of their own. The document is then decoded or imported like any other response.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.providers.find import find_provider
from asides.values.errors import UnknownProvider

Fields: TypeAlias = dict[str, Any]

LIBRARY_TYPE = "library-"
"""The beginning of the type of a raw piece in a library's own format, which no provider understands."""


class Piece(msgspec.Struct):
    """One part of a turn."""

    kind: Literal["thought", "text", "call", "refusal", "raw"]
    text: str = ""
    seal: str = ""
    """The signature, the encrypted content or the redacted data."""
    redacted: bool = False
    """For a thought: the seal replaces the text."""
    id: str = ""
    """The id of the item; for a call the id of the call."""
    item_id: str = ""
    """For a call: the id of its item."""
    name: str = ""
    arguments: Any = None
    """For a call: an object, or the text that could not be read."""
    raw: Fields | None = None
    """For a raw piece: the block or item of the dialect, as it is. For a thought: texts beside its summary."""


class Tokens(msgspec.Struct):
    """The tokens of a turn; `input` includes those of the cache, `output` those of thinking."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


class Turn(msgspec.Struct):
    """A turn of a model, as another library holds it."""

    pieces: list[Piece]
    model: str = ""
    id: str = ""
    stop: str = ""
    """How it ended, in the provider's words, or "stop", "length", "content_filter", "tool_call"."""
    tokens: Tokens = msgspec.field(default_factory=Tokens)
    thinking_field: str = "reasoning_content"
    """The field of chat completions that holds the thinking."""
    details: list[Any] = msgspec.field(default_factory=list[Any])
    """The entries of `reasoning_details`."""

    @property
    def has_calls(self) -> bool:
        """Whether it calls tools."""
        return any(piece.kind == "call" for piece in self.pieces)


_BUILT = ("anthropic", "bedrock", "gemini", "openai_responses", "openai_chat")


def find_dialect_of(provider: str) -> str | None:
    """The dialect in which a turn of a provider that a library names is written here; None if no provider of ours has
    the name. Chat completions can say the turns of dialects without seals.
    """
    try:
        dialect = find_provider(provider).dialect if provider else None
    except UnknownProvider:
        return None
    return dialect if dialect in (None, *_BUILT) else "openai_chat"


# Our words for the end of a turn, in the words of each dialect.
_STOPS: dict[str, dict[str, str]] = {
    "openai_chat": {"tool_call": "tool_calls"},
    "anthropic": {
        "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_call": "tool_use",
        "tool_calls": "tool_use",
    },
    "gemini": {
        "stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_call": "STOP", "tool_calls": "STOP",
    },
    "bedrock": {
        "stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered", "tool_call": "tool_use",
        "tool_calls": "tool_use",
    },
}  # fmt: skip


def build_response(dialect: str, turn: Turn) -> Fields:
    """Build the whole response that says this turn."""
    stop = turn.stop or ("tool_call" if turn.has_calls else "stop")
    stop = _STOPS.get(dialect, {}).get(stop, stop)
    match dialect:
        case "anthropic":
            return _build_anthropic(turn, stop)
        case "openai_responses":
            return _build_responses(turn, stop)
        case "gemini":
            return _build_gemini(turn, stop)
        case "bedrock":
            return _build_bedrock(turn, stop)
        case _:
            return _build_chat(turn, stop)


def _drop_unset(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _write_arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()


# --- chat completions -------------------------------------------------------------------------------------------------


def _build_chat(turn: Turn, stop: str) -> Fields:
    pieces = turn.pieces
    thinking = "\n\n".join(piece.text for piece in pieces if piece.kind == "thought" and piece.text)
    texts = [piece for piece in pieces if piece.kind in ("text", "raw")]
    joined = "".join(piece.text for piece in texts)
    is_text = all(piece.kind == "text" for piece in texts)
    content: Any = joined if is_text else [_write_chat_part(each) for each in texts]
    message: Fields = {"role": "assistant", "content": content or None}
    if turn.details:
        message["reasoning_details"] = turn.details
    elif thinking:
        message[turn.thinking_field] = thinking
    if refusal := "".join(piece.text for piece in pieces if piece.kind == "refusal"):
        message["refusal"] = refusal
    if calls := [piece for piece in pieces if piece.kind == "call"]:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _write_arguments(call.arguments)},
            }
            for call in calls
        ]
    tokens = turn.tokens
    usage = _drop_unset({"prompt_tokens": tokens.input, "completion_tokens": tokens.output})
    if tokens.cache_read is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": tokens.cache_read}
    if tokens.reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens.reasoning}
    choice = {"index": 0, "message": message, "finish_reason": stop}
    known = _drop_unset({"id": turn.id, "model": turn.model, "usage": usage or None})
    return {"object": "chat.completion", "choices": [choice], **known}


def _write_chat_part(piece: Piece) -> Any:
    return {"type": "text", "text": piece.text} if piece.kind == "text" else piece.raw


# --- blocks -----------------------------------------------------------------------------------------------------------


def _build_anthropic(turn: Turn, stop: str) -> Fields:
    content: list[Any] = []
    for piece in turn.pieces:
        match piece.kind:
            case "thought" if piece.redacted:
                content.append({"type": "redacted_thinking", "data": piece.seal})
            case "thought":
                content.append({"type": "thinking", "thinking": piece.text, "signature": piece.seal})
            case "call":
                call = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": piece.arguments or {}}
                content.append(call)
            case "raw":
                content.append(piece.raw)
            case _ if piece.text:
                content.append({"type": "text", "text": piece.text})
            case _:
                pass
    tokens = turn.tokens
    usage = {
        "input_tokens": _subtract(tokens.input, tokens.cache_read, tokens.cache_write),
        "output_tokens": tokens.output,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
    }
    if tokens.reasoning is not None:
        usage["output_tokens_details"] = {"thinking_tokens": tokens.reasoning}  # type: ignore[assignment]
    known = _drop_unset({"id": turn.id, "model": turn.model, "usage": _drop_unset(usage) or None})
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, **known}


def _build_bedrock(turn: Turn, stop: str) -> Fields:
    content: list[Any] = []
    for piece in turn.pieces:
        match piece.kind:
            case "thought" if piece.redacted:
                content.append({"reasoningContent": {"redactedContent": piece.seal}})
            case "thought":
                thought = _drop_unset({"text": piece.text, "signature": piece.seal})
                content.append({"reasoningContent": {"reasoningText": {"text": "", **thought}}})
            case "call":
                call = {"toolUseId": piece.id, "name": piece.name, "input": piece.arguments or {}}
                content.append({"toolUse": call})
            case "raw":
                content.append(piece.raw)
            case _ if piece.text:
                content.append({"text": piece.text})
            case _:
                pass
    tokens = turn.tokens
    usage = {
        "inputTokens": _subtract(tokens.input, tokens.cache_read, tokens.cache_write),
        "outputTokens": tokens.output,
        "cacheReadInputTokens": tokens.cache_read,
        "cacheWriteInputTokens": tokens.cache_write,
    }
    known = _drop_unset({"usage": _drop_unset(usage) or None})
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop, **known}


def _subtract(whole: int | None, *parts: int | None) -> int | None:
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def _build_gemini(turn: Turn, stop: str) -> Fields:
    parts: list[Any] = []
    for piece in turn.pieces:
        seal = {"thoughtSignature": piece.seal} if piece.seal else {}
        match piece.kind:
            case "thought":
                parts.append({"text": piece.text, "thought": True, **seal})
            case "call":
                call = _drop_unset({"id": piece.id, "name": piece.name, "args": piece.arguments or {}})
                parts.append({"functionCall": call, **seal})
            case "raw":
                parts.append(piece.raw)
            case _:
                parts.append({"text": piece.text, **seal})
    tokens = turn.tokens
    usage = {
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": _subtract(tokens.output, tokens.reasoning),
        "thoughtsTokenCount": tokens.reasoning,
        "cachedContentTokenCount": tokens.cache_read,
    }
    known = _drop_unset(
        {"modelVersion": turn.model, "responseId": turn.id, "usageMetadata": _drop_unset(usage) or None}
    )
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": stop}
    return {"candidates": [candidate], **known}


# --- items ------------------------------------------------------------------------------------------------------------


def _build_responses(turn: Turn, stop: str) -> Fields:
    items: list[Any] = []
    for piece in turn.pieces:
        last: Fields = items[-1] if items else {}
        joins = bool(piece.id) and last.get("id") == piece.id
        match piece.kind:
            case "thought" if joins and last.get("type") == "reasoning":
                last["summary"] += _write_summary(piece.text)
                _add_state(last, piece)
            case "thought":
                items.append({"type": "reasoning", "id": piece.id, "summary": _write_summary(piece.text)})
                _add_state(items[-1], piece)
            case "call":
                call = {"call_id": piece.id, "name": piece.name, "arguments": _write_arguments(piece.arguments)}
                items.append({"type": "function_call", **_drop_unset({"id": piece.item_id}), **call})
            case "raw":
                items.append(piece.raw)
            case kind if piece.text:
                part = _write_output_part(kind, piece.text)
                if joins and last.get("type") == "message":
                    last["content"].append(part)
                else:
                    ids = _drop_unset({"id": piece.id})
                    items.append({"type": "message", **ids, "role": "assistant", "content": [part]})
            case _:
                pass
    tokens = turn.tokens
    usage: Fields = _drop_unset({"input_tokens": tokens.input, "output_tokens": tokens.output})
    if tokens.cache_read is not None:
        usage["input_tokens_details"] = {"cached_tokens": tokens.cache_read}
    if tokens.reasoning is not None:
        usage["output_tokens_details"] = {"reasoning_tokens": tokens.reasoning}
    known = _drop_unset({"id": turn.id, "model": turn.model, "usage": usage or None})
    is_cut = stop in ("length", "max_output_tokens", "content_filter", "incomplete")
    why = {"incomplete_details": {"reason": "content_filter" if stop == "content_filter" else "max_output_tokens"}}
    status = {"status": "incomplete", **why} if is_cut else {"status": "completed"}
    return {"object": "response", "output": items, **status, **known}


def _write_summary(text: str) -> list[Any]:
    return [{"type": "summary_text", "text": text}] if text else []


def _add_state(item: Fields, piece: Piece) -> None:
    if piece.seal:
        item["encrypted_content"] = piece.seal
    if piece.raw is not None:
        item.update(piece.raw)
    if not item["id"]:
        del item["id"]


def _write_output_part(kind: str, text: str) -> Fields:
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": []}


# --- the message in a response ----------------------------------------------------------------------------------------


def list_messages(dialect: str, response: Fields) -> list[Fields]:
    """The messages of a whole response, as its dialect has them in a history."""
    match dialect:
        case "openai_chat":
            return [response["choices"][0]["message"]]
        case "anthropic":
            return [{"role": "assistant", "content": response["content"]}]
        case "openai_responses":
            return list(response["output"])
        case "gemini":
            content = response["candidates"][0].get("content") or {}
            return [{"role": "model", "parts": content.get("parts") or []}]
        case "bedrock":
            return [response["output"]["message"]]
        case _:
            return [response["message"]]


def encode_redacted(data: str) -> str:
    """Bytes that a library holds as text, as the wire has them."""
    return b64encode(data.encode("utf-8", "surrogateescape")).decode()


def find_calls(pieces: Sequence[Piece]) -> set[str]:
    """The ids of the calls among these pieces."""
    return {piece.id for piece in pieces if piece.kind == "call"}


def get_object(fields: Mapping[str, Any], name: str) -> Fields:
    """The object in a field, copied; {} for any other value."""
    value = fields.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


def get_text(fields: Mapping[str, Any], name: str) -> str:
    """The text in a field; "" for any other value."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
