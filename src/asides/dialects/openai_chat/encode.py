"""A planned prompt as a chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: messages and thinking, which have files of their own, and whether the model takes what is asked (plan).
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_post, join_url, merge_fields
from asides.dialects.openai_chat.encode_messages import encode_messages
from asides.dialects.openai_chat.encode_thinking import spell_thinking
from asides.dialects.openai_chat.encode_tools import spell_tools
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, address(target), accept, body), tuple(notices)


def address(target: Target) -> str:
    """Where requests go: the base URL, the dialect's path, and the row's query."""
    path = urlsplit(target.base_url).path.rstrip("/")
    if not path.endswith(target.quirks.path):
        path += target.quirks.path
    return join_url(target, path)


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    rule, quirks = target.rule, target.quirks
    # The model and the messages first: what a longer conversation shares with a shorter one is then a prefix of it.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, target, notices)}
    body |= spell_tools(prompt, notices, tool=_tool, named=_named_choice)
    if prompt.output is not None:
        body |= _output(prompt.output, target.facts.structured_output, notices)
    if prompt.max_tokens is not None and not any(name in prompt.extra for name in OUTPUT_LIMITS):
        body[target.facts.output_limit] = prompt.max_tokens
    body |= prompt.sampling.given()
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
    if prompt.metadata is not None:
        body["metadata"] = prompt.metadata
    if prompt.user is not None:
        body["user"] = prompt.user
    if rule.thinking != "never":
        # They ask for thinking to be sent apart, and some hosts refuse them for a model that has none.
        body |= dict(target.facts.fields)
    asked, unspoken = spell_thinking(prompt.thinking, target)
    notices.extend(unspoken)
    return merge_fields(merge_fields(body, asked), prompt.extra)


def _named_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _output(
    output: OutputSchema | Literal["json"],
    takes: Literal["json_schema", "json_object", "nothing"],
    notices: list[Notice],
) -> dict[str, Any]:
    if isinstance(output, OutputSchema) and takes == "json_schema":
        schema = {"name": output.name, "schema": output.schema, "strict": output.strict}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    asked = "json_schema" if isinstance(output, OutputSchema) else "json_object"
    if takes == "nothing":
        code = "schema_not_sent" if asked == "json_schema" else "json_not_sent"
        detail = "this host has no structured output; say in the prompt what you want"
        notices.append(Notice(code, detail, "output", asked, "nothing"))
        return {}
    if asked == "json_schema":
        detail = "this host promises JSON but takes no schema; say in the prompt what you want"
        notices.append(Notice("schema_not_sent", detail, "output", asked, "json_object"))
    return {"response_format": {"type": "json_object"}}
