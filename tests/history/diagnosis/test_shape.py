"""Formats: what is particular to each of them when a result is added or an id changes."""

from __future__ import annotations

import pytest

from asides.history.diagnosis.diagnose import diagnose
from asides.values.errors import ConfigError


@pytest.mark.parametrize(
    ("format_name", "history"),
    [
        ("openai", [{"role": "assistant", "content": {"a": 1}}]),
        ("openai", [{"role": "assistant", "tool_calls": {}}]),
        ("openai", [{"role": "tool", "content": "no id"}]),
        ("anthropic", [{"role": "tool", "content": "x"}]),
        ("anthropic", [{"role": "user", "content": 3}]),
        ("anthropic", [{"role": "user", "content": [{"text": "no type"}]}]),
        ("anthropic", [{"role": "assistant", "content": [{"type": "tool_use", "input": {}}]}]),
        ("responses", [{"type": "function_call", "name": "f"}]),
        ("responses", [{"type": 3}]),
        ("gemini", [{"role": "assistant", "parts": []}]),
        ("gemini", [{"role": "user", "parts": ["x"]}]),
        ("asides", [{"role": "user", "parts": [{"text": "no type"}]}]),
    ],
)
def test_a_part_that_is_none_is_named_with_its_place(format_name: str, history: list[object]) -> None:
    with pytest.raises(ConfigError, match=r"^(messages|input|contents)\[0\]: "):
        diagnose(history, "anthropic:claude-opus-4-6", format_name=format_name)
