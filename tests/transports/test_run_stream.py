"""A run saves the usage of each step in its conversation, once, however it ends."""

from __future__ import annotations

import pytest

import asides
from asides.testing.stage import OpenStage, Say
from asides.values.messages import ToolCall
from asides.values.usage import Usage
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
