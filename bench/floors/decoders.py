"""The typed decoders of streams: a splitter for each framing, and for each dialect the event's payload → the sink.

msgspec decodes into structs that have only the fields that are read. Nothing is folded and nothing is checked twice.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from bench.contestant import Sink

Push = Callable[[bytes], None]
Decoder = Callable[[Sink], Push]
# The rest of the last read and the new bytes → the payloads of the whole events, and the new rest.
Split = Callable[[bytes, bytes], tuple[list[bytes], bytes]]


# ── framing ──


def split_events(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    *events, rest = (rest + data).split(b"\n\n")
    found = [event[at + 6 :] for event in events if (at := event.find(b"data: ")) >= 0]
    if found and found[-1] == b"[DONE]":
        found.pop()
    return found, rest


def split_lines(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    *lines, rest = (rest + data).split(b"\n")
    return lines, rest


_LENGTHS = struct.Struct("!II").unpack_from
_CHECKSUM = struct.Struct("!I").unpack_from


def split_frames(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    """Frames of the AWS event stream. The last checksum covers the whole frame, so it alone is compared."""
    data = rest + data
    view = memoryview(data)
    at, size, found = 0, len(data), []
    while size - at >= 12:
        length, headers = _LENGTHS(data, at)
        end = at + length
        if end > size:
            break
        if zlib.crc32(view[at : end - 4]) != _CHECKSUM(data, end - 4)[0]:
            raise ValueError("a frame is damaged")
        found.append(data[at + 12 + headers : end - 4])
        at = end
    return found, data[at:]


SPLITTERS: dict[str, Split] = {"ollama": split_lines, "bedrock": split_frames}


# ── payloads ──


def _struct(title: str, /, **fields: Any) -> Any:
    import msgspec

    return msgspec.defstruct(title, [(name, kind, None) for name, kind in fields.items()], gc=False)


def _list(kind: Any) -> Any:
    return list[kind]


def _decoder(kind: Any) -> Any:
    import msgspec

    return msgspec.json.Decoder(kind).decode


def no_decode(_sink: Sink) -> Push:
    return lambda _payload: None


def _chat() -> Decoder:
    function = _struct("Function", arguments=str | None, name=str | None)
    call = _struct("Call", function=function, index=int | None, id=str | None)
    texts = {"content": str | None, "reasoning_content": str | None, "reasoning": str | None}
    delta = _struct("Delta", **texts, tool_calls=_list(call) | None)
    choice = _struct("Choice", delta=delta, finish_reason=str | None, index=int | None)
    usage = _struct("Usage", prompt_tokens=int | None, completion_tokens=int | None)
    decode = _decoder(_struct("Chunk", choices=_list(choice), usage=usage | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            choices = decode(payload).choices
            if choices:
                delta = choices[0].delta
                if delta.content:
                    text(delta.content)
                elif delta.reasoning_content:
                    thinking(delta.reasoning_content)
                elif delta.tool_calls:
                    tool_arguments(delta.tool_calls[0].function.arguments or "")

        return push

    return bind


def _messages() -> Decoder:
    delta_type = _struct("Delta", type=str, text=str | None, thinking=str | None, partial_json=str | None)
    decode = _decoder(_struct("Event", type=str, delta=delta_type | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            event = decode(payload)
            if event.type == "content_block_delta":
                delta = event.delta
                kind = delta.type
                if kind == "text_delta":
                    text(delta.text)
                elif kind == "thinking_delta":
                    thinking(delta.thinking)
                elif kind == "input_json_delta":
                    tool_arguments(delta.partial_json)

        return push

    return bind


def _responses() -> Decoder:
    decode = _decoder(_struct("Event", type=str, delta=str | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            event = decode(payload)
            kind = event.type
            if kind == "response.output_text.delta":
                text(event.delta)
            elif kind == "response.reasoning_summary_text.delta":
                thinking(event.delta)
            elif kind == "response.function_call_arguments.delta":
                tool_arguments(event.delta)

        return push

    return bind


def _gemini() -> Decoder:
    import msgspec

    call = _struct("Call", name=str | None, args=msgspec.Raw)
    part_type = _struct(
        "Part", text=str | None, thought=bool | None, functionCall=call | None, thoughtSignature=str | None
    )
    content = _struct("Content", parts=_list(part_type) | None)
    candidate = _struct("Candidate", content=content | None, finishReason=str | None)
    counts = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    usage = _struct("Usage", **dict.fromkeys(counts, int | None))
    decode = _decoder(_struct("Document", candidates=_list(candidate) | None, usageMetadata=usage | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            for part in decode(payload).candidates[0].content.parts:
                if part.functionCall:
                    tool_arguments(bytes(part.functionCall.args).decode())
                elif part.thought:
                    thinking(part.text)
                else:
                    text(part.text)

        return push

    return bind


def _cohere() -> Decoder:
    function = _struct("Function", arguments=str | None, name=str | None)
    call = _struct("Call", id=str | None, function=function | None)
    content_type = _struct("Content", thinking=str | None, text=str | None)
    # The start has lists where the deltas have objects.
    calls = _list(call) | call | None
    message = _struct("Message", content=_list(content_type) | content_type | None, tool_calls=calls)
    delta = _struct("Delta", message=message | None, finish_reason=str | None)
    decode = _decoder(_struct("Event", type=str, delta=delta | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            event = decode(payload)
            kind = event.type
            if kind == "content-delta":
                content = event.delta.message.content
                if content.text:
                    text(content.text)
                else:
                    thinking(content.thinking)
            elif kind == "tool-call-delta":
                tool_arguments(event.delta.message.tool_calls.function.arguments)

        return push

    return bind


def _ollama() -> Decoder:
    import msgspec

    function = _struct("Function", name=str | None, arguments=msgspec.Raw)
    call = _struct("Call", function=function)
    message_type = _struct("Message", content=str | None, thinking=str | None, tool_calls=_list(call) | None)
    decode = _decoder(_struct("Line", message=message_type | None, done=bool, eval_count=int | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            message = decode(payload).message
            if message.content:
                text(message.content)
            elif message.thinking:
                thinking(message.thinking)
            elif message.tool_calls:
                tool_arguments(bytes(message.tool_calls[0].function.arguments).decode())

        return push

    return bind


def _bedrock() -> Decoder:
    reasoning = _struct("Reasoning", text=str | None, signature=str | None)
    tool_use = _struct("ToolUse", input=str | None)
    delta_type = _struct("Delta", text=str | None, reasoningContent=reasoning | None, toolUse=tool_use | None)
    decode = _decoder(_struct("Event", delta=delta_type | None, stopReason=str | None))

    def bind(sink: Sink) -> Push:
        thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

        def push(payload: bytes) -> None:
            delta = decode(payload).delta
            if delta is None:
                return
            if delta.text:
                text(delta.text)
            elif delta.reasoningContent:
                if delta.reasoningContent.text:
                    thinking(delta.reasoningContent.text)
            elif delta.toolUse:
                tool_arguments(delta.toolUse.input)

        return push

    return bind


TYPED: dict[str, Callable[[], Decoder]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "cohere": _cohere,
    "ollama": _ollama,
    "bedrock": _bedrock,
}
