"""A stream that is cut anywhere, in every dialect: a lost connection with the partial reply, never a protocol error."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

import asides
from asides.wire.aws_frames import write_frame
from tests.decoding import sse

ANSWER = "an answer of some words"
_MESSAGES: list[dict[str, object]] = [
    {"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": letter}}
        for letter in ANSWER
    ),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
]


def _anthropic() -> bytes:
    return b"".join(b"event: %b\n%b" % (str(sent["type"]).encode(), sse(sent, done=False)) for sent in _MESSAGES)


def _wrapped() -> bytes:
    """The same inside AWS frames."""
    sent = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    wrapped = [{"bytes": b64encode(json.dumps(message).encode()).decode()} for message in _MESSAGES]
    return b"".join(write_frame(sent, json.dumps(payload).encode()) for payload in wrapped)


def _gemini() -> bytes:
    chunks = [{"candidates": [{"content": {"parts": [{"text": letter}], "role": "model"}}]} for letter in ANSWER]
    return sse(*chunks, {"candidates": [{"finishReason": "STOP"}]}, done=False)


def _ollama() -> bytes:
    lines = [{"model": "m", "message": {"role": "assistant", "content": letter}, "done": False} for letter in ANSWER]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, {"model": "m", "done": True}])


def _cohere() -> bytes:
    deltas = [
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": letter}}}} for letter in ANSWER
    ]
    return sse(
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        *deltas,
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
        done=False,
    )


def _responses() -> bytes:
    item = {"type": "message", "id": "i", "role": "assistant"}
    part = {"item_id": "i", "output_index": 0, "content_index": 0}
    return sse(
        {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", **part, "delta": letter} for letter in ANSWER),
        {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": []}},
        done=False,
    )


# The dialect, a stream, and a text in the event that ends it.
STREAMS = {
    "anthropic": ("anthropic", _anthropic(), b"stop_reason"),
    "anthropic in frames": ("anthropic", _wrapped(), b":event-type"),
    "gemini": ("gemini", _gemini(), b"finishReason"),
    "ollama": ("ollama", _ollama(), b'"done": true'),
    "cohere": ("cohere", _cohere(), b"message-end"),
    "openai_responses": ("openai_responses", _responses(), b"response.completed"),
}


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("stream", STREAMS)
def test_C8_a_stream_cut_anywhere_is_a_lost_connection(stream: str, step: int) -> None:
    dialect, body, ending = STREAMS[stream]
    assert asides.decode(dialect, body).text == ANSWER
    for place in range(1, body.rindex(ending), step):
        with pytest.raises(asides.ConnectionLost) as caught:
            asides.decode(dialect, body[:place])
        partial = caught.value.partial
        assert ANSWER.startswith(partial.text if partial is not None else "")


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "ollama", "cohere", "openai_responses"])
@pytest.mark.parametrize("body", [b"default backend - 404", b"event-less", b"i", b"dat"])
def test_the_first_bytes_decide_the_same_in_any_chunking(dialect: str, body: bytes) -> None:
    lost = any(word.startswith(body) for word in (b"data:", b"event:", b"id:"))
    for pieces in ([body], [body[place : place + 1] for place in range(len(body))]):
        with pytest.raises(asides.ConnectionLost if lost else asides.ProtocolError):
            asides.decode(dialect, pieces)
