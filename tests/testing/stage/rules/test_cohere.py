"""The stage as Cohere's v2 chat: calls and results in pairs, plans beside calls, and content that says something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.testing.stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

USER: Wire = {"role": "user", "content": "look"}
SO: Wire = {"role": "user", "content": "so?"}


def called(*ids: str, **fields: Any) -> Wire:
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "tool_calls": calls, **fields}


def result(name: str) -> Wire:
    return {"role": "tool", "tool_call_id": name, "content": "fine"}


def said(*items: Wire, **fields: Any) -> Wire:
    return {"role": "assistant", "content": list(items), **fields}


def asked(stage: Stage, *messages: Wire) -> Answer:
    body = json.dumps({"model": "command-a-reasoning-08-2025", "messages": messages}).encode()
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
        ([USER, said(TEXT, tool_plan="I will look."), SO], "only allowed together with tool_calls"),
        ([USER, said(), SO], "has content or tool_calls"),
        ([USER, said({"type": "thinking", "thinking": ""}, TEXT), SO], "of type thinking is empty"),
        ([{"role": "user", "content": " "}], "at least 1 token long"),
        ([USER, said(TEXT)], "the last message must be"),
    ],
)
def test_what_its_servers_refuse(stage: OpenStage, history: list[Wire], words: str) -> None:
    answer = asked(stage(Say(text="42")), *history)
    assert answer.status == 400
    assert words in answer.json["message"]


def test_a_loop_with_a_plan_is_taken(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    turn = called("a", "b", tool_plan="I will look.", content=[{"type": "thinking", "thinking": "mull"}])
    assert asked(opened, USER, turn, result("b"), result("a"), said(TEXT), SO).status == 200
