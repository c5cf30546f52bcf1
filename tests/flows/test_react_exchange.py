"""ReAct through an agent: the same tools, for models that cannot call them natively."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.testing.stage import OpenStage, Say, Scene
from tests.agents.three_tools import Ran, every_stream, every_way, hour, send_blocking, temperature

MODEL = "openai-compatible:made-up"


def play(request: ServedRequest) -> Scene:
    said = "\n".join(message.text for message in request.prompt.messages)
    if "Observation" not in said:
        return Say(
            text='Thought: The hour is asked for.\nAction: hour\nAction Input: {"place": "Oslo"}\n',
            piece=3,
            stop="stop",
        )
    return Say(text="Thought: Now I know.\nFinal Answer: It is 12 o'clock.", piece=3)


@every_way
@pytest.mark.parametrize("dialect", ["openai_chat", "ollama", "anthropic"])
def test_FT_37_a_run_in_text(dialect: str, send: Callable[..., Ran], stage: OpenStage) -> None:
    model = {"openai_chat": MODEL, "ollama": "ollama:llama3", "anthropic": "anthropic:claude-3-haiku-20240307"}[dialect]
    open_stage = stage(play)
    ran = send(model, open_stage.url, "What time is it?", tools=[hour, temperature], mode="react")
    assert ran.error is None
    assert ran.result is not None
    assert ran.result.output == "It is 12 o'clock."
    assert [step.thinking.text.strip() for step in ran.result.steps if step.thinking] == [
        "The hour is asked for.",
        "Now I know.",
    ]
    assert [call.arguments for call in ran.result.steps[0].tool_calls] == [{"place": "Oslo"}]
    assert ran.result.steps[0].results[0].text == "12 o'clock in Oslo"
    first, second = (msgspec.json.decode(received.body) for received in open_stage.requests)
    assert not first.get("tools")
    assert "hour" in str(first)
    assert "12 o'clock in Oslo" in str(second)
    assert "The hour is asked for" not in str(second), "thoughts are not rendered into text"


@every_stream
def test_S1_40_S1_41_thoughts_and_actions_never_reach_the_answer(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(MODEL, stage(play).url, "?", tools=[hour], mode="react")
    said = "".join(event.text for event in ran.events if isinstance(event, asides.TextDelta))
    assert said == "It is 12 o'clock."


@every_way
def test_O4_O5_what_cannot_be_read_is_told_and_mended(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(
        Say(text='Action: hour\nAction Input: {"place": "Oslo"\n'),
        Say(text='Action: hour\nAction Input: {"place": "Oslo"}\nAction: temperature\nAction Input: {"place": "Oslo"}'),
        Say(text='Action: hour\nAction Input: {"place": "Oslo"}'),
        Say(text="Final Answer: noon"),
    )
    ran = send(MODEL, open_stage.url, "?", tools=[hour, temperature], mode="react")
    assert ran.result is not None
    assert ran.result.output == "noon"
    assert [len(step.results) for step in ran.result.steps] == [0, 0, 1, 0]


def test_a_run_that_is_broken_off_has_no_thought_in_its_words(stage: OpenStage) -> None:
    kept = asides.Conversation(MODEL)
    agent = asides.Agent(MODEL, tools=[hour], mode="react", base_url=stage(play).url)
    with agent.stream("?", conversation=kept) as run:
        for event in run:
            if isinstance(event, asides.ThinkingDelta):
                break
        partial = run.partial
    assert partial.text == ""
    assert partial.thinking
    assert not any("Thought" in message.text or "hour" in message.text for message in partial.messages[1:])


@every_way
def test_mending_is_bounded(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(Say(text="Action: hour\nAction Input: {{{"))
    ran = send(MODEL, open_stage.url, "?", tools=[hour], mode="react", attempts=1)
    assert isinstance(ran.error, asides.InvalidOutput)
    assert len(open_stage.requests) == 2


def test_pain_G3_a_model_that_thinks_by_itself_is_not_told_to(stage: OpenStage) -> None:
    def system_of(model: str) -> str:
        open_stage = stage(play)
        send_blocking(model, open_stage.url, "?", tools=[hour], mode="react")
        body: dict[str, Any] = msgspec.json.decode(open_stage.requests[0].body)
        return str(body["messages"][0])

    assert "Thought:" in system_of(MODEL)
    assert "Thought:" not in system_of("deepseek:deepseek-reasoner")
