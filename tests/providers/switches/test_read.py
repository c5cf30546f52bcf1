"""Reading switches: the fields that are taken out, and those that stay. The law in tests/laws has the values."""

from __future__ import annotations

from typing import Any

import pytest

from asides.providers.switches import table
from asides.providers.switches.read import read
from asides.values.errors import ConfigError
from asides.values.thinking import Thinking


@pytest.mark.parametrize(
    ("dialect", "fields", "thinking", "left"),
    [
        ("openai_chat", {"think": False, "model": "m"}, Thinking(mode="off"), {"model": "m"}),
        ("openai_chat", {"think": "low"}, Thinking(), {"think": "low"}),
        ("openai_chat", {"reasoning_effort": "default"}, Thinking(), {"reasoning_effort": "default"}),
        (
            "openai_chat",
            {"chat_template_kwargs": {"thinking": True, "language": "de"}},
            Thinking(mode="on"),
            {"chat_template_kwargs": {"language": "de"}},
        ),
        # Hosts whose toggle is turned on with "adaptive" take a budget beside it.
        ("openai_chat", {"thinking": {"type": "adaptive", "budget_tokens": 9}}, Thinking(budget=9), {}),
        ("openai_chat", {"enable_thinking": False, "thinking_budget": 9}, Thinking(mode="off"), {}),
        (
            "anthropic",
            {"thinking": {"type": "enabled", "budget_tokens": 2000, "block_binding": "x"}, "output_config": {"a": 1}},
            Thinking(budget=2000),
            {"thinking": {"block_binding": "x"}, "output_config": {"a": 1}},
        ),
        (
            "gemini",
            {"generationConfig": {"topK": 1, "thinkingConfig": {"thinkingBudget": 0, "new": 1}}},
            Thinking(mode="off", show="none"),
            {"generationConfig": {"topK": 1, "thinkingConfig": {"new": 1}}},
        ),
        (
            "bedrock",
            {"additionalModelRequestFields": {"reasoning": {"effort": "low", "new": 1}}},
            Thinking(effort="low"),
            {"additionalModelRequestFields": {"reasoning": {"new": 1}}},
        ),
        ("openai_responses", {"reasoning": {"generate_summary": "auto"}}, Thinking(summary="auto"), {}),
    ],
)
def test_fields_that_are_not_a_switch_stay(
    dialect: str, fields: dict[str, Any], thinking: Thinking, left: dict[str, Any]
) -> None:
    assert (read(dialect, fields), fields) == (thinking, left)


@pytest.mark.parametrize("dialect", ["anthropic", "cohere"])
def test_a_switch_of_another_type_is_refused_by_its_name(dialect: str) -> None:
    with pytest.raises(ConfigError, match="thinking: Expected `object`, got `bool`"):
        read(dialect, {"thinking": True})


@pytest.mark.parametrize("dialect", table.SWITCHES)
def test_a_request_without_any_such_field_asks_for_nothing(dialect: str) -> None:
    """Readers that find none of these fields read the same as from an empty request."""
    fields: dict[str, Any] = {"model": "m", "messages": [{"thinking": True}]}
    assert read(dialect, fields) == read(dialect, dict.fromkeys(("thinking", "reasoning", "generationConfig")))
    assert fields == {"model": "m", "messages": [{"thinking": True}]}
