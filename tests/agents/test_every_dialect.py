"""The same agent with three tools in every dialect, streamed and whole, sync and async: one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides.testing.stage import OpenStage
from asides.values.parts import Text, ToolResult
from tests.agents.three_tools import ANSWER, MODELS, THOUGHTS, TOOLS, Ran, every_way, kinds, play, stream_blocking

THINKING = {"gemini": "low", "cohere": True, "anthropic": 2000, "bedrock": 2000, "ollama": True}


def essence(result: asides.Result[Any]) -> tuple[Any, ...]:
    """What has to be equal everywhere; seals and counts are each provider's own."""
    calls = [[(call.name, call.arguments) for call in step.tool_calls] for step in result.steps]
    results = [[(told.text, told.is_error) for told in step.results] for step in result.steps]
    roles = [message.role for message in result.messages]
    thoughts = [step.thinking.text if step.thinking else None for step in result.steps]
    return result.output, result.outcome, calls, results, roles, thoughts


EXPECTED = (
    ANSWER,
    "answered",
    [
        [("temperature", {"place": "Lisbon"}), ("temperature", {"place": "Oslo"}), ("hour", {"place": "Lisbon"})],
        [("minus", {"left": 21, "right": 12})],
        [],
    ],
    [[("21", False), ("12", False), ("12 o'clock in Lisbon", False)], [('{"difference":9}', False)], []],
    ["user", "assistant", "tool", "tool", "tool", "assistant", "tool", "assistant"],
    list(THOUGHTS),
)


@every_way
@pytest.mark.parametrize("dialect", MODELS)
def test_the_same_script_gives_the_same_result(dialect: str, send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(play)
    ran = send(MODELS[dialect], open_stage.url, "Which is warmer?", tools=TOOLS, thinking=THINKING.get(dialect, "low"))
    assert ran.error is None
    assert ran.result is not None
    assert essence(ran.result) == EXPECTED
    assert [received.problem for received in open_stage.requests] == [None, None, None]
    for message in ran.result.messages:
        assert not any(thought in message.text for thought in THOUGHTS)
        for part in message.parts:
            assert not (isinstance(part, (Text, ToolResult)) and any(thought in part.text for thought in THOUGHTS))
    assert ran.result.thinking
    assert ran.result.thinking.text == "\n\n".join(THOUGHTS)
    assert ran.result.metadata["thinking"] == "\n\n".join(THOUGHTS)


@pytest.mark.parametrize("dialect", MODELS)
def test_the_steps_are_seen_as_they_are_taken(dialect: str, stage: OpenStage) -> None:
    ran = stream_blocking(MODELS[dialect], stage(play).url, "?", tools=TOOLS, thinking=THINKING.get(dialect, "low"))
    names = kinds(ran.events)
    assert names == [
        *("StepStarted", "ToolStarted", "ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished", "ToolFinished"),
        *("StepEnded", "StepStarted", "ToolStarted", "ToolFinished", "StepEnded", "StepStarted", "StepEnded"),
        "RunEnded",
    ]
    assert type(ran.events[-1]) is asides.RunEnded
    said = "".join(event.text for event in ran.events if isinstance(event, asides.TextDelta))
    assert said == ANSWER
    # Gemini and others may send a thought whole; the sum is what counts.
    thought = "".join(event.text for event in ran.events if isinstance(event, asides.ThinkingDelta))
    assert thought == "".join(THOUGHTS)
