"""A planned prompt as a Responses request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: the items of the history (spell_items), and whether the model takes what is asked (plan).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_post, join_url, merge_fields
from asides.dialects.openai_chat.encode_thinking import spell_thinking
from asides.dialects.openai_chat.encode_tools import spell_tools
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
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, address(target), accept, body), tuple(notices)


def address(target: Target) -> str:
    """Where requests go. The older address of a deployment has chat only; Responses stand beside the deployments."""
    own = target.quirks.path
    wanted = "/responses" if own == Quirks().path else own
    path = urlsplit(target.base_url).path.rstrip("/").partition("/deployments/")[0]
    if not path.endswith(wanted):
        path += wanted
    return join_url(target, path)


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    state = prompt.state
    if state.previous_response_id is not None and state.conversation is not None:
        raise ConfigError("previous_response_id and conversation both say where to go on; give one of them.")
    body: dict[str, Any] = {"model": target.model}
    if prompt.system and prompt.system.strip():
        # Never carried over by the provider, so they go along each time.
        body["instructions"] = prompt.system
    body["input"] = encode_items(prompt, target, notices)
    body |= spell_tools(prompt, notices, tool=_tool, named=_named_choice)
    if prompt.output is not None:
        body["text"] = {"format": _format(prompt.output)}
    if prompt.max_tokens is not None:
        body["max_output_tokens"] = prompt.max_tokens
    body |= _sampling(prompt, notices)
    if prompt.stream:
        body["stream"] = True
    if prompt.metadata is not None:
        body["metadata"] = prompt.metadata
    if prompt.user is not None:
        body["user"] = prompt.user
    body |= _state(prompt, target)
    if reasoning := _reasoning(prompt, target, notices):
        body["reasoning"] = reasoning
    body = merge_fields(body, dict(target.facts.fields)) if target.rule.thinking != "never" else body
    return merge_fields(body, prompt.extra)


def _state(prompt: Prompt, target: Target) -> dict[str, Any]:
    """Three ways to carry reasoning on: with the provider, encrypted with us, or not at all."""
    state, quirks = prompt.state, target.quirks
    spelled: dict[str, Any] = {}
    store = state.store
    if store is None and quirks.encrypted_reasoning and not state.continues:
        store = state.resume
    if store is not None:
        spelled["store"] = store
    if state.previous_response_id is not None:
        spelled["previous_response_id"] = state.previous_response_id
    if state.conversation is not None:
        spelled["conversation"] = state.conversation
    if state.truncation is not None:
        spelled["truncation"] = state.truncation
    include = list(state.include)
    if (
        quirks.encrypted_reasoning
        and target.may_think(prompt.thinking)
        and not state.continues
        and ENCRYPTED not in include
    ):
        include.append(ENCRYPTED)
    if include:
        spelled["include"] = include
    return spelled


def _reasoning(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    if target.rule.thinking == "never":
        return {}
    thinking, state = prompt.thinking, prompt.state
    asked_like_chat = target.override(ask_by="reasoning_effort", budget_in=None, fields=())
    fields, unspoken = spell_thinking(thinking, asked_like_chat)
    notices += unspoken
    reasoning: dict[str, Any] = {}
    if (effort := fields.get("reasoning_effort")) is not None:
        reasoning["effort"] = effort
    # Who sends its raw reasoning unasked has no summary to give.
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


def _named_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


def _tool(tool: Tool) -> dict[str, Any]:
    spelled: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        spelled["description"] = tool.description
    spelled["parameters"] = tool.parameters
    # Left out, this endpoint takes a tool for strict, unlike chat; what is not said here is not meant.
    spelled["strict"] = tool.strict is True
    return spelled


def _format(output: OutputSchema | str) -> dict[str, Any]:
    if isinstance(output, OutputSchema):
        return {"type": "json_schema", "name": output.name, "schema": output.schema, "strict": output.strict}
    return {"type": "json_object"}


def _sampling(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    given = prompt.sampling.given()
    refused = [name for name in given if name not in _SAMPLING] + (["stop"] if prompt.stop else [])
    notices += [Notice("setting_dropped", f"this endpoint has no {name}", name, "set", "nothing") for name in refused]
    return {name: value for name, value in given.items() if name in _SAMPLING}
