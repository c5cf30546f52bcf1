"""Calls and results, content and order of the messages, as each host of chat completions checks them."""

from __future__ import annotations

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import SAID, SO, USER, called, result
from tests.testing.stage.rules.openai_chat.host_cases import (
    LOOP,
    Case,
    messages,
    try_case,
)

BROKEN_CALL = called("a")
BROKEN_CALL["tool_calls"][0]["function"]["arguments"] = '{"at":'
CASES = [
    Case(
        "tool_arguments_invalid",
        "MiniMax-M2",
        messages(USER, BROKEN_CALL, result("a")),
        messages(USER, called("a"), result("a")),
        "invalid params, invalid function arguments json string, tool_call_id: a",
    ),
    *(
        Case("empty_content", "MiniMax-M2", broken, legal, "chat content is empty")
        for broken, legal in (
            (messages(USER, called("a"), {**result("a"), "content": ""}), messages(USER, called("a"), result("a"))),
            (
                messages(USER, called("a"), {**result("a"), "content": [{"type": "text", "text": " "}]}),
                messages(USER, called("a"), {**result("a"), "content": [{"type": "text", "text": "x"}]}),
            ),
            (messages(USER, {"role": "assistant", "content": ""}, SO), messages(USER, SAID, SO)),
            (messages(USER, {"role": "assistant", "content": None}, SO), messages(USER, SAID, SO)),
            (
                messages(USER, {**called("a"), "content": ""}, result("a")),
                messages(USER, {**called("a"), "content": None}, result("a")),
            ),
            (messages({"role": "user", "content": "\n"}), messages(USER)),
        )
    ),
    Case(
        None,
        "any",
        messages({"role": "user", "content": [{"type": "text"}]}),
        messages({"role": "user", "content": [{"type": "text", "text": "x"}]}),
        "Missing required parameter: 'messages[0].content[0].text'.",
    ),
    Case(
        "role_alternation",
        "mistral-7b-instruct",
        messages(USER, SO),
        messages(USER, SAID, SO),
        "After the optional system message, conversation roles must alternate",
        at="as-vllm",
        date="2024-07-27",
    ),
    *(
        Case("role_alternation", model, messages(USER, SO), messages(USER, SAID, SO), words, at=at)
        for at in ("as-vllm", "as-llama-cpp")
        for model, words in (("gemma-3-12b-it", "Conversation roles must alternate"),)
    ),
    *(
        Case(
            "role_alternation",
            "qwen3.5-9b",
            messages(called("a"), result("a")),
            messages(USER, called("a"), result("a")),
            "No user query found in messages.",
            at=at,
        )
        for at in ("as-vllm", "as-llama-cpp")
    ),
    *(
        Case(
            None,
            model,
            messages(USER, {**SAID, "tool_calls": []}, SO),
            messages(USER, SAID, SO),
            words,
            at=at,
        )
        for model, words, at in (
            ("gpt-4o", "Invalid 'messages[1].tool_calls': empty array.", ""),
            ("qwen3-max", "Empty tool_calls is not supported in message", "as-qwen"),
        )
    ),
    Case(
        "tool_result_missing",
        "gpt-5",
        messages(USER, called("a"), SO),
        messages(USER, called("a"), result("a"), SO),
        "did not have response messages: a",
    ),
    Case(
        "tool_result_orphaned",
        "gpt-5",
        messages(USER, result("a")),
        messages(USER, called("a"), result("a")),
        "must be a response to a preceeding message with 'tool_calls'",
    ),
    Case(
        "empty_content",
        "gpt-5",
        messages(USER, {"role": "assistant", "content": None}, SO),
        messages(USER, {"role": "assistant", "content": ""}, SO),
        "expected a string, got null",
    ),
    Case(
        "role_alternation",
        "deepseek-reasoner",
        messages(USER, SO),
        messages(USER, SAID, SO),
        "does not support successive user or assistant messages (messages[0] and messages[1]",
        date="2025-03-01",
    ),
    Case("empty_content", "kimi-k2.6", messages(USER, {**SAID, "content": " "}, SO), messages(USER, SAID, SO), "empty"),
    Case(
        "system_position",
        "MiniMax-M2.7",
        messages(USER, {"role": "system", "content": "x"}, SO),
        messages({"role": "system", "content": "x"}, USER),
        "chat content has invalid message role: system",
    ),
    Case(
        "tool_result_orphaned",
        "MiniMax-M2",
        messages(USER, result("a")),
        messages(*LOOP),
        "invalid params, tool result's tool id(a) not found",
    ),
    Case(
        "empty_content",
        "grok-4.5",
        messages(USER, {**SAID, "content": ""}, SO),
        messages(USER, SAID, SO),
        "at least one content element",
    ),
    Case(
        "system_position",
        "Qwen/Qwen3.5-27B",
        messages(USER, {"role": "system", "content": "x"}, SO),
        messages({"role": "system", "content": "x"}, USER),
        "System message must be at the beginning.",
        at="as-vllm",
    ),
    Case(
        "role_alternation",
        "google/gemma-3-27b",
        messages(USER, SO),
        messages(USER, SAID, SO),
        "Conversation roles must alternate",
        at="as-vllm",
    ),
    Case(
        "prefill_with_thinking",
        "any",
        messages(USER, {**SAID, "content": "<think>a</think>b"}, continue_final_message=True),
        messages(USER, SAID, continue_final_message=True),
        "continue_final_message is set but",
        at="as-vllm",
    ),
    Case(
        "prefill_with_thinking",
        "any",
        messages(USER, SAID),
        messages(USER, SAID, chat_template_kwargs={"enable_thinking": False}),
        "Assistant response prefill is incompatible with enable_thinking.",
        at="as-llama-cpp",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    try_case(stage, case)
