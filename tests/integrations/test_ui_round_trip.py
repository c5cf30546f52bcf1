"""A front end holds the history: what it posts back is what the model said, and the next turn is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Thought
from asides_stage import OpenStage
from tests.agents.three_tools import ANSWER, KEY, MODELS, THOUGHTS, TOOLS, play
from tests.integrations.front_ends import AgUiThread, Json, read_vercel_message

THINKING: dict[str, Any] = {"gemini": "low", "cohere": True, "anthropic": 2000, "bedrock": 2000, "ollama": True}
CARRY = asides.ui.StateKeys("0f" * 32)
QUESTION: Json = {"id": "q1", "role": "user", "parts": [{"type": "text", "text": "Which is warmer?"}]}
Post = Callable[[Any], Json]


def through_vercel(run: Any, history: list[Json], **options: Any) -> list[Json]:
    """What a page of the AI SDK posts after a run, as JSON."""
    message = read_vercel_message(asides.ui.vercel_chunks(run, **options))
    held: list[Json] = json.loads(json.dumps([*history, message]))
    return held


def through_ag_ui(run: Any, history: list[Json], **options: Any) -> list[Json]:
    """What a client of AG-UI posts after a run, as JSON."""
    thread = AgUiThread(history)
    thread.feed(asides.ui.ag_ui_events(run, run={"messages": history}, **options))
    held: list[Json] = json.loads(json.dumps(thread.messages))
    return held


def comparable(messages: tuple[Message, ...]) -> list[Any]:
    """The messages, as far as a page gives them back."""
    return [(message.role, [normalise(part) for part in message.parts]) for message in messages]


def list_facts(messages: tuple[Message, ...]) -> list[Any]:
    """What belongs to each turn as a whole."""
    turns = [message for message in messages if message.role == "assistant"]
    return [(turn.prefix, turn.learned, turn.effort, turn.stored) for turn in turns]


def normalise(part: Any) -> Any:
    if isinstance(part, Thought):
        return part.text, part.kind, part.source, part.via, part.origin, part.seals, part.can_replay
    if isinstance(part, (Text, ToolCall)):
        return part
    return part.call_id, part.content, part.name, part.is_error


def start_agent(dialect: str, url: str) -> asides.Agent[str]:
    thinking = THINKING.get(dialect, "low")
    return asides.Agent(MODELS[dialect], tools=TOOLS, thinking=thinking, base_url=url, api_key=KEY)


@pytest.mark.parametrize("dialect", MODELS)
@pytest.mark.parametrize("protocol", ["vercel", "ag_ui"])
def test_with_a_carrier_the_history_comes_back_with_every_seal(protocol: str, dialect: str, stage: OpenStage) -> None:
    opened = stage(play)
    agent = start_agent(dialect, opened.url)
    through, read, question = {
        "vercel": (through_vercel, asides.ui.read_vercel, QUESTION),
        "ag_ui": (through_ag_ui, asides.ui.read_ag_ui, {"id": "q1", "role": "user", "content": "Which is warmer?"}),
    }[protocol]
    with agent.stream("Which is warmer?") as run:
        held = through(run, [question], carry=CARRY)
        messages = read(held, carry=CARRY)
        assert comparable(messages) == comparable(run.result.messages)
        assert list_facts(messages) == list_facts(run.result.messages)
    again = {**question, "id": "q2"}
    held = through(agent.stream(read([*held, again], carry=CARRY)), [*held, again], carry=CARRY)
    assert [request.problem for request in opened.requests] == [None] * 6
    assert read(held, carry=CARRY)[-1].text == ANSWER


@pytest.mark.parametrize("dialect", MODELS)
@pytest.mark.parametrize("protocol", ["vercel", "ag_ui"])
def test_without_a_carrier_the_next_turn_is_accepted_too(protocol: str, dialect: str, stage: OpenStage) -> None:
    opened = stage(play)
    agent = start_agent(dialect, opened.url)
    through, read, question = {
        "vercel": (through_vercel, asides.ui.read_vercel, QUESTION),
        "ag_ui": (through_ag_ui, asides.ui.read_ag_ui, {"id": "q1", "role": "user", "content": "Which is warmer?"}),
    }[protocol]
    held = through(agent.stream("Which is warmer?"), [question])
    messages = read([*held, {**question, "id": "q2"}])
    assert [part.text for message in messages for part in message.parts if isinstance(part, Thought)] == list(THOUGHTS)
    assert not any(
        part.seals for message in messages for part in message.parts if isinstance(part, (Thought, ToolCall))
    )
    assert agent.run(messages).output == ANSWER
    assert [request.problem for request in opened.requests] == [None] * 6


def test_a_page_that_may_not_see_thinking_still_brings_it_back(stage: OpenStage) -> None:
    opened = stage(play)
    policy: dict[str, Any] = {"user": []}
    with start_agent("openai_chat", opened.url).stream("Which is warmer?") as run:
        body = b"".join(asides.ui.vercel(run, carry=CARRY, visibility=policy))
        messages = run.result.messages
    assert not any(thought.encode()[:10] in body for thought in THOUGHTS)
    held = json.loads(json.dumps([QUESTION, read_vercel_message(chunks(body))]))
    assert [part["text"] for part in held[1]["parts"] if part["type"] == "reasoning"] == ["", "", ""]
    assert comparable(asides.ui.read_vercel(held, carry=CARRY)) == comparable(messages)


def chunks(body: bytes) -> list[Json]:
    events = [event for event in body.decode().split("\n\n") if event.startswith("data: {")]
    return [json.loads(event.removeprefix("data: ")) for event in events]
