"""The two forms of a chat completion: chunks of a stream, and one document."""

from __future__ import annotations

import json
from typing import Any

from asides.dialects.openai_chat.server.write_reply import ChatWriter, WholeCompletion
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, ToolCallDelta

EVENTS: list[Event] = [
    ReplyStarted("m", "id-1"),
    *(ThinkingDelta(text, 0) for text in ('a"', "\n", "ä")),
    *(TextDelta(text, 1) for text in ("x", "", "\u2028", "y")),
    ToolCallDelta(2, "c1", "f", '{"n"'),
    ToolCallDelta(2, arguments=":1}"),
    ToolCallDelta(3, "c2", "g", "{}"),
    ReplyEnded(StopReason("tool_calls")),
]


def list_chunks(data: bytes) -> list[dict[str, Any]]:
    lines = data.decode().split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line and "[DONE]" not in line]


def test_every_chunk_has_the_head_and_one_choice() -> None:
    writer = ChatWriter(model="m", stream=True)
    writer.created = 7
    chunks = list_chunks(b"".join(writer.write([event]) for event in EVENTS))
    for chunk in chunks:
        assert (chunk["id"], chunk["object"], chunk["created"], chunk["model"]) == (
            "id-1",
            "chat.completion.chunk",
            7,
            "m",
        )
        assert [choice["index"] for choice in chunk["choices"]] == [0]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == "x\u2028y"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == 'a"\nä'
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls if call["index"] == 0) == '{"n":1}'
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "tool_calls"


def test_a_whole_completion_joins_the_same_deltas() -> None:
    whole = WholeCompletion()
    whole.begin(ReplyStarted("m", "id-1"), 7)
    for delta in ({"content": "a"}, {"content": "b"}, {"reasoning_content": "t"}):
        assert whole.add(delta) == b""
    document = json.loads(whole.end("stop", {}))
    message = document["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"], document["created"]) == ("ab", "t", 7)
