"""Bytes that are not text, in every dialect: only the character that a server cut in two is replaced."""

from __future__ import annotations

import json

import pytest

import asides
from tests.decoding import sse

HALF_BYTES = b"\xf0\x9f"
HALF_ESCAPE = rb"\ud83d"
HERE = "CUT"


def _anthropic(text: str) -> bytes:
    return sse(
        {"type": "message_start", "message": {"id": "m", "model": "c", "note": text, "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "made_up", "x": text}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "made_up_delta", "x": text}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
        done=False,
    )


def _responses(text: str) -> bytes:
    message = {"type": "message", "id": "msg", "content": [{"type": "output_text", "text": text + text}]}
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": text}}
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e", "note": text}
    items = [thought, search, message]
    return sse(
        {"type": "response.created", "response": {"id": "r", "model": "m", "instructions": text}},
        *(
            {"type": "response.output_item.done", "output_index": place, "item": item}
            for place, item in enumerate(items)
        ),
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": items}},
        done=False,
    )


def _gemini(text: str) -> bytes:
    parts = [{"text": text}, {"text": text, "note": text}, {"madeUp": {"x": text}}]
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}
    return sse({"candidates": [candidate]}, done=False)


def _bedrock(text: str) -> bytes:
    content = [{"text": text}, {"text": text}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {"x": text}}}]
    return json.dumps({"output": {"message": {"content": content}}, "stopReason": "end_turn"}).encode()


def _ollama(text: str) -> bytes:
    lines = [{"message": {"content": text}, "done": False}, {"message": {"content": text}, "done": True}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _cohere(text: str) -> bytes:
    content = [{"type": "text", "text": text + text}]
    message = {"role": "assistant", "content": content, "citations": [{"start": 0, "end": 1, "text": text}]}
    return json.dumps({"id": "c", "finish_reason": "COMPLETE", "message": message}).encode()


BODIES = {
    "anthropic": _anthropic,
    "openai_responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "ollama": _ollama,
    "cohere": _cohere,
}


@pytest.mark.parametrize("half", [HALF_BYTES, HALF_ESCAPE])
@pytest.mark.parametrize("dialect", BODIES)
def test_a_character_cut_in_two_is_replaced_anywhere(dialect: str, half: bytes) -> None:
    body = BODIES[dialect](HERE).replace(HERE.encode(), b"a" + half)
    reply = asides.decode(dialect, body)
    assert reply.text == "a\ufffda\ufffd"
    assert [notice.code for notice in reply.warnings].count("invalid_text") == 1
    assert asides.decode(dialect, [body[place : place + 1] for place in range(len(body))]) == reply


@pytest.mark.parametrize("dialect", BODIES)
def test_whole_characters_in_two_halves_of_an_escape_stay(dialect: str) -> None:
    body = BODIES[dialect](HERE).replace(HERE.encode(), rb"\ud83d\ude00")
    reply = asides.decode(dialect, body)
    assert reply.text == "\U0001f600\U0001f600"
    assert "invalid_text" not in [notice.code for notice in reply.warnings]
