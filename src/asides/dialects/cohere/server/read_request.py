"""Read a client's v2 chat request as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.cohere.decode import CITED, PLAN
from asides.dialects.cohere.wire import SAMPLING
from asides.dialects.dialect import ServedRequest
from asides.dialects.media import split_data_url
from asides.dialects.server_half import RequestFields
from asides.dialects.verbatim import keep_source
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.parts import Image, Part, Text, ToolCall, ToolResult, UnknownPart, read_arguments
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool, read_tool
from asides.wire.lenient import read_base64, to_json_text


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request. Raises ConfigError with a message for the client."""
    fields = RequestFields.parse_body(body).keep("cohere")
    model = fields.take_model()
    messages = fields.take_messages(lambda message: keep_source(_read_message(message), "cohere", [message]))
    system = None
    if messages[0].role == "system":
        system, messages = fields.keep_system(messages[0]), messages[1:]
    stream = fields.take("stream", bool) or False
    strict = fields.remaining.get("strict_tools") is True and bool(fields.remaining.get("tools"))
    if strict:
        del fields.remaining["strict_tools"]
    prompt = Prompt(
        messages,
        system=system,
        thinking=read_switches("cohere", fields.remaining),
        tools=_take_tools(fields, strict),
        tool_choice=_take_tool_choice(fields),
        output=_take_output(fields),
        max_tokens=fields.take("max_tokens", int),
        sampling=fields.take_sampling(SAMPLING),
        stop=tuple(fields.take("stop_sequences", list[str]) or ()),
        stream=stream,
        extra=fields.remaining,
        source=fields.source,
    )
    return ServedRequest(prompt, model, stream, include_usage=True)


def _take_tools(fields: RequestFields, strict: bool) -> tuple[Tool, ...]:
    tools = [read_tool(tool) for tool in fields.take("tools", list[dict[str, Any]]) or ()]
    return tuple(msgspec.structs.replace(tool, strict=True) if strict else tool for tool in tools)


def _take_tool_choice(fields: RequestFields) -> str | None:
    choice = fields.take("tool_choice", str)
    if choice is None or choice.upper() in ("REQUIRED", "NONE"):
        return None if choice is None else choice.lower()
    fields.remaining["tool_choice"] = choice  # a newer server may know it
    return None


def _take_output(fields: RequestFields) -> OutputSchema | Literal["json"] | None:
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


# --- messages -----------------------------------------------------------------------------------------------------


def _read_message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            return Message("system", tuple(_read_parts(content)))
        case "user":
            return Message("user", tuple(_read_parts(content)))
        case "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str):
                raise ConfigError("tool_call_id is missing.")
            return Message("tool", (ToolResult(call_id, _read_result(content), is_json=_is_object(content)),))
        case "assistant":
            return Message("assistant", tuple(_add_calls_and_citations(message, _read_parts(content))))
        case other:
            raise ConfigError(f"the role {other!r} is not known; use system, user, assistant or tool.")


def _read_parts(content: object) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise ConfigError("content is text or a list.")
    return [_read_part(item) for item in content]


def _read_part(item: object) -> Part:
    match item:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "thinking", "thinking": str() as thinking}:
            return Thought(thinking, source="block", via="content")
        case {"type": "image_url", "image_url": {"url": str() as url} as described}:
            detail = described.get("detail")
            return _read_image(url, detail if isinstance(detail, str) else None)
        case {"type": "text" | "thinking" | "image_url" as kind}:
            raise ConfigError(f"a part of the type {kind} has no {kind}.")
        case dict():
            return UnknownPart(msgspec.json.encode(item).decode())
        case _:
            raise ConfigError("a part of the content is an object with a type.")


def _read_image(url: str, detail: str | None) -> Image:
    inline = split_data_url(url)
    if inline is None:
        return Image(url=url, detail=detail)
    data = read_base64(inline[1])
    if data is None:
        raise ConfigError("the data of an image_url is not base64.")
    return Image(data=data, media_type=inline[0], detail=detail)


def _is_object(content: object) -> bool:
    """Whether a result is one document with fields."""
    match content:
        case [{"type": "document", "document": {"data": data}}]:
            return isinstance(data, dict)
        case _:
            return False


def _read_result(content: object) -> str:
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
                raise ConfigError("a tool result is text or documents.")
    return "\n".join(texts)


def _add_calls_and_citations(message: Mapping[str, Any], parts: list[Part]) -> list[Part]:
    given = message.get("tool_calls") or []
    if not isinstance(given, list):
        raise ConfigError("tool_calls is a list.")
    calls = [_read_call(call) for call in given]
    plan = message.get("tool_plan")
    if isinstance(plan, str) and plan and calls:
        entry = msgspec.json.encode(plan).decode()
        calls[0] = msgspec.structs.replace(calls[0], seals=(Seal(PLAN, "", None, entry),))
    citations = message.get("citations")
    if isinstance(citations, list) and citations:
        index, text = next(((index, part) for index, part in enumerate(parts) if isinstance(part, Text)), (0, None))
        if text is not None:
            entry = msgspec.json.encode(citations).decode()
            parts[index] = Text(text.text, (Seal(CITED, "", None, entry),))
    return [*parts, *calls]


def _read_call(call: object) -> ToolCall:
    match call:
        case {"id": str() as call_id, "function": {"name": str() as name, **function}}:
            given = function.get("arguments")
            raw = to_json_text(given)
            arguments = read_arguments(raw)
            return ToolCall(call_id, name, arguments or {}, None if arguments is not None else raw)
        case _:
            raise ConfigError("a tool call has an id, and a function with a name.")
