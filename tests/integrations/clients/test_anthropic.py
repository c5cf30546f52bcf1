"""`asides.anthropic`: ordinary usage of Anthropic's clients against every upstream dialect on the strict stage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from asides.anthropic import Anthropic, AsyncAnthropic, beta_tool
from asides_stage import OpenStage, Say
from tests.integrations.upstreams import (
    ANSWER,
    CANARY,
    DONE,
    EVERY_STATE,
    QUESTION,
    SCHEMA,
    STEP,
    STEPS,
    SUM,
    Behind,
    count_states,
    for_each_upstream,
    for_each_way,
    report_weather,
    walk,
)

TOOL: dict[str, Any] = {"name": "get_weather", "description": "The weather of a place.", "input_schema": SCHEMA}


def ask(model: str, messages: Any = SUM, **more: Any) -> dict[str, Any]:
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    # The newest models take no budget, and the client that names one of them knows.
    adaptive = {"type": "adaptive", "display": "summarized"}
    thinking = adaptive if "opus-5" in model else {"type": "enabled", "budget_tokens": 12000}
    return {"model": model, "max_tokens": 16000, "messages": messages, "thinking": thinking, **more}


def check(message: Any, model: str) -> None:
    thought, *_, text = message.content
    assert (thought.type, text.type, text.text) == ("thinking", "text", ANSWER)
    assert STEP in thought.thinking
    assert thought.signature
    assert (message.stop_reason, message.usage.output_tokens > 0) == ("end_turn", True)
    # A message that is forwarded names the model as its server does.
    assert message.model in (model, model.partition(":")[2])


@for_each_upstream
def test_a_message_has_its_answer_and_its_thinking_apart(behind: Behind, stage: OpenStage, model: str) -> None:
    behind()
    stage.expect_no_refusals()
    with Anthropic() as client:
        check(client.messages.create(**ask(model)), model)
        events = list(client.messages.create(**ask(model), stream=True))
        assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
        with client.messages.stream(**ask(model)) as stream:
            assert "".join(stream.text_stream) == ANSWER
            check(stream.get_final_message(), model)


@for_each_upstream
async def test_awaited_and_at_the_same_time(behind: Behind, stage: OpenStage, model: str) -> None:
    behind()
    stage.expect_no_refusals()
    async with AsyncAnthropic() as client:
        for message in await asyncio.gather(*(client.messages.create(**ask(model)) for _ in range(4))):
            check(message, model)
        async with client.messages.stream(**ask(model)) as stream:
            assert "".join([text async for text in stream.text_stream]) == ANSWER
            check(await stream.get_final_message(), model)


class Place(pydantic.BaseModel):
    """A place."""

    city: str
    degrees: int


@for_each_upstream
def test_a_typed_answer(behind: Behind, stage: OpenStage, model: str) -> None:
    behind(Say('{"city": "Oslo", "degrees": 12}', thinking="which place"))
    stage.expect_no_refusals()
    with Anthropic() as client:
        message = client.messages.parse(**ask(model, "Where?"), output_format=Place)
        assert message.parsed_output == Place(city="Oslo", degrees=12)


# --- tools ------------------------------------------------------------------------------------------------------------


def keep_all(message: Any) -> list[Any]:
    return [block.to_dict() for block in message.content]


def keep_texts_and_calls(message: Any) -> list[Any]:
    """The blocks as a program builds them that keeps no thinking."""
    kept: list[Any] = []
    for block in message.content:
        if block.type == "text":
            kept.append({"type": "text", "text": block.text})
        elif block.type == "tool_use":
            kept.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
    return kept


@for_each_upstream
@for_each_way
@pytest.mark.parametrize("keep", [keep_all, keep_texts_and_calls], ids=["echoes", "strips"])
def test_five_tool_steps(
    behind: Behind, stage: OpenStage, model: str, streamed: bool, keep: Callable[[Any], list[Any]]
) -> None:
    opened = behind(walk)
    stage.expect_no_refusals()
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    with Anthropic() as client:

        def step() -> Any:
            if not streamed:
                return client.messages.create(**ask(model, history, tools=[TOOL]))
            with client.messages.stream(**ask(model, history, tools=[TOOL])) as stream:
                return stream.get_final_message()

        for number in range(STEPS):
            message = step()
            call = message.content[-1]
            assert (message.stop_reason, call.input) == ("tool_use", {"place": f"place {number}"})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": report_weather(number)}
            history += [{"role": "assistant", "content": keep(message)}, {"role": "user", "content": [result]}]
        last = step()
        assert (last.content[-1].text, last.stop_reason) == (DONE, "end_turn")
        assert CANARY in last.content[0].thinking
        history += [{"role": "assistant", "content": keep(last)}, {"role": "user", "content": "And tomorrow?"}]
        step()
    assert count_states(opened)[: STEPS + 1] == EVERY_STATE
    stage.assert_no_leak(CANARY)


@beta_tool
def get_weather(place: str) -> str:
    """The weather of a place.

    Args:
        place: The place.
    """
    return report_weather(int(place.rpartition(" ")[2]))


@for_each_upstream
@for_each_way
def test_the_tool_runner(behind: Behind, stage: OpenStage, model: str, streamed: bool) -> None:
    behind(walk)
    if not model.startswith("anthropic:"):
        stage.expect_no_refusals()
    # Else the runner asks for a thread, and goes on without one where the server has none.
    with Anthropic() as client:
        runner: Any = client.beta.messages.tool_runner(**ask(model, QUESTION, tools=[get_weather]), stream=streamed)
        messages = [each.get_final_message() if streamed else each for each in runner]
    assert len(messages) == STEPS + 1
    assert messages[-1].content[-1].text == DONE


@for_each_upstream
def test_tokens_are_counted(behind: Behind, model: str) -> None:
    behind()
    with Anthropic() as client:
        assert client.messages.count_tokens(model=model, messages=[{"role": "user", "content": SUM}]).input_tokens > 0


def test_the_list_of_models_is_that_of_the_base_url(behind: Behind) -> None:
    behind(models=("claude-opus-5-5", "claude-haiku-4-5"))
    with Anthropic() as client:
        assert {"claude-opus-5-5", "claude-haiku-4-5"} <= {model.id for model in client.models.list()}
