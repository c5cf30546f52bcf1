"""A planned prompt as a Converse request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

Not here: messages and thinking, which have files of their own, whether the model takes what is asked (plan), and the
signature of a request that is sent without a key (providers/signing).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from asides.dialects.bedrock.encode_messages import encode_messages
from asides.dialects.bedrock.encode_thinking import spell_thinking
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    merge_fields,
    report_output_not_sent,
    report_unsupported,
    select_sampling,
)
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

EVENT_STREAM = "application/vnd.amazon.eventstream"

_INFERENCE = {"temperature": "temperature", "top_p": "topP"}


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Spell a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _body(prompt, target, notices)
    accept = EVENT_STREAM if prompt.stream else "application/json"
    return build_post(target, address(target, prompt.stream), accept, body), tuple(notices)


def address(target: Target, streams: bool) -> str:
    """Where requests go: the model and the way of answering are in the path."""
    base = urlsplit(target.base_url)
    model = quote(target.model, safe="")
    path = f"{base.path.rstrip('/')}/model/{model}/{'converse-stream' if streams else 'converse'}"
    return urlunsplit((base.scheme, base.netloc, path, base.query, ""))


def _body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    spelled = encode_messages(prompt, notices)
    # The tools and the system prompt stand in front of the messages in the provider's cache; so they do here.
    body: dict[str, Any] = {}
    if tools := _tools(prompt, notices):
        body["toolConfig"] = tools
    if spelled.system:
        body["system"] = spelled.system
    body["messages"] = spelled.messages
    inference, native = _sampling(prompt, target, notices)
    asked = spell_thinking(prompt, target, inference, notices)
    if inference:
        body["inferenceConfig"] = inference
    if native := merge_fields(native, asked):
        body["additionalModelRequestFields"] = native
    body |= _output(prompt, target, notices)
    if prompt.metadata is not None:
        body["requestMetadata"] = prompt.metadata
    notices += report_unsupported(prompt, "user")
    return merge_fields(body, prompt.extra)


def _sampling(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], dict[str, Any]]:
    inference: dict[str, Any] = {}
    native: dict[str, Any] = {}
    if prompt.max_tokens is not None:
        inference["maxTokens"] = prompt.max_tokens
    for name, value in select_sampling(prompt, (*_INFERENCE, "top_k"), notices).items():
        if name in _INFERENCE:
            inference[_INFERENCE[name]] = value
        else:
            place = native
            *parents, leaf = target.rule.top_k_in.split(".")
            for parent in parents:
                place = place.setdefault(parent, {})
            place[leaf] = value
    if prompt.stop:
        inference["stopSequences"] = list(prompt.stop)
    return inference, native


def _tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    notices += report_unsupported(prompt, "parallel_tool_calls")
    called = list(dict.fromkeys(call.name for message in prompt.messages for call in message.tool_calls))
    if not prompt.tools or (prompt.tool_choice == "none" and not called):
        if prompt.tool_choice not in (None, "auto", "none"):
            notices.append(Notice("setting_dropped", "tool_choice means nothing without tools", "tool_choice"))
        # A history that holds calls is refused without tools.
        stubs = [Tool(name) for name in called if "toolConfig" not in prompt.extra]
        if stubs:
            detail = "a history with calls needs its tools; they were sent as mere names"
            notices.append(Notice("tools_added", detail, "tools"))
        return {"tools": [_tool(tool) for tool in stubs]} if stubs else {}
    spelled: dict[str, Any] = {"tools": [_tool(tool) for tool in prompt.tools]}
    match prompt.tool_choice:
        case None:
            pass
        case "auto":
            spelled["toolChoice"] = {"auto": {}}
        case "required":
            spelled["toolChoice"] = {"any": {}}
        case "none":
            detail = "calls cannot be forbidden here once some were made"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", "none", "auto"))
        case name:
            spelled["toolChoice"] = {"tool": {"name": name}}
    return spelled


def _tool(tool: Tool) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": tool.parameters}
    if tool.strict:
        spec["strict"] = True
    return {"toolSpec": spec}


def _output(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    output = prompt.output
    if output is None:
        return {}
    takes = target.facts.structured_output
    if isinstance(output, OutputSchema) and takes == "json_schema":
        # The schema is text here.
        schema = {"name": output.name, "schema": msgspec.json.encode(output.schema).decode()}
        return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}}
    notices.append(report_output_not_sent(output))
    return {}
