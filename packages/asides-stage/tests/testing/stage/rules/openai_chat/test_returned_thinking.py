"""The thinking of earlier turns: demanded back here, refused there, and by the rules of the day."""

from __future__ import annotations

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import SAID, SO, USER
from tests.testing.stage.rules.openai_chat.host_cases import (
    LOOP,
    LOOP_WITH,
    OFF,
    THOUGHT,
    Case,
    messages,
    try_case,
)

CASES = [
    Case(
        "reasoning_content_required",
        "deepseek-v4-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "must be passed back to the API.",
    ),
    Case(
        "reasoning_content_required",
        "deepseek-reasoner",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "field in the assistant message at message index 1.",
        date="2026-02-01",
    ),
    Case(
        "reasoning_content_required",
        "deepseek-reasoner",
        messages(*LOOP, SAID, SO),
        messages(*LOOP_WITH, SAID, SO),
        "must be passed back",
    ),
    Case(
        "reasoning_field_rejected",
        "deepseek-reasoner",
        messages(USER, THOUGHT, SO),
        messages(USER, SAID, SO),
        "must not be included",
        date="2025-10-01",
    ),
    Case(
        "reasoning_content_required",
        "kimi-k2.6",
        messages(*LOOP),
        messages(*LOOP, thinking=OFF),
        "is missing in assistant tool call message at index 1",
    ),
    Case(
        "reasoning_content_required",
        "mimo-v2.5-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "The reasoning_content in the thinking mode must be passed back",
    ),
    Case(
        "reasoning_field_rejected",
        "openai/gpt-oss-120b",
        messages(USER, THOUGHT, SO),
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        "property 'reasoning_content' is unsupported",
        at="as-groq",
    ),
    Case(
        "reasoning_field_rejected",
        "llama-3.3-70b-versatile",
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        messages(USER, SAID, SO),
        "reasoning is not supported with this model",
        at="as-groq",
    ),
    Case(
        "reasoning_field_rejected",
        "gpt-oss-120b",
        messages(USER, THOUGHT, SO),
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        "messages.1.assistant.reasoning_content: property",
        at="as-cerebras",
    ),
    Case(
        "reasoning_field_rejected",
        "magistral-medium-latest",
        messages(USER, THOUGHT, SO),
        messages(USER, SAID, SO),
        "Extra inputs are not permitted",
        status=422,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    try_case(stage, case)
