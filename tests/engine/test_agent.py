"""An agent with a real model behind it: the embedded one, with its weather and its calculator, over every language."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import asides
from tests.engine.engines import MODEL, SAME_SERVER, SPOKEN, asking_over
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

WEATHER = "What is the weather in Paris and Tokyo?"
PRODUCT = "Use the calculator to work out 23 * 47."


@asides.tool
def get_weather(location: str) -> str:
    """Get the current weather."""
    return {"Paris": "18 degrees and sunny", "Tokyo": "12 degrees and rainy"}[location]


@asides.tool
async def calculator(expression: str) -> int:
    """Work out a sum."""
    left, sign, right = expression.split()
    return {"+": int(left) + int(right), "-": int(left) - int(right), "*": int(left) * int(right)}[sign]


TOOLS: list[asides.ToolLike] = [get_weather, calculator]


def check_weather(result: asides.Result[Any]) -> None:
    assert result.outcome == "answered"
    assert "18 degrees and sunny in Paris" in result.output
    assert "12 degrees and rainy in Tokyo" in result.output
    assert [[call.arguments for call in step.tool_calls] for step in result.steps] == [
        [{"location": "Paris"}, {"location": "Tokyo"}],
        [],
    ]
    assert all(step.thinking.text.strip() for step in result.steps)
    assert result.steps[0].thinking
    assert "The user wants the weather" in result.steps[0].thinking.text
    assert not any("The user wants" in message.text for message in result.messages)


def check_product(result: asides.Result[Any]) -> None:
    assert "1081" in result.output
    assert [call.arguments for call in result.steps[0].tool_calls] == [{"expression": "23 * 47"}]
    assert [told.text for told in result.steps[0].results] == ["1081"]


@pytest.mark.parametrize("stream", [False, True])
def test_it_uses_its_tools_for_real(stream: bool) -> None:
    agent = asides.Agent(MODEL, tools=TOOLS, max_tokens=400, stream=stream)
    check_weather(agent.send(WEATHER))
    check_product(agent.send(PRODUCT))


def test_awaiting_it_does_the_same() -> None:
    async def main() -> list[asides.Result[str]]:
        agent = asides.AsyncAgent(MODEL, tools=TOOLS, max_tokens=400)
        return [await agent.send(WEATHER), await agent.send(PRODUCT)]

    weather, product = asyncio.run(main())
    check_weather(weather)
    check_product(product)


@pytest.mark.parametrize("dialect", SPOKEN)
def test_in_every_language_of_the_engine(dialect: str) -> None:
    with asking_over(dialect) as client:
        agent = asides.Agent(SAME_SERVER, client=client, tools=TOOLS, max_tokens=400)
        check_weather(agent.send(WEATHER))
        with agent.stream(PRODUCT) as run:
            names = [type(event).__name__ for event in run]
            check_product(run.result)
        assert names.count("RunEnded") == 1
        assert "ThinkingDelta" in names


@dataclass
class Sum:
    """What a sum comes to."""

    answer: int


def test_a_typed_answer_of_a_real_model() -> None:
    result = asides.Agent(MODEL, output=Sum, max_tokens=400).send("What is 47 + 85? Answer as JSON.")
    assert result.output == Sum(132)
    assert result.thinking


def test_a_conversation_goes_on_behind_a_run_that_was_broken_off() -> None:
    chat = asides.Conversation(MODEL)
    agent = asides.Agent(MODEL, tools=TOOLS, max_tokens=400)
    with agent.stream(WEATHER, conversation=chat) as run:
        for event in run:
            if isinstance(event, asides.ToolStarted):
                break
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "tool"]
    check_product(agent.send(PRODUCT, conversation=asides.Conversation(MODEL)))
    assert agent.send("What is 47 + 85?", conversation=chat).outcome == "answered"
