"""Ollama's client against `asides serve` before providers of other dialects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from asides_stage import Fail, Say
from tests.gateway.clients.gateway_before_stage import (
    CANARY,
    CHECKED,
    DOUBT,
    EVERY_STATE,
    ROUTES,
    STEPS,
    SURE,
    GatewayBeforeStage,
    Notebook,
    count_states,
    each_upstream_but,
    run_errand,
)
from tests.integrations.upstreams import ANSWER, STEP, SUM, UPSTREAMS

pytest.importorskip("ollama")

import ollama

CLAUDE = UPSTREAMS["anthropic"]
Responses = list[ollama.ChatResponse]
Asking = Callable[..., Responses]
elsewhere = each_upstream_but("ollama")


def chat(gateway: GatewayBeforeStage, model: str, messages: Sequence[Any], **more: Any) -> Responses:
    with ollama.Client(gateway.url) as client:
        return [client.chat(model, messages, think=True, **more)]


def chat_streamed(gateway: GatewayBeforeStage, model: str, messages: Sequence[Any], **more: Any) -> Responses:
    with ollama.Client(gateway.url) as client:
        return list(client.chat(model, messages, think=True, stream=True, **more))


def chat_awaited(gateway: GatewayBeforeStage, model: str, messages: Sequence[Any], **more: Any) -> Responses:
    async def run() -> Responses:
        async with ollama.AsyncClient(gateway.url) as client:
            return [await client.chat(model, messages, think=True, **more)]

    return asyncio.run(run())


def chat_awaited_streamed(gateway: GatewayBeforeStage, model: str, messages: Sequence[Any], **more: Any) -> Responses:
    async def run() -> Responses:
        async with ollama.AsyncClient(gateway.url) as client:
            return [chunk async for chunk in await client.chat(model, messages, think=True, stream=True, **more)]

    return asyncio.run(run())


for_each_way = pytest.mark.parametrize("way", [chat, chat_streamed, chat_awaited, chat_awaited_streamed])
for_two_ways = pytest.mark.parametrize("way", [chat, chat_awaited_streamed])


def ask(text: str) -> ollama.Message:
    return ollama.Message(role="user", content=text)


def join(responses: Responses) -> ollama.Message:
    """The message of a whole response, or of the lines of a stream."""
    messages = [response.message for response in responses]
    calls = [call for message in messages for call in message.tool_calls or ()]
    return ollama.Message(
        role="assistant",
        content="".join(message.content or "" for message in messages),
        thinking="".join(message.thinking or "" for message in messages) or None,
        tool_calls=calls or None,
    )


@elsewhere
@for_each_way
def test_thinking_is_apart_from_the_answer(accepted: GatewayBeforeStage, model: str, way: Asking) -> None:
    responses = way(accepted, model, [ask(SUM)])
    message, last = join(responses), responses[-1]
    assert (message.content, STEP in (message.thinking or "")) == (ANSWER, True)
    assert (last.done, last.done_reason) == (True, "stop")
    assert (last.eval_count or 0) > 0


@elsewhere
@for_two_ways
def test_an_errand(accepted: GatewayBeforeStage, notebook: Notebook, model: str, way: Asking) -> None:
    """With functions as tools. The client drops the ids of calls, and here also the thinking."""
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    tools = [notebook.write_note, notebook.read_note]
    messages: list[ollama.Message] = [ask(notebook.errand)]
    for _ in range(STEPS):
        message = join(way(accepted, model, messages, tools=tools))
        assert CANARY in (message.thinking or "")
        [call] = message.tool_calls or []
        result = notebook.run(call.function.name, dict(call.function.arguments))
        message.thinking = None
        messages += [message, ollama.Message(role="tool", content=result, tool_name=call.function.name)]
    messages.append(join(way(accepted, model, messages, tools=tools)))
    assert messages[-1].content == CHECKED
    messages[-1].thinking = None
    assert join(way(accepted, model, [*messages, ask(DOUBT)], tools=tools)).content == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@elsewhere
def test_generate_has_its_thinking_apart(accepted: GatewayBeforeStage, model: str) -> None:
    with ollama.Client(accepted.url) as client:
        whole = client.generate(model, SUM, think=True)
        assert (whole.response, STEP in (whole.thinking or "")) == (ANSWER, True)
        lines = list(client.generate(model, SUM, think=True, stream=True))
        assert "".join(line.response for line in lines) == ANSWER
        assert STEP in "".join(line.thinking or "" for line in lines)


@for_two_ways
@pytest.mark.parametrize("status", [400, 404, 429, 500])
def test_an_error_is_that_of_the_client(gateway: GatewayBeforeStage, way: Asking, status: int) -> None:
    gateway.play(Fail(status=status, message="not today"))
    with pytest.raises(ollama.ResponseError, match="not today") as caught:
        way(gateway, CLAUDE, [ask(SUM)])
    assert caught.value.status_code == status


def test_models_are_listed_shown_and_asked(gateway: GatewayBeforeStage) -> None:
    with ollama.Client(gateway.url) as client:
        assert {model.model for model in client.list().models} >= set(ROUTES)
        for name in ROUTES:
            assert "thinking" in (client.show(name).capabilities or ())
            assert join(chat(gateway, name, [ask(SUM)])).content == ANSWER
        assert client.ps().models == []
        with pytest.raises(ollama.ResponseError) as caught:
            client.pull("qwen3")
        assert caught.value.status_code == 501


def test_leaving_a_stream_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    with ollama.Client(gateway.url) as client:
        stream: Any = client.chat(CLAUDE, [ask(SUM)], stream=True)
        next(stream)
        stream.close()
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


async def test_a_cancelled_request_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    wait = gateway.hang()
    async with ollama.AsyncClient(gateway.url) as client:
        task = asyncio.create_task(client.chat(CLAUDE, [ask(SUM)]))
        assert await asyncio.to_thread(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait)


def test_a_body_of_three_megabytes(accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert join(chat(accepted, CLAUDE, [ask(long)])).content == "read"
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
