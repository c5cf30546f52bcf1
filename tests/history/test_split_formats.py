"""Dicts of several libraries in one list: those of one format stay together, and nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.split_formats import split_formats

PLAIN = {"role": "user", "content": "x"}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}
THINKING = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
BOTH = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}], "reasoning_content": "x"}
ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
CONTENT = {"role": "model", "parts": [{"text": "x"}]}
CONVERSE = {"role": "user", "content": [{"text": "x"}]}
OLLAMA = {"role": "assistant", "content": "x", "thinking": "y"}
NAMELESS = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
COHERE = {"role": "assistant", "tool_plan": "x", "tool_calls": []}


@pytest.mark.parametrize(
    ("items", "runs"),
    [
        ([], []),
        ([PLAIN, CALL, RESULT, PLAIN], [("openai_chat", 0, 4)]),
        ([PLAIN, USE, PLAIN], [("anthropic", 0, 3)]),
        ([PLAIN, ITEM], [("openai_responses", 0, 2)]),
        ([PLAIN, CONVERSE, PLAIN], [("bedrock", 0, 3)]),
        ([PLAIN, OLLAMA], [("ollama", 0, 2)]),
        ([PLAIN, NAMELESS], [("ollama", 0, 2)]),
        ([PLAIN, COHERE, RESULT], [("cohere", 0, 2), ("openai_chat", 2, 1)]),
        ([PLAIN, CONTENT, CONTENT, PLAIN], [("openai_chat", 0, 1), ("gemini", 1, 2), ("openai_chat", 3, 1)]),
        ([CALL, RESULT, USE, PLAIN, ITEM], [("openai_chat", 0, 2), ("anthropic", 2, 2), ("openai_responses", 4, 1)]),
        ([CALL, CONVERSE], [("openai_chat", 0, 1), ("bedrock", 1, 1)]),
        # Written for a host of chat completions.
        ([CALL, RESULT, THINKING], [("openai_chat", 0, 3)]),
        ([CALL, BOTH, USE], [("openai_chat", 0, 3)]),
    ],
)
def test_each_run_has_one_format(items: list[Any], runs: list[Any]) -> None:
    assert [(form, place, len(run)) for form, place, run in split_formats(items)] == runs
    assert [item for _, _, run in split_formats(items, 7) for item in run] == items
