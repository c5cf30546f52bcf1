"""Documents of clients: which is a whole response, which a piece of a stream, and whose signatures it holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.intake.detect import is_piece
from asides.intake.objects.read_objects import find_response, list_choices, normalise, read_signed_message

CHAT = {"role": "assistant", "content": "so"}
CHOICE = {"index": 0, "message": CHAT, "finish_reason": "stop"}
BLOCK = {"type": "text", "text": "so"}
WHOLE: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("openai_chat", {"choices": [CHOICE]}),
    "choice": ("openai_chat", CHOICE),
    "chat with a delta": ("openai_chat", {"choices": [{**CHOICE, "delta": {"content": ""}}]}),
    "claude": ("anthropic", {"type": "message", "role": "assistant", "content": [BLOCK], "stop_reason": None}),
    "claude with usage": ("anthropic", {"type": "message", "role": "assistant", "content": [], "usage": {}}),
    "response": ("openai_responses", {"object": "response", "output": []}),
    "gemini": ("gemini", {"candidates": []}),
    "blocked": ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}),
    "candidate": ("gemini", {"content": {"role": "model", "parts": []}}),
    "converse": ("bedrock", {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}),
    "ollama": ("ollama", {"message": CHAT, "done": True}),
    "cohere": ("cohere", {"id": "1", "message": {"role": "assistant"}, "finish_reason": "COMPLETE"}),
}
PIECES: list[dict[str, Any]] = [
    {"object": "chat.completion.chunk", "choices": [{"delta": {}}]},
    {"choices": [{"delta": {}}]},
    {"type": "message_start", "message": {}},
    {"type": "content_block_delta", "delta": {}},
    {"type": "response.output_text.delta", "delta": "x"},
    {"type": "content-delta", "delta": {}},
    {"contentBlockDelta": {"delta": {"text": "x"}}},
    {"metadata": {"usage": {}, "metrics": {}}},
]
NEITHER: list[dict[str, Any]] = [
    CHAT,
    {"role": "assistant", "content": [BLOCK]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    {"output": [{"type": "message"}]},
    {"type": "function_call", "call_id": "c1"},
    {"metadata": {"a": 1}},
    {},
]


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_response_is_known_by_its_fields(name: str) -> None:
    dialect, fields = WHOLE[name]
    found = find_response(fields)
    assert found is not None
    assert found[0] == dialect
    assert not is_piece(fields)


def test_pieces_of_a_stream_are_no_whole_response() -> None:
    assert [(is_piece(fields), find_response(fields)) for fields in PIECES] == [(True, None)] * len(PIECES)


def test_messages_and_items_are_neither() -> None:
    assert [(is_piece(fields), find_response(fields)) for fields in NEITHER] == [(False, None)] * len(NEITHER)


def test_names_in_snake_case_are_those_of_the_wire() -> None:
    held = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"my_key": 1}}}]}
    assert normalise(held)["parts"] == [{"functionCall": {"name": "f", "args": {"my_key": 1}}}]
    assert normalise({"usage_metadata": {"prompt_token_count": 1}}) == {"usageMetadata": {"promptTokenCount": 1}}
    assert normalise(CHAT) == CHAT


def test_how_many_answers_there_are() -> None:
    assert list_choices("openai_chat", {"choices": [1, 2]}) == 2
    assert list_choices("gemini", {"candidates": []}) == 0
    assert list_choices("gemini", {"candidates": "x"}) == 1
    assert list_choices("anthropic", {}) == 1


# --- signatures of other dialects beside a chat message ---------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":null}'}}
THINKING = [
    {"type": "thinking", "thinking": "why", "signature": "c2VhbA=="},
    {"type": "redacted_thinking", "data": "ZA=="},
]
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}}


def complete(finish: str = "tool_calls", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "so", "tool_calls": [CALL], "reasoning_content": "why", **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "r1", "model": "m", "object": "chat.completion", "choices": [choice], "usage": USAGE}


SIGNED_CALL = {**CALL, "provider_specific_fields": {"thought_signature": "c2VhbA=="}}


@pytest.mark.parametrize(
    ("fields", "dialect", "seals"),
    [
        ({"thinking_blocks": THINKING}, "anthropic", ["c2VhbA==", "ZA=="]),
        (
            {"tool_calls": [SIGNED_CALL], "thinking_blocks": [{"type": "thinking", "thinking": "why"}]},
            "gemini",
            ["c2VhbA=="],
        ),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "why"}]}, "openai_chat", []),
    ],
)
def test_a_chat_completion_with_signatures_is_a_response_of_their_dialect(
    fields: Any, dialect: str, seals: list[str]
) -> None:
    found = find_response(complete(**fields))
    assert found is not None
    reply = asides.decode(found[0], msgspec.json.encode(found[1]))
    assert reply.thinking
    assert (found[0], reply.text, reply.thinking.text, reply.model, reply.id) == (dialect, "so", "why", "m", "r1")
    assert [seal.value for seal in reply.seals] == seals
    assert (reply.stop.reason, reply.usage.input, reply.usage.output, reply.usage.thinking) == ("tool_calls", 10, 5, 3)
    assert reply.tool_calls[0].arguments == {"a": None}


def test_the_signature_of_an_answer_is_on_its_text() -> None:
    message = {"role": "assistant", "content": "so", "provider_specific_fields": {"thought_signatures": ["s"]}}
    found = read_signed_message(message)
    assert found is not None
    assert (found[0], [(piece.text, piece.seal) for piece in found[1].pieces]) == ("gemini", [("so", "s")])
    assert read_signed_message(CHAT) is None
