"""A run saves the messages and the usage of each step in its conversation, once, however it ends."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.database import StoreError
from asides.values.messages import Message
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, MODELS

MODEL = MODELS["openai_chat"]
FIRST = Say(tool_calls=(ToolCall("call_1", "look", {}),), usage=Usage(10, 5))
SECOND = Say(text="Nothing there.", usage=Usage(20, 3))


@asides.tool
def look() -> str:
    """Look around."""
    return "nothing"


def test_each_step_is_counted_once(stage: OpenStage) -> None:
    chat = asides.Conversation()
    with asides.Client(base_url=stage(FIRST, SECOND).url, api_key=KEY) as client:
        result = asides.Agent(MODEL, tools=[look], client=client).send("?", conversation=chat)
    assert (chat.usage.input, chat.usage.output) == (30, 8)
    assert chat.usage == result.usage


@pytest.mark.parametrize(("limits", "paid"), [({"turns": 1}, 10), ({"tool_calls": 0}, 10)])
def test_a_run_that_a_limit_ended_has_cost_what_its_steps_did(
    stage: OpenStage, limits: dict[str, int], paid: int
) -> None:
    chat = asides.Conversation()
    with asides.Client(base_url=stage(FIRST, SECOND).url, api_key=KEY) as client:
        agent = asides.Agent(MODEL, tools=[look], client=client)
        with pytest.raises(asides.LimitReached) as raised:
            agent.send("?", conversation=chat, limits=limits)
    assert raised.value.result is not None
    assert raised.value.result.usage.input == paid
    assert chat.usage.input == paid
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool"]


def test_a_step_that_was_left_before_its_end_has_cost_what_was_reported(stage: OpenStage) -> None:
    chat = asides.Conversation()
    agent = asides.Agent(MODEL, tools=[look], base_url=stage(FIRST, SECOND).url, api_key=KEY)
    with agent.stream("?", conversation=chat) as events:
        for event in events:
            if isinstance(event, asides.ToolStarted):
                break
    assert (chat.usage.input, chat.usage.output) == (10, 5)


# --- messages ---------------------------------------------------------------------------------------------------------

OPEN = Message("assistant", (ToolCall("old_1", "look", {}), ToolCall("old_2", "look", {})))
ANSWER = Say(text="Here.")


@pytest.mark.parametrize("mode", ["native", "react"])
@pytest.mark.parametrize("gaps", [1, 2, 3])
def test_a_run_in_a_conversation_with_unanswered_calls_adds_its_messages_once(
    stage: OpenStage, gaps: int, mode: Any
) -> None:
    said = Say(text="Final Answer: Here.") if mode == "react" else ANSWER
    chat = asides.Conversation()
    for _ in range(gaps):
        chat.extend([asides.user("go"), OPEN])
    before = chat.messages
    agent = asides.Agent(MODEL, tools=[look], mode=mode, base_url=stage(said).url, api_key=KEY)
    for question in ("one?", "two?", "three?"):
        agent.send(question, conversation=chat)
    assert chat.messages[: len(before)] == before
    added = [(message.role, message.text) for message in chat.messages[len(before) + 2 :]]
    spoken = [(role, text.removeprefix("Final Answer: ")) for role, text in added]
    assert spoken == [
        pair for asked in ("one?", "two?", "three?") for pair in (("user", asked), ("assistant", "Here."))
    ]
    results = [message.parts[0] for message in chat.messages if message.role == "tool"]
    assert [getattr(result, "call_id", "") for result in results] == ["old_1", "old_2"], "those of the last turn"


class Broken(asides.Conversation):
    """A conversation whose store fails at the second change."""

    problem: Exception = StoreError("the disk is full. Make room.")
    changes = 0

    def extend(self, messages: Any, *, usage: Usage | None = None) -> tuple[Message, ...]:
        self.changes += 1
        if self.changes == 2:
            raise self.problem
        return super().extend(messages, usage=usage)


@pytest.mark.parametrize("problem", [StoreError("the disk is full."), OSError("no space"), ValueError("odd")])
def test_a_run_whose_step_cannot_be_saved_ends_in_order_with_the_error(stage: OpenStage, problem: Exception) -> None:
    chat = Broken()
    chat.problem = problem
    agent = asides.Agent(MODEL, tools=[look], base_url=stage(FIRST, SECOND).url, api_key=KEY)
    seen: list[Any] = []
    with agent.stream("?", conversation=chat) as events, pytest.raises(type(problem)) as raised:
        seen.extend(events)
    borders = (asides.StepStarted, asides.StepEnded, asides.RunEnded)
    kinds = [type(event).__name__ for event in seen if isinstance(event, borders)]
    assert kinds == ["StepStarted", "StepEnded", "StepStarted", "StepEnded", "RunEnded"]
    assert raised.value is problem
    assert events.partial.outcome == "failed"
    assert [message.role for message in events.partial.messages] == ["user", "assistant", "tool", "assistant"]
    if isinstance(problem, asides.AsidesError):
        assert problem.result is not None
        assert len(problem.result.steps) == 2
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool"], "nothing is offered twice"


async def test_the_same_while_awaiting(stage: OpenStage) -> None:
    chat = Broken()
    agent = asides.AsyncAgent(MODEL, tools=[look], base_url=stage(FIRST, SECOND).url, api_key=KEY)
    events: list[Any] = []

    async def read() -> None:
        async with agent.stream("?", conversation=chat) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - a list would be lost with the error

    with pytest.raises(StoreError):
        await read()
    assert isinstance(events[-1], asides.RunEnded)
    assert events[-1].outcome == "failed"
