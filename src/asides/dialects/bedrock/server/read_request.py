"""Read a client's Converse request as a prompt: `read(body, path) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE, VIA, build_raw_part, is_provider_block
from asides.dialects.bedrock.wire import SAMPLING
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields
from asides.dialects.verbatim import keep_source
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.parts import File, Image, Part, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides.wire.lenient import read_base64

_PATH = re.compile(r"/model/(?P<model>[^/]+)/(?P<operation>converse|converse-stream)$")
_MEDIA = {"image": "image", "video": "video", "document": "application"}
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENTS = {
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
}
_CACHE_POINT = "cachePoint"
# The blocks that are read here; in another form they are refused.
_BLOCKS = ("text", "reasoningContent", "toolUse", "toolResult", "citationsContent")


def read(body: bytes, path: str = "") -> ServedRequest:
    """Read a request. Raises ConfigError with a message for the client."""
    found = _PATH.search(path.partition("?")[0])
    if found is None:
        raise ConfigError("the path names no model: use /model/{model}/converse or /model/{model}/converse-stream.")
    stream = found["operation"] == "converse-stream"
    fields = RequestFields.parse_body(body).keep("bedrock")
    messages = fields.take_messages(_read_message)
    thinking = read_switches("bedrock", fields.remaining)
    inference, native = fields.take_object("inferenceConfig"), fields.take_object("additionalModelRequestFields")
    tools, choice = _take_tools(fields)
    system, system_messages = _take_system(fields)
    prompt = Prompt(
        (*system_messages, *messages),
        system=system,
        thinking=thinking,
        tools=tools,
        tool_choice=choice,
        output=_take_output(fields),
        max_tokens=inference.take("maxTokens", int),
        sampling=msgspec.structs.replace(inference.take_sampling(SAMPLING), top_k=native.take("top_k", int)),
        stop=tuple(inference.take("stopSequences", list[str]) or ()),
        stream=stream,
        metadata=fields.take("requestMetadata", dict[str, str]),
        source=fields.source,
    )
    fields.put_back("inferenceConfig", inference)
    fields.put_back("additionalModelRequestFields", native)
    prompt = msgspec.structs.replace(prompt, extra=fields.remaining)
    return ServedRequest(prompt, unquote(found["model"]), stream, include_usage=True)


def _read_tool(name: str, spec: dict[str, Any]) -> Tool:
    match spec.get("inputSchema"):
        case {"json": dict() as schema}:
            parameters: dict[str, Any] = {"parameters": schema}
        case None:
            parameters = {}
        case _:
            raise ConfigError(f"the inputSchema of the tool {name} has no json.")
    try:
        fields = {"name": name, "description": spec.get("description") or "", "strict": spec.get("strict")}
        return msgspec.convert(fields | parameters, Tool)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"the tool {name} is invalid: {problem}.") from None


def _take_system(fields: RequestFields) -> tuple[str | None, tuple[Message, ...]]:
    """Take the system prompt: as text, or as a message if it has a cache breakpoint. Other blocks stay in `extra`."""
    blocks = fields.take("system", list[dict[str, Any]]) or []
    texts: list[Text] = []
    others: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block.get("text"), str):
            texts.append(Text(block["text"]))
        elif _CACHE_POINT in block and texts:
            texts[-1] = msgspec.structs.replace(texts[-1], cache=True)
        else:
            others.append(block)
    if others:
        # Only this provider knows its own blocks, so the whole list also stays as it is.
        fields.remaining["system"] = blocks
    if any(text.cache for text in texts):
        return None, (Message("system", tuple(texts)),)
    return "\n\n".join(text.text for text in texts) or None, ()


def _take_tools(fields: RequestFields) -> tuple[tuple[Tool, ...], str | None]:
    config = fields.take_object("toolConfig")
    functions: list[Tool] = []
    tools = config.take("tools", list[dict[str, Any]]) or []
    has_others = False
    for tool in tools:
        match tool:
            case {"toolSpec": {"name": str() as name} as spec}:
                functions.append(_read_tool(name, spec))
            case {"cachePoint": dict() as point} if functions:
                functions[-1] = msgspec.structs.replace(functions[-1], cache=_read_lifetime(point))
            case _:
                has_others = True
    choice: str | None = None
    given = config.take("toolChoice", dict[str, Any])
    match given:
        case {"auto": _}:
            choice = "auto"
        case {"any": _}:
            choice = "required"
        case {"tool": {"name": str() as name}}:
            choice = name
        case None:
            pass
        case _:
            config.remaining["toolChoice"] = given  # a newer server may know it
    if has_others:
        # Only this provider knows its own tools, so the whole list also stays as it is.
        config.remaining["tools"] = tools
    fields.put_back("toolConfig", config)
    return tuple(functions), choice


def _read_lifetime(point: dict[str, Any]) -> bool | str:
    lifetime = point.get("ttl")
    return lifetime if isinstance(lifetime, str) and lifetime else True


def _take_output(fields: RequestFields) -> OutputSchema | None:
    match fields.remaining.get("outputConfig"):
        case {"textFormat": {"structure": {"jsonSchema": {"schema": str() as schema, **described}}}, **rest}:
            fields.remaining["outputConfig"] = rest
            if not rest:
                del fields.remaining["outputConfig"]
            try:
                document = msgspec.json.decode(schema, type=dict[str, Any])
            except msgspec.DecodeError:
                raise ConfigError("outputConfig: the schema is not JSON.") from None
            return OutputSchema(str(described.get("name") or "answer"), document)
        case _:
            return None


# --- messages -----------------------------------------------------------------------------------------------------


def _read_message(message: Mapping[str, Any]) -> Message:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise ConfigError(f"the role {role!r} is not known; use user, assistant or system.")
    if not isinstance(content, list) or not all(isinstance(block, dict) and len(block) == 1 for block in content):
        raise ConfigError("content is a list of blocks, each an object with one field.")
    parts: list[Part] = []
    for block in content:
        if _CACHE_POINT in block and parts and isinstance(parts[-1], (Text, Image, File, ToolResult)):
            parts[-1] = msgspec.structs.replace(parts[-1], cache=True)
        else:
            parts.append(_read_part(block))
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    read = Message("tool" if results and len(results) == len(parts) else role, tuple(parts))
    beside = {name: value for name, value in message.items() if name not in ("role", "content")}
    return keep_source(read, "bedrock", content, beside)


def _read_part(block: dict[str, Any]) -> Part:
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
            is_json = len(content) == 1 and isinstance(content[0], dict) and "json" in content[0]
            is_error = rest.get("status") == "error"
            return ToolResult(call_id, _read_result(content), is_error=is_error, is_json=is_json)
        case {"citationsContent": {"content": list() as pieces, "citations": list() as citations}}:
            texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
            text = "".join(text for text in texts if isinstance(text, str))
            return Text(text, (Seal(CITATIONS, "", None, msgspec.json.encode(citations).decode()),))
        case _ if next(iter(block)) in _MEDIA:
            return _read_media(block)
        case _:
            kind, fields = next(iter(block.items()))
            is_provider = isinstance(fields, dict) and "type" in fields and is_provider_block(kind, fields)
            if kind in _BLOCKS and not is_provider:
                raise ConfigError(f"the block {kind} is not as Converse has it.")
            return build_raw_part(kind, fields, None)


def _read_result(content: list[Any]) -> str | tuple[Text | Image | File, ...]:
    parts: list[Text | Image | File] = []
    for block in content:
        match block:
            case {"text": str() as text}:
                parts.append(Text(text))
            case {"json": value}:
                parts.append(Text(msgspec.json.encode(value).decode()))
            case dict() if len(block) == 1 and next(iter(block)) in (*_MEDIA, "searchResult"):
                part = _read_media(block)
                # A document without bytes, or a search result, is the text that it is written with.
                written = Text(msgspec.json.encode(block).decode())
                parts.append(part if isinstance(part, (Image, File)) else written)
            case dict():
                raise ConfigError("a tool result is text, JSON, images, documents or search results.")
            case _:
                raise ConfigError("a tool result is a list of blocks.")
    is_plain = len(parts) == 1 or all("text" in block for block in content)
    if is_plain and all(isinstance(part, Text) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    return tuple(parts)


def _read_media(block: dict[str, Any]) -> Part:
    kind = next(iter(block))
    fields = block[kind]
    source = fields.get("source") if isinstance(fields, dict) else None
    match source:
        case {"bytes": str() as data}:
            content: dict[str, Any] = {"data": read_base64(data)}
            if content["data"] is None:
                raise ConfigError(f"the bytes of the block {kind} are not base64.")
        case {"s3Location": {"uri": str() as url}}:
            content = {"url": url}
        case _:
            return UnknownPart(msgspec.json.encode(block).decode())
    form = fields.get("format")
    media_type = f"{_MEDIA.get(kind, kind)}/{form if isinstance(form, str) else 'octet-stream'}"
    if kind == "image":
        return Image(media_type=media_type, **content)
    if kind == "document":
        media_type = _DOCUMENTS.get(str(form), media_type)
    name = fields.get("name")
    return File(name if isinstance(name, str) and name else "file", media_type=media_type, **content)
