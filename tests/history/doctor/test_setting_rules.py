"""The settings beside a history."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose

ASK = [{"role": "user", "content": "q"}]
TOOL = {"name": "f", "input_schema": {"type": "object"}}
CLAUDE_5 = "anthropic:claude-opus-5-5"
CLAUDE_4 = "anthropic:claude-haiku-4-5"
BUDGET = {"type": "enabled", "budget_tokens": 2000}


@pytest.mark.parametrize(
    ("model", "given", "kinds", "repaired"),
    [
        (CLAUDE_5, {"thinking": BUDGET}, ["thinking_mode_unsupported"],
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        (CLAUDE_5, {"thinking": {"type": "disabled"}}, ["thinking_cannot_disable"],
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        (CLAUDE_5, {"temperature": 0.5}, ["sampling_unsupported"], {}),
        (CLAUDE_5, {"output_config": {"effort": "turbo"}}, ["effort_unsupported_value"], {}),
        (CLAUDE_4, {"thinking": {"type": "adaptive"}}, ["adaptive_unsupported"],
         {"thinking": {"type": "enabled", "budget_tokens": 4904}}),
        (CLAUDE_4, {"thinking": {**BUDGET, "budget_tokens": 9}}, ["budget_too_small"],
         {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (CLAUDE_4, {"thinking": {**BUDGET, "budget_tokens": 9500}}, ["budget_exceeds_max_tokens"],
         {"thinking": {"type": "enabled", "budget_tokens": 4904}}),
        (CLAUDE_4, {"thinking": BUDGET, "top_k": 3}, ["sampling_with_thinking"], {"thinking": BUDGET}),
        (CLAUDE_4, {"thinking": BUDGET, "tools": [TOOL], "tool_choice": {"type": "any"}},
         ["tool_choice_with_thinking"], {"thinking": BUDGET, "tools": [TOOL], "tool_choice": {"type": "auto"}}),
        (CLAUDE_4, {"thinking": BUDGET, "x": 1}, [], {"thinking": BUDGET, "x": 1}),
    ],
)  # fmt: skip
def test_a_setting_gets_the_value_of_our_request(model: str, given: Any, kinds: list[str], repaired: Any) -> None:
    request = {"model": model.partition(":")[2], "max_tokens": 9000, "messages": ASK}
    found = diagnose({**request, **given}, model, format_name="anthropic")
    assert [finding.kind for finding in found.refused if finding.kind is not None] == kinds
    assert found.repaired == {**request, **repaired}


def test_settings_of_other_formats() -> None:
    chat = {"model": "gpt-5", "messages": ASK, "reasoning_effort": "none", "temperature": 0.2}
    found = diagnose(chat, "openai:gpt-5")
    assert found.repaired == {"model": "gpt-5", "messages": ASK, "reasoning_effort": "minimal"}
    assert [finding.path for finding in found.refused] == ["reasoning_effort", "temperature"]
    gemini = {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}, "seed": 1},
    }
    found = diagnose(gemini, "google:gemini-2.5-pro")
    assert found.repaired["generationConfig"]["seed"] == 1
    assert [finding.path for finding in found.refused] == ["generationConfig.thinkingConfig.thinkingBudget"]
    responses = {"model": "gpt-5", "input": ASK, "reasoning": {"effort": "xhigh", "summary": "auto"}}
    found = diagnose(responses, "openai:gpt-5")
    assert found.repaired["reasoning"] == {"effort": "high", "summary": "auto"}


def test_an_answer_to_be_continued_is_followed_by_the_user() -> None:
    request = {"model": "m", "max_tokens": 9, "messages": [*ASK, {"role": "assistant", "content": "It"}]}
    found = diagnose(request, "anthropic:claude-opus-4-6", format_name="anthropic")
    assert [finding.kind for finding in found.refused] == ["prefill_unsupported"]
    assert found.repaired["messages"][-1] == {"role": "user", "content": "Continue."}
    assert diagnose(request, CLAUDE_4, format_name="anthropic").sound
    assert diagnose(request["messages"], "anthropic:claude-opus-4-6").sound, "a saved history ends so"


def test_tools_of_the_history_are_declared() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    returned = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]}
    request = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [*ASK, use, returned]}
    found = diagnose(request, CLAUDE_4)
    declared = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    assert found.repaired == {**request, "tools": [declared], "tool_choice": {"type": "none"}}
    assert [finding.path for finding in found.refused] == ["tools", "tool_choice"]


def test_settings_that_cannot_be_read_are_a_note() -> None:
    request: dict[str, Any] = {"model": "m", "max_tokens": "many", "messages": ASK}
    found = diagnose(request, CLAUDE_4, format_name="anthropic")
    assert [finding.path for finding in found.refused] == ["max_tokens"]
    assert isinstance(found.repaired["max_tokens"], int)
    request = {"model": "m", "max_tokens": 9, "messages": ASK, "stop_sequences": 3}
    found = diagnose(request, CLAUDE_4, format_name="anthropic")
    assert found.repaired == request
    assert found.notes[0].startswith("the settings beside the history were not checked: stop_sequences")


def test_a_budget_beside_tools_is_checked_without_the_header_that_a_file_does_not_show() -> None:
    request = {"model": "m", "max_tokens": 4000, "messages": ASK, "tools": [TOOL]}
    found = diagnose({**request, "thinking": {**BUDGET, "budget_tokens": 8000}}, CLAUDE_4, format_name="anthropic")
    assert [finding.kind for finding in found.refused] == ["budget_exceeds_max_tokens"]
    assert "interleaved-thinking" in found.refused[0].detail
    assert found.repaired["thinking"]["budget_tokens"] < 4000
    always = diagnose({**request, "thinking": {"type": "adaptive"}}, CLAUDE_5, format_name="anthropic")
    assert always.sound


@pytest.mark.parametrize(
    ("model", "config", "kind", "repaired"),
    [
        ("gemini-3.5-flash", {"thinkingLevel": "high", "thinkingBudget": 9}, "reasoning_params_conflict",
         {"thinkingBudget": 9}),
        ("gemini-2.5-flash", {"thinkingLevel": "high", "thinkingBudget": 900}, "reasoning_params_conflict",
         {"thinkingBudget": 900}),
        ("gemini-3.5-flash", {"thinkingLevel": "max", "includeThoughts": True}, "effort_unsupported_value",
         {"includeThoughts": True}),
        ("gemini-2.5-flash", {"thinkingBudget": -7}, "budget_out_of_range", None),
    ],
)  # fmt: skip
def test_a_thinking_config_that_contradicts_itself(model: str, config: Any, kind: str, repaired: Any) -> None:
    request = {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {"thinkingConfig": config}}
    found = diagnose(request, f"google:{model}")
    assert kind in [finding.kind for finding in found.refused]
    assert found.repaired.get("generationConfig", {}).get("thinkingConfig") == repaired
    assert not found.notes


def test_two_amounts_of_thinking_become_one() -> None:
    request = {
        "model": "m",
        "messages": ASK,
        "reasoning_effort": "low",
        "reasoning": {"effort": "high", "max_tokens": 9},
    }
    found = diagnose(request, "openrouter:openai/gpt-5")
    assert [finding.kind for finding in found.refused] == ["reasoning_params_conflict"] * 2
    assert found.repaired == {"model": "m", "messages": ASK, "reasoning": {"effort": "low"}}


def test_an_edit_that_clears_thinking_needs_thinking() -> None:
    clear, other = {"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}
    request = {"model": "m", "max_tokens": 9000, "messages": ASK, "context_management": {"edits": [clear, other]}}
    found = diagnose(request, CLAUDE_4, format_name="anthropic")
    assert [(finding.kind, finding.path) for finding in found.refused] == [
        ("context_edit_needs_thinking", "context_management.edits[0]")
    ]
    assert found.repaired["context_management"] == {"edits": [other]}
    assert diagnose({**request, "thinking": BUDGET}, CLAUDE_4, format_name="anthropic").sound
    assert diagnose(request, CLAUDE_5, format_name="anthropic").sound, "it always thinks"
    alone = diagnose({**request, "context_management": {"edits": [clear]}}, CLAUDE_4, format_name="anthropic")
    assert "context_management" not in alone.repaired


def test_a_repair_is_said_in_the_words_of_the_file() -> None:
    request = {"model": "m", "input": ASK, "reasoning": {"effort": "ultra"}, "temperature": 0.5}
    repairs = [finding.repair for finding in diagnose(request, "openai-responses:gpt-5.4").refused]
    assert repairs == ["reasoning.effort is xhigh, not ultra", "temperature is left out"]


def test_a_stored_response_cannot_be_checked() -> None:
    request = {"model": "m", "input": ASK, "previous_response_id": "resp_1"}
    found = diagnose(request, "openai-responses:gpt-5.4")
    assert found.sound
    assert "previous_response_id" in found.notes[0]
