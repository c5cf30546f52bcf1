"""Cohere's chat, version 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.payloads.words import (
    Call,
    Stream,
    expect,
    make_text,
    make_thinking,
    make_tool_arguments,
    share,
    sse,
    write_arguments,
)

DONE = b"data: [DONE]\n\n"
_ID = "65c1c25d-3196-4b31-9273-15b3f75c3cd8"
_USAGE = {
    "billed_units": {"input_tokens": 84, "output_tokens": 3900},
    "cached_tokens": 1008,
    "tokens": {"input_tokens": 1501, "output_tokens": 3996, "reasoning_tokens": 1500},
}


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=6, tool_overhead=2)
    thinking, text = make_thinking(thinking_count), make_text(text_count)
    arguments = make_tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, index: int | None = None, message: dict[str, Any] | None = None, **fields: Any) -> None:
        value: dict[str, Any] = {"delta": {"message": message}} if message is not None else {}
        if index is not None:
            value["index"] = index
        events.append(sse({**value, **fields, "type": kind}, named=True))

    empty = {"citations": [], "content": [], "role": "assistant", "tool_calls": [], "tool_plan": ""}
    add("message-start", None, empty, id=_ID)
    for index, (kind, pieces) in enumerate((("thinking", thinking), ("text", text))):
        add("content-start", index, {"content": {kind: "", "type": kind}})
        for piece in pieces:
            add("content-delta", index, {"content": {kind: piece}})
        add("content-end", index)
    if arguments:
        function = {"name": "search", "arguments": ""}
        add(
            "tool-call-start",
            0,
            {"tool_calls": {"id": "search_zr81b0aqvsk2", "type": "function", "function": function}},
        )
        for piece in arguments:
            add("tool-call-delta", 0, {"tool_calls": {"function": {"arguments": piece}}})
        add("tool-call-end", 0)
    finish = "TOOL_CALL" if arguments else "COMPLETE"
    add("message-end", delta={"finish_reason": finish, "usage": _USAGE})
    return Stream([*events, DONE], expect(thinking, text, arguments))


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    content = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": text}]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": "search", "arguments": write_arguments(call)}}
            for call in calls
        ]
    finish = "TOOL_CALL" if calls else "COMPLETE"
    return {"id": _ID, "message": message, "finish_reason": finish, "usage": _USAGE}
