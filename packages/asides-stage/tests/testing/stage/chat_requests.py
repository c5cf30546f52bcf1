"""Chat completions to a stage by plain HTTP: messages, and what came of a request."""

from __future__ import annotations

import json
from typing import Any

from asides.values.parts import ToolCall
from asides_stage import Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

USER: Wire = {"role": "user", "content": "look"}
SO: Wire = {"role": "user", "content": "so?"}
LOOK = ToolCall("call_1", "look", {"at": 1})


def called(*ids: str, **fields: Any) -> Wire:
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}} for name in ids]
    return {"role": "assistant", "tool_calls": calls, **fields}


def result(name: str) -> Wire:
    return {"role": "tool", "tool_call_id": name, "content": "fine"}


def asked(stage: Stage, model: str, *messages: Wire, **fields: Any) -> Answer:
    body = json.dumps({"model": model, "messages": messages, **fields}).encode()
    with connected(stage) as connection:
        connection.request("POST", "/v1/chat/completions", body)
        return Answer(connection.getresponse())


def refused(stage: Stage, model: str, *messages: Wire, status: int = 400, **fields: Any) -> str:
    answer = asked(stage, model, *messages, **fields)
    assert answer.status == status
    return stage.refusals[-1].text


def accepted(stage: Stage, model: str, *messages: Wire, **fields: Any) -> Wire:
    answer = asked(stage, model, *messages, **fields)
    assert answer.status == 200, answer.body
    message: Wire = answer.json["choices"][0]["message"]
    return message
