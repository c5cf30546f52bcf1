"""The async agent's shell: which client it uses, when it sends, and which options win."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import asides
from asides.agents.async_ import AsyncAgent
from asides_stage.stage import Fail, OpenStage, Say
from tests.agents.three_tools import KEY, MODELS

MODEL = MODELS["openai_chat"]


async def test_a_client_may_be_given_and_else_the_run_has_one_of_its_own(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    async with asides.AsyncClient(base_url=opened.url, api_key=KEY) as client:
        assert (await AsyncAgent(MODEL, client=client).send("?")).output == "42"
    assert (await AsyncAgent(MODEL, base_url=opened.url, api_key=KEY).send("?")).output == "42"
    assert await asyncio.to_thread(opened.wait_until, lambda: opened.open_connections == 0)
    assert [request.headers["authorization"] for request in opened.requests] == [f"Bearer {KEY}"] * 2


def test_a_client_of_the_other_shell_is_refused_at_once() -> None:
    other: Any = asides.Client()
    with pytest.raises(asides.ConfigError, match="Pass an AsyncClient"):
        AsyncAgent(MODEL, client=other)


async def test_send_asks_for_a_whole_reply_and_stream_for_events(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent = AsyncAgent(MODEL, base_url=opened.url, api_key=KEY)
    await agent.send("?")
    await agent.send("?", stream=True)
    async with agent.stream("?") as events:
        assert len(opened.requests) == 2, "nothing is sent before the first event is read"
        kinds = [type(event).__name__ async for event in events]
    assert [bool(request.json.get("stream")) for request in opened.requests] == [False, True, True]
    assert (kinds[0], kinds[-1], events.result.output) == ("StepStarted", "RunEnded", "42")


async def test_the_options_and_the_output_of_a_call_win(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent = AsyncAgent(MODEL, output=int, base_url=opened.url, api_key=KEY, temperature=0.5, max_tokens=9)
    assert (await agent.send("?")).output == 42
    assert (await agent.send("?", output=str, temperature=0.1)).output == "42"
    assert [(request.json["temperature"], request.json["max_tokens"]) for request in opened.requests] == [
        (0.5, 9),
        (0.1, 9),
    ]


async def test_an_agent_remembers_nothing_but_a_conversation_does(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    agent, chat = AsyncAgent(MODEL, base_url=opened.url, api_key=KEY), asides.AsyncConversation()
    for conversation in (None, None, chat, chat):
        await agent.send("?", conversation=conversation)
    assert [len(request.json["messages"]) for request in opened.requests] == [1, 1, 1, 3]
    assert [message.text for message in chat.messages] == ["?", "42", "?", "42"]


def test_the_repr_names_the_model() -> None:
    assert repr(AsyncAgent(MODEL, api_key=KEY)) == f"AsyncAgent({MODEL!r})"


async def test_many_runs_give_each_prompt_its_result(stage: OpenStage) -> None:
    agent = AsyncAgent(MODEL, base_url=stage(Say(text="42")).url, api_key=KEY)
    async with agent.run_many(f"question {number}" for number in range(5)) as results:
        answers = {index: result.output async for index, result in results if isinstance(result, asides.Result)}
    assert answers == dict.fromkeys(range(5), "42")
    failing = AsyncAgent(MODEL, base_url=stage(Fail(status=400)).url, api_key=KEY)
    assert [type(result) async for _, result in failing.run_many(["?"])] == [asides.BadRequest]
