"""OpenAI's Responses."""

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

_USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3996,
    "output_tokens_details": {"reasoning_tokens": 1500},
    "total_tokens": 4116,
}
_REASONING_ID = "rs_67ccd2bf17f0819081ff3bb2cf6508e6"
_MESSAGE_ID = "msg_67ccd2bf17f0819081ff3bb2cf6508e7"
_ENCRYPTED = "gAAAAABpGd3sQ7mX0vTz" * 12
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
    summary = [{"type": "summary_text", "text": thinking}]
    return {"id": _REASONING_ID, "type": "reasoning", "summary": summary, "encrypted_content": _ENCRYPTED}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message_item(text: str | None) -> dict[str, Any]:
    content = [] if text is None else [_output_text(text)]
    status = "in_progress" if text is None else "completed"
    return {"id": _MESSAGE_ID, "type": "message", "status": status, "content": content, "role": "assistant"}


def _call_item(arguments: str, status: str) -> dict[str, Any]:
    names = {"id": _CALL_ID, "type": "function_call", "call_id": "call_Zr81b0AqVsk2", "name": "search"}
    return {**names, "status": status, "arguments": arguments}


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=13, tool_overhead=3)
    thinking, text = make_thinking(thinking_count), make_text(text_count)
    thought, answer = "".join(thinking), "".join(text)
    arguments = make_tool_arguments(tool_count) if tool_count else []
    events: list[bytes] = []

    def add(kind: str, **fields: Any) -> None:
        numbered = {"type": f"response.{kind}", "sequence_number": len(events), **fields}
        events.append(sse(numbered, named=True))

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
    add("completed", response=_response("completed", output, _USAGE))
    return Stream(events, Expected(len(thought), len(answer), len(joined)))


def make_ticks() -> Ticks:
    """The closing events repeat no text: it holds the times, which are not known before."""

    def write(kind: str, **fields: Any) -> bytes:
        return sse({"type": f"response.{kind}", "sequence_number": 4, **fields}, named=True)

    at = {"item_id": _MESSAGE_ID, "output_index": 0, "content_index": 0}
    begin = [
        write("created", response=_response("in_progress", [], None)),
        write("output_item.added", output_index=0, item=_message_item(None)),
        write("content_part.added", **at, part=_output_text("")),
    ]
    finish = [write("completed", response=_response("completed", [], _USAGE))]
    delta = write("output_text.delta", **at, delta=MARK, logprobs=[], obfuscation="aB3dE5fG7h")
    return Ticks(begin, delta, finish)


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    output = [_reasoning_item(thinking), _message_item(text)]
    output += [
        {**_call_item(write_arguments(call), "completed"), "id": f"fc_{call.id}", "call_id": call.id} for call in calls
    ]
    return _response("completed", output, _USAGE)
