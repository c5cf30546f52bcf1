"""DeepSeek and MiniMax in the dialect of Messages: what they refuse, and the nearest that they accept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

GO: Wire = {"role": "user", "content": "go"}
CALL: Wire = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT: Wire = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]}
THOUGHT: Wire = {"type": "thinking", "thinking": "plan", "signature": ""}


def turn(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def post(stage: Stage, model: str, messages: list[Wire], **fields: Any) -> Answer:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    body = {"model": model, "max_tokens": 4000, "tools": tools, "messages": messages, **fields}
    with connected(stage) as connection:
        connection.request("POST", "/v1/messages", json.dumps(body))
        return Answer(connection.getresponse())


def test_deepseek_wants_the_thinking_of_turns_with_calls_back(stage: OpenStage) -> None:
    opened, model = stage(Say(text="42")), "deepseek-v4-pro"
    for messages in ([GO, turn(CALL), RESULT], [GO, turn(CALL), RESULT, turn({"type": "text", "text": "42"}), GO]):
        answer = post(opened, model, messages)
        assert (answer.status, opened.refusals[-1].kind) == (400, "reasoning_content_required")
        assert "The `content[].thinking` in the thinking mode must be passed back" in answer.json["error"]["message"]
        assert post(opened, model, messages, thinking={"type": "disabled"}).status == 200
    assert post(opened, model, [GO, turn(THOUGHT, CALL), RESULT]).status == 200, "nobody checks a signature"
    assert post(opened, model, [GO, turn({"type": "text", "text": "42"}), GO]).status == 200
    assert post(opened, model, [RESULT]).status == 400
    assert opened.refusals[-1].kind == "tool_result_orphaned"


@pytest.mark.parametrize(
    ("kind", "words", "broken", "legal"),
    [
        (
            "thinking_mode_unsupported",
            'invalid params, invalid thinking.type: "enabled" (allowed: adaptive, disabled) (2013)',
            {"messages": [GO], "thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"messages": [GO], "thinking": {"type": "adaptive"}},
        ),
        (
            "tool_result_orphaned",
            "invalid params, tool result's tool id(t1) not found (2013)",
            {"messages": [GO, RESULT]},
            {"messages": [GO, turn(THOUGHT, CALL), RESULT]},
        ),
        (
            "tool_arguments_invalid",
            "invalid params, invalid function arguments json string, tool_call_id: t1 (2013)",
            {"messages": [GO, turn({**CALL, "input": "{"}), RESULT]},
            {"messages": [GO, turn(CALL), RESULT]},
        ),
    ],
)
def test_minimax_has_an_envelope_of_its_own(stage: OpenStage, kind: str, words: str, broken: Wire, legal: Wire) -> None:
    opened = stage(Say(text="42"))
    answer = post(opened, "MiniMax-M3", **broken)
    assert answer.status == 400
    assert answer.json["error"] == {"type": "bad_request_error", "message": words, "http_code": "400"}
    assert opened.refusals[-1].kind == kind
    assert post(opened, "MiniMax-M3", **legal).status == 200
