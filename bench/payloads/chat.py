"""Chat completions, as OpenAI and its many compatible hosts send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.payloads.words import (
    MARK,
    Call,
    Expected,
    Stream,
    Ticks,
    make_text,
    make_thinking,
    make_tool_arguments,
    share,
    sse,
    write_arguments,
)

DONE = b"data: [DONE]\n\n"

_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 3996,
    "total_tokens": 4116,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 1500,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}
_HEAD = {
    "id": "chatcmpl-Bx7fJpQ2mZ0d8aVtYq1LrKc5uWn3",
    "object": "chat.completion.chunk",
    "created": 1763190000,
    "model": "deepseek-reasoner",
    "service_tier": "default",
    "system_fingerprint": "fp_3f58d112f7",
}


def chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return sse({**_HEAD, "choices": [choice], "usage": None})


def chat_usage() -> bytes:
    return sse({**_HEAD, "choices": [], "usage": _USAGE})


def make_stream(chunks: int, *, inline_tags: bool = False) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=3, tool_overhead=1)
    thinking, text = make_thinking(thinking_count), make_text(text_count)
    answer = "".join(text)
    if inline_tags:
        # Tags are separate chunks, as most servers send them, and replace two tokens.
        thinking = thinking[1:-1]
        before = [chat_chunk({"content": piece}) for piece in ("<think>", *thinking, "</think>")]
        answer = answer.lstrip()
    else:
        before = [chat_chunk({"reasoning_content": piece}) for piece in thinking]
    events = [chat_chunk({"role": "assistant", "content": "" if inline_tags else None}), *before]
    events += [chat_chunk({"content": piece}) for piece in text]
    arguments = make_tool_arguments(tool_count) if tool_count else []
    if arguments:
        function = {"name": "search", "arguments": ""}
        call = {"index": 0, "id": "call_Zr81b0AqVsk2", "type": "function", "function": function}
        events.append(chat_chunk({"tool_calls": [call]}))
    events += [chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in arguments]
    events += [chat_chunk({}, "tool_calls" if arguments else "stop"), chat_usage()]
    return Stream([*events, DONE], Expected(len("".join(thinking)), len(answer), len("".join(arguments))))


def make_ticks() -> Ticks:
    begin = [chat_chunk({"role": "assistant", "content": ""})]
    return Ticks(begin, chat_chunk({"content": MARK}), [chat_chunk({}, "stop"), chat_usage(), DONE])


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text,
        "reasoning_content": thinking,
        "refusal": None,
        "annotations": [],
    }
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": "search", "arguments": write_arguments(call)}}
            for call in calls
        ]
    finish = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
