"""A client's Converse request as a prompt: `read(body, path) → ServedRequest`. What is not understood stays in `extra`.

Not here: what is answered (serve).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE, VIA, build_raw_part, is_provider_block
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields
from asides.values.errors import ConfigError
from asides.values.messages import (
    File,
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
)
from asides.values.thinking import Seal, Thinking, Thought, read_thinking
from asides.values.tools import Tool

_PATH = re.compile(r"/model/(?P<model>[^/]+)/(?P<way>converse|converse-stream)$")
_MEDIA = {"image": "image", "video": "video", "document": "application"}
_CACHE_POINT = "cachePoint"


def read(body: bytes, path: str) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    found = _PATH.search(path.partition("?")[0])
    if found is None:
        raise ConfigError("the path names no model: use /model/{model}/converse or /model/{model}/converse-stream.")
    stream = found["way"] == "converse-stream"
    fields = RequestFields.parse_body(body)
    messages = fields.take_messages(_message)
    inference, native = fields.take_object("inferenceConfig"), fields.take_object("additionalModelRequestFields")
    tools, choice = _tools(fields)
    prompt = Prompt(
        messages,
        system=_system(fields),
        thinking=_thinking(native),
        tools=tools,
        tool_choice=choice,
        output=_output(fields),
        max_tokens=inference.take("maxTokens", int),
        sampling=Sampling(
            temperature=inference.take("temperature", float),
            top_p=inference.take("topP", float),
            top_k=native.take("top_k", int),
        ),
        stop=tuple(inference.take("stopSequences", list[str]) or ()),
        stream=stream,
        metadata=fields.take("requestMetadata", dict[str, str]),
    )
    fields.put_back("inferenceConfig", inference)
    fields.put_back("additionalModelRequestFields", native)
    prompt = msgspec.structs.replace(prompt, extra=fields.remaining)
    return ServedRequest(prompt, unquote(found["model"]), stream, include_usage=True)


def _system(fields: RequestFields) -> str | None:
    told = fields.take("system", list[dict[str, Any]]) or []
    return "\n\n".join(block["text"] for block in told if isinstance(block.get("text"), str)) or None


def _thinking(native: RequestFields) -> Thinking:
    """Every family's way to ask, as one wish."""
    thinking = Thinking()
    match native.remaining.get("thinking"):
        case {"type": str()} as told:
            del native.remaining["thinking"]
            thinking = read_thinking(told)[0]
        case _:
            pass
    match native.remaining.get("output_config"):
        case {"effort": str() as effort, **rest}:
            native.remaining["output_config"] = rest
            if not rest:
                del native.remaining["output_config"]
            thinking = msgspec.structs.replace(thinking, effort=read_thinking(effort)[0].effort)
        case _:
            pass
    for name in ("reasoning_effort", "reasoning_config"):
        if isinstance(native.remaining.get(name), str):
            return read_thinking(native.remaining.pop(name))[0]
    match native.remaining:
        case {"reasoning": {"effort": str() as effort}}:
            del native.remaining["reasoning"]
            return read_thinking(effort)[0]
        case {"reasoningConfig": {"type": "disabled"}}:
            del native.remaining["reasoningConfig"]
            return Thinking(mode="off")
        case {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": str() as effort}}:
            del native.remaining["reasoningConfig"]
            return read_thinking(effort)[0]
        case _:
            return thinking


def _tools(fields: RequestFields) -> tuple[tuple[Tool, ...], str | None]:
    config = fields.take_object("toolConfig")
    own: list[Tool] = []
    others: list[Any] = []
    for told in config.take("tools", list[dict[str, Any]]) or ():
        match told:
            case {"toolSpec": {"name": str() as name} as spec}:
                schema = (spec.get("inputSchema") or {}).get("json")
                described = {"parameters": schema} if isinstance(schema, dict) else {}
                own.append(Tool(name, str(spec.get("description") or ""), **described, strict=spec.get("strict")))
            case _:
                # A tool of the provider's own, or a mark of its cache.
                others.append(told)
    choice: str | None = None
    match config.take("toolChoice", dict[str, Any]):
        case {"auto": _}:
            choice = "auto"
        case {"any": _}:
            choice = "required"
        case {"tool": {"name": str() as name}}:
            choice = name
        case _:
            pass
    if others:
        config.remaining["tools"] = others
    fields.put_back("toolConfig", config)
    return tuple(own), choice


def _output(fields: RequestFields) -> OutputSchema | None:
    match fields.remaining.get("outputConfig"):
        case {"textFormat": {"structure": {"jsonSchema": {"schema": str() as schema, **described}}}, **rest}:
            fields.remaining["outputConfig"] = rest
            if not rest:
                del fields.remaining["outputConfig"]
            try:
                read_back = msgspec.json.decode(schema, type=dict[str, Any])
            except msgspec.DecodeError:
                raise ConfigError("outputConfig: the schema is not JSON.") from None
            return OutputSchema(str(described.get("name") or "answer"), read_back)
        case _:
            return None


# --- messages -----------------------------------------------------------------------------------------------------


def _message(message: Mapping[str, Any]) -> Message:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise ConfigError(f"the role {role!r} is not known; use user or assistant.")
    if not isinstance(content, list) or not all(isinstance(block, dict) and block for block in content):
        raise ConfigError("content is a list of blocks.")
    parts: list[Part] = []
    for block in content:
        if _CACHE_POINT in block and parts and isinstance(parts[-1], (Text, Image, File, ToolResult)):
            parts[-1] = msgspec.structs.replace(parts[-1], cache=True)
        else:
            parts.append(_part(block))
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    return Message("tool" if results and len(results) == len(parts) else role, tuple(parts))


def _part(block: dict[str, Any]) -> Part:
    match block:
        case {"text": str() as text}:
            return Text(text)
        case {"reasoningContent": {"reasoningText": {"text": str() as text, **rest}}}:
            signature = rest.get("signature")
            seals = (Seal(SIGNATURE, signature),) if isinstance(signature, str) and signature else ()
            return Thought(text, source="block", via=VIA, seals=seals)
        case {"reasoningContent": {"redactedContent": str() as data}}:
            return Thought("", "hidden", "block", seals=(Seal(REDACTED, data),))
        case {"toolUse": {"toolUseId": str() as call_id, "name": str() as name, **rest}} if not is_provider_block(
            "toolUse", block["toolUse"]
        ):
            arguments = rest.get("input")
            if not isinstance(arguments, dict):
                raise ConfigError("the input of a tool use is an object.")
            return ToolCall(call_id, name, arguments)
        case {"toolResult": {"toolUseId": str() as call_id, "content": list() as content, **rest}} if (
            "type" not in rest
        ):
            return ToolResult(call_id, _result(content), is_error=rest.get("status") == "error")
        case {"citationsContent": {"content": list() as pieces, "citations": list() as citations}}:
            text = "".join(str(piece.get("text", "")) for piece in pieces if isinstance(piece, dict))
            return Text(text, (Seal(CITATIONS, "", None, msgspec.json.encode(citations).decode()),))
        case _ if next(iter(block)) in _MEDIA:
            return _media(block)
        case _:
            kind, fields = next(iter(block.items()))
            return build_raw_part(kind, fields, None)


def _result(content: list[Any]) -> str | tuple[Text | Image | File, ...]:
    parts: list[Text | Image | File] = []
    for block in content:
        match block:
            case {"text": str() as text}:
                parts.append(Text(text))
            case {"json": value}:
                parts.append(Text(msgspec.json.encode(value).decode()))
            case dict():
                part = _media(block)
                if not isinstance(part, (Image, File)):
                    raise ConfigError("what a tool gave back is text, JSON, images or documents.")
                parts.append(part)
            case _:
                raise ConfigError("what a tool gave back is a list of blocks.")
    if all(isinstance(part, Text) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    return tuple(parts)


def _media(block: dict[str, Any]) -> Part:
    kind = next(iter(block))
    told = block[kind]
    source = told.get("source") if isinstance(told, dict) else None
    match source:
        case {"bytes": str() as data}:
            where: dict[str, Any] = {"data": b64decode(data)}
        case {"s3Location": {"uri": str() as url}}:
            where = {"url": url}
        case _:
            return UnknownPart(msgspec.json.encode(block).decode())
    media_type = f"{_MEDIA.get(kind, kind)}/{told.get('format', 'octet-stream')}"
    if kind == "image":
        return Image(media_type=media_type, **where)
    if media_type == "application/txt":
        media_type = "text/plain"
    return File(str(told.get("name") or "file"), media_type=media_type, **where)
