"""A planned prompt as a request for a message: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: the messages (encode_messages), and whether the model takes what is asked (plan).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

from asides.dialects.anthropic.encode_messages import encode_messages
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    join_url,
    merge_fields,
    report_output_not_sent,
    report_tool_settings,
    select_sampling,
)
from asides.providers.provider import ModelRule, Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.thinking import Thinking
from asides.values.tools import Tool

# The limit is required here. Unless it is given: room for an answer, and more where thinking shares it.
ANSWER_LIMIT = 8_192
THINKING_LIMIT = 32_000

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta that lets a model with a budget think between tool calls too."""

_SAMPLING = ("temperature", "top_p", "top_k")
_VERSION = re.compile(r"/v\d\w*$")

# The version of the dialect as the clouds name it; it stands in the body there.
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
    """The address of requests. A base URL without a version gets one, since clones document theirs without it."""
    path = urlsplit(target.base_url).path.rstrip("/")
    match target.quirks.transport:
        case "direct":
            if not path.endswith(target.quirks.path):
                path += target.quirks.path if _VERSION.search(path) else f"/v1{target.quirks.path}"
        case "bedrock_invoke":
            path += f"/model/{quote(model, safe='')}/{'invoke-with-response-stream' if streams else 'invoke'}"
        case "vertex_predict":
            path += f"/{quote(model, safe='@')}:{'streamRawPredict' if streams else 'rawPredict'}"
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], list[str]]:
    encoded = encode_messages(prompt, notices)
    # The system prompt and the tools stand in front of the messages in the provider's cache; so they do here.
    body: dict[str, Any] = {"model": target.model, "max_tokens": _choose_limit(prompt, target)}
    if encoded.system is not None:
        body["system"] = encoded.system
    body |= _encode_tools(prompt, notices)
    body["messages"] = encoded.messages
    thinking, betas = encode_thinking(prompt, target)
    body |= _encode_output(prompt, target, notices)
    body = merge_fields(body, thinking)
    body |= select_sampling(prompt, _SAMPLING, notices)
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
    body |= _encode_metadata(prompt, notices)
    extra = dict(prompt.extra)
    # The maker's own SDK takes betas as a list beside the body, which becomes a header.
    given = extra.pop("betas", None) or []
    return merge_fields(body, extra), list(dict.fromkeys([*encoded.betas, *betas, *map(str, given)]))


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


def _encode_tool(tool: Tool) -> dict[str, Any]:
    encoded: dict[str, Any] = {"name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["input_schema"] = tool.parameters
    if tool.strict:
        encoded["strict"] = True
    return encoded


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
    """The fields that ask this target for this thinking, and the betas they need; none when nothing was asked."""
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
    if rule.display is not None and rule.display != display:
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
