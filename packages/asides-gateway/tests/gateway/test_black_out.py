"""Bodies as the inspector shows them: every dialect's seals, keys and thinking are found by their structure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.relay.state.envelope import make_envelope, wrap_in_base64
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import PartState, TurnState
from asides.values.redaction import build_redactor
from asides.values.thinking import Seal
from asides.values.visibility import Readable
from asides_gateway.black_out import black_out

SEAL = "c2VhbGVkLWJ5LXRoZS1wcm92aWRlcg=="
THOUGHT = "the canary thinks of seeds"
ENVELOPE = make_envelope(
    TurnState((PartState(0, "thought", (Seal("signature", SEAL),)),)),
    RelayKeys((b"k" * 32,)).find_tenant(""),
    has_vault=False,
    reference="",
)[0]
BOTH: tuple[Readable, ...] = ("raw", "summary")

# A turn of the model with a thought and its seal, as each dialect sends it back.
TURNS: dict[str, Any] = {
    "messages": {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": THOUGHT, "signature": SEAL},
                    {"type": "redacted_thinking", "data": SEAL},
                    {"type": "text", "text": "Fine."},
                ],
            }
        ]
    },
    "responses": {
        "input": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": THOUGHT}],
                "encrypted_content": SEAL,
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fine."}]},
        ]
    },
    "gemini": {
        "contents": [
            {
                "role": "model",
                "parts": [
                    {"text": THOUGHT, "thought": True},
                    {"text": "Fine.", "thoughtSignature": SEAL},
                    {"functionCall": {"name": "look", "args": {}}, "thought_signature": SEAL},
                ],
            }
        ]
    },
    "bedrock": {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": SEAL}}},
                    {"reasoningContent": {"redactedContent": SEAL}},
                    {"text": "Fine."},
                ],
            }
        ]
    },
    "chat, a field": {"messages": [{"role": "assistant", "reasoning_content": THOUGHT, "content": "Fine."}]},
    "chat, details": {
        "messages": [
            {
                "role": "assistant",
                "reasoning": THOUGHT,
                "reasoning_details": [
                    {"type": "reasoning.text", "text": THOUGHT, "signature": SEAL},
                    {"type": "reasoning.encrypted", "data": SEAL, "id": "1"},
                ],
                "content": "Fine.",
            }
        ]
    },
    "chat, blocks": {
        "messages": [
            {
                "role": "assistant",
                "thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": SEAL}],
                "content": "Fine.",
            }
        ]
    },
    "chat, a lone close": {"messages": [{"role": "assistant", "content": f"{THOUGHT}</think>Fine."}]},
    "chat, tags": {"messages": [{"role": "assistant", "content": f"<think>{THOUGHT}</think>Fine."}]},
    "mistral": {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                    {"type": "text", "text": "Fine."},
                ],
            }
        ]
    },
    "cohere": {
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "Fine."}],
            }
        ]
    },
    "ollama": {"messages": [{"role": "assistant", "thinking": THOUGHT, "content": "Fine."}]},
}


def _show(document: Any, shows: tuple[Readable, ...] = (), **more: Any) -> str:
    return msgspec.json.encode(black_out(msgspec.json.encode(document), shows=shows, **more)).decode()


@pytest.mark.parametrize("form", TURNS)
def test_seals_are_never_shown_and_thoughts_only_where_they_may_be(form: str) -> None:
    shown, hidden = _show(TURNS[form], BOTH), _show(TURNS[form])
    assert SEAL not in shown + hidden
    assert THOUGHT in shown
    assert THOUGHT not in hidden
    assert THOUGHT not in _show(TURNS[form], ("summary",))
    assert "Fine." in shown
    assert "Fine." in hidden


def test_a_summary_is_shown_where_summaries_may_be() -> None:
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}], "encrypted_content": SEAL}
    entry = {"role": "assistant", "reasoning_details": [{"type": "reasoning.summary", "summary": THOUGHT}]}
    for document in ({"input": [item]}, {"messages": [entry]}):
        assert THOUGHT in _show(document, ("summary",))
        assert THOUGHT not in _show(document)


@pytest.mark.parametrize("envelope", [ENVELOPE, wrap_in_base64(ENVELOPE), f" {ENVELOPE}"])
def test_envelopes_are_blacked_out_wherever_they_are(envelope: str) -> None:
    document = {
        "messages": [{"role": "user", "content": envelope, "anything": [envelope, {"deep": envelope}]}],
        "thinking": {"type": "thinking", "signature": envelope},
    }
    assert envelope.strip() not in _show(document, BOTH)


def test_settings_stay_as_they_are() -> None:
    document = {
        "model": "x",
        "thinking": {"type": "enabled", "budget_tokens": 9},
        "reasoning": {"effort": "high", "summary": "auto"},
        "think": "high",
        "max_tokens": 9,
        "tools": [{"name": "sign", "input_schema": {"properties": {"signature": {"type": "string"}, "key": {}}}}],
        "stream": True,
    }
    assert msgspec.json.decode(_show(document)) == document


def test_a_sign_and_a_picture_of_the_user_stay() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}}
    document = {"messages": [{"role": "user", "content": [picture, {"type": "text", "text": "What is <think>?"}]}]}
    assert msgspec.json.decode(_show(document)) == document


@pytest.mark.parametrize(
    "document",
    [
        {"asides": {"api_key": "CANARY"}},
        {"tools": [{"type": "mcp", "authorization": "CANARY", "headers": {"x-anything": "CANARY"}}]},
        {"mcp_servers": [{"type": "url", "authorization_token": "CANARY"}]},
        {"tools": [{"type": "mcp", "server_url": "https://me:CANARY@tools.example/mcp?t=CANARY"}]},
        {"messages": [{"role": "user", "content": "my key is sk-ant-CANARY-123456"}]},
        {"messages": [{"role": "user", "content": "curl -H 'authorization: Bearer CANARY'"}]},
        {"messages": [{"role": "tool", "content": "the gateway's own: gw-CANARY-key"}]},
        {"a": {"password": "CANARY"}, "b": {"client-secret": "CANARY"}, "c": {"apiKey": "CANARY"}},
    ],
)
def test_keys_are_blacked_out(document: Any) -> None:
    shown = _show(document, BOTH, redact=build_redactor(["gw-CANARY-key"]))
    assert "CANARY" not in shown
    assert "***" in shown


def test_what_is_no_json_is_not_shown() -> None:
    for body in (b"", b"plain", b'{"a": "\xff"}', b"[" * 100_000):
        with pytest.raises(ValueError, match="not JSON"):
            black_out(body, shows=BOTH)
