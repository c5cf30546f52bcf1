"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.payloads.words import (
    MARK,
    Call,
    Stream,
    Ticks,
    expect,
    make_text,
    make_thinking,
    make_tool_arguments,
    share,
    sse,
)

_HEAD = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
}
_SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"


def _usage(output_tokens: int) -> dict[str, Any]:
    cache_tokens = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": 120, **cache_tokens, "output_tokens": output_tokens, "service_tier": "standard"}


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=9, tool_overhead=2)
    thinking, text = make_thinking(thinking_count), make_text(text_count)
    arguments = make_tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, **fields: Any) -> None:
        events.append(sse({"type": kind, **fields}, named=True))

    def add_block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]], *, ping: bool = False) -> None:
        add("content_block_start", index=index, content_block=block)
        if ping:
            add("ping")
        for delta in deltas:
            add("content_block_delta", index=index, delta=delta)
        add("content_block_stop", index=index)

    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    add("message_start", message={**_HEAD, **empty, "usage": _usage(1)})
    seal = {"type": "signature_delta", "signature": _SIGNATURE * 12}
    thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in thinking]
    add_block(0, {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, seal], ping=True)
    add_block(1, {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in text])
    if arguments:
        block = {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "search", "input": {}}
        add_block(2, block, [{"type": "input_json_delta", "partial_json": piece} for piece in arguments])
    stop = {"stop_reason": "tool_use" if arguments else "end_turn", "stop_sequence": None}
    add("message_delta", delta=stop, usage={"output_tokens": 3996})
    add("message_stop")
    return Stream(events, expect(thinking, text, arguments))


def make_ticks() -> Ticks:
    def write(kind: str, **fields: Any) -> bytes:
        return sse({"type": kind, **fields}, named=True)

    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    begin = [
        write("message_start", message={**_HEAD, **empty, "usage": _usage(1)}),
        write("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    ]
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    finish = [
        write("content_block_stop", index=0),
        write("message_delta", delta=stop, usage={"output_tokens": 3996}),
        write("message_stop"),
    ]
    return Ticks(begin, write("content_block_delta", index=0, delta={"type": "text_delta", "text": MARK}), finish)


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": thinking, "signature": _SIGNATURE * 5}
    blocks: list[dict[str, Any]] = [thought, {"type": "text", "text": text}]
    blocks += [{"type": "tool_use", "id": c.id, "name": "search", "input": {"query": c.query}} for c in calls]
    stop = "tool_use" if calls else "end_turn"
    end = {"stop_reason": stop, "stop_sequence": None, "usage": _usage(3996)}
    return {**_HEAD, "content": blocks, **end}
