"""The laws that a run is one thing: sent or streamed, blocking or awaiting, whatever the model does in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message
from asides.values.parts import ToolCall
from asides_stage.stage import Say, Scene, Stage
from tests.agents.three_tools import WAYS, Ran

MODELS = {
    "openai_chat": ("openai-compatible:made-up", "low"),
    "anthropic": ("anthropic:claude-sonnet-4-5", 2000),
    "openai_responses": ("openai-responses:gpt-5", "low"),
}
MOST_TURNS = 4


@asides.tool
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@asides.tool
async def divide(number: int) -> float:
    """A hundred, divided."""
    return 100 / number


@asides.tool(approval="ask")
def risky(number: int) -> str:
    """Something that is asked about."""
    return f"risked {number}"


def approve(call: ToolCall) -> bool | str:
    return call.arguments.get("number") == 1 or "too large"


# Calls that succeed, raise, are denied, do not fit, and name a tool that is not there; ids that come again and again.
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["call_a", "call_b", "call_c"]),
    st.sampled_from(["double", "divide", "risky", "nothing_like_it"]),
    st.sampled_from([{"number": 1}, {"number": 0}, {"number": "many"}, {}]),
)
SAYINGS = st.builds(
    Say,
    st.sampled_from(["", "So it is.", "First this.\n\nThen that, é 日."]),
    st.sampled_from(["mull, mull", "hm.\n\nAnd so on <b>", None]),
    tool_calls=st.lists(CALLS, max_size=3, unique_by=lambda call: call.id).map(tuple),
    piece=st.integers(1, 9),
)
SCRIPTS = st.lists(SAYINGS, min_size=1, max_size=5)


class Play:
    """A model that goes through a script: one saying for each time that it is asked since the person spoke."""

    def __init__(self) -> None:
        self.script: list[Say] = []
        self.asked = 0

    def __call__(self, request: ServedRequest) -> Scene:
        del request
        self.asked += 1
        return self.script[min(self.asked, len(self.script)) - 1]


PLAY = Play()


@pytest.fixture(scope="module")
def server() -> Iterator[Stage]:
    with Stage(PLAY) as opened:
        yield opened


def runs(server: Stage, dialect: str, script: list[Say]) -> list[Ran]:
    model, thinking = MODELS[dialect]
    done: list[Ran] = []
    for way in WAYS:
        PLAY.script, PLAY.asked = script, 0
        limits = {"turns": MOST_TURNS}
        tools = (double, divide, risky)
        done.append(
            way(model, server.url, "Go.", tools=tools, thinking=thinking, limits=limits, approve=approve, retries=0)
        )
    return done


def bare(message: Message) -> tuple[Any, ...]:
    """A message without seals and ids, which are made anew for each reply."""
    parts = [
        (type(part).__name__, getattr(part, "text", None), getattr(part, "arguments", None)) for part in message.parts
    ]
    return message.role, parts


def essence(ran: Ran) -> tuple[Any, ...]:
    result = ran.result if ran.error is None else ran.partial
    assert result is not None
    steps = [
        (
            step.reply.text,
            step.thinking and step.thinking.text,
            step.reply.outcome,
            [(call.id, call.name, call.arguments) for call in step.tool_calls],
            [(told.call_id, told.text, told.is_error) for told in step.results],
            step.usage,
        )
        for step in result.steps
    ]
    error = (type(ran.error), str(ran.error)) if ran.error is not None else None
    codes = [notice.code for notice in result.warnings]
    return result.output, result.outcome, steps, [bare(message) for message in result.messages], codes, error


@pytest.mark.parametrize("dialect", MODELS)
@given(script=SCRIPTS)
@settings(max_examples=12, deadline=None)
def test_law_sent_or_streamed_blocking_or_awaiting_a_run_comes_to_the_same(
    server: Stage, dialect: str, script: list[Say]
) -> None:
    sent, *others = (essence(ran) for ran in runs(server, dialect, script))
    for other in others:
        assert other == sent


@pytest.mark.parametrize("dialect", MODELS)
@given(script=SCRIPTS)
@settings(max_examples=12, deadline=None)
def test_law_the_events_of_a_run_add_up_to_its_result(server: Stage, dialect: str, script: list[Say]) -> None:
    _, blocking, _, awaiting = runs(server, dialect, script)
    for ran in (blocking, awaiting):
        result = ran.result if ran.error is None else ran.partial
        assert result is not None
        said = "".join(event.text for event in ran.events if isinstance(event, asides.TextDelta))
        assert said == "".join(step.reply.text for step in result.steps)
        assert len([event for event in ran.events if isinstance(event, asides.StepStarted)]) == len(result.steps)
        told = [event.result for event in ran.events if isinstance(event, asides.ToolFinished)]
        assert sorted(map(repr, told)) == sorted(repr(each) for step in result.steps for each in step.results)
        ended = [event for event in ran.events if isinstance(event, asides.RunEnded)]
        assert ended == ran.events[-1:]
        assert (ended[0].outcome, ended[0].steps, ended[0].usage) == (result.outcome, len(result.steps), result.usage)
