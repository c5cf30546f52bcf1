"""OpenAI's client against `asides serve` before providers of other dialects: chat and Responses."""

from __future__ import annotations

import asyncio
import json
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

openai = pytest.importorskip("openai")

CLAUDE, GEMINI = UPSTREAMS["anthropic"], UPSTREAMS["gemini"]
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
    for name, text, schema in TOOLS
]
RESPONSE_TOOLS: list[Any] = [{"type": "function", **tool["function"], "strict": False} for tool in CHAT_TOOLS]
in_chat = each_upstream_but("openai_chat")
in_responses = each_upstream_but("openai_responses")


@pytest.fixture
def client(gateway: GatewayBeforeStage) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def connect_async(gateway: GatewayBeforeStage) -> Any:
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0)


def chat(model: str, messages: Any = SUM, **more: Any) -> dict[str, Any]:
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return {"model": model, "messages": messages, "reasoning_effort": "high", **more}


def respond(model: str, asked: Any = SUM, **more: Any) -> dict[str, Any]:
    return {"model": model, "input": asked, "reasoning": {"effort": "high", "summary": "auto"}, **more}


def check_completion(completion: Any) -> None:
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    assert STEP in choice.message.reasoning_content
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens > 0


def check_response(response: Any) -> None:
    thoughts = [item for item in response.output if item.type == "reasoning"]
    assert (response.status, response.output[0].type, response.output_text) == ("completed", "reasoning", ANSWER)
    assert STEP in "".join(part.text for item in thoughts for part in (*item.summary, *(item.content or ())))
    assert response.usage.total_tokens > 0


# --- one question -----------------------------------------------------------------------------------------------------


@in_chat
def test_a_completion_has_its_thinking_apart(client: Any, accepted: GatewayBeforeStage, model: str) -> None:
    del accepted
    check_completion(client.chat.completions.create(**chat(model)))
    with client.chat.completions.stream(**chat(model), stream_options={"include_usage": True}) as stream:
        events = list(stream)
        check_completion(stream.get_final_completion())
    assert "".join(event.delta for event in events if event.type == "content.delta") == ANSWER
    deltas = [event.chunk.choices[0].delta for event in events if event.type == "chunk" and event.chunk.choices]
    assert STEP in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)


@in_responses
def test_a_response_has_its_thinking_apart(client: Any, accepted: GatewayBeforeStage, model: str) -> None:
    del accepted
    check_response(client.responses.create(**respond(model)))
    with client.responses.stream(**respond(model)) as stream:
        events = list(stream)
        check_response(stream.get_final_response())
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER
    assert events[-1].type == "response.completed"


@in_responses
async def test_both_awaited_and_at_the_same_time(accepted: GatewayBeforeStage, model: str) -> None:
    async with connect_async(accepted) as client:
        completions = [client.chat.completions.create(**chat(model)) for _ in range(4)]
        responses = [client.responses.create(**respond(model)) for _ in range(4)]
        found = await asyncio.gather(*completions, *responses)
        for completion in found[:4]:
            check_completion(completion)
        for response in found[4:]:
            check_response(response)
        async with client.chat.completions.stream(**chat(model)) as stream:
            assert "".join([event.delta async for event in stream if event.type == "content.delta"]) == ANSWER
        async with client.responses.stream(**respond(model)) as answers:
            check_response(await answers.get_final_response())


# --- tools ------------------------------------------------------------------------------------------------------------


@in_chat
@for_each_way
def test_an_errand_in_chat(
    client: Any, accepted: GatewayBeforeStage, notebook: Notebook, model: str, streamed: bool
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    history: list[Any] = [{"role": "user", "content": notebook.errand}]

    def ask() -> Any:
        asked = chat(model, history, tools=CHAT_TOOLS)
        if not streamed:
            return client.chat.completions.create(**asked).choices[0]
        with client.chat.completions.stream(**asked) as stream:
            return stream.get_final_completion().choices[0]

    for _ in range(STEPS):
        choice = ask()
        [call] = choice.message.tool_calls
        assert (choice.finish_reason, CANARY in choice.message.reasoning_content) == ("tool_calls", True)
        result = notebook.run(call.function.name, json.loads(call.function.arguments))
        # What the types of the client declare, and so no thinking.
        function = {"name": call.function.name, "arguments": call.function.arguments}
        called = {"id": call.id, "type": "function", "function": function}
        history += [
            {"role": "assistant", "content": choice.message.content, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": call.id, "content": result},
        ]
    last = ask().message
    assert (last.content, CANARY in last.reasoning_content) == (CHECKED, True)
    history += [{"role": "assistant", "content": last.content}, {"role": "user", "content": DOUBT}]
    assert ask().message.content == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@in_responses
@for_each_way
def test_an_errand_in_responses(
    client: Any, accepted: GatewayBeforeStage, notebook: Notebook, model: str, streamed: bool
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    history: list[Any] = [{"role": "user", "content": notebook.errand}]

    def ask() -> Any:
        more = {"store": False, "include": ["reasoning.encrypted_content"], "tools": RESPONSE_TOOLS}
        if not streamed:
            response = client.responses.create(**respond(model, history, **more))
        else:
            with client.responses.stream(**respond(model, history, **more)) as stream:
                response = stream.get_final_response()
        for item in response.output:
            kept = item.to_dict()
            kept.pop("parsed_arguments", None)  # the helper's own
            history.append(kept)
        return response

    for _ in range(STEPS):
        call = ask().output[-1]
        result = notebook.run(call.name, json.loads(call.arguments))
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    assert ask().output_text == CHECKED
    history.append({"role": "user", "content": DOUBT})
    assert ask().output_text == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@in_responses
def test_an_errand_by_the_ids_of_responses(
    client: Any, accepted: GatewayBeforeStage, notebook: Notebook, model: str
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    response = client.responses.create(**respond(model, notebook.errand, tools=RESPONSE_TOOLS))
    for _ in range(STEPS):
        call = response.output[-1]
        result = notebook.run(call.name, json.loads(call.arguments))
        answer = [{"type": "function_call_output", "call_id": call.call_id, "output": result}]
        more = {"tools": RESPONSE_TOOLS, "previous_response_id": response.id}
        response = client.responses.create(**respond(model, answer, **more))
    assert response.output_text == CHECKED
    last = client.responses.create(**respond(model, DOUBT, tools=RESPONSE_TOOLS, previous_response_id=response.id))
    assert last.output_text == SURE
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE
    assert client.responses.retrieve(last.id).output_text == SURE
    assert next(item.type for item in client.responses.input_items.list(last.id)) == "message"
    client.responses.delete(last.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(last.id)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
def test_an_error_is_that_of_the_client(
    client: Any, gateway: GatewayBeforeStage, model: str, status: int, name: str
) -> None:
    gateway.play(Fail(status=status, message="not today", retry_after=7 if status == 429 else None))
    asked: list[tuple[Any, dict[str, Any]]] = [
        (client.chat.completions.create, chat(model)),
        (client.chat.completions.create, chat(model, stream=True)),
        (client.responses.create, respond(model)),
    ]
    for create, arguments in asked:
        with pytest.raises(getattr(openai, name), match="not today") as caught:
            create(**arguments)
        assert (caught.value.status_code, bool(caught.value.request_id)) == (status, True)
        assert caught.value.response.headers.get("retry-after") == ("7" if status == 429 else None)


def test_what_the_gateway_refuses_has_param_and_code(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=CLAUDE, input="?", previous_response_id="resp_absent")
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")
    with pytest.raises(openai.NotFoundError) as unknown:
        client.post("/no/such/path", body={}, cast_to=object)
    assert unknown.value.code == "unknown_url"


@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
def test_a_stream_that_breaks_raises_or_says_so(client: Any, gateway: GatewayBeforeStage, model: str) -> None:
    gateway.play(Say("a long answer " * 20, thinking="plan", cut_after=900, piece=5))
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**chat(model), stream=True))
    kinds = [event.type for event in client.responses.create(**respond(model), stream=True)]
    assert (kinds[-1], "response.completed" in kinds) == ("response.failed", False)


# --- models, tokens, leaving, size ------------------------------------------------------------------------------------


def test_models_are_listed_shown_and_asked(client: Any) -> None:
    assert {model.id for model in client.models.list()} >= set(ROUTES)
    for name in ROUTES:
        assert client.models.retrieve(name).id == name
        check_completion(client.chat.completions.create(**chat(name)))
    assert client.models.retrieve(CLAUDE).id == CLAUDE
    assert client.models.retrieve("ollama:qwen3").id == "ollama:qwen3"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("absent:model")
    assert caught.value.code == "model_not_found"


def test_input_tokens_are_counted(client: Any) -> None:
    assert client.responses.input_tokens.count(model=CLAUDE, input=SUM).input_tokens == 5


def test_leaving_a_stream_leaves_the_provider(client: Any, gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    with client.chat.completions.create(**chat(CLAUDE), stream=True) as stream:
        next(iter(stream))
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


async def test_a_cancelled_request_leaves_the_provider(gateway: GatewayBeforeStage) -> None:
    wait = gateway.hang()
    async with connect_async(gateway) as client:
        task = asyncio.create_task(client.chat.completions.create(**chat(CLAUDE)))
        assert await asyncio.to_thread(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait)


def test_a_body_of_three_megabytes(client: Any, accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert client.chat.completions.create(**chat(CLAUDE, long)).choices[0].message.content == "read"
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
