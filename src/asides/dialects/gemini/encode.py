"""Encodes a planned prompt as a generateContent request: `encode(prompt, target) → (HttpRequest, notices)`. Pure."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.gemini.encode_contents import encode_contents
from asides.dialects.gemini.schemas import read_schema
from asides.dialects.gemini.wire import SAMPLING
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_cache,
    report_tool_settings,
    write_sampling,
)
from asides.dialects.verbatim import WholeFields, write_fields
from asides.providers.find import quote_model
from asides.providers.provider import Target
from asides.providers.switches.write import write as write_thinking
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

_OUTPUT_SCHEMA = "responseJsonSchema"
_SCHEMAS = frozenset({"parametersJsonSchema", _OUTPUT_SCHEMA})


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: schemas have an older form, and a single part needs no list."""
    return (name in _SCHEMAS and bool(read_schema(theirs) == ours)) or (name == "parts" and bool(ours == [theirs]))


_WHOLE = WholeFields(
    ("systemInstruction", "tools", "toolConfig", f"generationConfig.{_OUTPUT_SCHEMA}"),
    other_names={"parametersJsonSchema": "parameters", _OUTPUT_SCHEMA: "responseSchema"},
    schemas=_SCHEMAS,
    same=_is_same,
)
MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    report_cache(prompt, notices)
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if prompt.stream else "application/json"
    return build_post(target, build_url(target, stream=prompt.stream), accept, body), tuple(notices)


def build_url(target: Target, *, stream: bool) -> str:
    """Build the address: the path names the model, after `models/` or another collection, and the method."""
    model = target.model if "/" in target.model else f"models/{target.model}"
    path = f"{urlsplit(target.base_url).path.rstrip('/')}/{quote_model(model, '/@')}"
    if stream:
        return join_url(target, f"{path}:streamGenerateContent", last=[("alt", "sse")])
    return join_url(target, f"{path}:generateContent")


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    contents, system = encode_contents(prompt, target, notices)
    body: dict[str, Any] = {}
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    body["contents"] = contents
    body |= _encode_tools(prompt, notices)
    config = _build_config(prompt, target, notices)
    if config:
        body["generationConfig"] = config
    notices += [
        Notice("setting_dropped", f"this dialect has no {setting}", setting)
        for setting in ("metadata", "user")
        if getattr(prompt, setting) is not None
    ]
    return write_fields(prompt, merge_fields(body, prompt.extra), "gemini", _WHOLE, notices)


def _build_config(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    config = write_sampling(prompt, SAMPLING, notices)
    if prompt.max_tokens is not None:
        config["maxOutputTokens"] = prompt.max_tokens
    if prompt.stop:
        config["stopSequences"] = list(prompt.stop)
    if prompt.output is not None:
        config |= _encode_output(prompt.output)
    thinking, told = write_thinking(
        prompt.thinking, target, "gemini", source=prompt.source, max_tokens=prompt.max_tokens
    )
    notices += told
    config |= thinking.get("generationConfig", {})
    return config


def _encode_output(output: OutputSchema | Literal["json"]) -> dict[str, Any]:
    encoded: dict[str, Any] = {"responseMimeType": "application/json"}
    if isinstance(output, OutputSchema):
        # The older responseSchema supports only a part of JSON schema.
        encoded[_OUTPUT_SCHEMA] = output.schema
    return encoded


# Fields of tools of other dialects: theirs have a type, or these.
_OTHER_TOOLS = frozenset({"type", "systemTool", "toolSpec", "cachePoint"})


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> dict[str, Any]:
    if prompt.parallel_tool_calls is not None:
        detail = "parallel calls cannot be set in this dialect; the model decides"
        notices.append(Notice("setting_dropped", detail, "parallel_tool_calls"))
    if not prompt.tools:
        if "tools" not in prompt.extra:
            notices += report_tool_settings(prompt, "tool_choice")
        return {}
    functions = [_encode_tool(tool) for tool in prompt.tools if tool.native is None]
    native = [
        encode_native_tool(tool, known=_OTHER_TOOLS.isdisjoint(tool.native)) for tool in prompt.tools if tool.native
    ]
    tools: list[dict[str, Any]] = [{"functionDeclarations": functions}] if functions else []
    encoded: dict[str, Any] = {"tools": [*tools, *native]}
    choice = prompt.tool_choice
    if choice is not None:
        config: dict[str, Any] = {"mode": MODES.get(choice, "ANY")}
        if choice not in MODES:
            config["allowedFunctionNames"] = [choice]
        encoded["toolConfig"] = {"functionCallingConfig": config}
    return encoded


def _encode_tool(tool: Tool) -> dict[str, Any]:
    encoded: dict[str, Any] = {"name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    # `parameters` supports only a part of JSON schema and refuses the rest.
    encoded["parametersJsonSchema"] = tool.parameters
    return encoded
