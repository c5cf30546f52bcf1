"""Seven upstream dialects on the strict stage, and a script that calls a tool five times before it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from uuid import uuid4

import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Thought
from asides_stage import Say, Stage

UPSTREAMS = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "anthropic, bound": "anthropic:claude-opus-5-5",
    "bedrock": "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "cohere": "cohere:command-a-reasoning-08-2025",
    "gemini": "gemini:gemini-3-pro-preview",
    "ollama": "ollama:qwen3",
    "openai_chat": "deepseek:deepseek-v4-pro",
    "openai_responses": "openai-responses:gpt-5",
}
"""A model that thinks, for each dialect. One of them binds its seals to all that was said before."""

Behind: TypeAlias = Callable[..., Stage]
SUM = "What is 23 * 47?"
STEP = "920 + 161 = 1081"
ANSWER = "23 × 47 = 1081"
for_each_upstream = pytest.mark.parametrize("model", UPSTREAMS.values(), ids=UPSTREAMS.keys())
for_each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])

STEPS = 5
CANARY = "kumquat"
"""A word that only the thinking has."""
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
QUESTION = "The weather in five places?"
DONE = "All five are warm."


def count_steps(request: ServedRequest) -> int:
    """How many steps were made since the user's last words: each result says its number."""
    for message in reversed(request.prompt.messages):
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if results:
            return int(str(results[-1].text).rpartition(" ")[2])
        if message.role == "user":
            break
    return 0


def report_weather(step: int) -> str:
    """The result of the tool."""
    return f"20 °C after step {step + 1}"


def walk(request: ServedRequest) -> Say:
    """Think and call the tool five times, then answer. No id comes twice, as with real servers."""
    number = count_steps(request)
    thought = f"{CANARY} {number}: one place after the other."
    if number < STEPS:
        call = ToolCall(f"call_{uuid4().hex[:20]}", "get_weather", {"place": f"place {number}"})
        return Say(thinking=thought, tool_calls=(call,))
    return Say(DONE, thinking=thought)


def count_states(stage: Stage) -> list[int]:
    """How many turns of the model each request brought back with their reasoning state: a thought, or a seal."""
    return [
        sum(any(isinstance(part, Thought) or getattr(part, "seals", ()) for part in message.parts) for message in turns)
        for received in stage.requests
        if received.served is not None
        for turns in [[message for message in received.served.prompt.messages if message.role == "assistant"]]
    ]


EVERY_STATE = list(range(STEPS + 1))
"""What `count_states` finds when all of the state comes back, step after step."""
