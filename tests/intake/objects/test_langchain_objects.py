"""LangChain's messages, in the shapes that its chat models leave (seen in versions 1.7, 2026-11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.intake.detect import find_langchain_kind
from asides.intake.objects.langchain_objects import build_turn_response, read_other, unwrap, write_part
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import File, Image, Text, ToolResult

PNG = "iVBORw0KGgoA"
CALL = {"name": "weather", "args": {"city": "Kyoto"}, "id": "c1", "type": "tool_call"}
USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_token_details": {"cache_read": 4},
    "output_token_details": {"reasoning": 3},
}
TEXT = {"type": "text", "text": "so"}


def ai(content: Any, provider: str = "", more: Any = None, **metadata: Any) -> dict[str, Any]:
    return {
        "type": "ai",
        "content": content,
        "additional_kwargs": more or {},
        "response_metadata": {"model_provider": provider, "model_name": "a-model", **metadata},
        "tool_calls": [CALL],
        "invalid_tool_calls": [],
        "usage_metadata": USAGE,
    }


ANTHROPIC = {"stop_reason": "tool_use"}
GEMINI: dict[str, Any] = {"safety_ratings": [], "finish_reason": "STOP"}
SIGNED = {"__gemini_function_call_thought_signatures__": {"c1": "c2VhbA=="}}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}]}
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city":"Kyoto"}'}
STANDARD = {"type": "reasoning", "reasoning": "why", "extras": {"signature": "c2VhbA=="}}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "anthropic",
        ai(
            [
                {"type": "thinking", "thinking": "why", "signature": "c2VhbA==", "index": 0},
                {**TEXT, "index": 1},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {}, "partial_json": "{}", "index": 2},
            ],
            "anthropic",
            **ANTHROPIC,
        ),
    ),
    "anthropic v1": ("anthropic", ai([STANDARD, TEXT, {**CALL, "extras": {}}], "anthropic", **ANTHROPIC)),
    "bedrock": (
        "bedrock",
        ai(
            [
                {"type": "reasoning_content", "reasoning_content": {"text": "why", "signature": "c2VhbA=="}},
                TEXT,
                {"type": "tool_use", "id": "c1", "name": "weather", "input": '{"city":'},
            ],
            stopReason="tool_use",
        ),
    ),
    "bedrock v1": ("bedrock", ai([STANDARD, TEXT, CALL], stopReason="tool_use")),
    "gemini": ("gemini", ai([{"type": "thinking", "thinking": "why"}, TEXT], "google_genai", SIGNED, **GEMINI)),
    "gemini v1": ("gemini", ai([{"type": "reasoning", "reasoning": "why"}, TEXT, CALL], more=SIGNED, **GEMINI)),
    "responses": (
        "openai_responses",
        ai([{**ITEM, "encrypted_content": "c2VhbA==", "index": 0}, {**TEXT, "id": "msg_1"}, FUNCTION], "openai"),
    ),
    "responses v0": (
        "openai_responses",
        ai(
            [TEXT],
            "openai",
            {
                "reasoning": {**ITEM, "encrypted_content": "c2VhbA==", "status": "in_progress"},
                "__openai_function_call_ids__": {"c1": "fc_1"},
            },
            object="response",
        ),
    ),
    "responses v1": (
        "openai_responses",
        ai(
            [
                {"type": "reasoning", "id": "rs_1", "reasoning": "why", "encrypted_content": "c2VhbA=="},
                {**TEXT, "id": "msg_1"},
                {**CALL, "extras": {"item_id": "fc_1"}},
            ],
            "openai",
            object="response",
        ),
    ),
    "chat": ("openai_chat", ai("so", "deepseek", {"reasoning_content": "why"}, finish_reason="tool_calls")),
    "chat v1": (
        "openai_chat",
        # Streams of 1.7 add the call's fields to the block of the thinking.
        ai([{"type": "reasoning", "reasoning": "why", "id": "c1", "name": "weather", "args": "{}"}, TEXT], "deepseek"),
    ),
    "unknown but signed": ("anthropic", ai([STANDARD, TEXT, CALL])),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_turn_becomes_the_response_of_its_dialect(shape: str) -> None:
    dialect, fields = SHAPES[shape]
    found, document = build_turn_response(fields)
    reply = asides.decode(found, msgspec.json.encode(document))
    assert found == dialect
    assert reply.thinking
    assert (reply.text, reply.thinking.text, reply.outcome) == ("so", "why", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c1", "weather", {"city": "Kyoto"})]
    assert [seal.value for seal in reply.seals] == ([] if dialect == "openai_chat" else ["c2VhbA=="])
    assert (reply.usage.input, reply.usage.output, reply.usage.cached, reply.stop.reason) == (10, 5, 4, "tool_calls")
    if dialect == "openai_responses":
        items = document["output"]
        assert (items[0]["id"], items[-1]["id"]) == ("rs_1", "fc_1")
        assert "index" not in items[0]
        assert "status" not in items[0]


def test_calls_that_were_cut_and_refusals_and_redacted_thinking_stay() -> None:
    broken = {"type": "invalid_tool_call", "id": "c2", "name": "weather", "args": '{"ci', "error": None}
    fields = {**ai("", more={"refusal": "no"}), "tool_calls": [], "invalid_tool_calls": [broken]}
    reply = asides.decode(*_encode(fields))
    assert (reply.refusal, reply.tool_calls[0].raw_arguments) == ("no", '{"ci')
    redacted = {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "ZGF0YQ=="}}
    reply = asides.decode(*_encode(ai([redacted, TEXT], **ANTHROPIC)))
    assert [(seal.kind, seal.value) for seal in reply.seals] == [("redacted", "ZGF0YQ==")]
    legacy = {**ai("", more={"function_call": {"name": "f", "arguments": '{"a":1}'}}), "tool_calls": []}
    assert asides.decode(*_encode(legacy)).tool_calls[0].arguments == {"a": 1}


def _encode(fields: dict[str, Any]) -> tuple[str, bytes]:
    dialect, document = build_turn_response(fields)
    return dialect, msgspec.json.encode(document)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"type": "human", "content": "x"}, "human"),
        ({"type": "AIMessageChunk", "content": "x"}, "ai"),
        ({"type": "HumanMessage", "content": "x"}, "human"),
        ({"type": "tool", "content": "x", "additional_kwargs": {}}, "tool"),
        ({"type": "chat", "role": "user", "content": "x", "additional_kwargs": {}}, "chat"),
        ({"type": "tool", "content": "x"}, None),
        ({"type": "tool", "content": "x", "tool_call_id": "c1"}, "tool"),
        ({"type": "tool", "role": "tool", "content": "x", "tool_call_id": "c1"}, None),
        ({"type": "system", "content": "x"}, None),
        ({"type": "message", "role": "assistant", "content": []}, None),
        ({"type": ["human"], "content": "x"}, None),
        ({"role": "user", "content": "x"}, None),
    ],
)
def test_a_message_is_known_by_its_fields(fields: dict[str, Any], kind: str | None) -> None:
    assert find_langchain_kind(fields) == kind


def test_stored_forms_are_unwrapped() -> None:
    held = {"content": "x", "additional_kwargs": {}}
    assert find_langchain_kind(unwrap({"type": "human", "data": held})) == "human"
    made = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": held}
    assert find_langchain_kind(unwrap(made)) == "ai"
    assert unwrap({"a": 1}) == {"a": 1}


IMAGE = Image(data=b"\x89PNG\r\n\x1a\n\x00")


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("human", {"content": "x"}, user("x")),
        ("human", {"content": ["a", {"type": "text", "text": "b"}], "name": "bo"}, Message("user", ["a", "b"], "bo")),
        ("human", {"content": [{"type": "image", "base64": PNG, "mime_type": "image/png"}]}, user(IMAGE)),
        (
            "human",
            {"content": [{"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}]},
            user(IMAGE),
        ),
        ("human", {"content": [{"type": "image", "url": "https://h/a.png"}]}, user(Image(url="https://h/a.png"))),
        ("human", {"content": [{"type": "media", "data": PNG, "mime_type": "image/png"}]}, user(IMAGE)),
        (
            "human",
            {"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
            user(IMAGE),
        ),
        (
            "human",
            {"content": [{"type": "file", "base64": "eA==", "mime_type": "application/pdf", "filename": "a.pdf"}]},
            user(File(data=b"x", name="a.pdf", media_type="application/pdf")),
        ),
        ("human", {"content": [{"type": "file", "file_id": "f1"}]}, user(File(id="f1"))),
        ("human", {"content": [{"type": "text-plain", "text": "x"}]}, user("x")),
        ("system", {"content": "be"}, Message("system", "be")),
        ("chat", {"content": "x", "role": "assistant"}, assistant("x")),
        ("tool", {"content": "18", "tool_call_id": "c1", "name": "w"}, Message("tool", (ToolResult("c1", "18", "w"),))),
        (
            "tool",
            {"content": "no", "tool_call_id": "c1", "status": "error"},
            Message("tool", (ToolResult("c1", "no", is_error=True),)),
        ),
        (
            "tool",
            {"content": [{"type": "text", "text": "a"}, {"type": "image", "base64": PNG}], "tool_call_id": "c1"},
            Message("tool", (ToolResult("c1", (Text("a"), IMAGE)),)),
        ),
        ("tool", {"content": "", "tool_call_id": "c1"}, Message("tool", (ToolResult("c1", ""),))),
    ],
)
def test_other_messages_are_read_with_their_content(kind: str, fields: dict[str, Any], message: Message) -> None:
    assert read_other(fields, kind) == message


def test_what_is_no_content_is_an_error() -> None:
    with pytest.raises(ConfigError, match="removes another one"):
        read_other({"id": "m1"}, "remove")
    with pytest.raises(ConfigError, match="text or an object with a type"):
        write_part(5)
    with pytest.raises(ConfigError, match="the role 'king'"):
        read_other({"content": "x", "role": "king"}, "chat")


_BARE = {"type": "tool", "content": "blue", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    "result",
    [
        _BARE,
        {**_BARE, "name": "weather"},
        {**_BARE, "status": "success", "artifact": None, "id": None},
        {**_BARE, "additional_kwargs": {}},
        {**_BARE, "response_metadata": {}},
        {**_BARE, "type": "ToolMessage"},
        {**_BARE, "content": [{"type": "text", "text": "blue"}]},
        {"type": "tool", "data": {"content": "blue", "tool_call_id": "c1"}},
    ],
)
@pytest.mark.parametrize("model", ["openai-responses:gpt-5", "openai:gpt-4o", "anthropic:claude-opus-4-8"])
def test_the_result_of_a_tool_is_read_without_the_fields_that_a_library_adds(model: str, result: Any) -> None:
    called = {"type": "ai", "content": "", "tool_calls": [CALL]}
    asked = asides.explain(model, [{"type": "human", "content": "hi"}, called, result])
    sent = msgspec.json.encode(asked.body).decode()
    assert "blue" in sent
    assert "cancelled" not in sent
    assert "dangling_tool_call" not in [notice.code for notice in asked.notices]
    assert '"type":"tool",' not in sent
