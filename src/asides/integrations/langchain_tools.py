"""Tools, choices and typed answers as LangChain's users write them, as the options of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.base import OutputParserLike
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.outputs import Generation
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import BaseModel

from asides.agents.outputs.schemas import build_schema
from asides.agents.tools.function_tool import FunctionTool, read_offer
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema
from asides.values.tools import Tool, find_native_name, read_tool, read_tool_choice

ToolInput: TypeAlias = Mapping[str, Any] | type | Callable[..., Any] | BaseTool | Tool | FunctionTool[..., Any]
OutputMethod: TypeAlias = Literal["json_schema", "function_calling", "json_mode"]
METHODS: tuple[OutputMethod, ...] = ("json_schema", "function_calling", "json_mode")
_CHOICES = ("auto", "none", "required")
_JSON_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


# --- tools ------------------------------------------------------------------------------------------------------------


def format_tools(tools: Sequence[ToolInput], strict: bool | None = None) -> list[dict[str, Any]]:
    """The tools as dicts that `ask` takes: functions, classes, dicts and tools of LangChain; also tools of ours."""
    return [_format_tool(tool, strict) for tool in tools]


def _format_tool(tool: ToolInput, strict: bool | None) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        tool = read_offer(tool).tool
    if isinstance(tool, Tool):
        return _write_tool(tool)
    if isinstance(tool, Mapping) and _is_ours(tool):
        return _set_strict(dict(tool), strict)
    try:
        formatted = convert_to_openai_tool(dict(tool) if isinstance(tool, Mapping) else tool, strict=strict)
    except (ValueError, TypeError, AttributeError) as problem:
        raise ConfigError(
            f"{describe_type(tool)} cannot be read as a tool ({type(problem).__name__}). Give a function with "
            "types and a docstring, a class of pydantic, a tool of LangChain, or a dict such as "
            '{"name": …, "input_schema": …}.'
        ) from None
    extras = getattr(tool, "extras", None)
    return {**formatted, **extras} if isinstance(extras, Mapping) else formatted


def _is_ours(tool: Mapping[str, Any]) -> bool:
    """Whether `ask` reads the dict as it is: a function with its schema, or a tool of a provider."""
    inner = tool.get("function", tool)
    is_function = (
        isinstance(inner, Mapping) and "name" in inner and not {"parameters", "input_schema"}.isdisjoint(inner)
    )
    is_schema = tool.get("type") in _JSON_TYPES or "properties" in tool
    return is_function or (not is_schema and "toolSpec" not in tool and find_native_name(tool) is not None)


def _set_strict(tool: dict[str, Any], strict: bool | None) -> dict[str, Any]:
    if strict is None or find_native_name(tool) is not None:
        return tool
    if isinstance(inner := tool.get("function"), Mapping):
        return {**tool, "function": {**inner, "strict": strict}}
    return {**tool, "strict": strict}


def _write_tool(tool: Tool) -> dict[str, Any]:
    if tool.native is not None:
        return dict(tool.native)
    strict = {} if tool.strict is None else {"strict": tool.strict}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {**function, **strict}, **tool.more}


def choose_tool(choice: object, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """The choice as "auto", "none", "required" or a tool's name, from every way to write it; None: not given.

    Raises a ConfigError for the name of a tool that is not there.
    """
    if choice is None or choice is False:
        return None
    if choice is True:
        return "required"
    chosen = read_tool_choice(choice)
    names = [read_tool(tool).name for tool in tools]
    if chosen not in (*_CHOICES, *names):
        raise ConfigError(
            f"tool_choice names {chosen[:60]!r}, and there is no such tool. Use any, auto, none"
            f"{''.join(f', {name}' for name in names)}."
        )
    return chosen


# --- typed answers ----------------------------------------------------------------------------------------------------


class OutputRequest:
    """How a typed answer is asked for, and read: `options` of the call, and the `parser` of its message."""

    def __init__(self, schema: Any, method: str, strict: bool | None, tools: Sequence[ToolInput]) -> None:
        if method not in METHODS:
            raise ConfigError(f"method={method!r} is not known. Use {', '.join(METHODS)}.")
        self._schema = schema
        self._strict = strict
        self.options: dict[str, Any] = {}
        self.parser: OutputParserLike[Any]
        if method == "function_calling":
            self._call_tool(tools)
        else:
            self._answer_json(method, tools)
        self.options["ls_structured_output_format"] = {
            "kwargs": {"method": method, "strict": strict},
            "schema": schema,
        }

    def _call_tool(self, tools: Sequence[ToolInput]) -> None:
        tool = _format_tool(self._schema, self._strict)
        name = read_tool(tool).name
        self.options |= {"tools": [tool, *format_tools(tools)], "tool_choice": name}
        if _is_model(self._schema):
            self.parser = PydanticToolsParser(tools=[self._schema], first_tool_only=True)
        else:
            self.parser = JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)

    def _answer_json(self, method: str, tools: Sequence[ToolInput]) -> None:
        self.options["output"] = "json" if method == "json_mode" else format_output(self._schema, self._strict)
        if tools:
            self.options["tools"] = format_tools(tools, self._strict)
        is_model = _is_model(self._schema)
        self.parser = _ModelParser(pydantic_object=self._schema) if is_model else _AnswerParser()


def format_output(schema: Any, strict: bool | None = None) -> Any:
    """The option `output` for a schema: "json", or a schema in the envelope of chat completions."""
    if isinstance(schema, str) or schema is None:
        return schema
    if isinstance(schema, Mapping) and schema.get("type") in ("json_schema", "json_object", "text"):
        return {"json_object": "json", "text": None}.get(str(schema["type"]), dict(schema))
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        built = build_schema(schema).schema
        if isinstance(built, OutputSchema):
            return _write_envelope(built.name, built.schema, built.strict if strict is None else strict)
    try:
        made = convert_to_json_schema(dict(schema) if isinstance(schema, Mapping) else schema)
    except (ValueError, TypeError, AttributeError) as problem:
        raise ConfigError(
            f"{describe_type(schema)} cannot be read as a schema ({type(problem).__name__}). Give a class of "
            "pydantic, a TypedDict, or a JSON schema with a title."
        ) from None
    if "properties" not in made and (isinstance(schema, Mapping) and "properties" not in schema):
        raise ConfigError(
            "LangChain accepts only object schemas. Give the schema properties, and put the list "
            "or the value into one of them."
        )
    return _write_envelope(made["title"], made, strict) if strict is not None else made


def _write_envelope(name: str, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": strict}}


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and is_basemodel_subclass(schema)


_NO_ANSWER = "the model gave no answer ({}). Raise max_tokens, ask for less thinking, or read the message itself."


class _AnswerParser(JsonOutputParser):
    """Reads JSON from an answer. A missing answer is reported as missing."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        _check_answer(result, partial=partial)
        return super().parse_result(result, partial=partial)


class _ModelParser(PydanticOutputParser[Any]):
    """Reads a class of pydantic from an answer."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        _check_answer(result, partial=partial)
        return super().parse_result(result, partial=partial)


def _check_answer(result: list[Generation], *, partial: bool) -> None:
    if not partial and not result[0].text.strip():
        message = getattr(result[0], "message", None)
        outcome = message.response_metadata.get("outcome") if isinstance(message, BaseMessage) else None
        raise OutputParserException(_NO_ANSWER.format(outcome or "its text is empty"))


def parse_with(
    model: Runnable[LanguageModelInput, Any], parser: OutputParserLike[Any], *, include_raw: bool
) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
    """The model with its parser behind it. With `include_raw`, errors of the parser are values."""
    if not include_raw:
        return model | parser
    parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
    nothing = RunnablePassthrough.assign(parsed=lambda _: None)
    return RunnableMap(raw=model) | parsed.with_fallbacks([nothing], exception_key="parsing_error")
