"""Encodes a planned prompt as a Messages request: `encode(prompt, target) → (HttpRequest, notices)`. Pure."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from asides.dialects.anthropic.encode_messages import encode_cache, encode_messages, find_container
from asides.dialects.anthropic.wire import SAMPLING
from asides.dialects.compaction import encode_edits, find_betas
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_output_not_sent,
    report_tool_settings,
    write_sampling,
)
from asides.dialects.input_reports import REPORTS_BETA
from asides.dialects.verbatim import WholeFields, write_fields
from asides.providers.find import quote_model
from asides.providers.provider import Target
from asides.providers.switches.write import write as write_thinking
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool, select_fields
from asides.values.traits import has_thoughts

# This dialect requires a limit. The defaults: room for an answer, and more if thinking shares it.
ANSWER_LIMIT = 8_192
THINKING_LIMIT = 32_000

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta that lets a model with a budget think between tool calls too."""

OLDER_OUTPUT = "structured-outputs-2025-11-13"
"""The beta that `output_format` needs, the older name of `output_config.format` (platform.claude.com)."""

UPDATES = "thinking-display-updates-2026-08-18"
"""The beta that the display "updates" needs (anthropic-sdk-python 2.8, 2026-11-15)."""


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: the system prompt is a text, or a list of one."""
    if name != "system" or not isinstance(theirs, list) or len(theirs) != 1 or not isinstance(theirs[0], dict):
        return False
    return "cache_control" not in theirs[0] and theirs[0].get("text") == ours


_WHOLE = WholeFields(
    ("system", "tools", "tool_choice", "metadata", "output_config.format"),
    schemas=frozenset({"input_schema", "schema"}),
    same=_is_same,
)
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
    # An unknown model may accept them.
    changes_effort = target.rule.effort_updates is not None or target.rule.thinking == "unknown"
    is_strict = "claude_rules" in target.facts.enforces
    # Newer models accept a conversation that begins with an assistant message (recorded: Sonnet 4.5).
    model_first = target.rule.thinking != "never"
    encoded = encode_messages(
        prompt, notices, changes_effort=changes_effort, is_strict=is_strict, model_first=model_first
    )
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
    thinking, told = write_thinking(prompt.thinking, target, "anthropic", source=prompt.source)
    notices += told
    betas = list_thinking_betas(thinking, prompt, target)
    body |= _encode_output(prompt, target, notices)
    body = merge_fields(body, thinking)
    body |= write_sampling(prompt, SAMPLING, notices)
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
    body |= _encode_metadata(prompt, notices)
    if prompt.compaction is not None:
        body |= encode_edits(prompt.compaction, notices)
    extra = dict(prompt.extra)
    body |= _encode_container(prompt, body, extra)
    # The official SDK takes betas as a list beside the body, which becomes a header.
    given = extra.pop("betas", None) or []
    own = extra.get("thinking")
    if isinstance(own, dict) and "type" not in own and "thinking" not in body:
        # Fields that a request had beside a type; the object is refused without one.
        del extra["thinking"]
        notices.append(Notice("setting_dropped", "it has no effect without thinking", "thinking", ", ".join(own)))
    body = write_fields(prompt, merge_fields(body, extra), "anthropic", _WHOLE, notices)
    if _restore_older_output(prompt, body):
        betas.append(OLDER_OUTPUT)
    if target.quirks.reports_input and _has_thoughts(prompt):
        betas.append(REPORTS_BETA)
    shown = body.get("thinking")
    if isinstance(shown, dict) and shown.get("display") == "updates":
        betas.append(UPDATES)
    return body, list(dict.fromkeys([*encoded.betas, *betas, *find_betas(body, prompt.messages), *map(str, given)]))


def _has_thoughts(prompt: Prompt) -> bool:
    return any(has_thoughts(message) for message in prompt.messages if message.role == "assistant")


def _encode_container(prompt: Prompt, body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The container of the last reply, where the request has a tool that runs in one: the provider refuses calls of
    its code without it. A container of the caller's is theirs; skills without an id get the id.
    """
    given = extra.get("container")
    is_open = given is None or (isinstance(given, dict) and not given.get("id"))
    tools = extra.get("tools") or body.get("tools") or ()
    if not is_open or not any(isinstance(tool, dict) and tool.get("type") not in (None, "custom") for tool in tools):
        return {}
    container = find_container(prompt.messages)
    if container is None:
        return {}
    extra.pop("container", None)
    return {"container": {"id": container, **given} if given else container}


def _restore_older_output(prompt: Prompt, body: dict[str, Any]) -> bool:
    """Write the format of the answer in the field that it had before `output_config`, if it was read from there."""
    config = body.get("output_config")
    older = prompt.source.fields.get("output_format") if prompt.source and prompt.is_from("anthropic") else None
    if not isinstance(config, dict) or not isinstance(older, dict) or not isinstance(config.get("format"), dict):
        return False
    if any(older.get(name) != value for name, value in config["format"].items()):
        return False
    body["output_format"] = older
    body["output_config"] = {name: value for name, value in config.items() if name != "format"}
    if not body["output_config"]:
        del body["output_config"]
    return True


def list_thinking_betas(fields: dict[str, Any], prompt: Prompt, target: Target) -> list[str]:
    """Return the betas that these fields for thinking need."""
    has_budget = "budget_tokens" in fields.get("thinking", {})
    return [INTERLEAVED] if has_budget and prompt.tools and target.rule.interleaves == "by_beta" else []


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
