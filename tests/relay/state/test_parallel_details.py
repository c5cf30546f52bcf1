"""`reasoning_details` of parallel calls through a client of Messages, without a store: each once, in order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import Stage
from asides_stage.stage import Raw, Say, Scene
from tests.relay.relaying import Door

_DETAILS = [
    [
        {"type": "reasoning.text", "text": f"t{n}", "index": n, "format": "x"},
        {"type": "reasoning.encrypted", "data": f"seal{n}", "index": n, "format": "x"},
    ]
    for n in range(3)
]
_CALLS = [
    {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": f'{{"a":{n}}}'}}
    for n in range(3)
]


def _chunk(delta: dict[str, Any], end: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    chunk = {"id": "g", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(chunk).encode()


def _stream() -> Raw:
    chunks = [_chunk({"role": "assistant", "content": ""})]
    for details, call in zip(_DETAILS, _CALLS, strict=True):
        for detail in details:
            shown = {"reasoning": detail["text"]} if "text" in detail else {}
            chunks.append(_chunk({"reasoning_details": [detail], **shown}))
        chunks.append(_chunk({"tool_calls": [call]}))
    body = b"".join([*chunks, _chunk({}, "tool_calls"), b"data: [DONE]\n\n"])
    return Raw(body=body, headers={"content-type": "text/event-stream"})


def _whole() -> Raw:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning": "t0t1t2",
        "reasoning_details": [detail for details in _DETAILS for detail in details],
        "tool_calls": _CALLS,
    }
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    return Raw(
        text=json.dumps({"id": "g", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})
    )


def _collect(body: bytes) -> list[dict[str, Any]]:
    """The content of a streamed message, as its client collects it."""
    content: list[dict[str, Any]] = []
    for line in body.decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {}
        match event:
            case {"type": "content_block_start", "content_block": block}:
                content.append({**block, "pieces": ""})
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                block = content[index]
                block["pieces"] += delta.get("partial_json", "")
                block |= {"signature": delta["signature"]} if "signature" in delta else {}
                block |= {"thinking": block["thinking"] + delta["thinking"]} if "thinking" in delta else {}
            case _:
                pass
    for block in content:
        pieces = block.pop("pieces")
        block |= {"input": json.loads(pieces)} if block["type"] == "tool_use" else {}
    return content


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_each_detail_goes_back_once(stream: bool, store: bool) -> None:
    question = {"role": "user", "content": "?"}
    body: dict[str, Any] = {
        "model": "openrouter:google/gemini-3-pro-preview",
        "max_tokens": 4000,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    scenes: list[Scene] = [_stream() if stream else _whole(), Say(text="Done.")]
    with Stage(scenes, rules="lenient", dialect="openai_chat") as stage:
        door = Door(stage, store=store)
        first = door.post("/v1/messages", {**body, "stream": stream, "messages": [question]})
        content = _collect(first.body) if stream else first.json["content"]
        ids = [block["id"] for block in content if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": each, "content": "42"} for each in ids]
        history = [question, {"role": "assistant", "content": content}, {"role": "user", "content": results}]
        second = door.post("/v1/messages", {**body, "messages": history})
        assert second.status == 200, second.body
        (turn,) = [message for message in stage.requests[-1].json["messages"] if message["role"] == "assistant"]
    assert turn["reasoning_details"] == [detail for details in _DETAILS for detail in details]
    assert [json.loads(call["function"]["arguments"]) for call in turn["tool_calls"]] == [{"a": n} for n in range(3)]
