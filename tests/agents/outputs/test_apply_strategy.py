"""The prompt of a step: the schema where it belongs, the tools where they were, and the given prompt untouched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.agents.outputs.output_type import OutputMismatch, read_output_type
from asides.agents.outputs.strategy import Strategy, apply_strategy, ask_for_correction, ask_for_json, build_final_tool
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.parts import ToolResult
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from tests.agents.outputs.shapes import WEATHER_SCHEMA, Person, Weather

LOOK = Tool("look", "Look out of the window.")
FORM = read_output_type(Weather)


def prompt(*tools: Tool, **fields: Any) -> Prompt:
    return Prompt(
        (user("How is the sky?"),), system="Be brief.", tools=tools, thinking=Thinking(effort="high"), **fields
    )


STRATEGIES = [
    Strategy("native"),
    Strategy("native", two_phase=True),
    Strategy("native", shapes_only=True),
    Strategy("tool", forced=True),
    Strategy("tool"),
    Strategy("instructed"),
    Strategy("instructed", json_mode=True),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("output", [Weather, list[int], "json"])
def test_the_given_prompt_stays_as_it_is_and_so_does_all_that_is_not_about_the_form(
    strategy: Strategy, final: bool, output: Any
) -> None:
    given = prompt(LOOK, max_tokens=100, extra={"a": 1})
    before = msgspec.to_builtins(given)
    made = apply_strategy(given, read_output_type(output), strategy, final=final)
    assert msgspec.to_builtins(given) == before
    about_the_form = ("system", "tools", "tool_choice", "parallel_tool_calls", "output")
    kept = [name for name in Prompt.__struct_fields__ if name not in about_the_form]
    assert all(getattr(made, name) == getattr(given, name) for name in kept)
    assert (made.system or "").startswith("Be brief.")
    assert all(tool == LOOK or tool.name == strategy.tool for tool in made.tools)


def test_native_the_schema_is_asked_for_and_the_tools_stay() -> None:
    made = apply_strategy(prompt(LOOK, tool_choice="auto"), FORM, Strategy("native"))
    assert made == prompt(LOOK, tool_choice="auto", output=OutputSchema("Weather", WEATHER_SCHEMA))


@pytest.mark.parametrize("choice", ["look", "required"])
def test_native_a_step_that_has_to_call_a_tool_has_no_answer_to_form(choice: str) -> None:
    assert apply_strategy(prompt(LOOK, tool_choice=choice), FORM, Strategy("native")) == prompt(
        LOOK, tool_choice=choice
    )
    assert apply_strategy(prompt(LOOK, tool_choice=choice), FORM, Strategy("native"), final=True).output == FORM.schema
    assert apply_strategy(prompt(tool_choice=choice), FORM, Strategy("native")).output == FORM.schema


def test_native_at_the_end_no_tool_is_called_any_more_but_all_are_told() -> None:
    """Hosts refuse a history with calls of tools that they are not told of."""
    made = apply_strategy(prompt(LOOK, parallel_tool_calls=True), FORM, Strategy("native"), final=True)
    assert (made.tools, made.tool_choice, made.parallel_tool_calls) == ((LOOK,), "none", None)
    assert apply_strategy(prompt(), FORM, Strategy("native"), final=True).tool_choice is None


def test_L3_two_phases_first_the_tools_without_the_schema_then_the_schema_without_the_tools() -> None:
    strategy = Strategy("native", two_phase=True)
    assert apply_strategy(prompt(LOOK), FORM, strategy) == prompt(LOOK)
    assert apply_strategy(prompt(LOOK, tool_choice="auto"), FORM, strategy, final=True) == prompt(output=FORM.schema)
    assert json.dumps(WEATHER_SCHEMA, separators=(",", ":")) in ask_for_json(FORM).text
    assert ask_for_json(FORM).role == "user"


def test_bounds_are_told_in_words_to_hosts_that_know_only_shapes() -> None:
    made = apply_strategy(prompt(), read_output_type(Person), Strategy("native", shapes_only=True)).output
    assert isinstance(made, OutputSchema)
    age = made.schema["properties"]["age"]
    assert (age["type"], age["description"]) == ("integer", "(maximum: 150; minimum: 0)")
    assert "minimum" not in age


@pytest.mark.parametrize(
    ("forced", "tools", "choice", "final", "sent"),
    [
        (True, (), None, False, "final_answer"),
        (False, (), None, False, "auto"),
        (True, (LOOK,), None, False, "required"),
        (True, (LOOK,), "auto", False, "required"),
        (True, (LOOK,), "look", False, "look"),
        (True, (LOOK,), "required", False, "required"),
        (True, (LOOK,), "none", False, "final_answer"),
        (False, (LOOK,), None, False, "auto"),
        (False, (LOOK,), "look", False, "look"),
        (True, (LOOK,), None, True, "final_answer"),
        (True, (LOOK,), "look", True, "final_answer"),
        (False, (LOOK,), "look", True, "auto"),
    ],
)
def test_pain_D4_which_tool_must_be_called(
    forced: bool, tools: tuple[Tool, ...], choice: str | None, final: bool, sent: str
) -> None:
    made = apply_strategy(prompt(*tools, tool_choice=choice), FORM, Strategy("tool", forced=forced), final=final)
    assert made.tool_choice == sent
    assert made.output is None
    assert made.tools == (*tools, build_final_tool(FORM, Strategy("tool")))
    assert made.tools[-1].parameters == WEATHER_SCHEMA
    assert "final_answer" in (made.system or "")


def test_in_words_the_schema_stands_behind_the_users_own_instructions() -> None:
    made = apply_strategy(prompt(LOOK), FORM, Strategy("instructed"))
    assert (made.system or "").startswith("Be brief.\n\n")
    assert json.dumps(WEATHER_SCHEMA, separators=(",", ":")) in (made.system or "")
    assert (made.tools, made.output) == ((LOOK,), None)
    assert apply_strategy(prompt(), FORM, Strategy("instructed", json_mode=True)).output == "json"
    bare = msgspec.structs.replace(prompt(), system=None)
    assert (apply_strategy(bare, FORM, Strategy("instructed")).system or "").startswith("Your final answer")


def test_json_without_a_schema_is_spoken_of_since_hosts_refuse_it_otherwise() -> None:
    made = apply_strategy(prompt(), read_output_type("json"), Strategy("native"))
    assert made.output == "json"
    assert "JSON" in (made.system or "")


def test_what_was_wrong_is_told_by_the_one_who_can_tell() -> None:
    assert ask_for_correction(OutputMismatch("No JSON.")) == user("No JSON.")
    result = ToolResult("c1", "No JSON.", "final_answer", is_error=True)
    assert ask_for_correction(OutputMismatch("No JSON.", results=(result,))) == Message("tool", (result,))
