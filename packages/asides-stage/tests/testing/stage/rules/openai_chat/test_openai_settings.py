"""The settings of a chat at OpenAI, Azure: efforts, tools beside them, sampling, unknown fields, lengths."""

from __future__ import annotations

from typing import Any

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.openai_chat.host_cases import (
    ON,
    Case,
    asking,
    messages,
    try_case,
    with_tools,
)


def strict_tool(**fields: Any) -> dict[str, Any]:
    """A strict tool with one argument; `fields` of its schema."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, **fields}
    return {"type": "function", "function": {"name": "look", "strict": True, "parameters": schema}}


CASES = [
    Case(
        "effort_tools_endpoint",
        "gpt-5.4",
        with_tools(reasoning_effort="high"),
        with_tools(),
        "Please use /v1/responses instead.",
    ),
    Case(
        "effort_tools_endpoint",
        "gpt-5.6-terra",
        with_tools(reasoning_effort="low"),
        with_tools(reasoning_effort="none"),
        "use /v1/responses or set reasoning_effort to 'none'.",
    ),
    Case(
        "effort_tools_endpoint", "gpt-5.6", with_tools(), with_tools(reasoning_effort="none"), "for gpt-5.6 in /v1/chat"
    ),
    Case("effort_tools_endpoint", "gpt-6-astra", with_tools(), asking(), "for gpt-6-astra in /v1/chat"),
    Case(
        "effort_unsupported_value",
        "gpt-5.1",
        asking(reasoning_effort="minimal"),
        asking(reasoning_effort="none"),
        "does not support 'minimal' with this model. Supported values are: 'none', 'low', 'medium', and 'high'.",
    ),
    Case(
        "effort_unsupported_value",
        "gpt-6.1-sol",
        asking(reasoning_effort="max"),
        asking(reasoning_effort="xhigh"),
        "Supported values are: 'low', 'medium', 'high', and 'xhigh'.",
    ),
    Case(
        "effort_unsupported_param",
        "gpt-4o",
        asking(reasoning_effort="low"),
        asking(),
        "Unrecognized request argument supplied: reasoning_effort",
    ),
    Case(None, "gpt-4o", asking(temperature=99), asking(temperature=2), "Expected a value <= 2, but got 99 instead."),
    Case(None, "gpt-4o", asking(top_p=-1), asking(top_p=0), "Expected a value >= 0, but got -1 instead."),
    Case(
        None,
        "gpt-4o",
        asking(tools=[strict_tool(required=["a"])]),
        asking(tools=[strict_tool(required=["a"], additionalProperties=False)]),
        "Invalid schema for function 'look': In context=(), 'additionalProperties' is required",
    ),
    Case(
        None,
        "gpt-4o",
        asking(tools=[strict_tool(additionalProperties=False)]),
        asking(tools=[strict_tool(required=["a"], additionalProperties=False)]),
        "including every key in properties. Missing 'a'.",
    ),
    Case(
        "sampling_unsupported",
        "gpt-5",
        asking(temperature=0.2),
        asking(temperature=1),
        "'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    ),
    Case(
        "sampling_unsupported",
        "o3-mini",
        asking(temperature=0.2),
        asking(),
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    Case(
        "sampling_unsupported",
        "gpt-5.2",
        asking(top_p=0.5, reasoning_effort="low"),
        asking(top_p=0.5),
        "Unsupported parameter: 'top_p'",
    ),
    Case("unknown_param", "gpt-5", asking(thinking=ON), asking(), "Unknown parameter: 'thinking'."),
    Case(
        "unknown_param",
        "gpt-5",
        asking(reasoning={"effort": "low"}),
        asking(reasoning_effort="low"),
        "Unknown parameter: 'reasoning'.",
        at="as-azure",
    ),
    Case("unknown_param", "o3", asking(max_tokens=9), asking(max_completion_tokens=9), "Use 'max_completion_tokens'"),
    Case(
        "context_length",
        "gpt-4o",
        messages({"role": "user", "content": "a " * 128_001}),
        messages({"role": "user", "content": "a " * 128_000}),
        "Your messages resulted in 128001 tokens.",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    try_case(stage, case)
