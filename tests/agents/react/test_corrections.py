"""Corrections for a model whose reply has the wrong form."""

from __future__ import annotations

import pytest

from asides.agents.react.calls import build_correction, find_problem
from asides.values.events import StopReason
from asides.values.messages import user
from asides.values.tools import Tool
from tests.agents.react.translating import TOOLS, translated

OSLO = 'Action: get_weather\nAction Input: {"city": "…"}'


@pytest.mark.parametrize(
    "text",
    [
        'Thought: a\nAction: get_weather\nAction Input: {"city": "Oslo"}',
        "Action: get_weather\nAction Input: Oslo",
        "Action: now",
        "Thought: a\nFinal Answer: 42",
        "42",
        "Look.\nAction: now",
        "Action: now\nObservation: 5",
        "Action: no_such_tool\nAction Input: {}",
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(text: str) -> None:
    assert find_problem(translated(text), TOOLS) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Action: now\nAction: now", ["2 Actions", "none of them was run"]),
        ("Action: now\nFinal Answer: 5", ["both an Action and a Final Answer"]),
        ("Thought: so it is", ["neither an Action nor a Final Answer", "Final Answer: "]),
        ("Thought: a\nObservation: 5\nFinal Answer: 5", ["You wrote an Observation yourself"]),
        ("Action: get_weather", ["get_weather needs city as input", OSLO]),
        ("Action: get_weather\nAction Input: {}", ["get_weather needs city as input", OSLO]),
        ("Action: get_weather\nAction Input: {'city': 'Oslo'}", ["is not valid JSON", "line 1, column 2", OSLO]),
        ('Action: get_weather\nAction Input: {"city": "Oslo"', ["is not valid JSON", "closed braces", OSLO]),
        ("Action: add\nAction Input: 1", ["is not an object", 'Action Input: {"a": 1.5, "b": 1.5}']),
        ("Action: other\nAction Input: 1", ["is not an object", 'Action: other\nAction Input: {"parameter": "value"}']),
        ("Action Input: {}", ["does not say which tool"]),
        ("Thought: a\nAction: get the weather\nAction Input: {}", ["the name of one tool and nothing else"]),
    ],
)
def test_what_is_wrong_is_said_with_the_right_form(text: str, said: list[str]) -> None:
    words = find_problem(translated(text), TOOLS)
    assert words is not None
    for each in said:
        assert each in words


def test_without_tools_the_form_is_judged_alone() -> None:
    assert find_problem(translated("Action: get_weather", tools=())) is None
    assert "is not an object" in str(find_problem(translated("Action: get_weather\nAction Input: 5", tools=())))


def test_a_model_that_ran_out_of_tokens_is_not_told_about_form() -> None:
    assert find_problem(translated("Thought: and", stop=StopReason("length")), TOOLS) is None


def test_examples_come_from_the_schema() -> None:
    tool = Tool(
        "paint",
        "",
        {
            "type": "object",
            "properties": {"colour": {"enum": ["red", "blue"]}, "coats": {"type": "integer"}, "any": True},
            "required": ["colour", "coats", "any"],
        },
    )
    words = find_problem(translated("Action: paint", tools=[tool]), [tool])
    assert 'Action Input: {"colour": "red", "coats": 1, "any": "…"}' in str(words)


def test_no_words_of_the_model_come_back_in_a_hint() -> None:
    canary = "canary7f3a"
    for text in (
        f"Thought: {canary}",
        f"Thought: {canary}\nAction: add\nAction Input: {{{canary}",
        f"Thought: {canary}\nAction: get {canary}\nAction Input: {{}}",
        f"<think>{canary}</think>Action: now\nAction: now",
    ):
        words = find_problem(translated(text), TOOLS)
        assert words is not None
        assert canary not in words


def test_repair_is_a_message_to_the_model() -> None:
    assert build_correction("Do it so.") == user("That could not be read. Do it so.")
