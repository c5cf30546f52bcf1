"""pydantic-ai's messages, in the shapes that its models leave (seen in version 2.66, 2026-11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.intake.detect import find_pydantic_ai_kind
from asides.intake.objects.pydantic_ai_objects import (
    build_turn_response,
    find_instructions,
    read_request,
)
from asides.values.errors import ConfigError
from asides.values.messages import Message, user
from asides.values.parts import File, Image, Text, ToolResult

SEAL = "c2VhbA=="
SIGNED = {"provider_details": {"thought_signature": SEAL}}


def thinking(**fields: Any) -> dict[str, Any]:
    return {"part_kind": "thinking", "content": "why", **fields}


def text(**fields: Any) -> dict[str, Any]:
    return {"part_kind": "text", "content": "so", **fields}


def call(**fields: Any) -> dict[str, Any]:
    held = {"tool_name": "weather", "args": {"city": "Kyoto"}, "tool_call_id": "c1"}
    return {"part_kind": "tool-call", **held, **fields}


def response(*parts: dict[str, Any], provider: str = "", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 4, "details": {"reasoning_tokens": 3}}
    known = {"provider_name": provider, "model_name": "a-model", "provider_response_id": "r1", "usage": usage}
    return {"kind": "response", "parts": list(parts), "finish_reason": "tool_call", **known, **fields}


SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "anthropic",
        response(thinking(signature=SEAL, provider_name="anthropic"), text(), call(), provider="anthropic"),
    ),
    "bedrock": ("bedrock", response(thinking(signature=SEAL, provider_name="bedrock"), text(), call())),
    "gemini": ("gemini", response(thinking(), text(), call(**SIGNED), provider="google")),
    "responses": (
        "openai_responses",
        response(
            thinking(id="rs_1", signature=SEAL, provider_name="openai"),
            text(id="msg_1"),
            call(id="fc_1", args='{"city": "Kyoto"}'),
            provider="openai",
        ),
    ),
    "chat": (
        "openai_chat",
        response(thinking(id="reasoning", provider_name="openai"), text(), call(args='{"city":"Kyoto"}')),
    ),
    "details": (
        "openai_chat",
        response(
            thinking(signature=SEAL, provider_details={"type": "reasoning.text", "format": "f", "index": 0}),
            text(),
            call(),
        ),
    ),
    "unknown but signed": ("anthropic", response(thinking(signature=SEAL), text(), call())),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_response_becomes_the_document_of_its_dialect(shape: str) -> None:
    dialect, fields = SHAPES[shape]
    assert find_pydantic_ai_kind(fields) == "response"
    found, document = build_turn_response(fields)
    reply = asides.decode(found, msgspec.json.encode(document))
    assert found == dialect
    assert reply.thinking
    assert (reply.text, reply.thinking.text, reply.outcome) == ("so", "why", "tool_calls")
    assert [(each.id, each.name, each.arguments) for each in reply.tool_calls] == [("c1", "weather", {"city": "Kyoto"})]
    assert [seal.value for seal in reply.seals] == ([] if shape == "chat" else [SEAL])
    assert (reply.usage.input, reply.usage.output, reply.usage.cached, reply.stop.reason) == (10, 5, 4, "tool_calls")
    if shape == "chat":
        assert reply.thinking.via == "reasoning"


def test_redacted_thinking_and_raw_thinking_and_files() -> None:
    redacted = thinking(content="", id="redacted_thinking", signature="data", provider_name="anthropic")
    bytes_of_bedrock = thinking(content="", id="redacted_content", signature="data", provider_name="bedrock")
    assert _list_seals(response(redacted, text())) == [("redacted", "data")]
    assert _list_seals(response(bytes_of_bedrock, text())) == [("redacted", "ZGF0YQ==")]
    raw = thinking(content="", id="rs_1", provider_details={"raw_content": ["deep"]})
    dialect, document = build_turn_response(response(raw, text()))
    assert (dialect, document["output"][0]["content"]) == (
        "openai_responses",
        [{"type": "reasoning_text", "text": "deep"}],
    )
    picture = {"part_kind": "file", "content": {"data": "eA==", "media_type": "image/png"}, **SIGNED}
    assert build_turn_response(response(picture))[1]["candidates"][0]["content"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thoughtSignature": SEAL}
    ]


def _list_seals(fields: dict[str, Any]) -> list[tuple[str, str]]:
    dialect, document = build_turn_response(fields)
    return [(seal.kind, seal.value) for seal in asides.decode(dialect, msgspec.json.encode(document)).seals]


def test_a_request_becomes_messages_in_order() -> None:
    parts: list[dict[str, Any]] = [
        {"part_kind": "system-prompt", "content": "be"},
        {"part_kind": "tool-return", "tool_name": "w", "content": {"t": 18}, "tool_call_id": "c1"},
        {"part_kind": "retry-prompt", "tool_name": "w", "content": "again", "tool_call_id": "c2"},
        {"part_kind": "tool-availability-delta"},
        {"part_kind": "retry-prompt", "content": "wrong"},
        {
            "part_kind": "user-prompt",
            "content": [
                "look",
                {"kind": "image-url", "url": "https://h/a.png"},
                {"kind": "binary", "data": "eA==", "media_type": "application/pdf"},
                {"kind": "cache-point"},
                {"kind": "text-content", "content": "and"},
            ],
        },
    ]
    fields = {"kind": "request", "parts": parts, "instructions": "be nice"}
    assert find_pydantic_ai_kind(fields) == "request"
    pdf = File(data=b"x", media_type="application/pdf", cache=True)
    assert read_request(fields) == [
        Message("system", "be"),
        Message("tool", (ToolResult("c1", '{"t":18}', "w"), ToolResult("c2", "again", "w", is_error=True))),
        user("wrong"),
        Message("user", (Text("look"), Image(url="https://h/a.png"), pdf, Text("and"))),
    ]


def test_the_last_instructions_count() -> None:
    requests: list[dict[str, Any]] = [
        {"kind": "request", "parts": [], "instructions": each} for each in ("old", "new", None)
    ]
    assert find_instructions([*requests, {"kind": "response", "parts": [], "instructions": "x"}, 5]) == "new"


def test_what_is_not_known_is_an_error_or_no_message() -> None:
    with pytest.raises(ConfigError, match="a part of the kind 'dance' is not known"):
        read_request({"parts": [{"part_kind": "dance"}]})
    with pytest.raises(ConfigError, match="an object with a kind"):
        read_request({"parts": [{"part_kind": "user-prompt", "content": [5]}]})
    for other in ({"kind": "request"}, {"kind": "request", "parts": [{"text": "x"}]}, {"kind": "x", "parts": []}):
        assert find_pydantic_ai_kind(other) is None
