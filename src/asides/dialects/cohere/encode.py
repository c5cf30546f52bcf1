"""Encodes a planned prompt as a v2 chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, messages.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.cohere.wire import SAMPLING
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_tool,
    merge_fields,
    report_cache,
    report_tool_settings,
    report_unsupported,
    write_sampling,
)
from asides.dialects.media import find_media_type, make_image_url, read_text_file
from asides.dialects.message_encoder import (
    Wire,
    add_notice,
    encode_arguments,
    encode_flat,
    encode_native,
    leave_out,
    put_system_first,
    simplify_content,
)
from asides.dialects.verbatim import WholeFields, write_fields, write_source
from asides.providers.provider import Target
from asides.providers.switches.write import write as write_thinking
from asides.values.errors import Unsupported
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought

_WHOLE = WholeFields(
    ("tools", "response_format"),
    other_names={"json_schema": "schema"},
    schemas=frozenset({"parameters", "json_schema"}),
)
_VERSION = re.compile(r"/v\d\w*$")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    report_cache(prompt, notices)
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, build_url(target), accept, body), tuple(notices)


def build_url(target: Target) -> str:
    """Build the address. A base URL without a version gets the one of this dialect."""
    base = urlsplit(target.base_url)
    path = base.path.rstrip("/")
    if not path.endswith(target.quirks.path):
        path += target.quirks.path if _VERSION.search(path) else f"/v2{target.quirks.path}"
    return urlunsplit((base.scheme, base.netloc, path, base.query, ""))


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    # The model and the messages come first, so that a longer conversation begins with the bytes of a shorter one.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, notices)}
    body |= _encode_tools(prompt, notices)
    body |= _encode_output(prompt)
    if prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    body |= write_sampling(prompt, SAMPLING, notices)
    if prompt.stop:
        body["stop_sequences"] = list(prompt.stop)
    notices += report_unsupported(prompt, "metadata", "user")
    thinking, told = write_thinking(prompt.thinking, target, "cohere", source=prompt.source)
    notices += told
    body |= thinking
    body["stream"] = prompt.stream
    return write_fields(prompt, merge_fields(body, prompt.extra), "cohere", _WHOLE, notices)


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    tools = list(prompt.tools)
    notices += report_unsupported(prompt, "parallel_tool_calls")
    if not tools:
        if "tools" not in prompt.extra:
            notices += report_tool_settings(prompt, "tool_choice")
        return {}
    encoded: dict[str, Any] = {}
    match prompt.tool_choice:
        case None | "auto":
            pass
        case "none" | "required":
            encoded["tool_choice"] = prompt.tool_choice.upper()
        case name:
            # A call can be forced, but a tool cannot be named: so only that tool is sent.
            tools = [tool for tool in tools if tool.name == name] or tools
            encoded["tool_choice"] = "REQUIRED"
            detail = "a tool cannot be named here; it was sent alone"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", name, "required"))
    if any(tool.strict for tool in tools):
        encoded["strict_tools"] = True
    return {"tools": [encode_tool(tool) for tool in tools], **encoded}


def _encode_output(prompt: Prompt) -> dict[str, Any]:
    if prompt.output is None:
        return {}
    encoded: dict[str, Any] = {"type": "json_object"}
    if isinstance(prompt.output, OutputSchema):
        encoded["json_schema"] = prompt.output.schema
    return {"response_format": encoded}


# --- messages -------------------------------------------------------------------------------------------------------


def encode_messages(prompt: Prompt, notices: list[Notice]) -> list[Wire]:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return encode_flat(
        put_system_first(prompt),
        notices,
        restore=partial(write_source, dialect="cohere"),
        user=partial(_encode_user, notices=notices),
        assistant=partial(_encode_assistant, notices=notices),
        tool_result=partial(_encode_tool_result, notices=notices),
    )


def _encode_user(_: Message, parts: list[Part], notices: list[Notice]) -> Wire:
    encoded = [wire for part in parts for wire in _encode_user_part(part, notices)]
    return {"role": "user", "content": simplify_content(encoded, "text")}


def _encode_user_part(part: Part, notices: list[Notice]) -> list[Any]:
    match part:
        case Text():
            return [{"type": "text", "text": part.text}]
        case Image():
            url = make_image_url(part)
            described = {"url": url} if part.detail is None else {"url": url, "detail": part.detail}
            return [{"type": "image_url", "image_url": described}]
        case File() if (text := read_text_file(part)) is not None:
            return [{"type": "text", "text": text}]
        case UnknownPart():
            return encode_native(part, "user", notices)
        case File():
            raise Unsupported(f"files are text here, not {find_media_type(part)}; convert it first.")
        case _:
            return leave_out(part, "user", notices)


def _encode_tool_result(result: ToolResult, notices: list[Notice]) -> Wire:
    if not isinstance(result.content, str) and any(not isinstance(part, Text) for part in result.content):
        add_notice(notices, "result_part_not_sent", "a tool result is text here; an image or a file was left out")
    value = result.read_object()
    if value is None:
        return {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
    is_document = isinstance(value.get("data"), dict) and value.keys() <= {"id", "data"}
    document = value if is_document else {"data": value}
    content = [{"type": "document", "document": document}]
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _encode_assistant(message: Message, notices: list[Notice]) -> list[Wire]:
    content = [wire for part in message.parts for wire in _encode_assistant_part(part, notices)]
    calls = [_encode_tool_call(call) for call in message.tool_calls]
    if not content and not calls:
        add_notice(notices, "message_not_sent", "an assistant message without content was left out")
        return []
    seals = [seal for part in message.parts if isinstance(part, (Thought, Text, ToolCall)) for seal in part.seals]
    encoded: Wire = {"role": "assistant"}
    if content:
        encoded["content"] = content
    plan = next((seal.entry for seal in seals if seal.kind == PLAN and seal.entry), None)
    if plan is not None and calls:
        encoded["tool_plan"] = msgspec.Raw(plan.encode())
    if calls:
        encoded["tool_calls"] = calls
    if citations := _list_citations(seals):
        encoded["citations"] = citations
    return [encoded]


def _encode_assistant_part(part: Part, notices: list[Notice]) -> list[Any]:
    """Encode a part for the list of the content; calls are in a separate list."""
    match part:
        case Thought():
            return [{"type": "thinking", "thinking": part.text}] if part.text else []
        case Text():
            return [{"type": "text", "text": part.text}] if part.text else []
        case Refusal():
            return [{"type": "text", "text": part.text}]
        case UnknownPart():
            return [msgspec.Raw(part.json.encode())]
        case ToolCall():
            return []
        case _:
            return leave_out(part, "assistant", notices)


def _encode_tool_call(call: ToolCall) -> Wire:
    function = {"name": call.name, "arguments": encode_arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _list_citations(seals: list[Seal]) -> list[msgspec.Raw]:
    entries = [seal.entry for seal in seals if seal.kind == CITED and seal.entry]
    return [citation for entry in entries for citation in msgspec.json.decode(entry, type=list[msgspec.Raw])]
