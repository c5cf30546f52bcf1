"""Read a client's generateContent request as a prompt: `read(body, path) → ServedRequest`.

Field names may be in camelCase or snake_case, since the API takes both. Unknown fields stay in `extra`.
"""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini.encode import MODES
from asides.dialects.gemini.import_contents import has_other_parts, import_contents, import_texts
from asides.dialects.gemini.schemas import read_schema
from asides.dialects.gemini.wire import SAMPLING
from asides.dialects.server_half import RequestFields
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt
from asides.values.tools import Tool

# Names of other providers' models may hold slashes.
_PATH = re.compile(r"(?:/models/|/(?=[^/]+$))(?P<model>.+):(?P<verb>generateContent|streamGenerateContent)$")
_SNAKE = re.compile(r"_([a-z])")
# The names inside these fields are the client's, not the API's: schemas, arguments and results of tools.
_SCHEMAS = ("responseJsonSchema", "responseSchema")
_CLIENT_NAMES = frozenset({"args", "response", "parameters", "parametersJsonSchema", *_SCHEMAS})


def read(body: bytes, path: str = "") -> ServedRequest:
    """Read a request. Raises ConfigError with a message for the client."""
    found = _PATH.search(unquote(path))
    if found is None:
        raise ConfigError("the path names no model; write …/models/{model}:generateContent.")
    fields = RequestFields(to_camel_case(RequestFields.parse_body(body).remaining)).keep("gemini")
    stream = found["verb"] == "streamGenerateContent"
    prompt = _Request(fields).read(stream)
    return ServedRequest(prompt, found["model"], stream, include_usage=True)


def to_camel_case(value: Any) -> Any:
    """Convert field names to camelCase, and drop fields that are null."""
    if isinstance(value, list):
        return [to_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for name, inner in value.items():
        if inner is None:
            continue
        if "_" in name:
            name = _SNAKE.sub(lambda found: found[1].upper(), name)
        if isinstance(inner, (dict, list)) and name not in _CLIENT_NAMES:
            inner = to_camel_case(inner)
        renamed[name] = inner
    return renamed


class _Request:
    """A request while it is parsed: readers remove the fields they understand; the others stay in `extra`."""

    def __init__(self, fields: RequestFields) -> None:
        self.fields = fields
        self.thinking = read_switches("gemini", fields.remaining)
        self.settings = fields.take_object("generationConfig")
        self.remaining, self.config = fields.remaining, self.settings.remaining

    def read(self, stream: bool) -> Prompt:
        contents = self.fields.take("contents", list[Any])
        if not contents:
            raise ConfigError("contents is missing or empty.")
        instruction = self.remaining.pop("systemInstruction", None)
        system = "\n\n".join(import_texts(instruction)) if instruction is not None else ""
        if isinstance(instruction, dict) and has_other_parts(instruction):
            # Only this API knows its own parts, so the whole instruction also stays as it is.
            self.remaining["systemInstruction"] = instruction
        tools = self._take_tools()
        prompt = Prompt(
            import_contents(contents),
            system=system or None,
            thinking=self.thinking,
            tools=tools,
            tool_choice=self._take_tool_choice(),
            output=self._take_output(),
            max_tokens=self.settings.take("maxOutputTokens", int),
            sampling=self.settings.take_sampling(SAMPLING, strict=False),  # numbers may be in quotes
            stop=tuple(self.settings.take("stopSequences", list[str]) or ()),
            stream=stream,
            source=self.fields.source,
        )
        self.fields.put_back("generationConfig", self.settings)
        return msgspec.structs.replace(prompt, extra=self.remaining)

    # --- tools and output -------------------------------------------------------------------------------------------

    def _take_tools(self) -> tuple[Tool, ...]:
        tools = self.fields.take("tools", list[dict[str, Any]]) or []
        declared = [tool.get("functionDeclarations", []) for tool in tools]
        if not all(isinstance(functions, list) for functions in declared):
            raise ConfigError("functionDeclarations is a list.")
        if any(set(tool) - {"functionDeclarations"} for tool in tools):
            # Only this API knows its own tools, so the whole list also stays as it is.
            self.remaining["tools"] = tools
        return tuple(_read_tool(function) for functions in declared for function in functions)

    def _take_tool_choice(self) -> str | None:
        match self.remaining.get("toolConfig"):
            case {"functionCallingConfig": {"mode": str() as mode} as config, **beside}:
                names = config.get("allowedFunctionNames")
                choice = next((ours for ours, theirs in MODES.items() if theirs == mode.upper()), None)
                if choice == "required" and isinstance(names, list) and len(names) == 1:
                    choice, names = str(names[0]), None
                if choice is not None and not names:
                    # The prompt says it all; a mode or a list that it cannot hold stays as it is.
                    del self.remaining["toolConfig"]
                    if beside:
                        self.remaining["toolConfig"] = beside
                return choice
            case _:
                return None

    def _take_output(self) -> OutputSchema | Literal["json"] | None:
        if self.config.get("responseMimeType") != "application/json":
            return None
        del self.config["responseMimeType"]
        for name in _SCHEMAS:
            schema = self.config.pop(name, None)
            if isinstance(schema, dict):
                return OutputSchema("answer", read_schema(schema))
        return "json"


def _read_tool(declared: Any) -> Tool:
    if not isinstance(declared, dict) or not isinstance(declared.get("name"), str):
        raise ConfigError("a function declaration has no name.")
    schema = declared.get("parametersJsonSchema", declared.get("parameters"))
    description = declared.get("description")
    tool = Tool(declared["name"], description if isinstance(description, str) else "")
    return msgspec.structs.replace(tool, parameters=read_schema(schema)) if isinstance(schema, dict) else tool
