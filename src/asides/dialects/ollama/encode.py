"""A planned prompt as a chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: messages, which have a file of their own, and whether the model takes what is asked (plan).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_post, merge_fields, report_unsupported, select_sampling
from asides.dialects.ollama.encode_messages import encode_messages
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.thinking import Effort, nearest_effort
from asides.values.tools import Tool

# Ours by theirs; the first group stands in `options`, the second beside it.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
    "seed": "seed",
}
_BESIDE_OPTIONS = ("logprobs", "top_logprobs")

# The words that `think` takes besides true and false.
_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "max")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = "application/json" if body.get("stream") is False else "application/x-ndjson"
    return build_post(target, address(target), accept, body), tuple(notices)


def address(target: Target) -> str:
    """Where requests go. People share the address with programs that speak the server's other languages."""
    base = urlsplit(target.base_url)
    path = base.path.rstrip("/")
    for ending in (target.quirks.path, "/v1", "/api"):
        path = path.removesuffix(ending)
    return urlunsplit((base.scheme, base.netloc, path + target.quirks.path, base.query, ""))


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    # The model and the messages first: what a longer conversation shares with a shorter one is then a prefix of it.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, notices)}
    if tools := _tools(prompt, notices):
        body["tools"] = tools
    if isinstance(prompt.output, OutputSchema):
        body["format"] = prompt.output.schema
    elif prompt.output == "json":
        body["format"] = "json"
    options, beside = _sampling(prompt, notices)
    if options:
        body["options"] = options
    body |= beside
    think = _think(prompt, target, notices)
    if think is not None:
        body["think"] = think
    # Unsaid means streamed here.
    body["stream"] = prompt.stream
    notices += report_unsupported(prompt, "metadata", "user", "parallel_tool_calls")
    return merge_fields(body, prompt.extra)


def _tools(prompt: Prompt, notices: list[Notice]) -> list[dict[str, Any]]:
    match prompt.tool_choice:
        case None | "auto":
            pass
        case "none":
            return []
        case _:
            detail = "this dialect cannot force a call; the model chooses"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", prompt.tool_choice, "auto"))
    return [_tool(tool) for tool in prompt.tools]


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def _sampling(prompt: Prompt, notices: list[Notice]) -> tuple[dict[str, Any], dict[str, Any]]:
    options: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name, value in select_sampling(prompt, (*_OPTIONS, *_BESIDE_OPTIONS), notices).items():
        if name in _OPTIONS:
            options[_OPTIONS[name]] = value
        else:
            beside[name] = value
    if prompt.max_tokens is not None:
        options["num_predict"] = prompt.max_tokens
    if prompt.stop:
        options["stop"] = list(prompt.stop)
    return options, beside


def _think(prompt: Prompt, target: Target, notices: list[Notice]) -> bool | str | None:
    """What `think` says; None when nothing was asked, since models that can think do so unless told not to."""
    thinking, rule = prompt.thinking, target.rule
    if rule.thinking == "never" or not thinking.asked:
        return None
    if thinking.mode == "off":
        return False
    if thinking.budget is not None:
        detail = "this host takes no thinking budget"
        notices.append(Notice("budget_not_sent", detail, "thinking", str(thinking.budget), thinking.effort or "on"))
    if thinking.effort is None:
        return None if thinking.mode == "auto" and thinking.budget is None else True
    if rule.efforts == ():
        return True
    sent = nearest_effort(thinking.effort, _EFFORTS)
    if sent != thinking.effort:
        notices.append(Notice("effort_mapped", "the nearest that this host has", "thinking", thinking.effort, sent))
    return sent
