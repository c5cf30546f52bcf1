"""Bedrock's Converse: the binary event stream of AWS, with both checksums of every frame."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

from bench.payloads.words import Call, Stream, dump, expect, make_text, make_thinking, make_tool_arguments, share

_SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"
# Converse pads every event, so that its length does not show its text.
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_USAGE = {"inputTokens": 120, "outputTokens": 3996, "totalTokens": 4116}
_STRING = 7


def frame(kind: str, value: dict[str, Any]) -> bytes:
    """One message of the event stream: lengths, their checksum, headers, payload, checksum of it all."""
    named = ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event"))
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(text)) + text.encode()
        for name, text in named
    )
    payload = dump(value)
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=6, tool_overhead=2)
    thinking, text = make_thinking(thinking_count), make_text(text_count)
    arguments = make_tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, **fields: Any) -> None:
        padding = _PADDING[: 4 + len(events) * 7 % (len(_PADDING) - 4)]
        events.append(frame(kind, {**fields, "p": padding}))

    def add_deltas(index: int, deltas: list[dict[str, Any]]) -> None:
        for delta in deltas:
            add("contentBlockDelta", contentBlockIndex=index, delta=delta)
        add("contentBlockStop", contentBlockIndex=index)

    add("messageStart", role="assistant")
    thoughts: list[dict[str, Any]] = [{"reasoningContent": {"text": piece}} for piece in thinking]
    add_deltas(0, [*thoughts, {"reasoningContent": {"signature": _SIGNATURE * 12}}])
    add_deltas(1, [{"text": piece} for piece in text])
    if arguments:
        tool_use = {"toolUseId": "tooluse_Zr81b0AqVsk2", "name": "search"}
        add("contentBlockStart", contentBlockIndex=2, start={"toolUse": tool_use})
        add_deltas(2, [{"toolUse": {"input": piece}} for piece in arguments])
    add("messageStop", stopReason="tool_use" if arguments else "end_turn")
    add("metadata", metrics={"latencyMs": 1999}, usage=_USAGE)
    return Stream(events, expect(thinking, text, arguments))


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    thought = {"reasoningContent": {"reasoningText": {"text": thinking, "signature": _SIGNATURE * 5}}}
    content: list[dict[str, Any]] = [thought, {"text": text}]
    content += [{"toolUse": {"toolUseId": c.id, "name": "search", "input": {"query": c.query}}} for c in calls]
    return {
        "metrics": {"latencyMs": 9542},
        "output": {"message": {"content": content, "role": "assistant"}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": _USAGE,
    }
