"""A planned prompt as a v2 chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: messages, which have a file of their own, and whether the model takes what is asked (plan).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from asides.dialects.cohere.encode_messages import encode_messages
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    merge_fields,
    report_tool_settings,
    report_unsupported,
    select_sampling,
)
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logprobs": "logprobs",
    "seed": "seed",
}
_VERSION = re.compile(r"/v\d\w*$")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, address(target), accept, body), tuple(notices)


def address(target: Target) -> str:
    """Where requests go. A base URL without a version gets the one of this dialect."""
    base = urlsplit(target.base_url)
    path = base.path.rstrip("/")
    if not path.endswith(target.quirks.path):
        path += target.quirks.path if _VERSION.search(path) else f"/v2{target.quirks.path}"
    return urlunsplit((base.scheme, base.netloc, path, base.query, ""))


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    # The model and the messages first: what a longer conversation shares with a shorter one is then a prefix of it.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, notices)}
    body |= _tools(prompt, notices)
    body |= _output(prompt)
    if prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    for name, value in select_sampling(prompt, _SAMPLING, notices).items():
        body[_SAMPLING[name]] = value
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    notices += report_unsupported(prompt, "metadata", "user")
    body |= _thinking(prompt, target, notices)
    body["stream"] = prompt.stream
    return merge_fields(body, prompt.extra)


def _tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    tools = list(prompt.tools)
    notices += report_unsupported(prompt, "parallel_tool_calls")
    if not tools:
        if "tools" not in prompt.extra:
            notices += report_tool_settings(prompt, "tool_choice")
        return {}
    spelled: dict[str, Any] = {}
    match prompt.tool_choice:
        case None | "auto":
            pass
        case "none" | "required":
            spelled["tool_choice"] = prompt.tool_choice.upper()
        case name:
            # A call can be forced, a name cannot; so it gets no other to choose from.
            tools = [tool for tool in tools if tool.name == name] or tools
            spelled["tool_choice"] = "REQUIRED"
            detail = "a tool cannot be named here; it was sent alone"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", name, "required"))
    if any(tool.strict for tool in tools):
        spelled["strict_tools"] = True
    return {"tools": [_tool(tool) for tool in tools], **spelled}


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def _output(prompt: Prompt) -> dict[str, Any]:
    if prompt.output is None:
        return {}
    told: dict[str, Any] = {"type": "json_object"}
    if isinstance(prompt.output, OutputSchema):
        told["json_schema"] = prompt.output.schema
    return {"response_format": told}


def _thinking(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    thinking = prompt.thinking
    if not thinking.asked or target.rule.thinking == "never":
        return {}
    if thinking.mode == "off":
        return {"thinking": {"type": "disabled"}}
    if thinking.effort is not None:
        notices.append(Notice("effort_not_sent", "this host takes no effort", "thinking", thinking.effort, "on"))
    if thinking.budget is not None:
        return {"thinking": {"type": "enabled", "token_budget": thinking.budget}}
    if thinking.mode == "auto" and thinking.effort is None:
        return {}
    return {"thinking": {"type": "enabled"}}
