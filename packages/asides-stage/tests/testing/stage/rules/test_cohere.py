"""The stage as Cohere's v2 chat: calls paired with results, plans only next to calls, no empty content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

USER: Wire = {"role": "user", "content": "look"}
SO: Wire = {"role": "user", "content": "so?"}


def called(*ids: str, **fields: Any) -> Wire:
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "tool_calls": calls, **fields}


def result(name: str) -> Wire:
    return {"role": "tool", "tool_call_id": name, "content": "fine"}


def answer(*items: Wire, **fields: Any) -> Wire:
    return {"role": "assistant", "content": list(items), **fields}


def asked(stage: Stage, *messages: Wire, **fields: Any) -> Answer:
    body = json.dumps({"model": "command-a-reasoning-08-2025", "messages": messages, **fields}).encode()
    with connected(stage) as connection:
        connection.request("POST", "/v2/chat", body)
        return Answer(connection.getresponse())


TEXT = {"type": "text", "text": "so"}


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ([USER, called("a")], "all tool calls must have tool results; missing for a"),
        ([USER, called("a", "b"), result("a"), SO], "missing for b"),
        ([USER, result("a")], "was not found in the preceding tool calls"),
        ([USER, called("a"), result("a"), result("a")], "is not unique"),
        ([USER, answer(TEXT, tool_plan="I will look."), SO], "only allowed together with tool_calls"),
        ([USER, answer(), SO], "has content or tool_calls"),
        ([USER, answer({"type": "thinking", "thinking": ""}, TEXT), SO], "of type thinking is empty"),
        ([{"role": "user", "content": " "}], "at least 1 token long"),
        ([USER, answer(TEXT)], "the last message must be"),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(stage: OpenStage, history: list[Wire], words: str) -> None:
    answer = asked(stage(Say(text="42")), *history)
    assert answer.status == 400
    assert words in answer.json["message"]


def test_a_loop_with_a_plan_is_accepted(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    turn = called("a", "b", tool_plan="I will look.", content=[{"type": "thinking", "thinking": "mull"}])
    assert asked(opened, USER, turn, result("b"), result("a"), answer(TEXT), SO).status == 200


@pytest.mark.parametrize(
    ("broken", "legal", "status", "kind", "words"),
    [
        ({"reasoning_effort": "low"}, {}, 422, "unknown_param", "parameter 'reasoning_effort' is not a valid field"),
        (
            {"thinking": {"type": "enabled", "token_budget": 0}},
            {"thinking": {"type": "enabled", "token_budget": 1}},
            400,
            "budget_out_of_range",
            "must be a positive integer",
        ),
        (
            {"thinking": {"type": "enabled"}, "model": "command-r-08-2024"},
            {"model": "command-r-08-2024"},
            400,
            "thinking_unsupported_model",
            "does not support thinking",
        ),
        ({"tool_choice": "REQUIRED"}, {}, 400, None, "when tools are specified"),
    ],
)
def test_settings_are_checked(
    stage: OpenStage, broken: Wire, legal: Wire, status: int, kind: str | None, words: str
) -> None:
    opened = stage(Say(text="42"))
    answer = asked(opened, USER, **broken)
    assert (answer.status, opened.refusals[-1].kind or None) == (status, kind)
    assert words in answer.json["message"]
    assert asked(opened, USER, **legal).status == 200
