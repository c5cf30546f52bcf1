"""A planned prompt as a Responses request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: the items of the history (encode_items), and whether the model takes what is asked (plan).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_post, join_url, merge_fields
from asides.dialects.openai_chat.encode import encode_tools
from asides.dialects.openai_chat.encode_thinking import encode_thinking
from asides.dialects.openai_responses.encode_items import encode_items
from asides.providers.provider import Quirks, Target
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

ENCRYPTED = "reasoning.encrypted_content"
# The sampling settings that this endpoint has.
_SAMPLING = ("temperature", "top_p", "top_logprobs")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, build_url(target), accept, body), tuple(notices)


def build_url(target: Target) -> str:
    """The address of requests. The older address of a deployment has chat only; Responses stand beside deployments."""
    own = target.quirks.path
    end = "/responses" if own == Quirks().path else own
    path = urlsplit(target.base_url).path.rstrip("/").partition("/deployments/")[0]
    if not path.endswith(end):
        path += end
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    state = prompt.state
    if state.previous_response_id is not None and state.conversation is not None:
        raise ConfigError("previous_response_id and conversation both say where to go on; give one of them.")
    body: dict[str, Any] = {"model": target.model}
    if prompt.system and prompt.system.strip():
        # The provider never carries instructions over, so they are sent each time.
        body["instructions"] = prompt.system
    body["input"] = encode_items(prompt, target, notices)
    body |= encode_tools(prompt, notices, tool=_encode_tool, named=_encode_choice)
    if prompt.output is not None:
        body["text"] = {"format": _encode_output(prompt.output)}
    if prompt.max_tokens is not None:
        body["max_output_tokens"] = prompt.max_tokens
    body |= _encode_sampling(prompt, notices)
    if prompt.stream:
        body["stream"] = True
    if prompt.metadata is not None:
        body["metadata"] = prompt.metadata
    if prompt.user is not None:
        body["user"] = prompt.user
    body |= _encode_state(prompt, target)
    if reasoning := _encode_reasoning(prompt, target, notices):
        body["reasoning"] = reasoning
    body = merge_fields(body, dict(target.facts.fields)) if target.rule.thinking != "never" else body
    return merge_fields(body, prompt.extra)


def _encode_state(prompt: Prompt, target: Target) -> dict[str, Any]:
    """The fields that carry reasoning on: stored by the provider, encrypted and held by us, or not at all."""
    state, quirks = prompt.state, target.quirks
    encoded: dict[str, Any] = {}
    store = state.store
    if store is None and quirks.encrypted_reasoning and not state.continues:
        store = state.resume
    if store is not None:
        encoded["store"] = store
    if state.previous_response_id is not None:
        encoded["previous_response_id"] = state.previous_response_id
    if state.conversation is not None:
        encoded["conversation"] = state.conversation
    if state.truncation is not None:
        encoded["truncation"] = state.truncation
    include = list(state.include)
    thinks = target.may_think(prompt.thinking)
    if quirks.encrypted_reasoning and thinks and not state.continues and ENCRYPTED not in include:
        include.append(ENCRYPTED)
    if include:
        encoded["include"] = include
    return encoded


def _encode_reasoning(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    if target.rule.thinking == "never":
        return {}
    thinking, state = prompt.thinking, prompt.state
    asked_like_chat = target.override(ask_by="reasoning_effort", budget_in=None, fields=())
    fields = encode_thinking(thinking, asked_like_chat, notices)
    reasoning: dict[str, Any] = {}
    if (effort := fields.get("reasoning_effort")) is not None:
        reasoning["effort"] = effort
    # A host that sends its raw reasoning unasked has no summary.
    summarises = target.quirks.raw_reasoning != "shown"
    if thinking.summary is not None and thinking.show != "none":
        reasoning["summary"] = thinking.summary
    elif thinking.wanted and thinking.show != "none" and summarises:
        reasoning["summary"] = "auto"
    if state.context is not None:
        reasoning["context"] = state.context
    if state.mode is not None:
        reasoning["mode"] = state.mode
    return reasoning


def _encode_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


def _encode_tool(tool: Tool) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["parameters"] = tool.parameters
    # Unlike chat, this endpoint takes a tool without the field for strict.
    encoded["strict"] = tool.strict is True
    return encoded


def _encode_output(output: OutputSchema | str) -> dict[str, Any]:
    if isinstance(output, OutputSchema):
        return {"type": "json_schema", "name": output.name, "schema": output.schema, "strict": output.strict}
    return {"type": "json_object"}


def _encode_sampling(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    given = prompt.sampling.given()
    refused = [name for name in given if name not in _SAMPLING] + (["stop"] if prompt.stop else [])
    notices += [Notice("setting_dropped", f"this endpoint has no {name}", name, "set", "nothing") for name in refused]
    return {name: value for name, value in given.items() if name in _SAMPLING}
