"""The settings of a chat at other hosts: efforts, switches, budgets, sampling, forced tools, unknown fields."""

from __future__ import annotations

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import NAMED
from tests.testing.stage.rules.openai_chat.host_cases import (
    FORCED,
    OFF,
    ON,
    Case,
    asking,
    try_case,
    with_tools,
)

FORCED_BUT_OFF = with_tools(tool_choice="required", thinking=OFF)
CASES = [
    Case(
        "effort_unsupported_value",
        "openai/gpt-oss-120b",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "`reasoning_effort` must be one of `low`, `medium`, or `high`",
        at="as-groq",
    ),
    Case(
        "effort_unsupported_param",
        "llama-3.3-70b-versatile",
        asking(reasoning_effort="low"),
        asking(),
        "`reasoning_effort` is not supported with this model",
        at="as-groq",
    ),
    Case(
        "effort_unsupported_value",
        "gpt-oss-120b",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="high"),
        "`reasoning_effort` must be one of `low`, `medium`, or `high`",
        at="as-cerebras",
    ),
    Case(
        "effort_unsupported_value",
        "mistral-small-latest",
        asking(reasoning_effort="low"),
        asking(reasoning_effort="high"),
        "Input should be 'none' or 'high'",
        status=422,
    ),
    Case(
        "stream_required",
        "any",
        asking(enable_thinking=True),
        asking(enable_thinking=True, stream=True),
        "can not be support when `stream=False`",
        at="as-modelscope",
    ),
    Case("tool_choice_with_thinking", "deepseek-v4-pro", FORCED, FORCED_BUT_OFF, "does not support this tool_choice"),
    Case(
        "tool_choice_with_thinking",
        "kimi-k2.6",
        with_tools(tool_choice=NAMED),
        with_tools(tool_choice=NAMED, thinking=OFF),
        "tool_choice 'specified' is incompatible with thinking enabled",
    ),
    Case("tool_choice_with_thinking", "kimi-k3", with_tools(tool_choice=NAMED), FORCED, "tool_choice 'specified'"),
    Case(
        "sampling_with_thinking",
        "kimi-k2.5",
        asking(temperature=0.6),
        asking(temperature=0.6, thinking=OFF),
        "invalid temperature: only 1 is allowed for this model",
    ),
    Case(
        "sampling_with_thinking",
        "kimi-k2.5",
        asking(temperature=1, thinking=OFF),
        asking(temperature=1),
        "invalid temperature: only 0.6 is allowed for this model",
    ),
    Case(
        "effort_unsupported_value",
        "kimi-k2.6",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
    ),
    Case("unknown_param", "kimi-k2.6", asking(thinking=True), asking(thinking=ON), "bool is not acceptable"),
    Case("thinking_cannot_disable", "kimi-k3", asking(thinking=OFF), asking(), "only type=enabled"),
    Case(
        "thinking_cannot_disable",
        "glm-5.3",
        asking(thinking=OFF),
        asking(reasoning_effort="low"),
        "please use low, high, or max",
    ),
    Case(
        "thinking_cannot_disable",
        "glm-5.3",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="max"),
        "cannot be disabled",
        date="2026-09-14",
    ),
    Case(
        "stream_required",
        "qwen3-32b",
        asking(),
        asking(enable_thinking=False),
        "must be set to false for non-streaming calls",
    ),
    Case("stream_required", "qwq-plus", asking(), asking(stream=True), "only support stream mode"),
    Case(
        "budget_out_of_range",
        "qwen-plus",
        asking(enable_thinking=True, thinking_budget=0),
        asking(enable_thinking=True, thinking_budget=100),
        "must be a positive integer and not greater than",
    ),
    Case(
        "thinking_cannot_disable",
        "qwen3.8-max-preview",
        asking(enable_thinking=False),
        asking(),
        "restricted to True",
    ),
    Case(
        "tool_choice_with_thinking",
        "qwen3.8-max-preview",
        FORCED,
        with_tools(tool_choice="auto"),
        "required or object in thinking mode",
    ),
    Case(
        "thinking_mode_unsupported", "MiniMax-M3", asking(thinking=ON), asking(thinking={"type": "adaptive"}), "allow"
    ),
    Case(
        "effort_unsupported_value",
        "qwen/qwen3-32b",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="default"),
        "`reasoning_effort` must be one of `none` or `default`",
        at="as-groq",
    ),
    Case(
        "unknown_param",
        "qwen/qwen3-32b",
        asking(reasoning={"effort": "high"}),
        asking(),
        "property 'reasoning' is unsupported",
        at="as-groq",
    ),
    Case(
        "reasoning_params_conflict",
        "qwen/qwen3-32b",
        asking(reasoning_format="parsed", include_reasoning=True),
        asking(reasoning_format="parsed"),
        "both `reasoning_format` and",
        at="as-groq",
    ),
    Case("unknown_param", "qwen-3.8-27b", asking(enable_thinking=True), asking(), "enable_thinking", at="as-cerebras"),
    Case(
        "thinking_mode_unsupported",
        "mistral-small-latest",
        asking(prompt_mode="reasoning"),
        asking(reasoning_effort="high"),
        "Reasoning prompt mode is not enabled for this model",
    ),
    Case(
        "unknown_param",
        "mistral-small-latest",
        asking(thinking=ON),
        asking(),
        "Extra inputs are not permitted",
        status=422,
    ),
    Case(
        "effort_unsupported_param",
        "grok-4-latest",
        asking(reasoning_effort="low"),
        asking(),
        "Model grok-4-latest does not support parameter reasoningEffort.",
    ),
    Case(
        "effort_unsupported_value",
        "grok-4.5",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "'low', 'medium', and 'high'",
    ),
    Case(
        "sampling_unsupported",
        "grok-4-1-fast-reasoning",
        asking(presence_penalty=1),
        asking(),
        "does not support parameter presencePenalty.",
    ),
    Case(
        "sampling_unsupported",
        "grok-3-mini",
        asking(presence_penalty=1),
        asking(),
        "Argument not supported on this model: presencePenalty",
        date="2025-04-24",
    ),
    Case(
        "effort_unsupported_value",
        "Qwen/Qwen3.8-27B",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="xhigh"),
        "Unexpected reasoning effort high. Supported types are xhigh (default), medium, and low",
        at="as-vllm",
    ),
    Case(
        "effort_unsupported_value",
        "qwen3",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="none"),
        'think value "high" is not supported for this model',
        at="as-ollama",
        date="2025-12-22",
    ),
    Case(
        "reasoning_params_conflict",
        "glm-5.2",
        asking(thinking=ON, reasoning_effort="high"),
        asking(reasoning_effort="high"),
        "cannot specify both 'thinking' and 'reasoning_effort'",
        at="as-fireworks",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    try_case(stage, case)
