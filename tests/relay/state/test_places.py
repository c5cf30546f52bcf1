"""Where restored thoughts stand: in the place in which the model had them, whichever part carried their state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides_stage import Stage
from asides_stage.stage import Raw, Say
from tests.relay.relaying import Door

_PATH = "/v1beta/models/anthropic%3Aclaude-opus-4-5:generateContent"
_TOOLS = [{"functionDeclarations": [{"name": "look", "parameters": {"type": "object", "properties": {}}}]}]
_THINKING = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}}


def _think(number: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"thought {number}", "signature": f"c2VhbA{number}="}


def _say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_0{number}", "name": "look", "input": {"at": number}}


def _answer(content: list[dict[str, Any]]) -> Raw:
    document: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "model": "x", "content": content}
    document |= {"stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 9}}
    return Raw(text=msgspec.json.encode(document).decode())


@pytest.mark.parametrize(
    "content",
    [
        [_think(1), _say("Let me look."), _call(1)],
        [_think(1), _say("Let me look."), _call(1), _call(2)],
        [_think(1), _say("First."), _call(1), _think(2), _say("Then."), _call(2)],
        [_think(1), _call(1), _think(2), _call(2)],
    ],
    ids=lambda content: "-".join(block["type"] for block in content),
)
def test_a_client_that_keeps_calls_alone_gets_its_thoughts_back_in_place(content: list[dict[str, Any]]) -> None:
    """Gemini CLI drops thoughts, and gives back what its calls carry."""
    question = {"role": "user", "parts": [{"text": "?"}]}
    body: dict[str, Any] = {"tools": _TOOLS, "generationConfig": {**_THINKING, "maxOutputTokens": 9000}}
    with Stage([_answer(content), Say(text="Done.")], rules="lenient", dialect="anthropic") as stage:
        door = Door(stage, store=False)
        first = door.post(_PATH, {**body, "contents": [question]})
        assert first.status == 200, first.body
        kept = [part for part in first.json["candidates"][0]["content"]["parts"] if not part.get("thought")]
        results = [
            {"functionResponse": {"name": "look", "id": part["functionCall"].get("id"), "response": {"output": "42"}}}
            for part in kept
            if "functionCall" in part
        ]
        history = [question, {"role": "model", "parts": kept}, {"role": "user", "parts": results}]
        second = door.post(_PATH, {**body, "contents": history})
        assert second.status == 200, second.body
        sent = stage.requests[-1].json["messages"][1]["content"]
    assert [block["type"] for block in sent] == [block["type"] for block in content]
    assert [block.get("signature") for block in sent] == [block.get("signature") for block in content]
