"""Responses requests by hand for the tests of the rules: ask, send items back, and see them accepted or refused."""

from __future__ import annotations

from typing import Any

from asides.values.parts import ToolCall
from asides_stage import Say, Stage
from tests.testing.stage.rules.chat_requests import Wire, send

ASKED: Wire = {"role": "user", "content": "?"}
TURN: Wire = {"role": "assistant", "content": "so"}
FIRST: Wire = {"model": "gpt-5", "input": [ASKED], "store": False, "reasoning": {"effort": "low", "summary": "auto"}}
PATH = "/v1/responses"
THINKS = Say(thinking="mull it over", text="42")
CALLS = Say(thinking="mull it over", tool_calls=(ToolCall("c1", "look", {"at": 1}),))


def ask(stage: Stage, path: str = PATH, key: str | None = None, **fields: Any) -> list[Wire]:
    """The items of the stage's answer."""
    answer = send(stage, path, {**FIRST, **fields}, key)
    assert answer.status == 200, answer.body
    items: list[Wire] = answer.json["output"]
    return items


def refused(stage: Stage, *sent: Wire, path: str = PATH, key: str | None = None, **fields: Any) -> tuple[int, str]:
    """The status and the kind of the refusal of these items and a question."""
    before = len(stage.refusals)
    answer = send(stage, path, {**FIRST, "input": [*sent, ASKED], **fields}, key)
    assert len(stage.refusals) == before + 1, answer.body
    return answer.status, stage.refusals[-1].kind or ""


def accepted(stage: Stage, *sent: Wire, path: str = PATH, key: str | None = None, **fields: Any) -> None:
    """See these items and a question accepted."""
    answer = send(stage, path, {**FIRST, "input": [*sent, ASKED], **fields}, key)
    assert answer.status == 200, answer.body


def without(item: Wire, *names: str) -> Wire:
    """The item without these fields."""
    return {name: value for name, value in item.items() if name not in names}
