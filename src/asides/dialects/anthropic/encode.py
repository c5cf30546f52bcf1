"""A planned prompt as a request for a message: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: messages and thinking, which have files of their own, and whether the model takes what is asked (plan).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

from asides.dialects.anthropic.encode_messages import encode_messages
from asides.dialects.anthropic.encode_thinking import spell_thinking
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    join_url,
    merge_fields,
    report_output_not_sent,
    report_tool_settings,
    select_sampling,
)
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

# The limit is not optional on this wire. Without a wish: room for an answer, and more where thinking shares it.
ANSWER_LIMIT = 8_192
THINKING_LIMIT = 32_000

_SAMPLING = ("temperature", "top_p", "top_k")
_VERSION = re.compile(r"/v\d\w*$")

# The clouds' own words for the version of the dialect, which stands in the body there.
_BODY_VERSIONS = {"bedrock_invoke": "bedrock-2023-05-31", "vertex_predict": "vertex-2023-10-16"}


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body, betas = _body(prompt, target, notices)
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
        # How it is answered is in the address, and betas are in the body.
        body.pop("stream", None)
        if betas:
            body["anthropic_beta"] = betas
    elif betas:
        headers["anthropic-beta"] = ",".join(betas)
    url = address(target, model, streams=streams)
    return build_post(target, url, accept, body, headers), tuple(notices)


def address(target: Target, model: str, *, streams: bool) -> str:
    """Where requests go. A base URL without a version gets one, as the makers of clones write theirs without it."""
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


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], list[str]]:
    spelled = encode_messages(prompt, notices)
    # The system prompt and the tools stand in front of the messages in the provider's cache; so they do here.
    body: dict[str, Any] = {"model": target.model, "max_tokens": _limit(prompt, target)}
    if spelled.system is not None:
        body["system"] = spelled.system
    body |= _tools(prompt, notices)
    body["messages"] = spelled.messages
    asked, betas = spell_thinking(prompt, target)
    body |= _output(prompt, target, notices)
    body = merge_fields(body, asked)
    body |= select_sampling(prompt, _SAMPLING, notices)
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
    body |= _metadata(prompt, notices)
    extra = dict(prompt.extra)
    # As the maker's own SDK takes them: a list beside the body, which becomes a header.
    own = extra.pop("betas", None) or []
    return merge_fields(body, extra), list(dict.fromkeys([*spelled.betas, *betas, *map(str, own)]))


def _limit(prompt: Prompt, target: Target) -> int:
    if prompt.max_tokens is not None:
        return prompt.max_tokens
    rule, thinking = target.rule, prompt.thinking
    usual = THINKING_LIMIT if target.thinks(thinking) else ANSWER_LIMIT
    return usual if rule.max_output is None else min(usual, rule.max_output)


def _tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    spelled: dict[str, Any] = {}
    if prompt.tools:
        spelled["tools"] = [_tool(tool) for tool in prompt.tools]
    elif "tools" not in prompt.extra:
        notices += report_tool_settings(prompt, "tool_choice", "parallel_tool_calls")
        return spelled
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
        spelled["tool_choice"] = choice
    return spelled


def _tool(tool: Tool) -> dict[str, Any]:
    spelled: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spelled["description"] = tool.description
    spelled["input_schema"] = tool.parameters
    if tool.strict:
        spelled["strict"] = True
    return spelled


def _output(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    output = prompt.output
    if output is None:
        return {}
    takes = target.facts.structured_output
    if isinstance(output, OutputSchema) and takes == "json_schema":
        return {"output_config": {"format": {"type": "json_schema", "schema": output.schema}}}
    notices.append(report_output_not_sent(output))
    return {}


def _metadata(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    told = dict(prompt.metadata or {})
    user = told.pop("user_id", None) or prompt.user
    if told:
        notices.append(Notice("setting_dropped", "metadata holds a user_id and nothing else here", "metadata"))
    return {} if user is None else {"metadata": {"user_id": user}}
