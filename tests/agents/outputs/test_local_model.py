"""Typed output of a real model: llama.cpp's server holds the embedded one to the schema, behind its thought."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import asides
from asides.agents.outputs.apply_strategy import closing, dressed
from asides.agents.outputs.output_type import wanted
from asides.agents.outputs.parse_output import read
from asides.agents.outputs.strategy import way_for
from asides.values.messages import Prompt, user
from asides.values.tools import Tool
from tests.agents.outputs.shapes import known
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

MODEL = "local:tiny"


@dataclass
class Sum:
    answer: int


FORM = wanted(Sum)
LOOK = Tool(
    "get_weather", "Get the current weather", {"type": "object", "properties": {"location": {"type": "string"}}}
)


@pytest.mark.parametrize("stream", [False, True])
def test_FT_42_a_sum_is_a_value_of_its_type_and_the_thinking_is_kept(stream: bool) -> None:
    asked = Prompt((user("What is 47 + 85? Answer as JSON."),))
    way = way_for(FORM, asked, known(MODEL))
    assert way.kind == "native"
    reply = asides.ask(MODEL, dressed(asked, FORM, way), stream=stream)
    assert read(reply, FORM, way).value == Sum(132)
    assert reply.thinking is not None
    assert "47 + 85 = 132" in reply.thinking.text


def test_L3_a_schema_beside_tools_keeps_the_model_from_calling_them_and_two_phases_do_not() -> None:
    """Why the row says that they do not go together."""
    question = user("What is the weather in Paris?")
    asked = Prompt((question,), tools=(LOOK,))
    way = way_for(FORM, asked, known(MODEL))
    assert way.two_phase
    assert asides.ask(MODEL, Prompt((question,), tools=(LOOK,), output=FORM.schema)).tool_calls == ()
    reply = asides.ask(MODEL, dressed(asked, FORM, way))
    assert [call.name for call in reply.tool_calls] == ["get_weather"]


def test_L3_the_last_call_brings_the_answer_into_its_form() -> None:
    history = (user("What is 12 + 30?"), asides.assistant("42"), closing(FORM))
    way = way_for(FORM, Prompt(history, tools=(LOOK,)), known(MODEL))
    reply = asides.ask(MODEL, dressed(Prompt(history, tools=(LOOK,)), FORM, way, final=True))
    assert isinstance(read(reply, FORM, way).value, Sum)
