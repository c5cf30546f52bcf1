"""The sync agent's shell: which client it uses, when it sends, and which options win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import asides
from asides.agents.sync import Agent
from asides.dialects.dialect import ServedRequest
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, MODELS

MODEL = MODELS["openai_chat"]


def test_a_client_may_be_given_and_else_it_is_the_shared_one(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    with asides.Client(base_url=opened.url, api_key=KEY) as client:
        assert Agent(MODEL, client=client).send("?").output == "42"
    assert Agent(MODEL, base_url=opened.url, api_key=KEY).send("?").output == "42"
    assert [request.headers["authorization"] for request in opened.requests] == [f"Bearer {KEY}"] * 2


def test_a_client_of_the_other_shell_is_refused_at_once() -> None:
    other: Any = asides.AsyncClient()
    with pytest.raises(asides.ConfigError, match="Pass a Client"):
        Agent(MODEL, client=other)


def test_send_asks_for_a_whole_reply_and_stream_for_events(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent = Agent(MODEL, base_url=opened.url, api_key=KEY)
    agent.send("?")
    agent.send("?", stream=True)
    with agent.stream("?") as events:
        assert len(opened.requests) == 2, "nothing is sent before the first event is read"
        kinds = [type(event).__name__ for event in events]
    assert [bool(request.json.get("stream")) for request in opened.requests] == [False, True, True]
    assert (kinds[0], kinds[-1], events.result.output) == ("StepStarted", "RunEnded", "42")


def test_the_options_and_the_output_of_a_call_win(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent = Agent(MODEL, output=int, base_url=opened.url, api_key=KEY, temperature=0.5, max_tokens=9)
    assert agent.send("?").output == 42
    assert agent.send("?", output=str, temperature=0.1).output == "42"
    assert [(request.json["temperature"], request.json["max_tokens"]) for request in opened.requests] == [
        (0.5, 9),
        (0.1, 9),
    ]


def test_an_agent_remembers_nothing_but_a_conversation_does(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent, chat = Agent(MODEL, base_url=opened.url, api_key=KEY), asides.Conversation()
    for conversation in (None, None, chat, chat):
        agent.send("?", conversation=conversation)
    assert [len(request.json["messages"]) for request in opened.requests] == [1, 1, 1, 3]
    assert [message.text for message in chat.messages] == ["?", "42", "?", "42"]


def test_the_repr_names_the_model() -> None:
    assert repr(Agent(MODEL, api_key=KEY)) == f"Agent({MODEL!r})"


@dataclass
class City:
    name: str
    people: int


def _extract(request: ServedRequest) -> Say:
    """Answers in the type, but for the text "bad", which no correction helps; "slow" needs one correction."""
    question = request.prompt.messages[0].text
    is_corrected = len(request.prompt.messages) > 1
    fits = question != "bad" and (question != "slow" or is_corrected)
    return Say(text='{"name": "Rome", "people": 3}' if fits else "no idea")


def test_many_runs_give_each_prompt_its_result_or_its_error(stage: OpenStage) -> None:
    seen: list[int] = []
    agent = Agent(MODEL, output=City, attempts=1, base_url=stage(_extract).url, api_key=KEY)
    prompts = ["bad", "slow", *(f"text {number}" for number in range(20))]
    results = dict(agent.run_many(prompts, concurrency=4, on_progress=lambda progress: seen.append(progress.done)))
    assert sorted(results) == list(range(22))
    assert isinstance(results.pop(0), asides.InvalidOutput)
    for result in results.values():
        assert isinstance(result, asides.Result)
        assert result.output == City("Rome", 3)
    slow = results[1]
    assert isinstance(slow, asides.Result)
    assert len(slow.steps) == 2
    assert seen == list(range(1, 23))


def test_what_is_wrong_with_every_run_is_raised_before_the_first() -> None:
    with pytest.raises(asides.UnknownModel):
        Agent("nowhere").run_many(["?"])
    with pytest.raises(asides.ConfigError, match="prompts must be a list"):
        Agent(MODEL).run_many("?")
