"""Encodes a planned prompt as a Messages request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, thinking, messages, user parts, assistant parts. Not here: whether the model accepts the settings
(history/check).
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE
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
from asides.dialects.media import read_text_file, refuse_sound_and_video, split_data_url
from asides.dialects.message_encoder import Wire, find_entry
from asides.dialects.turn_encoder import BlockFormat, encode_turns
from asides.providers.provider import ModelRule, Target
from asides.values.errors import Unsupported
from asides.values.messages import HAS_FILE_IDS, Message, OutputSchema, Prompt, find_traits
from asides.values.notices import Notice
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool, select_fields

# This dialect requires a limit. The defaults: room for an answer, and more if thinking shares it.
ANSWER_LIMIT = 8_192
THINKING_LIMIT = 32_000

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta that lets a model with a budget think between tool calls too."""

UPDATES = "thinking-display-updates-2026-08-18"
"""The beta that the display "updates" needs (anthropic-sdk-python 2.8, 2026-11-15)."""

FILES = "files-api-2025-04-14"
"""The beta that files by their id need."""

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
            path += f"/model/{quote(model, safe='')}/{'invoke-with-response-stream' if streams else 'invoke'}"
        case "vertex_predict":
            path += f"/{quote(model, safe='@')}:{'streamRawPredict' if streams else 'rawPredict'}"
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[dict[str, Any], list[str]]:
    encoded = encode_messages(prompt, notices, reuse=True)
    # The provider's cache has the system prompt and the tools before the messages, so the body has them there too.
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
    return {**encoded, "cache_control": _encode_cache(tool.cache)} if tool.cache else encoded


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


# --- messages ---------------------------------------------------------------------------------------------------------


class EncodedMessages(msgspec.Struct):
    """A history as encoded in a request."""

    system: str | list[Wire] | None
    messages: list[Wire]
    betas: list[str]


def encode_messages(prompt: Prompt, notices: list[Notice], *, reuse: bool = False) -> EncodedMessages:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one.

    With `reuse`, a message may be the bytes that an earlier request had for it.
    """
    encoded = encode_turns(prompt, _BLOCKS, notices, reuse=reuse)
    if encoded.history.last == "assistant":
        _strip_last_text(encoded.history.unpack_last()["content"][-1])
    system = encoded.system
    is_plain = len(system) == 1 and "cache_control" not in system[0]
    has_ids = find_traits(prompt.messages) & HAS_FILE_IDS and any(map(_has_file_id, prompt.messages))
    shown = (system[0]["text"] if is_plain else system) if system else None
    return EncodedMessages(shown, encoded.turns, [FILES] if has_ids else [])


def _has_file_id(message: Message) -> bool:
    """Whether a file is sent by its id, in a message that can hold files or in a tool result."""
    if message.role not in ("user", "tool"):
        return False
    results = [part.content for part in message.parts if isinstance(part, ToolResult)]
    inner = [part for content in results if not isinstance(content, str) for part in content]
    return any(isinstance(part, File) and part.id is not None for part in (*message.parts, *inner))


def _strip_last_text(block: Any) -> None:
    """Remove blanks at the end of the text that the model should continue: they are refused."""
    if isinstance(block, dict) and block["type"] == "text":
        block["text"] = block["text"].rstrip()


def _encode_plain(role: str, text: str) -> Wire:
    return {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}


def _finish_turn(role: str, blocks: list[Any]) -> Wire:
    """Build a turn. Of the user's blocks, results are first; plain text is a string."""
    if role == "user":
        blocks = sorted(blocks, key=lambda block: not (isinstance(block, dict) and block["type"] == "tool_result"))
    match blocks:
        case [{"type": "text", "text": str() as text, **more}] if not more and role == "user":
            return {"role": role, "content": text}
        case _:
            return {"role": role, "content": list(blocks)}


def _mark_cache(block: Wire, lifetime: bool | str) -> list[Any]:
    return [{**block, "cache_control": _encode_cache(lifetime)}]


def _encode_cache(lifetime: bool | str) -> Wire:
    return {"type": "ephemeral", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "ephemeral"}


# --- user parts -----------------------------------------------------------------------------------------------------


def _encode_text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _encode_tool_result(result: ToolResult, call_id: str, blocks: list[Any]) -> Wire:
    content = result.content if isinstance(result.content, str) else blocks
    encoded: Wire = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**encoded, "is_error": True} if result.is_error else encoded


def _encode_image(image: Image) -> Wire:
    if image.data is not None:
        data = b64encode(image.data).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
    if image.url is None:
        raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
    return {"type": "image", "source": _encode_url(image.url)}


def _encode_file(file: File) -> Wire:
    refuse_sound_and_video(file)
    encoded: Wire = {"type": "document", "source": _encode_file_source(file)}
    return encoded if file.name == "file" else {**encoded, "title": file.name}


def _encode_file_source(file: File) -> Wire:
    if file.id is not None:
        return {"type": "file", "file_id": file.id}
    if (text := read_text_file(file)) is not None:
        return {"type": "text", "media_type": "text/plain", "data": text}
    if file.data is not None and file.media_type == "application/pdf":
        return {"type": "base64", "media_type": file.media_type, "data": b64encode(file.data).decode()}
    if file.data is not None:
        raise Unsupported(f"files are PDF or text here, not {file.media_type}; convert it first.")
    if file.url is None:
        raise Unsupported("a file has neither data nor an address nor an id; give File(data=…).")
    return _encode_url(file.url)


def _encode_url(url: str) -> Wire:
    inline = split_data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    media_type, data = inline
    return {"type": "base64", "media_type": media_type, "data": data}


# --- assistant parts ------------------------------------------------------------------------------------------------


def _encode_thought(thought: Thought) -> list[Wire]:
    """Encode a thought as the blocks that it came as. Without a signature the field is present and empty."""
    redacted = [seal.value for seal in thought.seals if seal.kind == REDACTED]
    signature = next((seal.value for seal in thought.seals if seal.kind == SIGNATURE), "")
    encoded: list[Wire] = [{"type": "redacted_thinking", "data": data} for data in redacted]
    if signature or (thought.text and not redacted):
        encoded.append({"type": "thinking", "thinking": thought.text, "signature": signature})
    return encoded


def _encode_answer(part: Text) -> Wire:
    citations = find_entry(part.seals, CITATIONS)
    return _encode_text(part.text) if citations is None else {**_encode_text(part.text), "citations": citations}


def _encode_tool_call(call: ToolCall, call_id: str) -> Wire:
    encoded: Wire = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
    caller = find_entry(call.seals, CALLER)
    return encoded if caller is None else {**encoded, "caller": caller}


_BLOCKS = BlockFormat(
    text=_encode_text,
    image=_encode_image,
    file=_encode_file,
    tool_result=_encode_tool_result,
    thought=_encode_thought,
    answer=_encode_answer,
    tool_call=_encode_tool_call,
    mark_cache=_mark_cache,
    plain=_encode_plain,
    finish_turn=_finish_turn,
)
