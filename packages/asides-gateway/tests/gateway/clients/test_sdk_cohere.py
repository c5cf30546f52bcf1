"""Cohere's client against `asides serve` before providers of other dialects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
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
    TOOLS,
    GatewayBeforeStage,
    Notebook,
    count_states,
    each_upstream_but,
    run_errand,
)
from tests.integrations.upstreams import ANSWER, STEP, SUM, UPSTREAMS

pytest.importorskip("cohere")

import cohere

CLAUDE = UPSTREAMS["anthropic"]
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
    for name, text, schema in TOOLS
]
THINKING: dict[str, Any] = {"thinking": {"type": "enabled", "token_budget": 12000}}
NO_RETRIES: Any = {"max_retries": 0}
Wire = dict[str, Any]
Asking = Callable[..., Wire]
elsewhere = each_upstream_but("cohere")


def connect(gateway: GatewayBeforeStage) -> cohere.ClientV2:
    return cohere.ClientV2("any", base_url=gateway.url, log_warning_experimental_features=False)


def connect_async(gateway: GatewayBeforeStage) -> cohere.AsyncClientV2:
    return cohere.AsyncClientV2("any", base_url=gateway.url, log_warning_experimental_features=False)


def dump(value: Any) -> Wire:
    fields: Wire = value.model_dump(exclude_none=True)
    return fields


def join(events: Iterable[Any]) -> Wire:
    """The message that a stream amounts to, with its finish reason."""
    found: Wire = {"message": {"role": "assistant"}}
    message = found["message"]
    for event in events:
        delta: Wire = dump(event).get("delta") or {}
        inner = delta.get("message") or {}
        match event.type:
            case "content-start":
                message.setdefault("content", []).append(inner["content"])
            case "content-delta":
                for name, text in inner["content"].items():
                    block = message["content"][event.index]
                    block[name] = block.get(name, "") + text
            case "tool-plan-delta":
                message["tool_plan"] = message.get("tool_plan", "") + inner["tool_plan"]
            case "tool-call-start":
                message.setdefault("tool_calls", []).append(inner["tool_calls"])
            case "tool-call-delta":
                function = message["tool_calls"][event.index]["function"]
                function["arguments"] += inner["tool_calls"]["function"]["arguments"]
            case "message-end":
                found |= delta
            case _:
                pass
    return found


def chat(gateway: GatewayBeforeStage, model: str, messages: list[Any], **more: Any) -> Wire:
    with connect(gateway) as client:
        response = client.chat(model=model, messages=messages, request_options=NO_RETRIES, **THINKING, **more)
        return dump(response)


def chat_streamed(gateway: GatewayBeforeStage, model: str, messages: list[Any], **more: Any) -> Wire:
    with connect(gateway) as client:
        asked: Wire = {"model": model, "messages": messages, "request_options": NO_RETRIES, **THINKING, **more}
        return join(client.chat_stream(**asked))


def chat_awaited(gateway: GatewayBeforeStage, model: str, messages: list[Any], **more: Any) -> Wire:
    async def run() -> Wire:
        async with connect_async(gateway) as client:
            asked: Wire = {"model": model, "messages": messages, "request_options": NO_RETRIES, **THINKING, **more}
            return dump(await client.chat(**asked))

    return asyncio.run(run())


def chat_awaited_streamed(gateway: GatewayBeforeStage, model: str, messages: list[Any], **more: Any) -> Wire:
    async def run() -> Wire:
        async with connect_async(gateway) as client:
            asked: Wire = {"model": model, "messages": messages, "request_options": NO_RETRIES, **THINKING, **more}
            return join([event async for event in client.chat_stream(**asked)])

    return asyncio.run(run())


for_each_way = pytest.mark.parametrize("way", [chat, chat_streamed, chat_awaited, chat_awaited_streamed])
for_two_ways = pytest.mark.parametrize("way", [chat, chat_awaited_streamed])


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


@elsewhere
@for_each_way
def test_thinking_is_apart_from_the_answer(accepted: GatewayBeforeStage, model: str, way: Asking) -> None:
    found = way(accepted, model, [user(SUM)])
    thought, *_, text = found["message"]["content"]
    assert (thought["type"], STEP in thought["thinking"]) == ("thinking", True)
    assert text == {"type": "text", "text": ANSWER}
    assert found["finish_reason"] == "COMPLETE"
    assert found["usage"]["tokens"]["output_tokens"] > 0


@elsewhere
@for_two_ways
def test_an_errand(accepted: GatewayBeforeStage, notebook: Notebook, model: str, way: Asking) -> None:
    """The client gives back what it got, without the thinking."""
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    messages: list[Any] = [user(notebook.errand)]
    for _ in range(STEPS):
        found = way(accepted, model, messages, tools=CHAT_TOOLS)
        message = found["message"]
        assert CANARY in json.dumps(message.pop("content"))
        [call] = message["tool_calls"]
        result = notebook.run(call["function"]["name"], json.loads(call["function"]["arguments"]))
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]
    last = way(accepted, model, messages, tools=CHAT_TOOLS)["message"]["content"][-1]
    assert last == {"type": "text", "text": CHECKED}
    messages += [{"role": "assistant", "content": CHECKED}, user(DOUBT)]
    assert way(accepted, model, messages, tools=CHAT_TOOLS)["message"]["content"][-1]["text"] == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@for_two_ways
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, cohere.BadRequestError),
        (404, cohere.NotFoundError),
        (429, cohere.TooManyRequestsError),
        (500, cohere.InternalServerError),
    ],
)
def test_an_error_is_that_of_the_client(
    gateway: GatewayBeforeStage, way: Asking, status: int, error: type[Exception]
) -> None:
    gateway.play(Fail(status=status, message="not today", retry_after=7 if status == 429 else None))
    with pytest.raises(error) as caught:
        way(gateway, CLAUDE, [user(SUM)])
    found: Any = caught.value
    assert (found.status_code, "not today" in found.body["message"]) == (status, True)
    assert bool(found.headers.get("x-request-id"))
    assert found.headers.get("retry-after") == ("7" if status == 429 else None)


def test_models_are_listed_shown_and_asked(gateway: GatewayBeforeStage) -> None:
    with connect(gateway) as client:
        assert {model.name for model in client.models.list().models} >= set(ROUTES)
        for name in ROUTES:
            assert client.models.get(name).name == name
            assert chat(gateway, name, [user(SUM)])["message"]["content"][-1]["text"] == ANSWER


def test_leaving_a_stream_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    with connect(gateway) as client:
        stream: Any = client.chat_stream(model=CLAUDE, messages=[cohere.UserChatMessageV2(content=SUM)])
        next(iter(stream))
        stream.close()
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


async def test_a_cancelled_request_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    wait = gateway.hang()
    async with connect_async(gateway) as client:
        asked = client.chat(model=CLAUDE, messages=[cohere.UserChatMessageV2(content=SUM)])
        task = asyncio.create_task(asked)
        assert await asyncio.to_thread(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait)


def test_a_body_of_three_megabytes(accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert chat(accepted, CLAUDE, [user(long)])["message"]["content"][-1]["text"] == "read"
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
