"""Anthropic's client against `asides serve` before providers of other dialects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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
from tests.integrations.upstreams import ANSWER, STEP, SUM, UPSTREAMS, for_each_way

anthropic = pytest.importorskip("anthropic")

CHAT, GEMINI = UPSTREAMS["openai_chat"], UPSTREAMS["gemini"]
MESSAGE_TOOLS: list[Any] = [{"name": name, "description": text, "input_schema": schema} for name, text, schema in TOOLS]
elsewhere = each_upstream_but("anthropic")


@pytest.fixture
def client(gateway: GatewayBeforeStage) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=gateway.url, api_key="any", max_retries=0) as client:
        yield client


def connect_async(gateway: GatewayBeforeStage) -> Any:
    return anthropic.AsyncAnthropic(base_url=gateway.url, api_key="any", max_retries=0)


def ask(model: str, messages: Any = SUM, **more: Any) -> dict[str, Any]:
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    thinking = {"type": "enabled", "budget_tokens": 12000}
    return {"model": model, "max_tokens": 16000, "messages": messages, "thinking": thinking, **more}


def check(message: Any) -> None:
    thought, *_, text = message.content
    assert (thought.type, text.type, text.text) == ("thinking", "text", ANSWER)
    assert (STEP in thought.thinking, bool(thought.signature)) == (True, True)
    assert (message.stop_reason, message.usage.output_tokens > 0) == ("end_turn", True)


# --- one question -----------------------------------------------------------------------------------------------------


@elsewhere
def test_a_message_has_its_thinking_apart(client: Any, accepted: GatewayBeforeStage, model: str) -> None:
    del accepted
    check(client.messages.create(**ask(model)))
    with client.messages.stream(**ask(model)) as stream:
        events = list(stream)
        check(stream.get_final_message())
    assert "".join(event.text for event in events if event.type == "text") == ANSWER
    assert STEP in "".join(event.thinking for event in events if event.type == "thinking")
    start = next(event for event in events if event.type == "message_start")
    assert (start.message.usage.input_tokens >= 0, start.message.usage.output_tokens >= 0) == (True, True)


@elsewhere
async def test_awaited_and_at_the_same_time(accepted: GatewayBeforeStage, model: str) -> None:
    async with connect_async(accepted) as client:
        messages = await asyncio.gather(*(client.messages.create(**ask(model)) for _ in range(4)))
        for message in messages:
            check(message)
        assert len({message.id for message in messages}) == 4
        async with client.messages.stream(**ask(model)) as stream:
            assert "".join([text async for text in stream.text_stream]) == ANSWER
            check(await stream.get_final_message())


# --- tools ------------------------------------------------------------------------------------------------------------


def keep_all(message: Any) -> list[Any]:
    return [block.to_dict() for block in message.content]


def keep_no_thinking(message: Any) -> list[Any]:
    return [block.to_dict() for block in message.content if block.type in ("text", "tool_use")]


@elsewhere
@for_each_way
@pytest.mark.parametrize("keep", [keep_all, keep_no_thinking])
def test_an_errand(
    client: Any, accepted: GatewayBeforeStage, notebook: Notebook, model: str, streamed: bool, keep: Any
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    history: list[Any] = [{"role": "user", "content": notebook.errand}]

    def step() -> Any:
        if not streamed:
            message = client.messages.create(**ask(model, history, tools=MESSAGE_TOOLS))
        else:
            with client.messages.stream(**ask(model, history, tools=MESSAGE_TOOLS)) as stream:
                message = stream.get_final_message()
        history.append({"role": "assistant", "content": keep(message)})
        return message

    for _ in range(STEPS):
        message = step()
        call = message.content[-1]
        assert (message.stop_reason, CANARY in message.content[0].thinking) == ("tool_use", True)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": notebook.run(call.name, call.input)}
        history.append({"role": "user", "content": [result]})
    assert step().content[-1].text == CHECKED
    history.append({"role": "user", "content": DOUBT})
    assert step().content[-1].text == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@elsewhere
@for_each_way
def test_the_tool_runner(
    client: Any, accepted: GatewayBeforeStage, notebook: Notebook, model: str, streamed: bool
) -> None:
    accepted.play(run_errand)
    tools = [anthropic.beta_tool(notebook.write_note), anthropic.beta_tool(notebook.read_note)]
    runner = client.beta.messages.tool_runner(**ask(model, notebook.errand, tools=tools), stream=streamed)
    messages = [each.get_final_message() if streamed else each for each in runner]
    assert [message.stop_reason for message in messages] == ["tool_use", "tool_use", "end_turn"]
    assert messages[-1].content[-1].text == CHECKED


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CHAT, GEMINI])
@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "BadRequestError", "invalid_request_error"),
        (404, "NotFoundError", "not_found_error"),
        (429, "RateLimitError", "rate_limit_error"),
        (500, "InternalServerError", "api_error"),
        (529, "OverloadedError", "overloaded_error"),
    ],
)
def test_an_error_is_that_of_the_client(
    client: Any, gateway: GatewayBeforeStage, model: str, status: int, name: str, kind: str
) -> None:
    gateway.play(Fail(status=status, message="not today", retry_after=7 if status == 429 else None))
    error = getattr(anthropic, name, None) or anthropic._exceptions.OverloadedError
    for more in ({}, {"stream": True}):
        with pytest.raises(error, match="not today") as caught:
            client.messages.create(**ask(model, **more))
        found: Any = caught.value
        assert (found.status_code, found.type, found.body["error"]["type"]) == (status, kind, kind)
        assert found.request_id
        assert found.request_id == found.body.get("request_id", found.request_id)
        assert found.response.headers.get("retry-after") == ("7" if status == 429 else None)


@pytest.mark.parametrize("model", [CHAT, GEMINI])
def test_a_stream_that_breaks_raises(client: Any, gateway: GatewayBeforeStage, model: str) -> None:
    gateway.play(Say("a long answer " * 20, thinking="plan", cut_after=900, piece=5))
    texts: list[str] = []
    with pytest.raises(anthropic.APIError), client.messages.stream(**ask(model)) as stream:
        texts += stream.text_stream
    assert "a long answer".startswith("".join(texts)[:13])


# --- models, tokens, leaving, size ------------------------------------------------------------------------------------


def test_models_are_listed_shown_and_asked(client: Any) -> None:
    listed = [model.id for model in client.models.list(limit=1000)]
    assert all(name.startswith(("claude", "anthropic")) for name in listed)  # Claude Code shows no others.
    assert {name.removeprefix("claude/") for name in listed} >= set(ROUTES)
    for name in ROUTES:
        assert client.models.retrieve(name).id == name
        check(client.messages.create(**ask(name)))


@elsewhere
def test_tokens_are_counted(client: Any, model: str) -> None:
    """By the provider where it counts, and by an estimate where it does not; never none."""
    assert client.messages.count_tokens(model=model, messages=[{"role": "user", "content": SUM}]).input_tokens > 0


def test_leaving_a_stream_leaves_the_provider(client: Any, gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    with client.messages.stream(**ask(CHAT)) as stream:
        next(iter(stream))
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


async def test_a_cancelled_request_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    wait = gateway.hang()
    async with connect_async(gateway) as client:
        task = asyncio.create_task(client.messages.create(**ask(CHAT)))
        assert await asyncio.to_thread(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait)


def test_a_body_of_three_megabytes(client: Any, accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert client.messages.create(**ask(GEMINI, long)).content[-1].text == "read"
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
