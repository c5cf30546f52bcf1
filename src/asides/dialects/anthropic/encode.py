"""Encodes a planned prompt as a Messages request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, thinking. Not here: messages (encode_messages), and whether the model accepts the settings
(history/check).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.dialects.anthropic.encode_messages import encode_cache, encode_messages
from asides.dialects.compaction import encode_edits, find_betas
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_output_not_sent,
    report_tool_settings,
    select_sampling,
)
from asides.providers.find import quote_model
from asides.providers.provider import ModelRule, Target
from asides.values.message_facts import HAS_CALLS
from asides.values.messages import OutputSchema, Prompt, find_traits
from asides.values.notices import Notice
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool, select_fields

# This dialect requires a limit. The defaults: room for an answer, and more if thinking shares it.
ANSWER_LIMIT = 8_192
THINKING_LIMIT = 32_000

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta that lets a model with a budget think between tool calls too."""

UPDATES = "thinking-display-updates-2026-08-18"
"""The beta that the display "updates" needs (anthropic-sdk-python 2.8, 2026-11-15)."""

_SAMPLING = ("temperature", "top_p", "top_k")
_VERSION = re.compile(r"/v\d\w*$")

# The version of the dialect as the clouds name it. They take it in the body.
_BODY_VERSIONS = {"bedrock_invoke": "bedrock-2023-05-31", "vertex_predict": "vertex-2023-10-16"}


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body, betas = _build_body(prompt, target, notices)
    streams = body.get("stream") is True
    transport = target.quirks.transport
    accept = "text/event-stream" if streams else "application/json"
    if transport == "bedrock_invoke":
        accept = "application/vnd.amazon.eventstream" if streams else "application/json"
    headers: dict[str, str] = {}
    if transport != "direct":
        model = str(body.pop("model"))
        body = {"anthropic_version": _BODY_VERSIONS[transport], **body}
    else:
        model = target.model
    if transport == "bedrock_invoke":
        # Whether it streams is in the address, and betas are in the body.
        body.pop("stream", None)
        if betas:
            body["anthropic_beta"] = betas
    elif betas:
        headers["anthropic-beta"] = ",".join(betas)
    url = build_url(target, model, streams=streams)
    return build_post(target, url, accept, body, headers), tuple(notices)


def build_url(target: Target, model: str, *, streams: bool) -> str:
    """Build the address. A base URL without a version gets one, since clones document theirs without it."""
    path = urlsplit(target.base_url).path.rstrip("/")
    match target.quirks.transport:
        case "direct":
            if not path.endswith(target.quirks.path):
                path += target.quirks.path if _VERSION.search(path) else f"/v1{target.quirks.path}"
        case "bedrock_invoke":
            path += f"/model/{quote_model(model)}/{'invoke-with-response-stream' if streams else 'invoke'}"
        case "vertex_predict":
            path += f"/{quote_model(model, '@')}:{'streamRawPredict' if streams else 'rawPredict'}"
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], list[str]]:
    # An unknown model may take them.
    changes_effort = target.rule.effort_updates is not None or target.rule.thinking == "unknown"
    encoded = encode_messages(_stand_in(prompt, target), notices, reuse=True, changes_effort=changes_effort)
    # The provider's cache has the system prompt and the tools before the messages, so the body has them there too. What
    # may change from request to request follows the messages.
    body: dict[str, Any] = {"model": target.model}
    if encoded.system is not None:
        body["system"] = encoded.system
    body |= _encode_tools(prompt, notices)
    body["messages"] = encoded.messages
    if prompt.cache:
        from asides.dialects.cache_marks import CONTROLS, mark_request

        mark_request(prompt, body, CONTROLS)
    body["max_tokens"] = _choose_limit(prompt, target)
    thinking, betas = encode_thinking(prompt, target)
    body |= _encode_output(prompt, target, notices)
    body = merge_fields(body, thinking)
    body |= select_sampling(prompt, _SAMPLING, notices)
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
    body |= _encode_metadata(prompt, notices)
    if prompt.compaction is not None:
        body |= encode_edits(prompt.compaction, notices)
    extra = dict(prompt.extra)
    # The official SDK takes betas as a list beside the body, which becomes a header.
    given = extra.pop("betas", None) or []
    body = merge_fields(body, extra)
    shown = body.get("thinking")
    if isinstance(shown, dict) and shown.get("display") == "updates":
        betas.append(UPDATES)
    return body, list(dict.fromkeys([*encoded.betas, *betas, *find_betas(body, prompt.messages), *map(str, given)]))


# An empty block would be none.
_LOST = "."


def _stand_in(prompt: Prompt, target: Target) -> Prompt:
    """Give turns with calls that lost their thinking a stand-in, where the host refuses them without."""
    filler = target.quirks.missing_thinking
    if filler is None and target.quirks.empty_thinking and target.thinks(prompt.thinking) is not False:
        filler = _LOST
    if not filler or not find_traits(prompt.messages) & HAS_CALLS:
        return prompt
    thought = Thought(filler, source="block")
    messages = tuple(
        msgspec.structs.replace(message, parts=(thought, *message.parts))
        if message.tool_calls and not any(isinstance(part, Thought) for part in message.parts)
        else message
        for message in prompt.messages
    )
    return msgspec.structs.replace(prompt, messages=messages)


def _choose_limit(prompt: Prompt, target: Target) -> int:
    if prompt.max_tokens is not None:
        return prompt.max_tokens
    rule, thinking = target.rule, prompt.thinking
    thinks = target.thinks(thinking)
    usual = THINKING_LIMIT if thinks else ANSWER_LIMIT
    return usual if rule.max_output is None else min(usual, rule.max_output)


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if prompt.tools:
        encoded["tools"] = [_encode_tool(tool) for tool in prompt.tools]
    elif "tools" not in prompt.extra:
        notices += report_tool_settings(prompt, "tool_choice", "parallel_tool_calls")
        return encoded
    choice: dict[str, Any] | None
    match prompt.tool_choice:
        case None:
            choice = None if prompt.parallel_tool_calls is None else {"type": "auto"}
        case "auto" | "none":
            choice = {"type": prompt.tool_choice}
        case "required":
            choice = {"type": "any"}
        case name:
            choice = {"type": "tool", "name": name}
    if choice is not None:
        if prompt.parallel_tool_calls is not None and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = not prompt.parallel_tool_calls
        encoded["tool_choice"] = choice
    return encoded


# Types of its tools carry a version: web_search_20250305. Toolsets of MCP servers do not.
_OWN_TOOL = re.compile(r"\w+_\d{8}|mcp_toolset|custom")


def _is_own_tool(native: dict[str, Any]) -> bool:
    kind = native.get("type")
    return isinstance(kind, str) and _OWN_TOOL.fullmatch(kind) is not None


def _encode_tool(tool: Tool) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=_is_own_tool(tool.native))
    encoded: dict[str, Any] = {"name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["input_schema"] = tool.parameters
    if tool.strict:
        encoded["strict"] = True
    encoded |= select_fields(tool, "anthropic")
    return {**encoded, "cache_control": encode_cache(tool.cache)} if tool.cache else encoded


def _encode_output(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    output = prompt.output
    if output is None:
        return {}
    takes = target.facts.structured_output
    if isinstance(output, OutputSchema) and takes == "json_schema":
        return {"output_config": {"format": {"type": "json_schema", "schema": output.schema}}}
    notices.append(report_output_not_sent(output))
    return {}


def _encode_metadata(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    metadata = dict(prompt.metadata or {})
    user = metadata.pop("user_id", None) or prompt.user
    if metadata:
        notices.append(Notice("setting_dropped", "metadata holds a user_id and nothing else here", "metadata"))
    return {} if user is None else {"metadata": {"user_id": user}}


# --- thinking ---------------------------------------------------------------------------------------------------


def encode_thinking(prompt: Prompt, target: Target) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that ask this target for this thinking, and the betas they need; none if nothing was asked."""
    thinking, rule = prompt.thinking, target.rule
    if not thinking.asked or rule.thinking == "never":
        return {}, []
    if thinking.mode == "off":
        return _encode_off(rule), []
    fields: dict[str, Any] = {}
    betas: list[str] = []
    if thinking.budget is not None:
        fields["thinking"] = {"type": "enabled", "budget_tokens": thinking.budget}
        if prompt.tools and rule.interleaves == "by_beta":
            betas.append(INTERLEAVED)
    else:
        fields["thinking"] = {"type": _choose_form(thinking, rule)}
    display = "omitted" if thinking.show == "none" else "summarized"
    if thinking.display is not None:
        fields["thinking"]["display"] = thinking.display
    # The form between_tools has no field for it, and shows what it has (anthropic-sdk-python 2.8, 2026-11-15).
    elif rule.display is not None and rule.display != display and thinking.mode != "between_tools":
        fields["thinking"]["display"] = display
    if thinking.effort is not None:
        fields["output_config"] = {"effort": thinking.effort}
    return fields, betas


def _encode_off(rule: ModelRule) -> dict[str, Any]:
    if rule.thinking == "always" or (rule.forms and "disabled" not in rule.forms):
        return {}
    # These models do not think unless they are asked, and not every cloud takes "disabled" for them.
    if rule.default == "off":
        return {}
    return {"thinking": {"type": "disabled"}}


def _choose_form(thinking: Thinking, rule: ModelRule) -> str:
    if thinking.mode == "between_tools":
        return "between_tools"
    # Clones know the older "enabled"; without a budget it means on.
    return "adaptive" if not rule.forms or "adaptive" in rule.forms else "enabled"
