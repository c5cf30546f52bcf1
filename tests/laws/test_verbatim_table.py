"""Requests whose parts are easy to lose: each comes out exactly as it went in, or a notice names what changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.history.plan import encode_plan, plan
from asides.providers.find import find_row
from asides.providers.provider import Target
from asides.providers.table import plain_row

PATHS = {"gemini": "/v1beta/models/made-up:generateContent", "bedrock": "/model/made-up/converse"}
TWO = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Speak French."}]
PLAIN = [{"text": "Be brief."}, {"text": "Speak French."}]
ASKED = {"role": "user", "content": "Look."}
BLOCKS = {"role": "user", "content": [{"text": "Look."}]}
CONTENT = {"role": "user", "parts": [{"text": "Look."}]}
FUNCTION = {"name": "look", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}


def send(dialect: str, body: dict[str, Any], provider: str = "", model: str = "made-up") -> tuple[Any, list[str]]:
    """Read a request, plan and encode it. Returns the new body and the notices."""
    body = body if dialect in PATHS else {"model": model, **body}
    served = find_dialect(dialect).read(json.dumps(body).encode(), PATHS.get(dialect, "/"))
    found = find_row(provider, ()) if provider else None
    row = (found and found.with_dialect(dialect)) or plain_row(dialect)
    target = Target(row, served.model, row.base_url or "http://127.0.0.1:9/v1", row.rule(served.model))
    planned = plan(served.prompt, target, on_conflict="adjust")
    request, notices = encode_plan(planned, target, find_dialect(dialect), on_conflict="adjust")
    return json.loads(request.body), [
        f"{each.code} {each.setting} {each.asked}: {each.detail}"
        for each in planned.notices + notices
        if each.code != "unknown_model"
    ]


def check_unchanged(dialect: str, body: dict[str, Any], provider: str = "", model: str = "made-up") -> None:
    sent, notices = send(dialect, body, provider, model)
    assert {name: sent.get(name) for name in body} == body
    assert notices == []


TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat: system": ("openai_chat", {"messages": [{"role": "system", "content": TWO}, ASKED]}),
    "chat: later system": ("openai_chat", {"messages": [ASKED, {"role": "system", "content": TWO}, ASKED]}),
    "chat: user": ("openai_chat", {"messages": [{"role": "user", "content": TWO}]}),
    "chat: assistant": ("openai_chat", {"messages": [ASKED, {"role": "assistant", "content": TWO}, ASKED]}),
    "chat: result": (
        "openai_chat",
        {
            "messages": [
                ASKED,
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": TWO},
            ]
        },
    ),
    "responses: system": (
        "openai_responses",
        {
            "input": [
                {
                    "role": "system",
                    "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
                },
                ASKED,
            ]
        },
    ),
    "responses: assistant": (
        "openai_responses",
        {
            "input": [
                ASKED,
                {
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
                },
                ASKED,
            ]
        },
    ),
    "cohere: system": ("cohere", {"messages": [{"role": "system", "content": TWO}, ASKED]}),
    "cohere: assistant": ("cohere", {"messages": [ASKED, {"role": "assistant", "content": TWO}, ASKED]}),
    "bedrock: system": ("bedrock", {"system": PLAIN, "messages": [BLOCKS]}),
    "bedrock: assistant": ("bedrock", {"messages": [BLOCKS, {"role": "assistant", "content": PLAIN}, BLOCKS]}),
    "gemini: system": ("gemini", {"systemInstruction": {"parts": PLAIN}, "contents": [CONTENT]}),
    "gemini: model": ("gemini", {"contents": [CONTENT, {"role": "model", "parts": PLAIN}, CONTENT]}),
    "anthropic: system": ("anthropic", {"max_tokens": 9, "system": TWO, "messages": [ASKED]}),
    "anthropic: assistant": (
        "anthropic",
        {"max_tokens": 9, "messages": [ASKED, {"role": "assistant", "content": TWO}, ASKED]},
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_blocks_of_text_are_not_glued(name: str) -> None:
    check_unchanged(*TEXTS[name])


@pytest.mark.parametrize(
    ("dialect", "read"),
    [
        ("openai_chat", lambda sent: sent["messages"][0]["content"]),
        ("openai_responses", lambda sent: sent.get("instructions") or sent["input"][0]["content"]),
        ("cohere", lambda sent: sent["messages"][0]["content"]),
        ("ollama", lambda sent: sent["messages"][0]["content"]),
        ("bedrock", lambda sent: sent["system"]),
        ("gemini", lambda sent: sent["systemInstruction"]["parts"]),
        ("anthropic", lambda sent: sent["system"]),
        ("gemini_interactions", lambda sent: sent["system_instruction"]),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("source", ["openai_chat", "gemini", "bedrock", "anthropic"])
def test_blocks_of_the_system_stay_apart_in_another_dialect(dialect: str, read: Any, place: int, source: str) -> None:
    system = {"role": "system", "content": TWO}
    bodies: dict[str, dict[str, Any]] = {
        "openai_chat": {"messages": [*([{"role": "system", "content": "First."}] if place else []), system, ASKED]},
        "gemini": {"systemInstruction": {"parts": PLAIN}, "contents": [CONTENT]},
        "bedrock": {"system": PLAIN, "messages": [BLOCKS]},
        "anthropic": {"max_tokens": 9, "system": TWO, "messages": [ASKED]},
    }
    body = {"model": "made-up", **bodies[source]}
    prompt = find_dialect(source).read(json.dumps(body).encode(), PATHS.get(source, "/")).prompt
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    request, _ = encode_plan(plan(prompt, target, on_conflict="adjust"), target, find_dialect(dialect))
    said = json.dumps(json.loads(request.body))
    assert "Be brief." in said
    assert "Be brief.Speak" not in said
    assert "Be brief.\\nSpeak" not in said


# --- media, and parts that few hosts have -----------------------------------------------------------------------------

FILE = {"fileData": {"fileUri": "https://youtu.be/x"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
PNG = "iVBORw0KGgo="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


def gemini_user(*parts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "gemini", {"contents": [{"role": "user", "parts": list(parts)}]}


def chat(*messages: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai_chat", {"messages": [ASKED, *messages, ASKED], **fields}


PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini: file without a type": gemini_user({"text": "?"}, FILE),
    "gemini: file with a type": gemini_user({"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}}),
    "gemini: stored file without a type": gemini_user({"fileData": {"fileUri": "files/abc"}}),
    "gemini: video metadata": gemini_user(
        {**FILE, "videoMetadata": {"startOffset": "1s", "fps": 5}, "mediaResolution": {"level": "LOW"}}, {"text": "?"}
    ),
    "gemini: metadata of a neighbour": gemini_user(FILE, {"text": "?", "partMetadata": {"a": 1}}),
    "gemini: metadata of inline data": gemini_user(
        {"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "a"}, "partMetadata": {"a": 1}}
    ),
    "gemini: inline data without a type": gemini_user({"inlineData": {"data": PNG}}),
    "chat: images of a reply": chat({"role": "assistant", "content": "Here.", "images": [PICTURE]}),
    "chat: images alone": chat({"role": "assistant", "content": "", "images": [PICTURE]}),
    "chat: refusal": chat({"role": "assistant", "content": None, "refusal": "no"}),
    "chat: refusal without content": chat({"role": "assistant", "refusal": "no"}),
    "chat: refusal beside an answer": chat({"role": "assistant", "content": "a", "refusal": "no"}),
    "chat: refusal as a part": chat({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
    "chat: text and refusal as parts": chat(
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]}
    ),
    "responses: refusal": (
        "openai_responses",
        {
            "input": [
                ASKED,
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
                ASKED,
            ]
        },
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_odd_parts_come_out_as_they_came(name: str) -> None:
    check_unchanged(*PARTS[name])


@pytest.mark.parametrize("provider", ["openai", "azure", "groq", "openrouter", "mistral"])
@pytest.mark.parametrize("name", [name for name in PARTS if "refusal" in name and name.startswith("chat")])
def test_a_refusal_never_becomes_an_answer(name: str, provider: str) -> None:
    dialect, body = PARTS[name]
    sent, notices = send(dialect, body, provider)
    said = json.dumps(sent["messages"])
    assert "ano" not in said
    assert provider == "mistral" or '"content": "no"' not in said
    if sent["messages"] != body["messages"]:
        assert any("refusal" in notice for notice in notices)
    if provider in ("openai", "azure"):
        assert sent["messages"] == body["messages"]


CUSTOM = {"type": "custom", "custom": {"name": "sql"}}
CHOICES: dict[str, dict[str, Any]] = {
    "custom tool": {"tools": [CUSTOM], "tool_choice": CUSTOM},
    "custom tool beside a function": {"tools": [TOOL, CUSTOM], "tool_choice": CUSTOM},
    "function": {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}},
    "some tools": {
        "tools": [TOOL],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}},
    },
    "legacy functions": {"functions": [FUNCTION], "function_call": "auto"},
    "legacy function": {"functions": [FUNCTION], "function_call": {"name": "look"}},
    "legacy functions alone": {"functions": [FUNCTION]},
    "function without parameters": {"tools": [{"type": "function", "function": {"name": "look"}}]},
    "legacy function without parameters": {"functions": [{"name": "look", "description": "Looks."}]},
}


@pytest.mark.parametrize("name", CHOICES)
def test_tools_and_choices_come_out_as_they_came(name: str) -> None:
    check_unchanged(*chat(**CHOICES[name]))


def test_legacy_calls_go_back_as_they_came() -> None:
    called = {"role": "assistant", "function_call": {"name": "look", "arguments": '{"a":  1}'}}
    body = chat(called, {"role": "function", "name": "look", "content": "blue"}, functions=[FUNCTION])
    check_unchanged(*body)


# --- fields that are easy to drop -------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {}}
SPEC = {"name": "look", "inputSchema": {"json": SCHEMA}}
USE = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}]}
TURN = {"role": "user", "content": "Look."}


def bedrock(*messages: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "bedrock", {"messages": [BLOCKS, *messages], **fields}


def interaction(*steps: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "gemini_interactions", {"input": list(steps), "store": False, **fields}


STEP = {"type": "user_input", "content": [{"type": "text", "text": "Look."}]}
FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "responses: unknown format": (
        "openai_responses",
        {"input": [ASKED], "text": {"format": {"type": "grammar", "x": 1}}},
    ),
    "responses: unknown format beside verbosity": (
        "openai_responses",
        {"input": [ASKED], "text": {"format": {"type": "grammar", "x": 1}, "verbosity": "low"}},
    ),
    "responses: older summary": ("openai_responses", {"input": [ASKED], "reasoning": {"generate_summary": "auto"}}),
    "responses: function without parameters": (
        "openai_responses",
        {"input": [ASKED], "tools": [{"type": "function", "name": "look"}]},
    ),
    "responses: stream options": (
        "openai_responses",
        {"input": [ASKED], "stream": True, "stream_options": {"include_obfuscation": False}},
    ),
    "interactions: store": ("gemini_interactions", {"input": [STEP], "store": True}),
    "interactions: text": ("gemini_interactions", {"input": "Look.", "store": False}),
    "interactions: a content": ("gemini_interactions", {"input": {"type": "text", "text": "a"}, "store": False}),
    "interactions: contents": (
        "gemini_interactions",
        {"input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "store": False},
    ),
    "interactions: signed call": interaction(
        STEP,
        {"type": "function_call", "id": "c1", "name": "look", "arguments": {}, "signature": "c2ln"},
        {"type": "function_result", "call_id": "c1", "name": "look", "result": "blue"},
    ),
    "interactions: no thinking asked for": interaction(STEP, generation_config={"temperature": 0.5}),
    "interactions: level": interaction(STEP, generation_config={"thinking_level": "low"}),
    "interactions: tool without parameters": interaction(STEP, tools=[{"type": "function", "name": "look"}]),
    "gemini: role function": (
        "gemini",
        {
            "contents": [
                CONTENT,
                {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
                {"role": "function", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
            ]
        },
    ),
    "gemini: no role": ("gemini", {"contents": [{"parts": [{"text": "Look."}]}]}),
    "gemini: unknown part": gemini_user({"text": "?"}, {"newThing": {"a": 1}}),
    "gemini: system of other parts": (
        "gemini",
        {"systemInstruction": {"parts": [{"text": "a"}, FILE]}, "contents": [CONTENT]},
    ),
    "gemini: function without parameters": (
        "gemini",
        {"contents": [CONTENT], "tools": [{"functionDeclarations": [{"name": "look", "description": "Looks."}]}]},
    ),
    "bedrock: empty result": bedrock(
        USE,
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": ""}], "status": "success"}}],
        },
        toolConfig={"tools": [{"toolSpec": SPEC}]},
    ),
    "bedrock: status of an error": bedrock(
        USE,
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "x"}], "status": "error"}}],
        },
        toolConfig={"tools": [{"toolSpec": SPEC}]},
    ),
    "bedrock: document": bedrock(
        {"role": "assistant", "content": [{"text": "Yes?"}]},
        {
            "role": "user",
            "content": [
                {"text": "?"},
                {
                    "document": {
                        "name": "a",
                        "format": "txt",
                        "source": {"bytes": "aGk="},
                        "context": "c",
                        "citations": {"enabled": True},
                        "xNew": 1,
                    }
                },
            ],
        },
    ),
    "bedrock: schema": bedrock(toolConfig={"tools": [{"toolSpec": {**SPEC, "inputSchema": {"json": SCHEMA, "x": 1}}}]}),
    "cohere: strict without tools": ("cohere", {"messages": [ASKED], "strict_tools": True, "stream": False}),
    "cohere: strict with tools": (
        "cohere",
        {"messages": [ASKED], "tools": [TOOL], "strict_tools": True, "stream": False},
    ),
    "cohere: function without parameters": (
        "cohere",
        {"messages": [ASKED], "tools": [{"type": "function", "function": {"name": "look"}}], "stream": False},
    ),
    "anthropic: tool without a schema": (
        "anthropic",
        {"max_tokens": 9, "messages": [ASKED], "tools": [{"name": "look", "type": "custom"}]},
    ),
    "chat: thinking turned off": chat(enable_thinking=False),
    "chat: effort none": chat(reasoning_effort="none"),
    "chat: both limits": chat(max_tokens=5, max_completion_tokens=6),
    "bedrock: unknown choice": bedrock(toolConfig={"tools": [{"toolSpec": SPEC}], "toolChoice": {"some": {}}}),
    "chat: not streamed": chat(stream=False),
    "anthropic: not streamed": ("anthropic", {"max_tokens": 9, "messages": [ASKED], "stream": False}),
    "chat: unknown part of the model's": chat({"role": "assistant", "content": [{"type": "new", "x": 1}]}),
    "chat: unknown call": chat({"role": "assistant", "tool_calls": [{"id": "c", "type": "new", "new": {"a": 1}}]}),
    "ollama: not thinking": ("ollama", {"messages": [ASKED], "think": False, "stream": False}),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_not_dropped(name: str) -> None:
    check_unchanged(*FIELDS[name])


def test_what_is_added_is_named() -> None:
    for options in ({}, {"stream_options": {"include_usage": False}}):
        sent, notices = send(*chat(stream=True, **options))
        assert sent["stream_options"] == {"include_usage": True}
        assert any("field_added stream_options" in notice for notice in notices)
    sent, notices = send("openai_responses", {"input": [ASKED]}, "openai", "gpt-5.5")
    assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])
    assert [notice.split()[1] for notice in notices] == ["include", "store"]


def test_an_id_that_is_not_sent_is_named() -> None:
    item = {"role": "user", "content": "Look.", "id": "0b9c7c1e-8f5d"}
    sent, notices = send("openai_responses", {"input": [item]}, "openai", "gpt-5.5")
    assert sent["input"] == [{"role": "user", "content": "Look."}]
    assert any("'id'" in notice for notice in notices)


def test_another_field_for_thinking_is_named() -> None:
    _, notices = send(*chat(enable_thinking=False), "ollama")
    assert any("enable_thinking" in notice for notice in notices)


STRICT: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "field of a message": (
        "anthropic",
        {"max_tokens": 9, "messages": [{**TURN, "x_new": 1}]},
        "anthropic",
        "x_new",
    ),
    "field of a block": (
        "anthropic",
        {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "x_new": 1}]}]},
        "anthropic",
        "x_new",
    ),
    "field of a Mistral message": ("openai_chat", {"messages": [{**TURN, "x_new": 1}]}, "mistral", "x_new"),
}


@pytest.mark.parametrize("name", STRICT)
def test_a_field_that_a_strict_host_does_not_get_is_named(name: str) -> None:
    dialect, body, provider, field = STRICT[name]
    sent, notices = send(dialect, body, provider)
    assert field not in json.dumps(sent)
    assert any(field in notice for notice in notices)


# --- values that a newer server may take ------------------------------------------------------------------------------

VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat: effort": chat(reasoning_effort="extreme"),
    "chat: gateway effort": chat(reasoning={"effort": "extreme"}),
    "responses: effort": ("openai_responses", {"input": [ASKED], "reasoning": {"effort": "extreme"}}),
    "responses: context": ("openai_responses", {"input": [ASKED], "reasoning": {"context": "two_turns"}}),
    "responses: mode": ("openai_responses", {"input": [ASKED], "reasoning": {"mode": "ultra"}}),
    "responses: summary": ("openai_responses", {"input": [ASKED], "reasoning": {"summary": "verbose"}}),
    "responses: truncation": ("openai_responses", {"input": [ASKED], "truncation": "smart"}),
    "anthropic: effort": ("anthropic", {"max_tokens": 9, "messages": [ASKED], "output_config": {"effort": "extreme"}}),
    "anthropic: thinking": ("anthropic", {"max_tokens": 9, "messages": [ASKED], "thinking": {"type": "dreaming"}}),
    "anthropic: tool choice": (
        "anthropic",
        {
            "max_tokens": 9,
            "messages": [ASKED],
            "tools": [{"name": "look", "input_schema": SCHEMA}],
            "tool_choice": {"type": "some", "names": ["look"]},
        },
    ),
    "cohere: thinking": ("cohere", {"messages": [ASKED], "thinking": {"type": "dreaming"}, "stream": False}),
    "cohere: tool choice": (
        "cohere",
        {"messages": [ASKED], "tools": [TOOL], "tool_choice": "SOME", "stream": False},
    ),
    "gemini: level": (
        "gemini",
        {"contents": [CONTENT], "generationConfig": {"thinkingConfig": {"thinkingLevel": "EXTREME"}}},
    ),
    "interactions: level": interaction(STEP, generation_config={"thinking_level": "extreme"}),
    "interactions: summaries": interaction(STEP, generation_config={"thinking_summaries": "verbose"}),
    "ollama: level": ("ollama", {"messages": [ASKED], "think": "extreme", "stream": False}),
    "bedrock: effort": bedrock(additionalModelRequestFields={"output_config": {"effort": "extreme"}}),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_a_newer_server_are_passed_on(name: str) -> None:
    check_unchanged(*VALUES[name])
