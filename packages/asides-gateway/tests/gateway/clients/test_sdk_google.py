"""Google's client against `asides serve` before providers of other dialects."""

from __future__ import annotations

import asyncio
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
    GatewayBeforeStage,
    Notebook,
    count_states,
    each_upstream_but,
    run_errand,
)
from tests.integrations.upstreams import ANSWER, STEP, SUM, UPSTREAMS

pytest.importorskip("google.genai")

from google import genai
from google.genai import errors, types

# The SDK's own class for aiohttp, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

CLAUDE = UPSTREAMS["anthropic"]
THINKING = types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH)
SHOWN = types.GenerateContentConfig(thinking_config=THINKING)
Responses = list[types.GenerateContentResponse]
Asking = Callable[[genai.Client, str, str], Responses]
elsewhere = each_upstream_but("gemini")


def connect(gateway: GatewayBeforeStage) -> genai.Client:
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=gateway.url))


def list_parts(responses: Iterable[types.GenerateContentResponse]) -> list[types.Part]:
    return [part for response in responses for part in response.parts or []]


def join_texts(responses: Iterable[types.GenerateContentResponse], *, thought: bool) -> str:
    return "".join(part.text or "" for part in list_parts(responses) if bool(part.thought) == thought)


def ask(client: genai.Client, model: str, text: str) -> Responses:
    return [client.models.generate_content(model=model, contents=text, config=SHOWN)]


def ask_streamed(client: genai.Client, model: str, text: str) -> Responses:
    return list(client.models.generate_content_stream(model=model, contents=text, config=SHOWN))


def ask_awaited(client: genai.Client, model: str, text: str) -> Responses:
    async def run() -> Responses:
        async with client.aio as awaited:
            return [await awaited.models.generate_content(model=model, contents=text, config=SHOWN)]

    return asyncio.run(run())


def ask_awaited_streamed(client: genai.Client, model: str, text: str) -> Responses:
    async def run() -> Responses:
        async with client.aio as awaited:
            stream = await awaited.models.generate_content_stream(model=model, contents=text, config=SHOWN)
            return [chunk async for chunk in stream]

    return asyncio.run(run())


for_each_way = pytest.mark.parametrize("way", [ask, ask_streamed, ask_awaited, ask_awaited_streamed])
for_two_ways = pytest.mark.parametrize("way", [ask, ask_awaited_streamed])


@elsewhere
@for_each_way
def test_thoughts_are_apart_from_the_answer(accepted: GatewayBeforeStage, model: str, way: Asking) -> None:
    responses = way(connect(accepted), model, SUM)
    assert STEP in join_texts(responses, thought=True)
    assert join_texts(responses, thought=False) == ANSWER
    usage = responses[-1].usage_metadata
    assert usage is not None
    assert (usage.total_token_count or 0) > 0
    assert (responses[-1].candidates or [])[0].finish_reason == types.FinishReason.STOP


# --- tools ------------------------------------------------------------------------------------------------------------


def list_tools(notebook: Notebook) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(tools=[notebook.write_note, notebook.read_note], thinking_config=THINKING)


def send(client: genai.Client, model: str, notebook: Notebook) -> list[Responses]:
    chat = client.chats.create(model=model, config=list_tools(notebook))
    return [[chat.send_message(message)] for message in (notebook.errand, DOUBT)]


def send_awaited_streamed(client: genai.Client, model: str, notebook: Notebook) -> list[Responses]:
    async def run() -> list[Responses]:
        async with client.aio as awaited:
            chat = awaited.chats.create(model=model, config=list_tools(notebook))
            return [
                [chunk async for chunk in await chat.send_message_stream(each)] for each in (notebook.errand, DOUBT)
            ]

    return asyncio.run(run())


@elsewhere
@pytest.mark.parametrize("way", [send, send_awaited_streamed])
def test_a_chat_runs_the_errand_with_its_functions(
    accepted: GatewayBeforeStage,
    notebook: Notebook,
    model: str,
    way: Callable[[genai.Client, str, Notebook], list[Responses]],
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    first, second = way(connect(accepted), model, notebook)
    assert CHECKED in join_texts(first, thought=False)
    assert CANARY in join_texts(first, thought=True)
    assert join_texts(second, thought=False) == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "INVALID_ARGUMENT", errors.ClientError),
        (404, "NOT_FOUND", errors.ClientError),
        (429, "RESOURCE_EXHAUSTED", errors.ClientError),
        (500, "INTERNAL", errors.ServerError),
    ],
)
@for_two_ways
def test_an_error_is_that_of_the_client(
    gateway: GatewayBeforeStage, way: Asking, status: int, kind: str, error: type[errors.APIError]
) -> None:
    gateway.play(Fail(status=status, message="not today", retry_after=7 if status == 429 else None))
    with pytest.raises(error, match="not today") as caught:
        way(connect(gateway), CLAUDE, SUM)
    assert (caught.value.code, caught.value.status) == (status, kind)
    headers: Any = getattr(caught.value.response, "headers", {})
    assert bool(headers.get("x-request-id"))
    assert headers.get("retry-after") == ("7" if status == 429 else None)


# --- models, tokens, leaving, size ------------------------------------------------------------------------------------


def test_models_are_listed_shown_and_asked(gateway: GatewayBeforeStage) -> None:
    client = connect(gateway)
    assert {model.name for model in client.models.list()} >= {f"models/{name}" for name in ROUTES}
    for name in ROUTES:
        assert client.models.get(model=name).name == f"models/{name}"
        assert join_texts(ask(client, name, SUM), thought=False) == ANSWER


@elsewhere
def test_tokens_are_counted(gateway: GatewayBeforeStage, model: str) -> None:
    assert (connect(gateway).models.count_tokens(model=model, contents=SUM).total_tokens or 0) > 0


def test_leaving_a_stream_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    client = connect(gateway)
    stream: Any = client.models.generate_content_stream(model=CLAUDE, contents=SUM, config=SHOWN)
    next(stream)
    stream.close()
    client.close()
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


async def test_a_cancelled_request_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    wait = gateway.hang()
    async with connect(gateway).aio as client:
        task = asyncio.create_task(client.models.generate_content(model=CLAUDE, contents=SUM))
        assert await asyncio.to_thread(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait)


def test_a_body_of_three_megabytes(accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert join_texts(ask(connect(accepted), CLAUDE, long), thought=False) == "read"
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
