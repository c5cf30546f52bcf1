"""Anthropic's own client against the stage: replies, streams, tools to the second turn, typed answers, errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, get_type_hints

import pydantic
import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.parts import ToolCall, ToolResult
from asides.values.usage import Usage
from asides_stage import Fail, OpenStage, Say, Scene, Stage
from tests.testing.stage.test_accepted_requests import MESSAGES_FIELDS

anthropic = pytest.importorskip("anthropic")

MODEL = "claude-opus-5-5"
QUESTION: list[Any] = [{"role": "user", "content": "What is 23 * 47?"}]
ASKED: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 4000,
    "thinking": {"type": "adaptive", "display": "summarized"},
    "messages": QUESTION,
}
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather of a place.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
def opened(stage: OpenStage) -> Stage:
    return stage()


@pytest.fixture
def client(opened: Stage) -> Iterator[Any]:
    with connect(opened) as client:
        yield client


@pytest.fixture
async def async_client(opened: Stage) -> AsyncIterator[Any]:
    address = opened.url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=address, api_key="sk-made-up", max_retries=0) as client:
        yield client


def connect(stage: Stage, key: str = "sk-made-up") -> Any:
    return anthropic.Anthropic(base_url=stage.url.removesuffix("/v1"), api_key=key, max_retries=0)


def check(message: Any) -> None:
    """The answer in one block and the thinking in another, with its signature."""
    thought, text = message.content
    assert (thought.type, text.type, text.text) == ("thinking", "text", "23 × 47 = 1081")
    assert "920 + 161 = 1081" in thought.thinking
    assert thought.signature
    assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 5)
    assert message.usage.output_tokens > 30


# --- replies ----------------------------------------------------------------------------------------------------------


def test_a_reply(client: Any) -> None:
    check(client.messages.create(**ASKED))


async def test_a_reply_awaited(async_client: Any) -> None:
    check(await async_client.messages.create(**ASKED))


def test_a_stream_and_its_helper(client: Any) -> None:
    with client.messages.stream(**ASKED) as stream:
        events = list(stream)
        check(stream.get_final_message())
    assert "".join(event.text for event in events if event.type == "text") == "23 × 47 = 1081"
    assert "920 + 161" in "".join(event.thinking for event in events if event.type == "thinking")
    start = next(event for event in events if event.type == "message_start")
    assert (start.message.usage.input_tokens, start.message.usage.output_tokens) == (5, 0)


async def test_a_stream_awaited(async_client: Any) -> None:
    async with async_client.messages.stream(**ASKED) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        check(await stream.get_final_message())
    assert text == "23 × 47 = 1081"


def test_the_text_stream_has_no_thinking(client: Any) -> None:
    with client.messages.stream(**ASKED) as stream:
        assert "".join(stream.text_stream) == "23 × 47 = 1081"


def test_two_replies_have_two_ids(client: Any) -> None:
    assert client.messages.create(**ASKED).id != client.messages.create(**ASKED).id


SCENES = [
    Say("hi", thinking="plan"),
    Say(thinking="plan", tool_calls=(ToolCall("c1", "f", {"a": 1}), ToolCall("c2", "g", {}))),
    Say(refusal="no"),
    Say("cut", stop="length"),
    Say("uncounted", usage=Usage()),
]


@pytest.mark.parametrize("scene", SCENES)
def test_every_field_that_the_types_require_is_there(stage: OpenStage, scene: Say) -> None:
    types = {
        "message_start": "RawMessageStartEvent",
        "message_delta": "RawMessageDeltaEvent",
        "message_stop": "RawMessageStopEvent",
        "content_block_start": "RawContentBlockStartEvent",
        "content_block_delta": "RawContentBlockDeltaEvent",
        "content_block_stop": "RawContentBlockStopEvent",
    }
    with connect(stage(scene)) as client:
        for event in client.messages.create(**ASKED, stream=True):
            getattr(anthropic.types, types[event.type]).model_validate(event.to_dict())
        anthropic.types.Message.model_validate(client.messages.create(**ASKED).to_dict())


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_loop_with_its_thinking_is_accepted(client: Any, streamed: bool) -> None:
    history: list[Any] = [{"role": "user", "content": "The weather in Oslo?"}]

    def ask() -> Any:
        asked = {**ASKED, "messages": history, "tools": [WEATHER]}
        if not streamed:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    first = ask()
    call = first.content[-1]
    assert (first.stop_reason, call.type, call.name, call.input) == (
        "tool_use", "tool_use", "get_weather", {"city": "Oslo"},
    )  # fmt: skip
    history += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "12 °C"}]},
    ]
    second = ask()
    assert (second.stop_reason, second.content[-1].text) == ("end_turn", "get_weather says: 12 °C")
    history += [{"role": "assistant", "content": second.content}, *QUESTION]
    assert ask().content[-1].text == "23 × 47 = 1081"


def test_a_changed_thought_is_refused(client: Any) -> None:
    content = client.messages.create(**ASKED).to_dict()["content"]
    content[0]["thinking"] += " And more."
    with pytest.raises(anthropic.BadRequestError, match="in the latest assistant message cannot be modified"):
        client.messages.create(
            **{**ASKED, "messages": [*QUESTION, {"role": "assistant", "content": content}, *QUESTION]}
        )


def make_weather(results: list[str], *, fails: bool = False) -> Any:
    def get_weather(city: str) -> str:
        """The weather of a place.

        Args:
            city: The place.
        """
        results.append(city)
        if fails:
            raise ValueError("no weather today")
        return "12 °C"

    return anthropic.beta_tool(get_weather)


@pytest.mark.parametrize("choice", ["auto", "any"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_tool_runner_falls_back_from_threads_and_ends(
    opened: Stage, client: Any, streamed: bool, fails: bool, choice: str
) -> None:
    asked: list[str] = []
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-4-6",
        max_tokens=4000,
        messages=[{"role": "user", "content": "The weather in Oslo?"}],
        tools=[make_weather(asked, fails=fails)],
        tool_choice={"type": choice},
        thinking={"type": "disabled"},
        stream=streamed,
    )
    last = runner.until_done()
    assert asked == ["Oslo"]
    assert last.content[-1].text.startswith("get_weather failed" if fails else "get_weather says: 12 °C")
    assert [received.problem is None for received in opened.requests] == [False, True, True]


def test_a_tool_loop_of_many_steps_keeps_its_ids(stage: OpenStage) -> None:
    def play(request: ServedRequest) -> Scene:
        done = sum(isinstance(part, ToolResult) for message in request.prompt.messages for part in message.parts)
        return Say("done") if done == 4 else Say(tool_calls=(ToolCall(f"c{done}", "get_weather", {"city": "Oslo"}),))

    asked: list[str] = []
    with connect(stage(play)) as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL, max_tokens=4000, messages=QUESTION, tools=[make_weather(asked)]
        )
        messages = list(runner)
    assert (len(asked), messages[-1].content[-1].text) == (4, "done")
    assert len({message.id for message in messages}) == 5


# --- typed answers, counts, models ------------------------------------------------------------------------------------


class City(pydantic.BaseModel):
    name: str
    people: int


def test_a_typed_answer(client: Any) -> None:
    asked = [{"role": "user", "content": "Tell of Paris and its 7 people."}]
    parsed = client.messages.parse(**{**ASKED, "messages": asked}, output_format=City)
    assert parsed.parsed_output == City(name="Paris", people=7)


def test_counted_tokens(client: Any) -> None:
    assert client.messages.count_tokens(model=MODEL, messages=QUESTION).input_tokens == 5
    assert client.beta.messages.count_tokens(model=MODEL, messages=QUESTION).input_tokens == 5


def test_models(stage: OpenStage) -> None:
    names = [f"model-{number}" for number in range(5)]
    with connect(stage(models=names)) as client:
        assert [model.id for model in client.models.list(limit=2)] == names
        assert client.models.retrieve("model-3").id == "model-3"
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("model-9")


# --- errors -----------------------------------------------------------------------------------------------------------

ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "ContentTooLargeError",
    429: "RateLimitError",
    500: "InternalServerError",
    529: "OverloadedError",
}


@pytest.mark.parametrize(("status", "name"), ERRORS.items())
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_is_the_client_s_own(stage: OpenStage, status: int, name: str, streamed: bool) -> None:
    opened = stage(Fail(status=status, message="so it is"))
    with connect(opened) as client, pytest.raises(anthropic.APIStatusError, match="so it is") as caught:
        client.messages.create(**ASKED, stream=streamed)
    assert (type(caught.value).__name__, caught.value.status_code) == (name, status)
    assert caught.value.request_id == "stage-1"


def test_a_wrong_key_an_unknown_path_and_a_bad_request(stage: OpenStage) -> None:
    opened = stage(key="sk-right")
    with connect(opened, "sk-wrong") as client, pytest.raises(anthropic.AuthenticationError) as unknown:
        client.messages.create(**ASKED)
    assert unknown.value.response.headers["x-should-retry"] == "false", "Claude Code asks ten times without it"
    with connect(opened, "sk-right") as client:
        with pytest.raises(anthropic.NotFoundError) as missing:
            client.get("/v1/nothing", cast_to=object)
        with pytest.raises(anthropic.BadRequestError) as wrong:
            client.messages.create(**{**ASKED, "messages": []})
    for error in (missing.value, wrong.value):
        assert error.body["type"] == "error"
        assert error.request_id


def test_every_field_of_a_request_is_known() -> None:
    """A field that a newer client documents is missing here, and perhaps in the server half."""
    params = anthropic.types.beta.message_create_params.MessageCreateParamsNonStreaming
    known = {*MESSAGES_FIELDS, "model", "max_tokens", "messages", "tools", "thread"}
    assert set(get_type_hints(params)) <= known
