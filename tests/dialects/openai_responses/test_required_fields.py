"""The fields that a response must have (schema of Open Responses, ResponseResource, read 2026-11-18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door

_TEXT, _NUMBER, _FLAG, _LIST, _OBJECT = (str,), (int, float), (bool,), (list,), (dict,)
_NULL = (type(None),)
_REQUIRED: dict[str, tuple[type, ...]] = {
    "id": _TEXT,
    "object": _TEXT,
    "created_at": (int,),
    "completed_at": (int, *_NULL),
    "status": _TEXT,
    "incomplete_details": (*_OBJECT, *_NULL),
    "model": _TEXT,
    "previous_response_id": (*_TEXT, *_NULL),
    "instructions": (*_TEXT, *_LIST, *_NULL),
    "output": _LIST,
    "error": (*_OBJECT, *_NULL),
    "tools": _LIST,
    "tool_choice": (*_TEXT, *_OBJECT),
    "truncation": _TEXT,
    "parallel_tool_calls": _FLAG,
    "text": _OBJECT,
    "top_p": _NUMBER,
    "presence_penalty": _NUMBER,
    "frequency_penalty": _NUMBER,
    "top_logprobs": (int,),
    "temperature": _NUMBER,
    "reasoning": (*_OBJECT, *_NULL),
    "user": (*_TEXT, *_NULL),
    "usage": (*_OBJECT, *_NULL),
    "max_output_tokens": (int, *_NULL),
    "max_tool_calls": (int, *_NULL),
    "store": _FLAG,
    "background": _FLAG,
    "service_tier": _TEXT,
    "metadata": _OBJECT,
    "safety_identifier": (*_TEXT, *_NULL),
    "prompt_cache_key": (*_TEXT, *_NULL),
}
_LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
_REQUESTS: dict[str, dict[str, Any]] = {
    "a text": {"input": "?"},
    "messages": {"input": [{"type": "message", "role": "user", "content": "?"}]},
    "a system prompt": {"input": "?", "instructions": "Be short."},
    "tools": {"input": "?", "tools": [_LOOK]},
    "a conversation": {
        "input": [
            {"type": "message", "role": "user", "content": "?"},
            {"type": "message", "role": "assistant", "content": "Yes."},
            {"type": "message", "role": "user", "content": "And?"},
        ]
    },
    "settings": {"input": "?", "temperature": 0.2, "top_p": 0.9, "prompt_cache_key": "k", "metadata": {"a": "b"}},
}


def _check(response: dict[str, Any]) -> None:
    wrong = {
        name: response.get(name, "missing")
        for name, kinds in _REQUIRED.items()
        if name not in response or type(response[name]) not in kinds
    }
    assert wrong == {}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_name", _REQUESTS)
def test_a_response_has_every_required_field(request_name: str, stream: bool) -> None:
    asked = _REQUESTS[request_name]
    calls = (ToolCall("call_1", "look", {}),) if "tools" in asked else ()
    with Stage(Say(text="Hi", thinking="hm", tool_calls=calls), rules="lenient") as stage:
        body = {"model": "anthropic:claude-opus-4-5", "stream": stream, **asked}
        response = Door(stage).post("/v1/responses", body)
    assert response.status == 200, response.body
    if not stream:
        _check(response.json)
        return
    events = [json.loads(line[6:]) for line in response.body.decode().splitlines() if line.startswith("data: ")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        if "response" in event:
            _check(event["response"])
    assert events[-1]["type"] == "response.completed"


def test_what_was_asked_is_repeated() -> None:
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        body = {"model": "anthropic:claude-opus-4-5", **_REQUESTS["settings"]}
        response = Door(stage).post("/v1/responses", body).json
    assert (response["temperature"], response["top_p"], response["prompt_cache_key"]) == (0.2, 0.9, "k")
    assert response["metadata"] == {"a": "b"}
