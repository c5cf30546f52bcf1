"""Seven upstream dialects on the strict stage, and a script that calls a tool five times before it answers."""

from __future__ import annotations

from asides.dialects.dialect import ServedRequest
from asides.testing import Say, Stage
from asides.values.parts import Thought, ToolCall, ToolResult

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

STEPS = 5
CANARY = "kumquat"
"""A word that only the thinking has."""
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
QUESTION = "The weather in five places?"
DONE = "All five are warm."


def count_results(request: ServedRequest) -> int:
    """The results since the user's last words."""
    count = 0
    for message in reversed(request.prompt.messages):
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "user" and not results:
            break
        count += len(results)
    return count


def walk(request: ServedRequest) -> Say:
    """Think and call the tool five times, then answer."""
    number = count_results(request)
    thought = f"{CANARY} {number}: one place after the other."
    if number < STEPS:
        call = ToolCall(f"call_{number}aB3xY9zQ", "get_weather", {"place": f"place {number}"})
        return Say(thinking=thought, tool_calls=(call,))
    return Say(DONE, thinking=thought)


def count_thoughts(stage: Stage) -> list[int]:
    """How many thoughts of the model each request brought back to the stage."""
    return [
        sum(isinstance(part, Thought) for message in received.served.prompt.messages for part in message.parts)
        for received in stage.requests
        if received.served is not None
    ]


# What is kept of the thoughts of earlier steps when all of the state comes back.
EVERY_THOUGHT = list(range(STEPS + 1))
