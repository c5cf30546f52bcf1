"""An action and its input are parsed as a call, however a model writes them."""

from __future__ import annotations

import json

import pytest

from asides.agents.react.calls import ActionCall, AnswerAction, is_prose, parse_action
from tests.agents.react.translating import TOOLS


@pytest.mark.parametrize(
    ("name", "given", "call"),
    [
        ("add", '{"a": 1, "b": 2}', ActionCall("add", '{"a": 1, "b": 2}')),
        ("**Add**", '```json\n{"a": 1}\n```', ActionCall("add", '{"a": 1}')),
        ("get_weather", "Oslo", ActionCall("get_weather", '{"city": "Oslo"}')),
        ("now", "", ActionCall("now", "")),
        ('{"name": "add", "arguments": {"a": 1}}', None, ActionCall("add", '{"a": 1}')),
        ('get_weather\n{"city": "Oslo"} and more', None, ActionCall("get_weather", '{"city": "Oslo"}', trailing=True)),
        ("unknown", "{broken", ActionCall("unknown", "{broken")),
    ],
)
def test_a_call_keeps_its_name_and_its_arguments_as_json(name: str, given: str | None, call: ActionCall) -> None:
    assert parse_action(name, given, TOOLS) == call


def test_a_final_answer_as_an_action_is_the_answer() -> None:
    assert parse_action("Final Answer", '"It is cold."', TOOLS) == AnswerAction("It is cold.")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ('{"answer": "done"}', "done"),
        ('{"final_answer": "done"}', "done"),
        ('{"Final Answer": "done"}', "done"),
        ('```json\n{"response": "done"}\n```', "done"),
        ('{"output": "a\\nb"}', "a\nb"),
        ('{"result": 42}', "42"),
        ('{"text": "half \\ud83d"}', "half ?"),
        # Not an answer with a name, but an object of its own.
        ('{"city": "Oslo"}', '{"city": "Oslo"}'),
        ('{"answer": "done", "sure": true}', '{"answer": "done", "sure": true}'),
        ('{"answer": {"city": "Oslo"}}', '{"answer": {"city": "Oslo"}}'),
        ('{"answer": "done"} or so', '{"answer": "done"} or so'),
        ("{broken", "{broken"),
    ],
)
def test_the_only_argument_of_the_final_answer_is_the_answer(given: str, answer: str) -> None:
    for name in ("final_answer", "Final Answer", "final-answer"):
        assert parse_action(name, given, TOOLS) == AnswerAction(answer)
    assert parse_action(f'{{"action": "final_answer", "action_input": {json.dumps(given)}}}', None, TOOLS) == (
        AnswerAction(answer)
    )


def test_an_object_stays_one_where_the_answer_is_an_object() -> None:
    given = '{"answer": "done"}'
    assert parse_action("final_answer", given, TOOLS, keeps_objects=True) == AnswerAction(given)


@pytest.mark.parametrize("name", ["None", "n/a", "No action needed"])
def test_an_action_that_says_nothing_is_none(name: str) -> None:
    assert parse_action(name, None, TOOLS) is None


@pytest.mark.parametrize(
    ("text", "prose"), [("Bob sends the mail", True), ("add", False), ('add {"a": 1}', False), ("None", False)]
)
def test_prose_is_told_from_a_call(text: str, prose: bool) -> None:
    assert is_prose(text) == prose


def test_in_an_answer_only_the_name_of_a_tool_is_a_call() -> None:
    assert is_prose("subtract", ["add"])
    assert not is_prose("ADD", ["add"])
