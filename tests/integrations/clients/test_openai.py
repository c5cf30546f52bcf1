"""`asides.openai`: ordinary usage of OpenAI's clients against every upstream dialect on the strict stage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from asides.openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from asides.values.parts import ToolCall
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

FUNCTION = {"name": "get_weather", "description": "The weather of a place.", "parameters": SCHEMA}
TOOL: dict[str, Any] = {"type": "function", "function": FUNCTION}
RESPONSES_TOOL: dict[str, Any] = {"type": "function", **FUNCTION, "strict": False}


def ask_chat(model: str, text: str = SUM, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], "reasoning_effort": "high", **more}


def ask_responses(model: str, text: Any = SUM, **more: Any) -> dict[str, Any]:
    return {"model": model, "input": text, "reasoning": {"effort": "high", "summary": "auto"}, **more}


def check_completion(completion: Any, model: str) -> None:
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    # A completion that is forwarded names the model as its server does.
    assert completion.model in (model, model.partition(":")[2])
    assert STEP in choice.message.reasoning_content
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens > 0


def check_response(response: Any, model: str) -> None:
    thoughts = [item for item in response.output if item.type == "reasoning"]
    assert (response.output[0].type, response.output[-1].type, response.output_text) == ("reasoning", "message", ANSWER)
    # Items that only carry state stand behind the thoughts.
    assert thoughts[0].summary or thoughts[0].content
    assert STEP in "".join(part.text for thought in thoughts for part in (*thought.summary, *(thought.content or ())))
    assert (response.status, response.usage.total_tokens > 0) == ("completed", True)
    # A response that is forwarded names the model as its server does.
    assert response.model in (model, model.partition(":")[2])


# --- one question -----------------------------------------------------------------------------------------------------


@for_each_upstream
def test_a_completion_has_its_answer_and_its_thinking_apart(behind: Behind, stage: OpenStage, model: str) -> None:
    behind()
    stage.expect_no_refusals()
    with OpenAI() as client:
        check_completion(client.chat.completions.create(**ask_chat(model)), model)
        chunks = list(
            client.chat.completions.create(**ask_chat(model), stream=True, stream_options={"include_usage": True})
        )
        deltas: list[Any] = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == ANSWER
        assert STEP in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        assert (len({chunk.id for chunk in chunks}), chunks[-1].usage is not None) == (1, True)
        with client.chat.completions.stream(**ask_chat(model), stream_options={"include_usage": True}) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
            check_completion(stream.get_final_completion(), model)
        assert text == ANSWER


@for_each_upstream
def test_a_response_has_its_answer_and_its_thinking_apart(behind: Behind, stage: OpenStage, model: str) -> None:
    behind()
    stage.expect_no_refusals()
    with OpenAI() as client:
        check_response(client.responses.create(**ask_responses(model)), model)
        kinds = [event.type for event in client.responses.create(**ask_responses(model), stream=True)]
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        with client.responses.stream(**ask_responses(model)) as stream:
            events = list(stream)
            check_response(stream.get_final_response(), model)
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER


@for_each_upstream
def test_a_conversation_is_compacted_and_goes_on(behind: Behind, stage: OpenStage, model: str) -> None:
    behind(Say(text="The person is Ada."), Say(text="You are Ada."))
    stage.expect_no_refusals()
    with OpenAI() as client:
        compacted = client.responses.compact(model=model, input="I am Ada.")
        assert compacted.output[-1].type == "compaction"
        assert compacted.usage.total_tokens > 0
        said: Any = [item.to_dict(warnings=False) for item in compacted.output]
        response = client.responses.create(model=model, input=[*said, {"role": "user", "content": "Who am I?"}])
        assert response.output_text


@for_each_upstream
async def test_both_awaited_and_at_the_same_time(behind: Behind, stage: OpenStage, model: str) -> None:
    behind()
    stage.expect_no_refusals()
    async with AsyncOpenAI() as client:
        completions = [client.chat.completions.create(**ask_chat(model)) for _ in range(4)]
        responses = [client.responses.create(**ask_responses(model)) for _ in range(4)]
        for completion in await asyncio.gather(*completions):
            check_completion(completion, model)
        for response in await asyncio.gather(*responses):
            check_response(response, model)
        async with client.chat.completions.stream(**ask_chat(model), stream_options={"include_usage": True}) as stream:
            check_completion(await stream.get_final_completion(), model)
        async with client.responses.stream(**ask_responses(model)) as awaited:
            check_response(await awaited.get_final_response(), model)


class Place(pydantic.BaseModel):
    """A place."""

    city: str
    degrees: int


@for_each_upstream
def test_a_typed_answer(behind: Behind, stage: OpenStage, model: str) -> None:
    behind(Say('{"city": "Oslo", "degrees": 12}', thinking="which place"))
    stage.expect_no_refusals()
    with OpenAI() as client:
        asked = ask_chat(model, "Where?")
        completion = client.chat.completions.parse(**asked, response_format=Place)
        assert completion.choices[0].message.parsed == Place(city="Oslo", degrees=12)
        response = client.responses.parse(**ask_responses(model, "Where?"), text_format=Place)
        assert response.output_parsed == Place(city="Oslo", degrees=12)
        with client.chat.completions.stream(**asked, response_format=Place) as stream:
            assert stream.get_final_completion().choices[0].message.parsed == Place(city="Oslo", degrees=12)


@for_each_upstream
def test_a_typed_tool(behind: Behind, stage: OpenStage, model: str) -> None:
    behind(Say(thinking="look", tool_calls=(ToolCall("call_aB3xY9zQ12", "Place", {"city": "Oslo", "degrees": 12}),)))
    stage.expect_no_refusals()
    with OpenAI() as client:
        completion = client.chat.completions.parse(**ask_chat(model, "Where?"), tools=[pydantic_function_tool(Place)])
        [call] = completion.choices[0].message.tool_calls or []
        assert call.function.parsed_arguments == Place(city="Oslo", degrees=12)


# --- tools ------------------------------------------------------------------------------------------------------------


def keep_all(message: Any) -> dict[str, Any]:
    return message.to_dict()  # type: ignore[no-any-return]


def keep_documented(message: Any) -> dict[str, Any]:
    """The message as a program builds it that knows the documented fields alone."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls or ()
    ]
    return {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}


for_each_client = pytest.mark.parametrize("keep", [keep_all, keep_documented], ids=["echoes", "strips"])


@for_each_upstream
@for_each_way
@for_each_client
def test_five_tool_steps_in_chat(
    behind: Behind, stage: OpenStage, model: str, streamed: bool, keep: Callable[[Any], dict[str, Any]]
) -> None:
    opened = behind(walk)
    stage.expect_no_refusals()
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    with OpenAI() as client:

        def ask() -> Any:
            asked: dict[str, Any] = {"model": model, "messages": history, "tools": [TOOL], "reasoning_effort": "high"}
            if not streamed:
                return client.chat.completions.create(**asked).choices[0]
            with client.chat.completions.stream(**asked) as stream:
                return stream.get_final_completion().choices[0]

        for number in range(STEPS):
            choice = ask()
            assert choice.finish_reason == "tool_calls"
            [call] = choice.message.tool_calls
            assert json.loads(call.function.arguments) == {"place": f"place {number}"}
            history += [
                keep(choice.message),
                {"role": "tool", "tool_call_id": call.id, "content": report_weather(number)},
            ]
        last = ask()
        assert (last.message.content, last.finish_reason) == (DONE, "stop")
        assert CANARY in last.message.reasoning_content
        history += [keep(last.message), {"role": "user", "content": "And tomorrow?"}]
        ask()
    assert count_states(opened)[: STEPS + 1] == EVERY_STATE
    stage.assert_no_leak(CANARY)


def keep_items(response: Any) -> list[Any]:
    items = [item.to_dict() for item in response.output]
    for item in items:
        item.pop("parsed_arguments", None)  # the helper's own
    return items


def keep_calls_and_texts(response: Any) -> list[Any]:
    """The items as a program builds them that keeps no reasoning."""
    kept: list[Any] = []
    for item in response.output:
        if item.type == "function_call":
            kept.append({"type": item.type, "call_id": item.call_id, "name": item.name, "arguments": item.arguments})
        elif item.type == "message":
            kept.append({"role": "assistant", "content": response.output_text})
    return kept


@for_each_upstream
@for_each_way
@pytest.mark.parametrize("keep", [keep_items, keep_calls_and_texts], ids=["echoes", "strips"])
def test_five_tool_steps_in_responses(
    behind: Behind, stage: OpenStage, model: str, streamed: bool, keep: Callable[[Any], list[Any]]
) -> None:
    opened = behind(walk)
    stage.expect_no_refusals()
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    with OpenAI() as client:

        def ask() -> Any:
            asked = ask_responses(model, history, tools=[RESPONSES_TOOL], store=False)
            asked["include"] = ["reasoning.encrypted_content"]
            if not streamed:
                return client.responses.create(**asked)
            with client.responses.stream(**asked) as stream:
                return stream.get_final_response()

        for number in range(STEPS):
            response = ask()
            call = response.output[-1]
            assert (call.type, json.loads(call.arguments)) == ("function_call", {"place": f"place {number}"})
            history += [
                *keep(response),
                {"type": "function_call_output", "call_id": call.call_id, "output": report_weather(number)},
            ]
        last = ask()
        assert last.output_text == DONE
        history += [*keep(last), {"role": "user", "content": "And tomorrow?"}]
        ask()
    assert count_states(opened)[: STEPS + 1] == EVERY_STATE
    stage.assert_no_leak(CANARY)


@for_each_upstream
def test_a_response_is_continued_by_its_id(behind: Behind, stage: OpenStage, model: str) -> None:
    opened = behind(walk)
    stage.expect_no_refusals()
    with OpenAI() as client:
        response = client.responses.create(**ask_responses(model, QUESTION, tools=[RESPONSES_TOOL]))
        for number in range(STEPS):
            call = response.output[-1]
            assert call.type == "function_call"
            result = {"type": "function_call_output", "call_id": call.call_id, "output": report_weather(number)}
            asked = ask_responses(model, [result], tools=[RESPONSES_TOOL], previous_response_id=response.id)
            response = client.responses.create(**asked)
        assert response.output_text == DONE
        assert client.responses.retrieve(response.id).output_text == DONE
        client.responses.delete(response.id)
    assert model.startswith("openai") or count_states(opened) == EVERY_STATE
    stage.assert_no_leak(CANARY)


# --- other endpoints --------------------------------------------------------------------------------------------------


def test_the_list_of_models_is_that_of_the_base_url(behind: Behind) -> None:
    behind(models=("gpt-5", "gpt-5-mini"))
    with OpenAI() as client:
        assert {"gpt-5", "gpt-5-mini"} <= {model.id for model in client.models.list()}


def test_other_endpoints_go_to_the_home_provider(stage: OpenStage) -> None:
    opened = stage()
    with OpenAI(base_url=opened.url, api_key="sk-home") as client:
        from asides.openai import NotFoundError

        with pytest.raises(NotFoundError, match="the stage has nothing at /v1/embeddings"):
            client.embeddings.create(model="text-embedding-3-small", input="a")
    [received] = opened.requests
    assert (received.path, received.headers["authorization"]) == ("/v1/embeddings", "Bearer sk-home")


def test_other_endpoints_of_other_providers_are_refused(behind: Behind) -> None:
    from asides.openai import BadRequestError

    opened = behind()
    with OpenAI() as client, pytest.raises(BadRequestError, match="is not relayed to other providers"):
        client.embeddings.create(model="gemini:text-embedding-004", input="a")
    assert opened.requests == []
