"""The actor: what it works out is right, what it says is honest, and its thinking can be switched off."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from asides_stage import OpenStage, Say, improvise
from asides_stage.stage.actor import fill_schema

WEATHER = Tool(
    "get_weather",
    "The weather of a place.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"enum": ["celsius", "kelvin"]},
        },
        "required": ["city", "days", "unit"],
    },
)


def ask(*messages: Message | str, model: str = "any", **prompt: Any) -> Say:
    spoken = tuple(user(message) if isinstance(message, str) else message for message in messages)
    return improvise(ServedRequest(Prompt(spoken, **prompt), model, stream=True))


# --- sums -------------------------------------------------------------------------------------------------------------


def test_the_first_question_of_the_readme() -> None:
    reply = ask("What is 23 * 47?")
    assert reply.text == "23 × 47 = 1081"
    assert reply.thinking == (
        "The question is 23 × 47.\n"
        "Split 47 into 40 + 7.\n"
        "23 × 40 = 920.\n"
        "23 × 7 = 161.\n"
        "920 + 161 = 1081.\n"
        "So 23 × 47 = 1081."
    )
    assert reply.model is None, "the reply has the requested name"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is 2 plus 3?", "2 + 3 = 5"),
        ("100+23", "100 + 23 = 123"),
        ("7 minus 10", "7 - 10 = -3"),
        ("7 - -10", "7 - (-10) = 17"),
        ("what's 6 times 7", "6 × 7 = 42"),
        ("6x7", "6 × 7 = 42"),
        ("-6 × 70", "-6 × 70 = -420"),
        ("12.5 / 4", "12.5 ÷ 4 = 3.125"),
        ("1000 divided by 7", "1000 ÷ 7 = 142 remainder 6 (about 142.857)"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("8/0", "8 ÷ 0 is undefined"),
        ("1.5 / 0.7", "1.5 ÷ 0.7 = about 2.14286"),
    ],
)
def test_sums(question: str, answer: str) -> None:
    assert ask(question).text == answer


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "Hello there",
        "Who are you?",
        "What model is this?",
        "Why is the sky blue?",
        " ",
        "How many people live in a town?",
    ],
)
def test_it_says_what_it_can_do_and_claims_to_be_no_model(question: str) -> None:
    reply = ask(question)
    assert "23 * 47" in reply.text
    assert reply.thinking
    if question.strip():
        assert "offline stage" in reply.text
        assert "not a model" in reply.text


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many r are in strawberry?", "3 times"),
        ("How many r's in the word 'strawberry'?", "3 times"),
        ("how many times does the letter L occur in hello?", "2 times"),
        ('How many "a"s are there in "Banana"?', "3 times"),
        ("How often is z in pizza", "2 times"),
        ("How many letters x are in word", "0 times"),
        ("How many w's are in word", "once"),
    ],
)
def test_it_counts_letters(question: str, count: str) -> None:
    assert ask(question).text.endswith(f" {count}.")


def test_it_reverses() -> None:
    assert ask("Reverse: abc def").text == "fed cba"
    assert ask('please reverse the word "stage"').text == "egats"
    assert "offline stage" in ask("How do I reverse a list?").text


def test_the_question_is_the_last_message_of_the_user() -> None:
    assert ask("1 + 1", Message("assistant"), "2 + 2").text == "2 + 2 = 4"


@pytest.mark.parametrize("thinking", [Thinking(mode="off"), Thinking(show="none")])
def test_without_thinking_there_is_no_thought(thinking: Thinking) -> None:
    reply = ask("What is 23 * 47?", thinking=thinking)
    assert (reply.thinking, reply.text) == (None, "23 × 47 = 1081")


def test_little_effort_is_one_line() -> None:
    assert ask("What is 23 * 47?", thinking=Thinking(effort="low")).thinking == "The question is 23 × 47."


@pytest.mark.parametrize(
    ("model", "thinking", "shown", "hidden"),
    [
        ("gpt-4o", Thinking(), False, False),
        ("claude-haiku-4-5", Thinking(), False, False),
        ("claude-haiku-4-5", Thinking(budget=2000), True, False),
        ("deepseek-chat", Thinking(), False, False),
        ("deepseek-chat", Thinking(effort="high"), True, False),
        ("deepseek-reasoner", Thinking(), True, False),
        ("gpt-5", Thinking(), False, True),
        ("gpt-5", Thinking(summary="auto"), True, False),
        ("gemini-2.5-pro", Thinking(show="none"), False, True),
        ("gemini-2.5-pro", Thinking(show="summary"), True, False),
        ("a-model-without-a-rule", Thinking(), True, False),
    ],
)
def test_a_reply_thinks_as_the_requested_model_does(
    model: str, thinking: Thinking, *, shown: bool, hidden: bool
) -> None:
    reply = ask("What is 23 * 47?", model=model, thinking=thinking)
    assert (bool(reply.thinking), bool(reply.hidden_thinking)) == (shown, hidden)
    assert reply.text == "23 × 47 = 1081"


def test_hidden_thinking_is_counted_and_not_sent(stage: OpenStage) -> None:
    opened = stage(Say(hidden_thinking="three long words", text="42"))
    reply = asides.ask("openai:gpt-5", "?", base_url=opened.url, api_key="key")
    assert (reply.text, reply.thinking.text, reply.usage.thinking) == ("42", "", 3)


def test_a_limit_can_be_used_up_by_thinking() -> None:
    starved = ask("What is 23 * 47?", max_tokens=4)
    assert (starved.thinking, starved.text, starved.stop) == ("The question is 23", "", "length")
    short = ask("What is 23 * 47?", max_tokens=2, thinking=Thinking(mode="off"))
    assert (short.thinking, short.text, short.stop) == (None, "23 ×", "length")
    assert ask("What is 23 * 47?", max_tokens=1000).stop is None


# --- tools and shapes -------------------------------------------------------------------------------------------------


def test_it_calls_the_tool_that_the_question_names() -> None:
    reply = ask("What will the weather in New York be for 3 days, in kelvin?", tools=(Tool("other_thing"), WEATHER))
    [call] = reply.tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "New York", "days": 3, "unit": "kelvin"})
    assert (reply.text, reply.stop) == ("", None)
    assert "get_weather" in (reply.thinking or "")


def test_it_calls_no_tool_that_was_not_asked_for_or_not_allowed() -> None:
    assert ask("What is 2 + 2?", tools=(WEATHER,)).tool_calls == ()
    assert ask("The weather?", tools=(WEATHER,), tool_choice="none").tool_calls == ()


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_it_calls_the_tool_it_has_to_call(choice: str) -> None:
    [call] = ask("What is 2 + 2?", tools=(WEATHER,), tool_choice=choice).tool_calls
    assert call.name == "get_weather"


def test_it_passes_on_what_tools_say() -> None:
    reply = ask(
        "The weather in Oslo and Rome?",
        Message("assistant", (ToolCall("a", "get_weather"), ToolCall("b", "get_weather"))),
        Message("tool", (ToolResult("a", "12 °C"),)),
        Message("tool", (ToolResult("b", "no such city", is_error=True),)),
        tools=(WEATHER,),
    )
    assert reply.text == "get_weather says: 12 °C\nget_weather failed: no such city"
    assert reply.tool_calls == ()


# How clients give a result back: alone, with notes beside it, as an error, without a name, with more of the user.
NOTE = user("<system-reminder>\nThe weather tool was used; the agent may use it again.\n</system-reminder>")
WAYS_BACK: dict[str, Callable[[ToolCall], tuple[Message, ...]]] = {
    "the result": lambda call: (Message("tool", (ToolResult(call.id, "12 °C", call.name),)),),
    "no name": lambda call: (Message("tool", (ToolResult(call.id, "12 °C"),)),),
    "an error": lambda call: (Message("tool", (ToolResult(call.id, "no weather", call.name, is_error=True),)),),
    "an empty result": lambda call: (Message("tool", (ToolResult(call.id, ""),)),),
    "a note after it": lambda call: (Message("tool", (ToolResult(call.id, "12 °C"),)), NOTE),
    "a note of the system": lambda call: (
        Message("tool", (ToolResult(call.id, "12 °C"),)),
        Message("system", (Text("Use the weather tool."),)),
    ),
    "a demand to go on": lambda call: (Message("tool", (ToolResult(call.id, "12 °C"),)), user("Use the weather tool.")),
    "the question again": lambda call: (Message("tool", (ToolResult(call.id, "12 °C"),)), user("The weather?")),
}


@pytest.mark.parametrize("choice", [None, "auto", "required", "get_weather"])
@pytest.mark.parametrize("way", WAYS_BACK)
def test_a_loop_of_tools_ends(way: str, choice: str | None) -> None:
    history: list[Message] = []
    ids: list[str] = []
    for _ in range(10):
        reply = ask("The weather?", *history, tools=(WEATHER,), tool_choice=choice)
        if not reply.tool_calls:
            break
        [call] = reply.tool_calls
        ids.append(call.id)
        history += [Message("assistant", reply.tool_calls), *WAYS_BACK[way](call)]
    assert 1 <= len(ids) <= 4
    assert len(set(ids)) == len(ids), "clients and servers pair results with calls by their ids"


def test_a_tool_that_is_demanded_by_name_is_called_after_results_of_another() -> None:
    called = Message("assistant", (ToolCall("a", "look"),))
    history = [called, Message("tool", (ToolResult("a", "x"),))]
    reply = ask("The weather?", *history, tools=(Tool("look"), WEATHER), tool_choice="get_weather")
    assert [call.name for call in reply.tool_calls] == ["get_weather"]


@pytest.mark.parametrize(
    "name", ["Agent", "Task", "agent", "spawn_agent", "run_subagent", "multi_agent_v1__spawn_agent"]
)
@pytest.mark.parametrize("choice", [None, "required"])
def test_it_starts_no_other_agent(name: str, choice: str | None) -> None:
    schema = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
    tools = (Tool(name, "", schema), WEATHER)
    question = f"Use the {name} tool: spawn an agent or subagent for the task."
    calls = ask(question, tools=tools, tool_choice=choice).tool_calls
    assert name not in {call.name for call in calls}


def test_it_calls_a_tool_that_has_agent_in_its_name_and_starts_none() -> None:
    [call] = ask("Ask the travel_agent.", tools=(Tool("travel_agent"),)).tool_calls
    assert call.name == "travel_agent"


def test_it_reads_the_question_beside_the_notes_of_an_agent() -> None:
    noted = Message("user", (*NOTE.parts, Text("What is 2 + 3?"), *NOTE.parts))
    reply = improvise(ServedRequest(Prompt((noted, NOTE), tools=(WEATHER,)), "any", stream=False))
    assert (reply.text, reply.tool_calls) == ("2 + 3 = 5", ())


def test_a_typed_answer_is_typed_after_results_too() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    history = [Message("assistant", (ToolCall("a", "get_weather"),)), Message("tool", (ToolResult("a", "x"),))]
    reply = ask("The weather for 7 days?", *history, tools=(WEATHER,), output=OutputSchema("number", schema))
    assert json.loads(reply.text) == {"n": 7.0}


LONG = {
    "words": "word " * 20_000,
    "no blanks": "x" * 100_000,
    "blanks": "1 + 1 +" + " " * 100_000 + "x",
    "quotes": "reverse " + "“" * 100_000,
    "digits": "1+" * 50_000,
    "capitals": "In Rome " * 12_500,
    "tags": "<" * 100_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
@pytest.mark.parametrize("tools", [(), (WEATHER,)])
def test_a_long_message_gets_a_short_answer(text: str, tools: tuple[Tool, ...]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    for choice in ("auto", "required"):
        reply = ask(text, tools=tools, tool_choice=choice)
        assert len(reply.text) + len(reply.thinking or "") < 5_000
        assert sum(len(str(call.arguments)) for call in reply.tool_calls) < 5_000
    assert len(ask(text, output=OutputSchema("texts", schema)).text) < 5_000


def test_a_question_at_the_end_of_a_long_message_is_answered() -> None:
    assert ask("word " * 20_000 + "What is 2 + 3?").text == "2 + 3 = 5"


def test_json_when_json_was_asked_for() -> None:
    assert json.loads(ask("What is 2 + 2?", output="json").text) == {"answer": "2 + 2 = 4"}
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    assert json.loads(ask("Give me 7", output=OutputSchema("number", schema)).text) == {"n": 7.0}


class Address(msgspec.Struct):
    street: str
    number: int
    floor: float | None = None


class Person(msgspec.Struct):
    name: str
    age: int
    active: bool
    addresses: list[Address]
    tags: tuple[str, ...] = ()


@given(st.text(max_size=60))
def test_what_is_filled_in_fits_the_schema(words: str) -> None:
    [schema], parts = msgspec.json.schema_components([Person], ref_template="#/$defs/{name}")
    filled = fill_schema({**schema, "$defs": parts}, words)
    assert isinstance(msgspec.convert(filled, Person), Person)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 3}, 3),
        ({"enum": ["red", "green"]}, "green"),
        ({"enum": [1, 2]}, 1),
        ({"type": ["string", "null"]}, "Rome"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [12, 1]),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, {"a": True}),
        ({"$ref": "#/$defs/self", "$defs": {"self": {"$ref": "#/$defs/self"}}}, None),
        ({"$ref": "elsewhere.json"}, None),
        (True, None),
    ],
)
def test_filling_by_kind(schema: Any, value: Any) -> None:
    assert fill_schema(schema, "12 green apples in Rome") == value
