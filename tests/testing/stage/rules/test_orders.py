"""The order that servers with turns of blocks insist on: ids once, calls behind a person, no thought at the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.testing.stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]


def asked(stage: Stage, path: str, **body: Any) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body).encode())
        return Answer(connection.getresponse())


# --- Messages ---------------------------------------------------------------------------------------------------------


def tool_use(name: str) -> Wire:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "look", "input": {}}]}


def tool_result(name: str) -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "fine"}]}


@pytest.mark.parametrize(("second", "status"), [("b", 200), ("a", 400)])
def test_an_id_is_used_once_in_a_conversation(stage: OpenStage, second: str, status: int) -> None:
    go: Wire = {"role": "user", "content": "go"}
    history = [go, tool_use("a"), tool_result("a"), tool_use(second), tool_result(second)]
    answer = asked(stage(Say(text="42")), "/v1/messages", model="other", max_tokens=99, messages=history)
    assert answer.status == status
    assert (b"`tool_use` ids must be unique" in answer.body) == (status == 400)


# --- Gemini -----------------------------------------------------------------------------------------------------------

PERSON: Wire = {"role": "user", "parts": [{"text": "go"}]}
SAID: Wire = {"role": "model", "parts": [{"text": "hm"}]}


def call(count: int = 1) -> Wire:
    return {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": n}}} for n in range(count)]}


def response(count: int = 1) -> Wire:
    parts = [{"functionResponse": {"name": "look", "response": {"output": "fine"}}} for _ in range(count)]
    return {"role": "user", "parts": parts}


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([PERSON, call(2), response(2), PERSON], b""),
        ([PERSON, call(), response(), call(), response()], b""),
        ([call(), response()], b"comes immediately after a user turn"),
        ([PERSON, SAID, call(), response()], b"comes immediately after a user turn"),
        ([PERSON, response()], b"immediately after a function call turn"),
        ([PERSON, call(2), response(1)], b"number of function response parts"),
        ([PERSON, call(2), response(1), response(1)], b"number of function response parts"),
        ([PERSON, call(), PERSON], b"number of function response parts"),
    ],
)
def test_calls_follow_a_person_and_are_answered_at_once(stage: OpenStage, contents: list[Wire], words: bytes) -> None:
    answer = asked(stage(Say(text="42")), "/v1beta/models/gemini-2.5-flash:generateContent", contents=contents)
    assert answer.status == (400 if words else 200)
    assert words in answer.body


# --- Converse ---------------------------------------------------------------------------------------------------------


def test_a_turn_does_not_end_with_a_thought(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", text="hm"))
    path = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse"
    go: Wire = {"role": "user", "content": [{"text": "go"}]}
    turn = asked(opened, path, messages=[go]).json["output"]["message"]
    thought, words = turn["content"]
    assert asked(opened, path, messages=[go, turn, go]).status == 200
    backwards = {"role": "assistant", "content": [words, thought]}
    assert b"final block" in asked(opened, path, messages=[go, backwards, go]).body
