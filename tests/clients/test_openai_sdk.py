"""OpenAI's own client against the stage, in chat completions and Responses: replies, streams, tools, types, errors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args, get_type_hints

import pydantic
import pytest

from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage import Fail, OpenStage, Say, Stage
from tests.testing.stage.test_accepted_requests import CHAT_FIELDS, RESPONSES_FIELDS

openai = pytest.importorskip("openai")

MODEL = "gpt-5"
TEXT = "What is 23 * 47?"
CHAT: dict[str, Any] = {"model": "deepseek-reasoner", "messages": [{"role": "user", "content": TEXT}]}
RESPONSE: dict[str, Any] = {"model": MODEL, "input": TEXT, "reasoning": {"effort": "high", "summary": "auto"}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "The weather of a place.", "parameters": SCHEMA}


@pytest.fixture
def opened(stage: OpenStage) -> Stage:
    return stage()


def connect(stage: Stage, key: str = "sk-made-up") -> Any:
    return openai.OpenAI(base_url=stage.url, api_key=key, max_retries=0)


@pytest.fixture
def client(opened: Stage) -> Iterator[Any]:
    with connect(opened) as client:
        yield client


@pytest.fixture
async def async_client(opened: Stage) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=opened.url, api_key="sk-made-up", max_retries=0) as client:
        yield client


def check_completion(completion: Any) -> None:
    message = completion.choices[0].message
    assert message.content == "23 × 47 = 1081"
    assert "920 + 161 = 1081" in message.reasoning_content
    assert (completion.choices[0].finish_reason, completion.usage.prompt_tokens) == ("stop", 5)
    assert completion.usage.total_tokens == 5 + completion.usage.completion_tokens


def check_response(response: Any) -> None:
    thought, message = response.output
    assert (thought.type, message.type, response.output_text) == ("reasoning", "message", "23 × 47 = 1081")
    assert "920 + 161 = 1081" in thought.summary[0].text
    assert thought.encrypted_content
    assert (response.status, response.usage.input_tokens) == ("completed", 5)
    assert response.usage.output_tokens_details.reasoning_tokens > 20


# --- replies ----------------------------------------------------------------------------------------------------------


def test_a_completion(client: Any) -> None:
    check_completion(client.chat.completions.create(**CHAT))


async def test_a_completion_awaited(async_client: Any) -> None:
    check_completion(await async_client.chat.completions.create(**CHAT))


def test_a_streamed_completion(client: Any) -> None:
    chunks = list(client.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "23 × 47 = 1081"
    assert "920 + 161" in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_helper_for_streamed_completions(client: Any) -> None:
    with client.chat.completions.stream(**CHAT, stream_options={"include_usage": True}) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        check_completion(stream.get_final_completion())
    assert text == "23 × 47 = 1081"


async def test_the_helper_for_streamed_completions_awaited(async_client: Any) -> None:
    async with async_client.chat.completions.stream(**CHAT, stream_options={"include_usage": True}) as stream:
        check_completion(await stream.get_final_completion())


def test_a_response(client: Any) -> None:
    check_response(client.responses.create(**RESPONSE))


async def test_a_response_awaited(async_client: Any) -> None:
    check_response(await async_client.responses.create(**RESPONSE))


def test_a_streamed_response_and_its_helper(client: Any) -> None:
    with client.responses.stream(**RESPONSE) as stream:
        events = list(stream)
        check_response(stream.get_final_response())
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    thoughts = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    assert ("".join(deltas), "920 + 161" in "".join(thoughts)) == ("23 × 47 = 1081", True)
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_a_streamed_response_awaited(async_client: Any) -> None:
    async with async_client.responses.stream(**RESPONSE) as stream:
        check_response(await stream.get_final_response())


def test_two_replies_have_two_ids(client: Any) -> None:
    completions = [client.chat.completions.create(**CHAT).id for _ in range(2)]
    responses = [client.responses.create(**RESPONSE) for _ in range(2)]
    items = [item.id for response in responses for item in response.output]
    assert len({*completions, *(response.id for response in responses)}) == 4
    assert len(set(items)) == len(items)


SCENES = [
    Say("hi", thinking="plan"),
    Say("hi", thinking="plan", thinking_field="reasoning_text", tool_calls=(ToolCall("c1", "f", {"a": 1}),)),
    Say(tool_calls=(ToolCall("c2", "g", {}, raw_arguments="x", custom=True),)),
    Say(refusal="no"),
    Say("cut", stop="length"),
    Say("uncounted", usage=Usage()),
]


@pytest.mark.parametrize("scene", SCENES)
def test_every_field_that_the_types_require_is_there(stage: OpenStage, scene: Say) -> None:
    union = get_args(get_args(openai.types.responses.ResponseStreamEvent)[0])
    classes = {get_args(cls.model_fields["type"].annotation)[0]: cls for cls in union}
    with connect(stage(scene)) as client:
        for event in client.responses.create(**RESPONSE, stream=True):
            classes[event.type].model_validate(event.to_dict())
        openai.types.responses.Response.model_validate(client.responses.create(**RESPONSE).to_dict())
        for chunk in client.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}):
            openai.types.chat.ChatCompletionChunk.model_validate(chunk.to_dict())
        openai.types.chat.ChatCompletion.model_validate(client.chat.completions.create(**CHAT).to_dict())


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [MODEL, "deepseek-flash", "magistral-medium-latest", "anthropic/claude-sonnet-5"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_loop_in_chat_is_accepted(client: Any, streamed: bool, model: str) -> None:
    history: list[Any] = [{"role": "user", "content": "The weather in Oslo?"}]

    def ask() -> Any:
        asked = {"model": model, "messages": history, "tools": [{"type": "function", "function": FUNCTION}]}
        if not streamed:
            return client.chat.completions.create(**asked).choices[0]
        with client.chat.completions.stream(**asked) as stream:
            return stream.get_final_completion().choices[0]

    first = ask()
    [call] = first.message.tool_calls
    assert (first.finish_reason, call.function.name, json.loads(call.function.arguments)) == (
        "tool_calls", "get_weather", {"city": "Oslo"},
    )  # fmt: skip
    kept = ("role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details")
    turn = {name: value for name, value in first.message.to_dict().items() if name in kept and value is not None}
    if model.startswith("magistral"):  # this host refuses any other field
        turn = {name: value for name, value in turn.items() if name in ("role", "content", "tool_calls")}
    turn["tool_calls"] = [
        {"id": call.id, "type": "function", "function": {"name": "get_weather", "arguments": call.function.arguments}}
    ]
    history += [turn, {"role": "tool", "tool_call_id": call.id, "content": "12 °C"}]
    second = ask()
    assert (second.finish_reason, second.message.content) == ("stop", "get_weather says: 12 °C")


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_loop_with_its_reasoning_is_accepted(client: Any, streamed: bool, store: bool) -> None:
    history: list[Any] = [{"role": "user", "content": "The weather in Oslo?"}]

    def ask() -> Any:
        asked = {**RESPONSE, "input": history, "store": store, "tools": [{"type": "function", **FUNCTION}]}
        if not streamed:
            return client.responses.create(**asked, include=["reasoning.encrypted_content"])
        with client.responses.stream(**asked, include=["reasoning.encrypted_content"]) as stream:
            return stream.get_final_response()

    first = ask()
    call = first.output[-1]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "get_weather", {"city": "Oslo"})
    history += [item.to_dict() for item in first.output]
    for item in history:
        item.pop("parsed_arguments", None)  # the helper's own
    history.append({"type": "function_call_output", "call_id": call.call_id, "output": "12 °C"})
    second = ask()
    assert second.output_text == "get_weather says: 12 °C"
    history += [*(item.to_dict() for item in second.output), {"role": "user", "content": TEXT}]
    for item in history:
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            part.pop("parsed", None)
    assert ask().output_text == "23 × 47 = 1081"


def test_a_stored_response_is_continued_read_and_deleted(client: Any) -> None:
    tools = [{"type": "function", **FUNCTION}]
    first = client.responses.create(model=MODEL, input="The weather in Oslo?", tools=tools)
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "12 °C"}
    second = client.responses.create(model=MODEL, input=[result], tools=tools, previous_response_id=first.id)
    assert second.output_text == "the tool says: 12 °C"
    assert client.responses.retrieve(second.id).output_text == second.output_text
    assert [item.call_id for item in client.responses.input_items.list(second.id)] == [result["call_id"]]
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


# --- typed answers, counts, models ------------------------------------------------------------------------------------


class City(pydantic.BaseModel):
    name: str
    people: int


PARIS = "Tell of Paris and its 7 people."


def test_typed_answers(client: Any) -> None:
    asked = [{"role": "user", "content": PARIS}]
    completion = client.chat.completions.parse(model=MODEL, messages=asked, response_format=City)
    response = client.responses.parse(model=MODEL, input=PARIS, text_format=City)
    expected = City(name="Paris", people=7)
    assert (completion.choices[0].message.parsed, response.output_parsed) == (expected, expected)
    with client.responses.stream(model=MODEL, input=PARIS, text_format=City) as stream:
        assert stream.get_final_response().output_parsed == expected


def test_counted_tokens(client: Any) -> None:
    assert client.responses.input_tokens.count(model=MODEL, input=TEXT).input_tokens == 5
    assert client.responses.input_tokens.count(input=TEXT).input_tokens == 5


def test_models(stage: OpenStage) -> None:
    with connect(stage(models=("a", "maker/b"))) as client:
        assert [model.id for model in client.models.list()] == ["a", "maker/b"]
        assert client.models.retrieve("maker/b").id == "maker/b"
        with pytest.raises(openai.NotFoundError) as caught:
            client.models.retrieve("c")
    assert caught.value.code == "model_not_found"


# --- errors -----------------------------------------------------------------------------------------------------------

ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "InternalServerError",
}


@pytest.mark.parametrize(("status", "name"), ERRORS.items())
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_is_the_client_s_own(stage: OpenStage, status: int, name: str, streamed: bool) -> None:
    with connect(stage(Fail(status=status, message="so it is", kind="a_code"))) as client:
        for number, ask in enumerate((client.chat.completions.create, client.responses.create), 1):
            with pytest.raises(openai.APIStatusError, match="so it is") as caught:
                ask(**(CHAT if number == 1 else RESPONSE), stream=streamed)
            assert (type(caught.value).__name__, caught.value.status_code) == (name, status)
            assert (caught.value.request_id, caught.value.code) == (f"stage-{number}", "a_code")


def test_an_error_names_the_field(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**RESPONSE, extra_body={"top_k": 3})
    assert (caught.value.param, caught.value.code) == ("top_k", "unknown_parameter")


def test_a_wrong_key_an_unknown_path_and_a_bad_request(stage: OpenStage) -> None:
    opened = stage(key="sk-right")
    with connect(opened, "sk-wrong") as client, pytest.raises(openai.AuthenticationError) as unknown:
        client.responses.create(**RESPONSE)
    assert unknown.value.code == "invalid_api_key"
    with connect(opened, "sk-right") as client:
        with pytest.raises(openai.NotFoundError):
            client.get("/nothing", cast_to=object)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model=MODEL, messages=[])


def test_every_field_of_a_request_is_known() -> None:
    """A field that a newer client documents is missing here, and in the rules of the stage."""
    params = openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming
    assert set(get_type_hints(params)) <= {*RESPONSES_FIELDS, "model", "input", "tools", "previous_response_id"}
    chat = openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming
    assert set(get_type_hints(chat)) <= {*CHAT_FIELDS, "model", "messages"}
