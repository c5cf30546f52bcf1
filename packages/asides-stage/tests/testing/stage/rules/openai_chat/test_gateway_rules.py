"""Gateways, proxies and Google's chat completions: their spellings, and what their upstreams refuse."""

from __future__ import annotations

import pytest

from asides_stage import OpenStage, Say
from tests.testing.stage.rules.chat_requests import SAID, SO, USER, called, result, send
from tests.testing.stage.rules.openai_chat.host_cases import (
    FORCED,
    LOOP,
    LOOP_WITH,
    ON,
    Case,
    asking,
    messages,
    try_case,
    with_tools,
)

THINKING_BLOCKS = [{"type": "thinking", "thinking": "mull", "signature": "s"}]
LONG = 1_048_577
CASES = [
    Case(
        "context_length",
        "openai/gpt-5",
        messages({"role": "user", "content": "a " * LONG}),
        messages(USER),
        "However, you requested about 1048577 tokens",
    ),
    Case(
        "thinking_must_lead",
        "claude-sonnet-4-5",
        messages(*LOOP, thinking=ON),
        messages(USER, called("a", thinking_blocks=THINKING_BLOCKS), result("a"), thinking=ON),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        at="as-litellm",
    ),
    Case(
        "reasoning_params_conflict",
        "gemini-main",
        asking(thinking=ON, thinking_level="low"),
        asking(thinking_level="low"),
        "Cannot specify both 'thinking' and 'thinking_level'",
        at="as-litellm",
    ),
    Case(
        "reasoning_params_conflict",
        "openai/gpt-5",
        asking(reasoning={"effort": "low"}, reasoning_effort="low"),
        asking(reasoning={"effort": "low"}),
        'Only one of "reasoning" and "reasoning_effort"',
    ),
    Case(
        "reasoning_params_conflict",
        "anthropic/claude-sonnet-4.5",
        asking(reasoning={"effort": "low", "max_tokens": 2000}),
        asking(reasoning={"max_tokens": 2000}),
        'Only one of "reasoning.effort" and "reasoning.max_tokens"',
    ),
    Case(
        "thinking_cannot_disable",
        "google/gemini-3.7-flash",
        asking(reasoning={"enabled": False}),
        asking(reasoning={"effort": "low"}),
        "Reasoning is mandatory for this endpoint",
    ),
    Case(
        "budget_exceeds_max_tokens",
        "anthropic/claude-sonnet-4.5",
        asking(reasoning={"max_tokens": 2000}, max_tokens=2000),
        asking(reasoning={"max_tokens": 2000}, max_tokens=2001),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    Case(
        "reasoning_content_required",
        "deepseek/deepseek-v4-pro",
        messages(*LOOP),
        messages(USER, called("a", reasoning_details=[]), result("a")),
        "must be passed back to the API.",
    ),
    Case(
        "tool_result_orphaned",
        "anthropic/claude-sonnet-4.5",
        messages(USER, result("a")),
        messages(*LOOP),
        "unexpected `tool_use_id` found in `tool_result` blocks: a",
    ),
    Case(
        "tool_choice_with_thinking",
        "moonshotai/kimi-k2.6",
        FORCED,
        with_tools(tool_choice="required", reasoning={"enabled": False}),
        "tool_choice 'required' is incompatible",
    ),
    Case(
        "reasoning_params_conflict",
        "gemini-3-pro-preview",
        asking(reasoning_effort="low", extra_body={"google": {"thinking_config": {"thinking_level": "low"}}}),
        asking(reasoning_effort="low"),
        "Expected one of either `reasoning_effort` or custom `thinking_config`",
    ),
    Case(
        "thinking_cannot_disable",
        "gemini-2.5-pro",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "only works in thinking mode",
    ),
    Case(
        "thought_signature_missing",
        "gemini-3-pro-preview",
        messages(*LOOP),
        messages(*LOOP, SO),
        "Function call is missing a thought_signature in functionCall parts.",
    ),
    Case(
        "tool_result_missing",
        "claude-sonnet-4.5",
        messages(USER, called("a"), SO),
        messages(*LOOP),
        "`tool_use` ids were found without `tool_result` blocks immediately after: a",
        at="as-copilot",
    ),
    Case(
        "opaque_provider_error",
        "claude-sonnet-4.5",
        messages(USER, {**SAID, "reasoning_opaque": "x"}, SO),
        messages(USER, SAID, SO),
        "400 Bad Request",
        at="as-copilot",
    ),
    Case(
        "effort_tools_endpoint",
        "gpt-5.6-terra",
        with_tools(reasoning_effort="low"),
        with_tools(reasoning_effort="none"),
        "use /v1/responses or set",
        at="as-copilot",
    ),
    Case(
        "reasoning_content_required",
        "deepseek/deepseek-v4-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "must be passed back",
        at="as-litellm",
    ),
    Case(
        "reasoning_content_required",
        "kimi-k2.6",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "reasoning_content is missing",
        at="as-new-api",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    try_case(stage, case)


def test_thinking_in_a_final_message_needs_thinking(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", text="42"))
    model, path = "anthropic/claude-sonnet-4.5", "/v1/chat/completions"
    turn = send(opened, path, {"model": model, **asking()}).json["choices"][0]["message"]
    sent = {"model": model, **messages(USER, turn, reasoning={"enabled": False})}
    assert send(opened, path, sent).status == 400
    assert opened.refusals[-1].kind == "thinking_present_while_disabled"
    assert send(opened, path, {**sent, "reasoning": {"enabled": True}}).status == 200
    assert send(opened, path, {**sent, "messages": [USER, turn, SO]}).status == 200
