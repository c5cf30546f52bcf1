"""Ollama's own chat: a JSON document per line. A call comes whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.payloads.words import (
    Call,
    Stream,
    dump,
    expect,
    make_text,
    make_thinking,
    make_tool_arguments,
    share,
    write_arguments,
)

_HEAD = {"model": "qwen3:8b", "created_at": "2026-08-04T19:58:15.115854Z"}
_END = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 5645304708,
    "load_duration": 55095250,
    "prompt_eval_count": 120,
    "prompt_eval_duration": 710671250,
    "eval_count": 3996,
    "eval_duration": 4466025455,
}


def _line(message: dict[str, Any], **end: Any) -> bytes:
    return dump({**_HEAD, "message": {"role": "assistant", **message}, **(end or {"done": False})}) + b"\n"


def _call(call: Call, index: int) -> dict[str, Any]:
    return {"id": call.id, "function": {"index": index, "name": "search", "arguments": {"query": call.query}}}


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=1, tool_overhead=1)
    # A call is one line, so its pieces become text.
    thinking, text = make_thinking(thinking_count), make_text(text_count + tool_count)
    lines = [_line({"content": "", "thinking": piece}) for piece in thinking]
    lines += [_line({"content": piece}) for piece in text]
    arguments: list[str] = []
    if tool_count:
        call = Call("call_zr81b0aq", "".join(make_tool_arguments(tool_count)[3:-1]))
        arguments = [write_arguments(call)]
        lines.append(_line({"content": "", "tool_calls": [_call(call, 0)]}))
    return Stream([*lines, _line({"content": ""}, **_END)], expect(thinking, text, arguments))


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "thinking": thinking}
    if calls:
        message["tool_calls"] = [_call(call, index) for index, call in enumerate(calls)]
    return {**_HEAD, "message": message, **_END}
