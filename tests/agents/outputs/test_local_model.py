"""Typed output of a real model: the schema limits its answer and not its thinking (llama.cpp, embedded model)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import asides
from asides.agents.outputs.output_type import read_output_type
from asides.agents.outputs.parse_output import parse_output
from asides.agents.outputs.strategy import apply_strategy, ask_for_json, choose_strategy
from asides.values.messages import Prompt, user
from asides.values.tools import Tool
from tests.agents.outputs.shapes import known
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

MODEL = "local:tiny"


@dataclass
class Sum:
    answer: int


FORM = read_output_type(Sum)
LOOK = Tool(
    "get_weather", "Get the current weather", {"type": "object", "properties": {"location": {"type": "string"}}}
)


@pytest.mark.parametrize("stream", [False, True])
def test_FT_42_a_sum_is_a_value_of_its_type_and_the_thinking_is_kept(stream: bool) -> None:
    asked = Prompt((user("What is 47 + 85? Answer as JSON."),))
    strategy = choose_strategy(FORM, asked, known(MODEL))
    assert strategy.kind == "native"
    reply = asides.ask(MODEL, apply_strategy(asked, FORM, strategy), stream=stream)
    assert parse_output(reply, FORM, strategy).value == Sum(132)
    assert reply.thinking
    assert "47 + 85 = 132" in reply.thinking.text


def test_L3_a_schema_beside_tools_keeps_the_model_from_calling_them_and_two_phases_do_not() -> None:
    """Why the row says that they do not go together."""
    question = user("What is the weather in Paris?")
    asked = Prompt((question,), tools=(LOOK,))
    strategy = choose_strategy(FORM, asked, known(MODEL))
    assert strategy.two_phase
    assert asides.ask(MODEL, Prompt((question,), tools=(LOOK,), output=FORM.schema)).tool_calls == ()
    reply = asides.ask(MODEL, apply_strategy(asked, FORM, strategy))
    assert [call.name for call in reply.tool_calls] == ["get_weather"]


def test_L3_the_last_call_brings_the_answer_into_its_form() -> None:
    history = (user("What is 12 + 30?"), asides.assistant("42"), ask_for_json(FORM))
    strategy = choose_strategy(FORM, Prompt(history, tools=(LOOK,)), known(MODEL))
    reply = asides.ask(MODEL, apply_strategy(Prompt(history, tools=(LOOK,)), FORM, strategy, final=True))
    assert isinstance(parse_output(reply, FORM, strategy).value, Sum)
