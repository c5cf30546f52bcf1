"""A client's v2 chat request as a prompt: `read(body) → ServedRequest`. What is not understood stays in `extra`.

Not here: what is answered (serve).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import (
    Image,
    Message,
    OutputSchema,
    Part,
    Prompt,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
    read_arguments,
)
from asides.values.thinking import Seal, Thinking, Thought, read_thinking
from asides.values.tools import Tool, read_tool

_SAMPLING = {
    "temperature": "temperature",
    "p": "top_p",
    "k": "top_k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logprobs": "logprobs",
    "seed": "seed",
}
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def read(body: bytes) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    fields = RequestFields.parse_body(body)
    model = fields.take_model()
    messages = fields.take_messages(_message)
    system = None
    if messages[0].role == "system":
        system, messages = messages[0].text or None, messages[1:]
    stream = fields.take("stream", bool) or False
    strict = fields.take("strict_tools", bool)
    prompt = Prompt(
        messages,
        system=system,
        thinking=_thinking(fields),
        tools=_tools(fields, strict),
        tool_choice=_tool_choice(fields),
        output=_output(fields),
        max_tokens=fields.take("max_tokens", int),
        sampling=_sampling(fields),
        stop=tuple(fields.take("stop_sequences", list[str]) or ()),
        stream=stream,
        extra=fields.remaining,
    )
    return ServedRequest(prompt, model, stream, include_usage=True)


def _thinking(fields: RequestFields) -> Thinking:
    told = fields.take_object("thinking")
    kind, budget = told.take("type", str), told.take("token_budget", int)
    fields.put_back("thinking", told)
    if kind is None and budget is None:
        return Thinking()
    if kind not in (None, "enabled", "disabled"):
        raise ConfigError("thinking.type is enabled or disabled.")
    if kind == "disabled":
        return Thinking(mode="off")
    return Thinking(mode="on") if budget is None else read_thinking(budget)[0]


def _tools(fields: RequestFields, strict: bool | None) -> tuple[Tool, ...]:
    tools = [read_tool(tool) for tool in fields.take("tools", list[dict[str, Any]]) or ()]
    return tuple(msgspec.structs.replace(tool, strict=True) for tool in tools) if strict else tuple(tools)


def _tool_choice(fields: RequestFields) -> str | None:
    choice = fields.take("tool_choice", str)
    if choice is not None and choice.upper() not in ("REQUIRED", "NONE"):
        raise ConfigError("tool_choice is REQUIRED or NONE.")
    return None if choice is None else choice.lower()


def _output(fields: RequestFields) -> OutputSchema | Literal["json"] | None:
    match fields.remaining.get("response_format"):
        case {"type": "text"}:
            del fields.remaining["response_format"]
            return None
        case {"type": "json_object", "json_schema": dict() as schema} | {
            "type": "json_object",
            "schema": dict() as schema,
        }:
            del fields.remaining["response_format"]
            return OutputSchema("answer", schema)
        case {"type": "json_object"}:
            del fields.remaining["response_format"]
            return "json"
        case _:
            return None


def _sampling(fields: RequestFields) -> Sampling:
    given = {ours: fields.remaining.pop(theirs) for theirs, ours in _SAMPLING.items() if theirs in fields.remaining}
    return read_sampling(given)


# --- messages -----------------------------------------------------------------------------------------------------


def _message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            return Message("system", tuple(_parts(content)))
        case "user":
            return Message("user", tuple(_parts(content)))
        case "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str):
                raise ConfigError("tool_call_id is missing.")
            return Message("tool", (ToolResult(call_id, _result(content)),))
        case "assistant":
            return Message("assistant", tuple(_assistant(message, _parts(content))))
        case other:
            raise ConfigError(f"the role {other!r} is not known; use system, user, assistant or tool.")


def _parts(content: object) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise ConfigError("content is text or a list.")
    return [_part(item) for item in content]


def _part(item: object) -> Part:
    match item:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "thinking", "thinking": str() as thinking}:
            return Thought(thinking, source="block", via="content")
        case {"type": "image_url", "image_url": {"url": str() as url} as described}:
            detail = described.get("detail")
            inline = _DATA_URL.fullmatch(url)
            if inline is None:
                return Image(url=url, detail=detail)
            return Image(data=b64decode(inline[2]), media_type=inline[1], detail=detail)
        case dict():
            return UnknownPart(msgspec.json.encode(item).decode())
        case _:
            raise ConfigError("a part of the content is an object with a type.")


def _result(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ConfigError("content is text or a list.")
    texts: list[str] = []
    for item in content:
        match item:
            case {"type": "text", "text": str() as text}:
                texts.append(text)
            case {"type": "document", "document": {"data": str() as data}}:
                texts.append(data)
            case {"type": "document", "document": document}:
                texts.append(msgspec.json.encode(document).decode())
            case _:
                raise ConfigError("what a tool gave back is text or documents.")
    return "\n".join(texts)


def _assistant(message: Mapping[str, Any], parts: list[Part]) -> list[Part]:
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    plan = message.get("tool_plan")
    if isinstance(plan, str) and plan and calls:
        entry = msgspec.json.encode(plan).decode()
        calls[0] = msgspec.structs.replace(calls[0], seals=(Seal(PLAN, "", None, entry),))
    citations = message.get("citations")
    if isinstance(citations, list) and citations:
        place = next((place for place, part in enumerate(parts) if isinstance(part, Text)), None)
        if place is not None:
            entry = msgspec.json.encode(citations).decode()
            parts[place] = Text(parts[place].text, (Seal(CITED, "", None, entry),))  # type: ignore[union-attr]
    return [*parts, *calls]


def _call(call: object) -> ToolCall:
    match call:
        case {"id": str() as call_id, "function": {"name": str() as name, **function}}:
            raw = function.get("arguments") or ""
            arguments = read_arguments(raw) if isinstance(raw, str) else None
            return ToolCall(call_id, name, arguments or {}, None if arguments is not None else str(raw))
        case _:
            raise ConfigError("a tool call has an id, and a function with a name.")
