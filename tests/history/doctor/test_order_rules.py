"""Empty messages, who begins, who ends, and the place of the system prompt."""

from __future__ import annotations

import json
from typing import Any

from asides.history.doctor.diagnose import diagnose

CLAUDE = "anthropic:claude-opus-4-6"
ASK = {"role": "user", "content": "q"}


def kinds(history: Any, model: str) -> list[str | None]:
    return [finding.kind for finding in diagnose(history, model, format_name="auto").refused]


def test_blank_blocks_and_messages_go_and_words_stay() -> None:
    blank = {"role": "assistant", "content": [{"type": "text", "text": "  "}]}
    half = {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]}
    found = diagnose([ASK, blank, ASK, half, ASK, {"role": "user", "content": ""}], CLAUDE)
    assert "empty_content" in {finding.kind for finding in found.refused}
    assert json.dumps(found.repaired).count('"q"') == 3
    assert {"role": "assistant", "content": half["content"][1:]} in found.repaired


def test_a_turn_that_broke_off_while_thinking_goes() -> None:
    history = [ASK, {"role": "assistant", "content": "", "reasoning_content": "hm"}, ASK]
    found = diagnose(history, "moonshot:kimi-k2-thinking")
    assert found.repaired == [ASK, ASK]
    assert [finding.kind for finding in found.refused] == ["empty_content"]


def test_a_conversation_begins_with_the_user() -> None:
    words = {"role": "assistant", "content": [{"type": "text", "text": "x"}]}
    found = diagnose([words, ASK], "anthropic:claude-3-5-haiku-latest", format_name="anthropic")
    assert [message["role"] for message in found.repaired] == ["user", "assistant", "user"]
    assert kinds([words, ASK], CLAUDE) == [], "newer models take it"
    assert kinds([{"role": "assistant", "content": "x"}, ASK], "deepseek:deepseek-flash") == []


def test_a_system_message_stays_and_survives_another_repair() -> None:
    inside, blank = {"role": "system", "content": "be kind"}, {"role": "user", "content": ""}
    request = {"model": "m", "max_tokens": 9, "system": "short", "messages": [ASK, inside]}
    assert diagnose(request, CLAUDE, format_name="anthropic").sound
    for given in ([blank, ASK, inside, ASK], {**request, "messages": [blank, ASK, inside, ASK]}):
        found = diagnose(given, CLAUDE, format_name="anthropic")
        assert "empty_content" in [finding.kind for finding in found.refused]
        assert "be kind" in json.dumps(found.repaired)


def test_only_the_model_follows_results_at_some_hosts() -> None:
    call = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [ASK, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call00001",
               "content": "1"}, ASK]  # fmt: skip
    found = diagnose(history, "mistral:magistral-medium-latest")
    assert [message["role"] for message in found.repaired] == ["user", "assistant", "tool", "assistant", "user"]
    assert [finding.kind for finding in found.refused] == ["tool_turn_order"]
    ends = {"model": "m", "messages": [ASK, {"role": "assistant", "content": "x"}]}
    assert kinds(ends, "mistral:mistral-large-latest") == ["prefill_unsupported"]
    continued = {"model": "m", "messages": [ASK, {"role": "assistant", "content": "x", "prefix": True}]}
    assert kinds(continued, "mistral:mistral-large-latest") == []


def test_a_history_that_loses_everything_still_has_a_message() -> None:
    found = diagnose([{"role": "tool", "tool_call_id": "a", "content": "1"}], "deepseek:deepseek-flash")
    assert found.repaired == [{"role": "user", "content": "Continue."}]
