"""What a plan does with histories that were imported: foreign thinking stays out, and ids are unique."""

from __future__ import annotations

import json

import pytest

import asides
from asides.history.export import MessageFormat
from asides.intake.documents import import_messages
from asides.values.messages import user


@pytest.mark.parametrize("model", ["deepseek:deepseek-chat", "fireworks:any", "cohere:command-a", "ollama:qwen3:8b"])
@pytest.mark.parametrize("name", ["anthropic", "openai_responses"])
def test_imported_blocks_and_items_go_to_no_host_that_has_a_field(model: str, name: MessageFormat) -> None:
    blocks = [{"type": "thinking", "thinking": "T"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "T"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]
    said_before = [{"role": "assistant", "content": blocks}] if name == "anthropic" else items
    history = import_messages([{"role": "user", "content": "?"}, *said_before], name)
    assert '"T"' not in json.dumps(asides.explain(model, history, api_key="k").body)


@pytest.mark.parametrize("model", ["openai.gpt-oss-120b-1:0", "us.deepseek.r1-v1:0", "us.amazon.nova-2-lite-v1:0"])
def test_imported_signatures_go_to_no_model_that_refuses_them(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    blocks = [{"type": "thinking", "thinking": "T", "signature": "s"}, {"type": "text", "text": "A"}]
    history = import_messages([{"role": "user", "content": "?"}, {"role": "assistant", "content": blocks}], "anthropic")
    sent = [asides.explain(f"bedrock:{each}", (*history, user("!")), api_key="k").body for each in (model, "claude")]
    assert ["reasoningContent" in json.dumps(body) for body in sent] == [False, True]


@pytest.mark.parametrize("model", ["openai-responses:gpt-5", "anthropic:claude-opus-4-6", "groq:any"])
def test_ids_that_begin_again_in_every_turn_are_unique_on_the_wire(model: str) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn: list[dict[str, object]] = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "call_1"}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        {"role": "tool", "tool_call_id": "call_0", "content": "0"},
    ]
    planned = asides.explain(model, [*turn, *turn], api_key="k")
    sent = json.dumps(planned.body)
    assert [sent.count(f'"{each}"') for each in ("call_0", "call_1", "call_0_2", "call_1_2")] == [2] * 4
    assert "dangling" not in str(planned.notices)


@pytest.mark.parametrize(
    ("model", "goes"),
    [
        ("openrouter:anthropic/claude-sonnet-4.5", False),
        ("openrouter:~anthropic/claude-opus-latest", False),
        ("openrouter:google/gemini-3-pro-preview", False),
        ("vercel-gateway:anthropic/claude-opus-5", False),
        ("vercel-gateway:google/gemini-3-pro-preview", False),
        ("snowflake:claude-sonnet-4-5", False),
        ("openrouter:deepseek/deepseek-r1", True),
        ("vercel-gateway:moonshotai/kimi-k2-thinking", True),
    ],
)
def test_a_gateway_gets_no_thinking_without_a_seal_for_a_model_that_seals(
    model: str, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNOWFLAKE_ACCOUNT", "a")
    history = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "A", "reasoning_content": "T"},
        {"role": "user", "content": "!"},
    ]
    assert ('"T"' in json.dumps(asides.explain(model, history, api_key="k").body)) is goes


@pytest.mark.parametrize("provider", [None, "anthropic"])
@pytest.mark.parametrize("signature", ["asd1.c27ecd84.wgK8hAzPRWLk", "YXNkMS5jMjdlY2Q4NC53Z0s4"])
def test_an_envelope_of_a_relay_goes_to_no_provider(provider: str | None, signature: str) -> None:
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "T", "signature": signature}, {"type": "text", "text": "A"}],
    }
    before = asides.read(said, provider=provider, model="claude-opus-4-5")
    planned = asides.explain("anthropic:claude-opus-4-5", ["?", before, "!"], thinking=2000, api_key="k")
    sent = json.dumps(planned.body)
    assert (signature in sent, '"T"' in sent, '"A"' in sent) == (False, False, True)


@pytest.mark.parametrize(
    ("format_name", "model", "goes_back"),
    [
        ("anthropic-claude-v1", "anthropic/claude-sonnet-4.5", True),
        ("anthropic-claude-v1", "openai/gpt-5", False),
        ("openai-responses-v1", "openai/gpt-5", True),
        ("openai-responses-v1", "anthropic/claude-sonnet-4.5", False),
        ("google-gemini-v1", "google/gemini-3-pro-preview", True),
        ("google-gemini-v1", "openai/gpt-5", False),
        ("unknown", "openai/gpt-5", True),
    ],
)
def test_imported_details_go_back_to_the_models_that_read_their_format(
    format_name: str, model: str, goes_back: bool
) -> None:
    entry = {"type": "reasoning.encrypted", "data": "c2VhbA==", "format": format_name, "index": 0}
    turn = {"role": "assistant", "content": "A", "reasoning_details": [entry]}
    history = import_messages([{"role": "user", "content": "?"}, turn], "openai_chat")
    body = asides.explain(f"openrouter:{model}", (*history, user("!")), api_key="k").body
    assert ("reasoning_details" in json.dumps(body)) is goes_back
