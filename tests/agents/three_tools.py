"""One agent with three tools, and the stage that plays its model: the same in every wire language."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.parts import ToolCall, ToolResult
from asides.values.result import RunEvent
from asides_stage.stage import Say, Scene

KEY = "sk-canary-2718281828459045"

MODELS = {
    "openai_chat": "openai-compatible:made-up",
    "openai_responses": "openai-responses:gpt-5",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "gemini": "gemini:gemini-3-pro-preview",
    "gemini_interactions": "gemini-interactions:gemini-3-pro-preview",
    "bedrock": "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama": "ollama:qwen3",
    "cohere": "cohere:command-a-reasoning-08-2025",
}

THOUGHTS = ("Two places, two calls, side by side.", "Warmer by how much? The calculator knows.", "Now I can say it.")
ANSWER = "It is 9 degrees warmer in Lisbon, and it is noon there."


@asides.tool
def temperature(place: str) -> int:
    """The temperature of a place in degrees.

    Args:
        place: A city.
    """
    return {"Lisbon": 21, "Oslo": 12}[place]


@asides.tool
async def minus(left: int, right: int) -> dict[str, int]:
    """The difference of two numbers."""
    await asyncio.sleep(0)
    return {"difference": left - right}


@asides.tool
def hour(place: str, zone: str | None = None) -> str:
    """The hour at a place."""
    return f"12 o'clock in {place}" if zone is None else f"12 o'clock {zone}"


TOOLS = (temperature, minus, hour)


def find_results(request: ServedRequest) -> list[ToolResult]:
    """What tools gave back since a person last spoke."""
    found: list[ToolResult] = []
    for message in request.prompt.messages:
        found += [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "user" and message.text:
            found = []  # in some languages results and what is said next stand in one message
    return found


def play(request: ServedRequest) -> Scene:
    """The model's part: two calls side by side, then one, then the answer; each with a thought of its own."""
    results = find_results(request)
    match len(results):
        case 0:
            calls = (
                ToolCall("call_one11", "temperature", {"place": "Lisbon"}),
                ToolCall("call_two22", "temperature", {"place": "Oslo"}),
                ToolCall("call_thr33", "hour", {"place": "Lisbon"}),
            )
            return Say(thinking=THOUGHTS[0], tool_calls=calls, piece=7)
        case 3:
            left, right = (int(result.text) for result in results[:2])
            call = ToolCall("call_fou44", "minus", {"left": left, "right": right})
            return Say(thinking=THOUGHTS[1], tool_calls=(call,))
        case _:
            return Say(thinking=THOUGHTS[2], text=ANSWER, piece=5)


class Ran(NamedTuple):
    """What came of a run, and what was seen on the way."""

    result: asides.Result[Any] | None
    events: list[RunEvent]
    error: BaseException | None = None
    partial: asides.Result[Any] | None = None


def send_blocking(model: str, url: str, prompt: Any = "?", **options: Any) -> Ran:
    with asides.Client(base_url=url, api_key=KEY) as client:
        agent = asides.Agent(model, client=client, **_of_agent(options))
        try:
            return Ran(agent.send(prompt, **options), [])
        except asides.AsidesError as error:
            return Ran(None, [], error, error.result)


def stream_blocking(model: str, url: str, prompt: Any = "?", **options: Any) -> Ran:
    events: list[RunEvent] = []
    with asides.Client(base_url=url, api_key=KEY) as client:
        agent = asides.Agent(model, client=client, **_of_agent(options))
        with agent.stream(prompt, **options) as run:
            try:
                for event in run:
                    events.append(event)  # noqa: PERF402 - what came before an error counts
            except asides.AsidesError as error:
                return Ran(None, events, error, run.partial)
            return Ran(run.result, events, None, run.partial)


def send_awaiting(model: str, url: str, prompt: Any = "?", **options: Any) -> Ran:
    async def main() -> Ran:
        async with asides.AsyncClient(base_url=url, api_key=KEY) as client:
            agent = asides.AsyncAgent(model, client=client, **_of_agent(options))
            try:
                return Ran(await agent.send(prompt, **options), [])
            except asides.AsidesError as error:
                return Ran(None, [], error, error.result)

    return asyncio.run(main())


def stream_awaiting(model: str, url: str, prompt: Any = "?", **options: Any) -> Ran:
    async def main() -> Ran:
        events: list[RunEvent] = []
        async with asides.AsyncClient(base_url=url, api_key=KEY) as client:
            agent = asides.AsyncAgent(model, client=client, **_of_agent(options))
            async with agent.stream(prompt, **options) as run:
                try:
                    async for event in run:
                        events.append(event)  # noqa: PERF401 - what came before an error counts
                except asides.AsidesError as error:
                    return Ran(None, events, error, run.partial)
                return Ran(run.result, events, None, run.partial)

    return asyncio.run(main())


def _of_agent(options: dict[str, Any]) -> dict[str, Any]:
    """The tools belong to the agent; the rest is given with the call."""
    return {name: options.pop(name) for name in ("tools", "output") if name in options}


WAYS: tuple[Callable[..., Ran], ...] = (send_blocking, stream_blocking, send_awaiting, stream_awaiting)
every_way = pytest.mark.parametrize("send", WAYS, ids=[way.__name__ for way in WAYS])
every_stream = pytest.mark.parametrize("send", [stream_blocking, stream_awaiting])


def kinds(events: Sequence[RunEvent]) -> list[str]:
    """The events of the run itself, by name, without those of its replies."""
    own = ("StepStarted", "ToolStarted", "ToolFinished", "StepEnded", "RunEnded")
    return [name for event in events if (name := type(event).__name__) in own]
