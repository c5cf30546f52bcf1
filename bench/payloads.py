"""The bytes that every contestant gets: three dialects, streamed and whole, the same on every run.

Deterministic and without I/O. `Expected` counts the characters that a contestant must deliver.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

CHUNKS = 4000
BODY_SIZES = {"2 KB": 2 * 1024, "200 KB": 200 * 1024}
QUESTION = "Explain how streams work, in detail, with one worked example please."
DONE = b"data: [DONE]\n\n"

_TOKENS = 2400
# A shorter stream has no room for a tool call.
_SHORTEST_WITH_TOOLS = 1000
_VOCABULARY = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one"
    " you were all her she there would their we him been has when who will no more if out so up said what its about"
    " than into them can only other time new some could these two may first then do any like my now over such our man"
    " me even most made after also well function return value import class stream token reasoning answer because"
    " therefore however let's check compute derivative"
)
_WORDS = _VOCABULARY.split()
# Escapes, other scripts and line breaks, which make a decoder leave its fast path.
_ODD = ("\n", "\n\n", ' "quoted"', " café", " →", " 你好", " 😀", "\t", " C:\\path", " **bold**")


class Expected(NamedTuple):
    """The numbers of characters that a contestant must deliver."""

    thinking: int
    text: int
    tool_arguments: int


class Stream(NamedTuple):
    events: list[bytes]
    expected: Expected


def _token(source: random.Random) -> str:
    draw = source.random()
    if draw < 0.06:
        return source.choice(_ODD)
    word = source.choice(_WORDS)
    return " " + word if draw < 0.9 else word[: max(1, len(word) // 2)]


def _tokens(count: int, seed: int) -> list[str]:
    source = random.Random(seed)
    cycle = [_token(source) for _ in range(_TOKENS)]
    return [cycle[i % _TOKENS] for i in range(count)]


def _thinking(count: int) -> list[str]:
    return _tokens(count, seed=7)


def _text(count: int) -> list[str]:
    return _tokens(count, seed=8)


def _tool_arguments(pieces: int) -> list[str]:
    source = random.Random(9)
    return ['{"q', "uer", 'y":"', *(source.choice(_WORDS) + " " for _ in range(pieces - 4)), '"}']


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _sse(value: dict[str, Any], *, named: bool = False) -> bytes:
    name = f"event: {value['type']}\n".encode() if named else b""
    return name + b"data: " + _dump(value) + b"\n\n"


def _shares(chunks: int, overhead: int, tool_overhead: int) -> tuple[int, int, int]:
    """Split a stream into thinking, text and tool pieces: 3/8, 3/5 and the rest."""
    thinking = chunks * 3 // 8
    if chunks < _SHORTEST_WITH_TOOLS:
        return thinking, chunks - overhead - thinking, 0
    text = chunks * 3 // 5
    return thinking, text, chunks - overhead - tool_overhead - thinking - text


# ── chat completions ──

_CHAT_USAGE = {
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
_CHAT_HEAD = {
    "id": "chatcmpl-Bx7fJpQ2mZ0d8aVtYq1LrKc5uWn3",
    "object": "chat.completion.chunk",
    "created": 1763190000,
    "model": "deepseek-reasoner",
    "service_tier": "default",
    "system_fingerprint": "fp_3f58d112f7",
}


def chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _sse({**_CHAT_HEAD, "choices": [choice], "usage": None})


def chat_usage() -> bytes:
    return _sse({**_CHAT_HEAD, "choices": [], "usage": _CHAT_USAGE})


def _chat_stream(chunks: int, *, inline_tags: bool = False) -> Stream:
    thinking_count, text_count, tool_count = _shares(chunks, overhead=3, tool_overhead=1)
    thinking, text = _thinking(thinking_count), _text(text_count)
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
    arguments = _tool_arguments(tool_count) if tool_count else []
    if arguments:
        function = {"name": "search", "arguments": ""}
        call = {"index": 0, "id": "call_Zr81b0AqVsk2", "type": "function", "function": function}
        events.append(chat_chunk({"tool_calls": [call]}))
    events += [chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in arguments]
    events += [chat_chunk({}, "tool_calls" if arguments else "stop"), chat_usage()]
    return Stream([*events, DONE], Expected(len("".join(thinking)), len(answer), len("".join(arguments))))


def _chat_body(thinking: str, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text,
        "reasoning_content": thinking,
        "refusal": None,
        "annotations": [],
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_CHAT_HEAD, "object": "chat.completion", "choices": [choice], "usage": _CHAT_USAGE}


# ── Anthropic messages ──

_MESSAGE_HEAD = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
}
_SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"


def _message_usage(output_tokens: int) -> dict[str, Any]:
    cache_tokens = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": 120, **cache_tokens, "output_tokens": output_tokens, "service_tier": "standard"}


def _messages_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = _shares(chunks, overhead=9, tool_overhead=2)
    thinking, text = _thinking(thinking_count), _text(text_count)
    arguments = _tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, **fields: Any) -> None:
        events.append(_sse({"type": kind, **fields}, named=True))

    def add_block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]], *, ping: bool = False) -> None:
        add("content_block_start", index=index, content_block=block)
        if ping:
            add("ping")
        for delta in deltas:
            add("content_block_delta", index=index, delta=delta)
        add("content_block_stop", index=index)

    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    add("message_start", message={**_MESSAGE_HEAD, **empty, "usage": _message_usage(1)})
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
    return Stream(events, Expected(len("".join(thinking)), len("".join(text)), len("".join(arguments))))


def _messages_body(thinking: str, text: str) -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": thinking, "signature": _SIGNATURE * 5}
    end = {"stop_reason": "end_turn", "stop_sequence": None, "usage": _message_usage(3996)}
    return {**_MESSAGE_HEAD, "content": [thought, {"type": "text", "text": text}], **end}


# ── OpenAI responses ──

_RESPONSE_USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3996,
    "output_tokens_details": {"reasoning_tokens": 1500},
    "total_tokens": 4116,
}
_REASONING_ID = "rs_67ccd2bf17f0819081ff3bb2cf6508e6"
_MESSAGE_ID = "msg_67ccd2bf17f0819081ff3bb2cf6508e7"
_CALL_ID = "fc_67ccd2bf17f0819081ff3bb2cf6508e8"


def _response(status: str, output: list[Any], usage: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        "object": "response",
        "created_at": 1763190000,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "gpt-5-2025-08-07",
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "medium", "summary": "detailed"},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        "user": None,
        "metadata": {},
    }


def _reasoning_item(thinking: str) -> dict[str, Any]:
    return {"id": _REASONING_ID, "type": "reasoning", "summary": [{"type": "summary_text", "text": thinking}]}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message_item(text: str | None) -> dict[str, Any]:
    content = [] if text is None else [_output_text(text)]
    status = "in_progress" if text is None else "completed"
    return {"id": _MESSAGE_ID, "type": "message", "status": status, "content": content, "role": "assistant"}


def _call_item(arguments: str, status: str) -> dict[str, Any]:
    names = {"id": _CALL_ID, "type": "function_call", "call_id": "call_Zr81b0AqVsk2", "name": "search"}
    return {**names, "status": status, "arguments": arguments}


def _responses_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = _shares(chunks, overhead=13, tool_overhead=3)
    thinking, text = _thinking(thinking_count), _text(text_count)
    thought, answer = "".join(thinking), "".join(text)
    arguments = _tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, **fields: Any) -> None:
        numbered = {"type": f"response.{kind}", "sequence_number": len(events), **fields}
        events.append(_sse(numbered, named=True))

    add("created", response=_response("in_progress", [], None))
    add("in_progress", response=_response("in_progress", [], None))

    empty_item = {"id": _REASONING_ID, "type": "reasoning", "summary": []}
    add("output_item.added", output_index=0, item=empty_item)
    at = {"item_id": _REASONING_ID, "output_index": 0, "summary_index": 0}
    add("reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
    for piece in thinking:
        add("reasoning_summary_text.delta", **at, delta=piece, obfuscation="aB3dE5fG7h")
    add("reasoning_summary_text.done", **at, text=thought)
    add("reasoning_summary_part.done", **at, part={"type": "summary_text", "text": thought})
    add("output_item.done", output_index=0, item=_reasoning_item(thought))

    add("output_item.added", output_index=1, item=_message_item(None))
    at = {"item_id": _MESSAGE_ID, "output_index": 1, "content_index": 0}
    add("content_part.added", **at, part=_output_text(""))
    for piece in text:
        add("output_text.delta", **at, delta=piece, logprobs=[], obfuscation="aB3dE5fG7h")
    add("output_text.done", **at, text=answer, logprobs=[])
    add("content_part.done", **at, part=_output_text(answer))
    add("output_item.done", output_index=1, item=_message_item(answer))

    output = [_reasoning_item(thought), _message_item(answer)]
    joined = "".join(arguments)
    if arguments:
        add("output_item.added", output_index=2, item=_call_item("", "in_progress"))
        at = {"item_id": _CALL_ID, "output_index": 2}
        for piece in arguments:
            add("function_call_arguments.delta", **at, delta=piece, obfuscation="aB3dE5fG7h")
        add("function_call_arguments.done", **at, arguments=joined)
        output.append(_call_item(joined, "completed"))
        add("output_item.done", output_index=2, item=output[-1])
    add("completed", response=_response("completed", output, _RESPONSE_USAGE))
    return Stream(events, Expected(len(thought), len(answer), len(joined)))


def _responses_body(thinking: str, text: str) -> dict[str, Any]:
    return _response("completed", [_reasoning_item(thinking), _message_item(text)], _RESPONSE_USAGE)


# ── by name ──

_STREAMS: dict[str, Callable[[int], Stream]] = {
    "chat": _chat_stream,
    "messages": _messages_stream,
    "responses": _responses_stream,
}
_BODIES: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "chat": _chat_body,
    "messages": _messages_body,
    "responses": _responses_body,
}


@cache
def stream(dialect: str, chunks: int = CHUNKS, *, inline_tags: bool = False) -> Stream:
    """A stream of exactly `chunks` events; chat adds `[DONE]`."""
    made = _chat_stream(chunks, inline_tags=True) if inline_tags else _STREAMS[dialect](chunks)
    assert len(made.events) == chunks + (dialect == "chat"), (dialect, chunks, len(made.events))
    return made


@cache
def body(dialect: str, size: int) -> tuple[bytes, Expected]:
    """A whole response of about `size` bytes: 3/8 thinking, 5/8 answer."""
    make = _BODIES[dialect]
    room = size - len(_dump(make("", "")))

    def grow(tokens: list[str], target: int) -> str:
        taken, length = [], 0
        for token in tokens:
            if length >= target:
                break
            taken.append(token)
            length += len(json.dumps(token, ensure_ascii=False).encode()) - 2
        return "".join(taken)

    thinking, text = grow(_thinking(size), room * 3 // 8), grow(_text(size), room * 5 // 8)
    return _dump(make(thinking, text)), Expected(len(thinking), len(text), 0)


def read_profile(profile: str) -> tuple[str, int, bool]:
    """Read `<pace>-<chunks>[-tags]`: how the server paces the stream, how long it is, whether thinking is inline."""
    pace, chunks, *rest = profile.split("-")
    return pace, int(chunks), rest == ["tags"]


def count_expected(dialect: str, profile: str) -> Expected:
    _, chunks, inline_tags = read_profile(profile)
    return stream(dialect, chunks, inline_tags=inline_tags).expected
