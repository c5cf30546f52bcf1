"""How each dialect asks for the tokens of a request, and answers: its path, its request and its response.

The stage answers in the same forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields
from asides.values.errors import ConfigError

_EMPTY_INPUT = [{"role": "user", "content": ""}]


class CountForm(msgspec.Struct, frozen=True):
    """The endpoint of a dialect that counts tokens."""

    path: tuple[str, str]
    """The end of the path for a reply, and its replacement."""
    read: Callable[[bytes, Mapping[str, str]], ServedRequest]
    """Reads a client's request; the second argument are the names in its path. Raises ConfigError."""
    wrap: Callable[[dict[str, Any], str], dict[str, Any]]
    """The body for a request of a reply, and a model."""
    write: Callable[[int], dict[str, Any]]
    count_in: str
    """The field of the response that has the count."""


def _read_messages(body: bytes, _: Mapping[str, str]) -> ServedRequest:
    return find_dialect("anthropic").read(_complete(body, {"max_tokens": 1}), "/messages")


def _read_responses(body: bytes, _: Mapping[str, str]) -> ServedRequest:
    return find_dialect("openai_responses").read(_complete(body, {"input": _EMPTY_INPUT}), "/responses")


def _read_contents(body: bytes, names: Mapping[str, str]) -> ServedRequest:
    """The contents, or those of a whole request inside the request."""
    fields = RequestFields.parse_body(body)
    whole = fields.take("generateContentRequest", dict[str, Any]) or fields.take("generate_content_request", dict)
    inner = dict(fields.remaining if whole is None else whole)
    inner.pop("model", None)
    path = f"/models/{names['model']}:generateContent"
    return find_dialect("gemini").read(msgspec.json.encode(inner), path)


def _read_converse(body: bytes, names: Mapping[str, str]) -> ServedRequest:
    converse = RequestFields.parse_body(body).take_object("input").take("converse", dict[str, Any])
    if converse is None:
        raise ConfigError("input.converse is missing. Put the request there; its tokens are counted.")
    path = f"/model/{quote(names['model'], safe='')}/converse"
    return find_dialect("bedrock").read(msgspec.json.encode(converse), path)


def _complete(body: bytes, defaults: dict[str, Any]) -> bytes:
    """The body with fields that a request for a reply must have. Here a request may lack them."""
    return msgspec.json.encode(defaults | RequestFields.parse_body(body).remaining)


def _select(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


def _wrap_messages(body: dict[str, Any], _: str) -> dict[str, Any]:
    names = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control")
    return _select(body, *names)


def _wrap_responses(body: dict[str, Any], _: str) -> dict[str, Any]:
    names = ("model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "parallel_tool_calls")
    return _select(body, *names, "truncation")


def _wrap_contents(body: dict[str, Any], model: str) -> dict[str, Any]:
    # Only the whole request may hold a system prompt and tools (ai.google.dev api/tokens, 2026-11).
    return {"generateContentRequest": {"model": f"models/{model.removeprefix('models/')}", **body}}


def _wrap_converse(body: dict[str, Any], _: str) -> dict[str, Any]:
    names = ("messages", "system", "toolConfig", "additionalModelRequestFields")
    return {"input": {"converse": _select(body, *names)}}


def _write_contents(count: int) -> dict[str, Any]:
    return {"totalTokens": count, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]}


# platform.claude.com build-with-claude/token-counting; platform.openai.com api-reference/responses/input-tokens;
# ai.google.dev api/tokens; docs.aws.amazon.com bedrock API_runtime_CountTokens (2026-11).
COUNT_FORMS: dict[str, CountForm] = {
    "anthropic": CountForm(
        ("/messages", "/messages/count_tokens"),
        _read_messages,
        _wrap_messages,
        lambda count: {"input_tokens": count},
        "input_tokens",
    ),
    "bedrock": CountForm(
        ("/converse", "/count-tokens"),
        _read_converse,
        _wrap_converse,
        lambda count: {"inputTokens": count},
        "inputTokens",
    ),
    "gemini": CountForm(
        (":generateContent", ":countTokens"),
        _read_contents,
        _wrap_contents,
        _write_contents,
        "totalTokens",
    ),
    "openai_responses": CountForm(
        ("/responses", "/responses/input_tokens"),
        _read_responses,
        _wrap_responses,
        lambda count: {"object": "response.input_tokens", "input_tokens": count},
        "input_tokens",
    ),
}
"""The dialects that count tokens."""
