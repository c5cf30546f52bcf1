"""A client's generateContent request as a prompt: `read(body, path) → ServedRequest`.

Fields may be spelled in camelCase or snake_case, since the API takes both. What is not ours to understand stays in
`extra`. Not here: single contents (read_contents), and what is answered (serve).
"""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini.encode import MODES, SAMPLING
from asides.dialects.gemini.import_contents import import_contents, import_texts
from asides.dialects.server_half import RequestFields
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt, Sampling
from asides.values.thinking import Effort, Thinking
from asides.values.tools import Tool

_ASKED = re.compile(r"/(?P<model>[^/]+):(?P<verb>generateContent|streamGenerateContent)$")
_SNAKE = re.compile(r"_([a-z])")
_LEVELS: dict[str, Effort] = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
# What stands under these names is the client's, not the API's: schemas, arguments and answers of tools.
_SCHEMAS = ("responseJsonSchema", "responseSchema")
_NOT_OURS = frozenset({"args", "response", "parameters", "parametersJsonSchema", *_SCHEMAS})
_TYPES = frozenset({"OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL"})


def read(body: bytes, path: str) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    asked = _ASKED.search(unquote(path))
    if asked is None:
        raise ConfigError("the path names no model; write …/models/{model}:generateContent.")
    fields = RequestFields(camel_case(RequestFields.parse_body(body).remaining))
    stream = asked["verb"] == "streamGenerateContent"
    prompt = _Request(fields).read(stream)
    return ServedRequest(prompt, asked["model"], stream, include_usage=True)


def camel_case(value: Any) -> Any:
    """A document with its field names in the one spelling; a field that is null was not set."""
    if isinstance(value, list):
        return [camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = ((_SNAKE.sub(lambda found: found[1].upper(), name), held) for name, held in value.items())
    return {name: held if name in _NOT_OURS else camel_case(held) for name, held in named if held is not None}


class _Request:
    """A document while it is read: what is understood is taken out, and what remains is `extra`."""

    def __init__(self, fields: RequestFields) -> None:
        self.fields = fields
        self.settings = fields.take_object("generationConfig")
        self.remaining, self.config = fields.remaining, self.settings.remaining

    def read(self, stream: bool) -> Prompt:
        contents = self.fields.take("contents", list[Any])
        if not contents:
            raise ConfigError("contents is missing or empty.")
        instruction = self.remaining.pop("systemInstruction", None)
        system = "\n\n".join(import_texts(instruction)) if instruction is not None else ""
        tools = self._tools()
        prompt = Prompt(
            import_contents(contents),
            system=system or None,
            thinking=self._thinking(),
            tools=tools,
            tool_choice=self._tool_choice(),
            output=self._output(),
            max_tokens=self.settings.take("maxOutputTokens", int),
            sampling=self._sampling(),
            stop=tuple(self.settings.take("stopSequences", list[str]) or ()),
            stream=stream,
        )
        self.fields.put_back("generationConfig", self.settings)
        return msgspec.structs.replace(prompt, extra=self.remaining)

    def _sampling(self) -> Sampling:
        given = {ours: self.config.pop(theirs) for ours, theirs in SAMPLING.items() if theirs in self.config}
        try:
            return msgspec.convert(given, Sampling, strict=False)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"a setting of generationConfig does not read: {problem}.") from None

    def _thinking(self) -> Thinking:
        told = self.settings.take("thinkingConfig", dict[str, Any])
        if told is None:
            return Thinking(show="none")
        shown, level, budget = told.get("includeThoughts"), told.get("thinkingLevel"), told.get("thinkingBudget")
        if level is not None and budget is not None:
            raise ConfigError("thinkingConfig has both thinkingBudget and thinkingLevel; give one of them.")
        # Thoughts come only on demand, so nothing said is nothing shown.
        wish = Thinking(show="summary" if shown is True else "none")
        if level is not None:
            effort = _LEVELS.get(str(level).upper())
            if effort is None:
                raise ConfigError(f"the thinkingLevel {level!r} is not known; use {', '.join(_LEVELS)}.")
            return msgspec.structs.replace(wish, effort=effort)
        if budget is None:
            return msgspec.structs.replace(wish, mode="on") if shown else wish
        if not isinstance(budget, int) or budget < -1:
            raise ConfigError("thinkingBudget is a number of tokens, 0 for none or -1 for as many as it takes.")
        match budget:
            case 0:
                return msgspec.structs.replace(wish, mode="off")
            case -1:
                return msgspec.structs.replace(wish, mode="auto")
            case _:
                return msgspec.structs.replace(wish, budget=budget)

    # --- tools and output -------------------------------------------------------------------------------------------

    def _tools(self) -> tuple[Tool, ...]:
        told = self.fields.take("tools", list[dict[str, Any]]) or []
        if any(set(tool) - {"functionDeclarations"} for tool in told):
            # The API's own tools mean nothing to others; the whole list goes as it came.
            self.remaining["tools"] = told
        return tuple(_tool(declared) for tool in told for declared in tool.get("functionDeclarations", []))

    def _tool_choice(self) -> str | None:
        match self.remaining.get("toolConfig"):
            case {"functionCallingConfig": {"mode": str() as mode} as config}:
                del self.remaining["toolConfig"]
                names = config.get("allowedFunctionNames")
                if mode == "ANY" and isinstance(names, list) and len(names) == 1:
                    return str(names[0])
                return next((ours for ours, theirs in MODES.items() if theirs == mode), None)
            case _:
                return None

    def _output(self) -> OutputSchema | Literal["json"] | None:
        if self.config.get("responseMimeType") != "application/json":
            return None
        del self.config["responseMimeType"]
        for name in _SCHEMAS:
            schema = self.config.pop(name, None)
            if isinstance(schema, dict):
                return OutputSchema("answer", _json_schema(schema))
        return "json"


def _tool(declared: Any) -> Tool:
    if not isinstance(declared, dict) or not isinstance(declared.get("name"), str):
        raise ConfigError("a function declaration has no name.")
    schema = declared.get("parametersJsonSchema", declared.get("parameters"))
    described = declared.get("description")
    tool = Tool(declared["name"], described if isinstance(described, str) else "")
    return tool if not isinstance(schema, dict) else msgspec.structs.replace(tool, parameters=_json_schema(schema))


def _json_schema(schema: Any) -> Any:
    """A schema with the names of types as JSON schema has them; the API's own clients shout them."""
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: held.lower() if name == "type" and isinstance(held, str) and held in _TYPES else _json_schema(held)
        for name, held in schema.items()
    }
