"""A call without arguments: clients of OpenAI's dialects parse the string, and an empty one is no JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import Stage
from asides_stage.stage import Raw
from tests.relay.relaying import Door

_TOOL = {"type": "object", "properties": {}}
_BODIES: dict[str, Any] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "function", "function": {"name": "now", "parameters": _TOOL}}],
    },
    "/v1/responses": {
        "input": "?",
        "tools": [{"type": "function", "name": "now", "parameters": _TOOL}],
    },
}
_CALLS = [{"type": "tool_use", "id": f"toolu_{place}", "name": "now", "input": {}} for place in range(2)]
_WHOLE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "model": "x",
    "content": _CALLS,
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 3, "output_tokens": 9},
}


def _stream(stop: str = "tool_use") -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**_WHOLE, "content": [], "stop_reason": None}}
    ]
    for index, call in enumerate(_CALLS):
        events.append({"type": "content_block_start", "index": index, "content_block": call})
        delta = {"type": "input_json_delta", "partial_json": ""}
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events
    )


def _ask(path: str, *, stream: bool, stop: str = "tool_use") -> list[str]:
    """The arguments of the calls, as a client of this path collects them."""
    answer = (
        Raw(body=_stream(stop), headers={"content-type": "text/event-stream"})
        if stream
        else Raw(text=json.dumps(_WHOLE))
    )
    body = {"model": "anthropic:claude-opus-4-5", "stream": stream, **_BODIES[path]}
    with Stage(answer, rules="lenient") as stage:
        response = Door(stage).post(path, body)
    assert response.status == 200, response.body
    if not stream:
        if "chat" in path:
            return [call["function"]["arguments"] for call in response.json["choices"][0]["message"]["tool_calls"]]
        return [item["arguments"] for item in response.json["output"] if item["type"] == "function_call"]
    lines = [line[6:] for line in response.body.decode().splitlines() if line.startswith("data: {")]
    documents = [json.loads(line) for line in lines]
    if "chat" in path:
        pieces: dict[int, str] = {}
        for document in documents:
            for choice in document["choices"]:
                for call in choice["delta"].get("tool_calls", ()):
                    pieces[call["index"]] = pieces.get(call["index"], "") + call["function"]["arguments"]
        return list(pieces.values())
    done = [each["arguments"] for each in documents if each["type"] == "response.function_call_arguments.done"]
    items = [each["item"] for each in documents if each["type"] == "response.output_item.done"]
    assert [item["arguments"] for item in items] == done
    return done


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", _BODIES)
def test_a_call_without_arguments_has_an_empty_object(path: str, stream: bool) -> None:
    assert _ask(path, stream=stream) == ["{}", "{}"]


@pytest.mark.parametrize("path", _BODIES)
def test_a_call_that_broke_off_gets_none(path: str) -> None:
    assert _ask(path, stream=True, stop="max_tokens") == ["", ""]
