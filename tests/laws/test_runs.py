"""The laws about whole conversations, for agents: a run that is left, or goes on elsewhere, is taken up again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import asides
from asides_stage.stage import OpenStage, Stage
from tests.laws.planted import ANSWER, PLANTED
from tests.laws.theatre import HOUSES, KEY, SYSTEM


@asides.tool
def look(at: int) -> str:
    """Look there."""
    return f"nothing at {at}"


@pytest.fixture(scope="module")
def client() -> Iterator[asides.Client]:
    with asides.Client() as client:
        yield client


def agent_on(stage: Stage, name: str, client: asides.Client) -> asides.Agent[str]:
    house = HOUSES[name]
    options: dict[str, Any] = {} if house.thinking is None else {"thinking": house.thinking}
    address = stage.url.removesuffix("/v1") + house.base
    return asides.Agent(
        house.model, tools=[look], client=client, system=SYSTEM, base_url=address, api_key=KEY, retries=0, **options
    )


def problems(stage: Stage) -> list[str | None]:
    return [received.problem for received in stage.requests if received.problem is not None]


@pytest.mark.parametrize("step", [6, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", sorted(HOUSES))
def test_law_a_run_may_be_left_behind_every_event(
    stage: OpenStage, client: asides.Client, name: str, step: int
) -> None:
    opened = stage(PLANTED[name].play)
    agent = agent_on(opened, name, client)
    with agent.stream("one") as events:
        count = len(list(events))
    assert count > 10
    for left_after in range(1 + len(name) % step, count, step):
        chat = asides.Conversation(client=client, system=SYSTEM)
        with agent.stream("one", conversation=chat) as events:
            for number, _ in enumerate(events, 1):
                if number == left_after:
                    break
        result = agent.send("go on", conversation=chat)
        assert result.output == ANSWER
        assert problems(opened) == []


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("number", range(len(HOUSES)), ids=sorted(HOUSES))
def test_law_a_run_goes_on_elsewhere_and_comes_back(
    stage: OpenStage, client: asides.Client, number: int, step: int
) -> None:
    """One conversation, one agent after another, each in a loop with tools: A, every fourth house, and A again; every
    house with the marker `thorough`.
    """
    name = sorted(HOUSES)[number]
    here, there = stage(PLANTED[name].play), stage(PLANTED[name].play)
    chat = asides.Conversation(client=client, system=SYSTEM)
    agent_on(here, name, client).send("begin", conversation=chat)
    for other in sorted(HOUSES)[number % step :: step]:
        assert agent_on(there, other, client).send(f"and you, {other}?", conversation=chat).output == ANSWER
    assert agent_on(here, name, client).send("and back", conversation=chat).output == ANSWER
    assert problems(here) + problems(there) == []
