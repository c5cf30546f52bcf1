"""Tools, choices and types as LangChain's users write them: each reaches the provider, or is told to be wrong."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypedDict

import pydantic
import pytest

pytest.importorskip("langchain_core")

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import (
    AIMessageChunk,
)

import asides
from asides.dialects.dialect import ServedRequest
from asides.langchain import ChatAsides
from asides.values.parts import ToolCall
from asides_stage import OpenStage, Say, Stage
from tests.integrations.clients.langchain_samples import CLAUDE, add_up, open_model, weather


def read_body(stage: Stage) -> Any:
    return json.loads(stage.requests[-1].body)


# --- tools ------------------------------------------------------------------------------------------------------------


class Forecast(pydantic.BaseModel):
    """A forecast for a city."""

    city: str
    days: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@asides.tool
def subtract(a: int, b: int) -> int:
    """Subtract one number from another."""
    return a - b


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (weather, "weather"),
        (Forecast, "Forecast"),
        (add, "add"),
        (subtract, "subtract"),
        (asides.Tool("halve", "Halve a number.", SCHEMA), "halve"),
        ({"name": "halve", "description": "", "input_schema": SCHEMA}, "halve"),
        ({"type": "function", "function": {"name": "halve", "parameters": SCHEMA}}, "halve"),
        ({"title": "halve", "description": "Halve a number.", **SCHEMA}, "halve"),
        ({"type": "function", "name": "halve", "parameters": SCHEMA}, "halve"),
    ],
)
def test_a_tool_in_any_form_is_offered(given: Any, name: str, stage: OpenStage) -> None:
    opened = stage()
    open_model(opened).bind_tools([given]).invoke("hi")
    (offered,) = read_body(opened)["tools"]
    assert (offered["name"], offered["input_schema"]["type"]) == (name, "object")
    assert offered["input_schema"]["properties"]


def test_a_tool_of_the_provider_is_sent_as_it_is(stage: OpenStage) -> None:
    opened = stage(Say(text="hi"))
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    open_model(opened).bind_tools([search, weather]).invoke("hi")
    assert read_body(opened)["tools"][0] == search


@pytest.mark.parametrize("given", [5, {"type": "object"}, {}, "weather"])
def test_what_is_no_tool_is_told(given: Any) -> None:
    with pytest.raises(asides.ConfigError, match="cannot be read as a tool"):
        ChatAsides(CLAUDE).bind_tools([given])


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        (False, None),
        ("auto", "auto"),
        ("none", "none"),
        ("any", "required"),
        ("required", "required"),
        (True, "required"),
        ({"type": "any"}, "required"),
        ("weather", {"type": "function", "function": {"name": "weather"}}),
        ({"type": "tool", "name": "weather"}, {"type": "function", "function": {"name": "weather"}}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"type": "function", "function": {"name": "weather"}},
        ),
    ],
)
def test_a_choice_in_any_form_is_sent(choice: Any, sent: Any, stage: OpenStage) -> None:
    opened = stage(Say(text="hi"))
    llm = open_model(opened, "openai-chat:gpt-4.1", thinking=None)
    llm.bind_tools([weather, add], tool_choice=choice).invoke("hi")
    assert read_body(opened).get("tool_choice") == sent
    llm.bind_tools([weather, add]).invoke("hi", tool_choice=choice)
    assert read_body(opened).get("tool_choice") == sent


def test_a_choice_of_a_tool_that_is_not_there_is_told() -> None:
    with pytest.raises(asides.ConfigError, match=r"'wether', and there is no such tool. .* weather"):
        ChatAsides(CLAUDE).bind_tools([weather], tool_choice="wether")


def test_calls_come_in_pieces_and_add_up(stage: OpenStage) -> None:
    call = ToolCall("abcdefgh1", "weather", {"city": "Rome " * 9})
    opened = stage(Say(thinking="Hm.", tool_calls=(call, ToolCall("abcdefgh2", "weather", {"city": "Bonn"}))))
    pieces = list(open_model(opened).bind_tools([weather]).stream("?"))
    fragments = [
        fragment for piece in pieces if isinstance(piece, AIMessageChunk) for fragment in piece.tool_call_chunks
    ]
    assert {fragment["index"] for fragment in fragments} == {0, 1}
    assert len(fragments) > 4
    assert add_up(pieces).tool_calls == [
        {"type": "tool_call", "id": "abcdefgh1", "name": "weather", "args": {"city": "Rome " * 9}},
        {"type": "tool_call", "id": "abcdefgh2", "name": "weather", "args": {"city": "Bonn"}},
    ]


# --- typed answers ----------------------------------------------------------------------------------------------------


class City(pydantic.BaseModel):
    """A city."""

    name: str
    inhabitants: int | None = None


class Name(pydantic.BaseModel):
    """The name of a city."""

    name: str


class CityDict(TypedDict):
    """A city."""

    name: Annotated[str, ..., "its name"]


NAMED = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORMS: list[tuple[Any, Any]] = [(City, City(name="Rome")), (CityDict, {"name": "Rome"}), (NAMED, {"name": "Rome"})]


def answer_city(request: ServedRequest) -> Say:
    if request.prompt.tools:
        return Say(
            thinking="Rome.", tool_calls=(ToolCall("abcdefgh1", request.prompt.tools[0].name, {"name": "Rome"}),)
        )
    return Say(thinking="Rome is one.", text='{"name": "Rome"}')


@pytest.mark.parametrize("model", [CLAUDE, "openai-responses:gpt-5.2", "deepseek:deepseek-reasoner", "ollama:qwen3"])
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize(("schema", "value"), FORMS, ids=["pydantic", "TypedDict", "JSON schema"])
async def test_an_answer_has_its_type(schema: Any, value: Any, method: Any, model: str, stage: OpenStage) -> None:
    opened = stage(answer_city)
    stage.expect_no_refusals()
    llm = open_model(opened, model)
    typed = llm.with_structured_output(schema, method=method)
    prompt = "Name a city, as JSON."
    assert typed.invoke(prompt) == value
    assert await typed.ainvoke(prompt) == value
    assert list(typed.stream(prompt))[-1] == value
    whole: Any = llm.with_structured_output(schema, method=method, include_raw=True).invoke(prompt)
    assert (whole["parsed"], whole["parsing_error"]) == (value, None)
    assert whole["raw"].content_blocks[0]["type"] == "reasoning"


def test_a_schema_is_asked_for_natively(stage: OpenStage) -> None:
    opened = stage(answer_city)
    llm = open_model(opened, "openai-responses:gpt-5.2")
    llm.with_structured_output(Name).invoke("?")
    form = read_body(opened)["text"]["format"]
    assert (form["type"], form["name"], form["strict"]) == ("json_schema", "Name", True)
    llm.with_structured_output(NAMED, strict=False).invoke("?")
    assert read_body(opened)["text"]["format"]["strict"] is False
    llm.bind(response_format=City).invoke("?")
    assert read_body(opened)["text"]["format"]["name"] == "City"


def test_tools_and_a_type_go_together(stage: OpenStage) -> None:
    opened = stage(Say(text='{"name": "Rome"}'))
    typed = open_model(opened, "openai-responses:gpt-5.2").with_structured_output(City, tools=[weather])
    assert typed.invoke("?") == City(name="Rome")
    assert [offered["name"] for offered in read_body(opened)["tools"]] == ["weather"]


def test_an_answer_that_does_not_fit_is_an_error_or_a_value(stage: OpenStage) -> None:
    llm = open_model(stage(Say(text='{"city": "Rome"}')))
    with pytest.raises(OutputParserException):
        llm.with_structured_output(City).invoke("?")
    whole: Any = llm.with_structured_output(City, include_raw=True).invoke("?")
    assert whole["parsed"] is None
    assert isinstance(whole["parsing_error"], OutputParserException)
    assert whole["raw"].content == '{"city": "Rome"}'


def test_an_answer_that_is_not_there_is_told_and_thinking_is_never_taken_for_it(stage: OpenStage) -> None:
    llm = open_model(stage(Say(thinking='{"name": "Rome"}', stop="length")))
    with pytest.raises(OutputParserException, match=r"no answer \(starved\)"):
        llm.with_structured_output(City).invoke("?")


@pytest.mark.parametrize(
    ("schema", "method", "told"),
    [
        (City, "guess", "method='guess' is not known"),
        ({"title": "Names", "type": "array", "items": {}}, "json_schema", "accepts only object schemas"),
        ({"type": "object"}, "json_schema", "cannot be read as a schema"),
        (5, "json_schema", "cannot be read as a schema"),
    ],
)
def test_what_is_no_schema_is_told(schema: Any, method: Any, told: str) -> None:
    with pytest.raises(asides.ConfigError, match=told):
        ChatAsides(CLAUDE).with_structured_output(schema, method=method)
