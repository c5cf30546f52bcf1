"""The law of schemas: a tool takes what its schema accepts, and refuses what no lenient reading could accept.

Between the two are only common mistakes of models: numbers and booleans as text, and the like.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import types
from typing import Any, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.agents.tools.executor import BadArguments
from asides.agents.tools.function_tool import FunctionTool, tool
from asides.values.parts import ToolCall

NAMES = ("a", "b", "c")
_NUMBERS = itertools.count()


@st.composite
def classes(draw: st.DrawFn, kinds: st.SearchStrategy[Any]) -> Any:
    fields: list[Any] = [
        (name, draw(kinds)) if draw(st.booleans()) else (name, draw(kinds) | None, None)
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]
    # Those with a default come last, as Python wants it.
    return dataclasses.make_dataclass(f"Made{next(_NUMBERS)}", sorted(fields, key=len))


PLAIN: st.SearchStrategy[Any] = st.sampled_from([int, float, bool, str, Literal["x", "y"], Literal[1, 2]])
KINDS: st.SearchStrategy[Any] = st.recursive(
    PLAIN,
    lambda kinds: st.one_of(
        kinds.map(lambda kind: types.GenericAlias(list, (kind,))),
        kinds.map(lambda kind: types.GenericAlias(dict, (str, kind))),
        kinds.map(lambda kind: Optional[kind]),  # noqa: UP045 - the kind is no name
        classes(kinds),
    ),
    max_leaves=4,
)
TEXTS = st.sampled_from(["x", "y", "", "3", "-1.5", "true", "null", "[1]", "{}", "soon"])
NUMBERS = st.integers(-3, 3) | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def tools(draw: st.DrawFn) -> FunctionTool[..., Any]:
    """A function that returns its arguments, with parameters of many types."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    kinds = {name: draw(KINDS) for name in names}
    needed = {name for name in names if draw(st.booleans())}

    def made(**given: Any) -> dict[str, Any]:
        return given

    made.__annotations__ = kinds
    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in needed else None,
                annotation=kinds[name],
            )
            for name in names
        ]
    )
    return tool(made)


@st.composite
def fitting(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value that the schema accepts."""
    if "$ref" in schema:
        return draw(fitting(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root))
    if "anyOf" in schema:
        return draw(fitting(draw(st.sampled_from(schema["anyOf"])), root))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    match schema["type"]:
        case "integer":
            return draw(st.integers(-(2**53), 2**53))
        case "number":
            return draw(NUMBERS)
        case "boolean":
            return draw(st.booleans())
        case "string":
            return draw(TEXTS)
        case "null":
            return None
        case "array":
            return draw(st.lists(fitting(schema["items"], root), max_size=3))
        case _ if "additionalProperties" in schema:
            return draw(st.dictionaries(TEXTS, fitting(schema["additionalProperties"], root), max_size=3))
        case _:
            return {
                name: draw(fitting(inner, root))
                for name, inner in schema["properties"].items()
                if name in schema["required"] or draw(st.booleans())
            }


def could_mean(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Whether a lenient reader may take the value; text may mean any type but an enum of text."""
    if "$ref" in schema:
        return could_mean(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    if "anyOf" in schema:
        return any(could_mean(inner, value, root) for inner in schema["anyOf"])
    if "enum" in schema:
        numbers = any(isinstance(each, int) for each in schema["enum"])
        return value in schema["enum"] or (numbers and isinstance(value, (str, float)))
    match schema["type"], value:
        case "string", _:
            return isinstance(value, str)
        case _, str():
            return True
        case "boolean", bool() | int() | float():
            return value in (0, 1)
        case "integer", bool():
            return False
        case "integer", int() | float():
            return value == int(value)
        case "number", bool():
            return False
        case "number", int() | float():
            return True
        case "null", _:
            return value is None
        case "array", list():
            return all(could_mean(schema["items"], item, root) for item in value)
        case "object", dict() if "additionalProperties" in schema:
            return all(could_mean(schema["additionalProperties"], item, root) for item in value.values())
        case "object", dict():
            fields = schema["properties"]
            return set(schema["required"]) <= set(value) and all(
                could_mean(fields[name], item, root) for name, item in value.items() if name in fields
            )
        case _:
            return False


def plain(value: Any) -> Any:
    """The value as JSON, without the defaults that classes fill in."""
    if dataclasses.is_dataclass(value):
        return {name: plain(inner) for name, inner in vars(value).items() if inner is not None}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@given(st.data())
@settings(deadline=None)
def test_arguments_that_the_schema_accepts_arrive_unchanged(data: st.DataObject) -> None:
    made = data.draw(tools())
    schema = made.tool.parameters
    arguments = data.draw(fitting(schema, schema))
    assert plain(made.run(ToolCall("1", "made", arguments))) == plain(arguments)


@given(st.data())
@settings(deadline=None)
def test_arguments_that_no_reading_of_the_schema_accepts_are_refused(data: st.DataObject) -> None:
    made = data.draw(tools())
    schema = made.tool.parameters
    arguments = data.draw(st.dictionaries(st.sampled_from([*NAMES, "d"]), JSON, max_size=3))
    # Null means that an optional argument was not given.
    effective = {name: value for name, value in arguments.items() if value is not None or name in schema["required"]}
    if not set(arguments) <= set(schema["properties"]) or not could_mean(schema, effective, schema):
        with pytest.raises(BadArguments):
            made.run(ToolCall("1", "made", arguments))
