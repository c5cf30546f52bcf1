"""Ollama's own SDK against the stage, over real sockets: thinking apart, tool loops, generate, models, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from asides.values.messages import OutputSchema
from asides.values.model_info import ModelInfo, ThinkingInfo
from asides.values.parts import ToolCall, ToolResult
from asides_stage import Fail, OpenStage, Say, Stage

pytest.importorskip("ollama")

import ollama

MODEL = "qwen3:8b"
Messages = Sequence[ollama.Message]
Asking = Callable[..., list[Any]]
Connect = Callable[[Stage], ollama.Client]


def find_host(stage: Stage) -> str:
    return stage.url.removesuffix("/v1")


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients that are closed after the test."""
    with ExitStack() as opened:
        yield lambda stage: opened.enter_context(ollama.Client(find_host(stage)))


def chat(stage: Stage, messages: Messages, **options: Any) -> list[ollama.ChatResponse]:
    with ollama.Client(find_host(stage)) as client:
        return [client.chat(MODEL, messages, **options)]


def chat_streamed(stage: Stage, messages: Messages, **options: Any) -> list[ollama.ChatResponse]:
    with ollama.Client(find_host(stage)) as client:
        return list(client.chat(MODEL, messages, stream=True, **options))


def chat_awaited(stage: Stage, messages: Messages, **options: Any) -> list[ollama.ChatResponse]:
    async def run() -> list[ollama.ChatResponse]:
        async with ollama.AsyncClient(find_host(stage)) as client:
            return [await client.chat(MODEL, messages, **options)]

    return asyncio.run(run())


def chat_awaited_streamed(stage: Stage, messages: Messages, **options: Any) -> list[ollama.ChatResponse]:
    async def run() -> list[ollama.ChatResponse]:
        async with ollama.AsyncClient(find_host(stage)) as client:
            return [chunk async for chunk in await client.chat(MODEL, messages, stream=True, **options)]

    return asyncio.run(run())


WAYS = [chat, chat_streamed, chat_awaited, chat_awaited_streamed]


def ask(text: str) -> ollama.Message:
    return ollama.Message(role="user", content=text)


def join(responses: Sequence[ollama.ChatResponse]) -> ollama.Message:
    """The message of a whole response, or of the lines of a stream."""
    messages = [response.message for response in responses]
    calls = [call for message in messages for call in message.tool_calls or ()]
    return ollama.Message(
        role="assistant",
        content="".join(message.content or "" for message in messages),
        thinking="".join(message.thinking or "" for message in messages) or None,
        tool_calls=calls or None,
    )


@pytest.mark.parametrize("way", WAYS)
def test_thinking_is_apart_from_the_answer(stage: OpenStage, way: Asking) -> None:
    opened = stage(Say(thinking="Six times seven, by steps.", text="It is forty-two.", piece=5))
    responses = way(opened, [ask("What is 6 * 7?")], think=True)
    message, last = join(responses), responses[-1]
    assert (message.thinking, message.content) == ("Six times seven, by steps.", "It is forty-two.")
    assert (last.model, last.done, last.done_reason) == (MODEL, True, "stop")
    assert (last.prompt_eval_count, last.eval_count) == (5, 8)
    assert [response.done for response in responses[:-1]] == [False] * (len(responses) - 1)


def look(at: str) -> str:
    """Look at something.

    Args:
        at: the thing
    """
    return f"{at} is fine"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("names_tool", [True, False])
def test_a_tool_loop_is_accepted(stage: OpenStage, way: Asking, names_tool: bool) -> None:
    """The SDK drops the ids of calls; results with and without the name of the tool find their calls by order."""
    opened = stage(
        Say(thinking="I should look.", tool_calls=(make_call("a"), make_call("b")), piece=4),
        Say(thinking="All fine.", text="All is fine."),
        Say(text="You are welcome."),
    )
    messages = [ask("Look around.")]
    called = join(way(opened, messages, tools=[look], think=True))
    assert called.tool_calls is not None
    messages.append(called)
    for call in called.tool_calls:
        result = look(**call.function.arguments)
        messages.append(
            ollama.Message(role="tool", content=result, tool_name=call.function.name if names_tool else None)
        )
    messages.append(join(way(opened, messages, tools=[look], think=True)))
    assert messages[-1].content == "All is fine."
    answer = join(way(opened, [*messages, ask("Thank you.")], tools=[look], think=True))
    assert answer.content == "You are welcome."
    assert [received.problem for received in opened.requests] == [None] * 3
    served = opened.requests[1].served
    assert served is not None
    parts = [part for message in served.prompt.messages for part in message.parts]
    calls = [part.id for part in parts if isinstance(part, ToolCall)]
    assert calls == [part.call_id for part in parts if isinstance(part, ToolResult)]


def make_call(name: str) -> ToolCall:
    return ToolCall(name, "look", {"at": f"the {name}"})


# --- one prompt -------------------------------------------------------------------------------------------------------


def test_generate_has_its_thinking_apart(stage: OpenStage, connect: Connect) -> None:
    opened = stage(Say(thinking="Six times seven.", text="It is forty-two.", piece=5))
    client = connect(opened)
    settings: dict[str, Any] = {"system": "Be kind.", "think": True, "options": {"num_predict": 50}}
    whole = client.generate(MODEL, "What is 6 * 7?", **settings)
    assert (whole.thinking, whole.response) == ("Six times seven.", "It is forty-two.")
    assert (whole.done, whole.done_reason, whole.prompt_eval_count, whole.eval_count) == (True, "stop", 7, 6)
    lines = list(client.generate(MODEL, "What is 6 * 7?", stream=True, **settings))
    assert "".join(line.thinking or "" for line in lines) == "Six times seven."
    assert "".join(line.response or "" for line in lines) == "It is forty-two."
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    served = opened.requests[0].served
    assert served is not None
    assert (served.prompt.system, served.prompt.messages[0].text, served.prompt.max_tokens) == (
        "Be kind.",
        "What is 6 * 7?",
        50,
    )


def test_generate_can_be_awaited(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Hm.", text="It is forty-two.", piece=5))

    async def run() -> tuple[str | None, str]:
        async with ollama.AsyncClient(find_host(opened)) as client:
            whole = await client.generate(MODEL, "?", think=True)
            lines = [line async for line in await client.generate(MODEL, "?", think=True, stream=True)]
            return whole.response, "".join(line.response or "" for line in lines)

    assert asyncio.run(run()) == ("It is forty-two.", "It is forty-two.")


@pytest.mark.parametrize(("keep_alive", "reason"), [(None, "load"), (0, "unload")])
def test_a_request_that_says_nothing_loads_or_unloads_the_model(
    stage: OpenStage, connect: Connect, keep_alive: int | None, reason: str
) -> None:
    client = connect(stage(Say(text="not asked for")))
    generated = client.generate(MODEL, keep_alive=keep_alive)
    said = client.chat(MODEL, keep_alive=keep_alive)
    assert (generated.done_reason, generated.response) == (reason, "")
    assert (said.done_reason, said.message.content) == (reason, "")


def test_a_schema_is_filled(stage: OpenStage) -> None:
    opened = stage()
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    (response,) = chat(opened, [ask("How many are 7?")], format=schema)
    assert response.message.content == '{"n":7}'
    served = opened.requests[0].served
    assert served is not None
    assert served.prompt.output == OutputSchema("answer", schema)


# --- models and errors ------------------------------------------------------------------------------------------------


def test_models_are_listed_shown_and_running(stage: OpenStage, connect: Connect) -> None:
    models = (
        ModelInfo(MODEL, None, 1_760_000_000, 40_960, None, ThinkingInfo(True)),
        ModelInfo("llama3.2", None, None, 131_072, None, ThinkingInfo(False)),
    )
    client = connect(stage(models=models))
    assert [model.model for model in client.list().models] == [MODEL, "llama3.2"]
    shown, plain = client.show(MODEL), client.show("llama3.2")
    assert shown.modelinfo is not None
    assert shown.modelinfo["stage.context_length"] == 40_960
    assert (shown.capabilities, plain.capabilities) == (
        ["completion", "tools", "thinking"],
        ["completion", "tools"],
    )
    assert [(model.model, model.context_length) for model in client.ps().models] == [
        (MODEL, 40_960),
        ("llama3.2", 131_072),
    ]
    with pytest.raises(ollama.ResponseError, match="model 'absent' not found") as caught:
        client.show("absent")
    assert caught.value.status_code == 404


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [400, 500])
def test_an_error_has_its_status_and_its_words(stage: OpenStage, way: Asking, status: int) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        way(stage(Fail(status=status, message="not today")), [ask("?")])
    assert (caught.value.status_code, caught.value.error) == (status, "not today")


def test_an_unknown_path_is_an_error_of_the_dialect(stage: OpenStage, connect: Connect) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        connect(stage()).embed(MODEL, "a")
    assert caught.value.status_code == 404
    assert "/api/embed" in caught.value.error
