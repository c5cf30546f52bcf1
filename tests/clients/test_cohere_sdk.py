"""Cohere's own SDK against the stage, over real sockets: thinking apart, tool loops, units, models, errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec
import pytest

from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, ThoughtSealed, ToolCallDelta
from asides.values.model_info import ModelInfo, ThinkingInfo
from asides.values.parts import ToolCall
from asides.values.thinking import Seal
from asides_stage import Fail, OpenStage, Say, Stage

pytest.importorskip("cohere")

import cohere

MODEL = "command-a-reasoning-08-2025"
Wire = dict[str, Any]
Asking = Callable[..., Wire]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        },
    }
]


def find_host(stage: Stage) -> str:
    return stage.url.removesuffix("/v1")


def connect(stage: Stage) -> cohere.ClientV2:
    """Make a client; used as a context, it closes its connections."""
    return cohere.ClientV2("any", base_url=find_host(stage), log_warning_experimental_features=False)


def dump(value: Any) -> Wire:
    fields: Wire = value.model_dump(exclude_none=True)
    return fields


def chat(stage: Stage, messages: list[Any], **options: Any) -> Wire:
    with connect(stage) as client:
        return dump(client.chat(model=MODEL, messages=messages, **options))


def chat_streamed(stage: Stage, messages: list[Any], **options: Any) -> Wire:
    with connect(stage) as client:
        return join(client.chat_stream(model=MODEL, messages=messages, **options))


def chat_awaited(stage: Stage, messages: list[Any], **options: Any) -> Wire:
    async def run() -> Wire:
        async with cohere.AsyncClientV2("any", base_url=find_host(stage)) as client:
            return dump(await client.chat(model=MODEL, messages=messages, **options))

    return asyncio.run(run())


def chat_awaited_streamed(stage: Stage, messages: list[Any], **options: Any) -> Wire:
    async def run() -> Wire:
        async with cohere.AsyncClientV2("any", base_url=find_host(stage)) as client:
            stream: AsyncIterator[Any] = client.chat_stream(model=MODEL, messages=messages, **options)
            return join([event async for event in stream])

    return asyncio.run(run())


WAYS = [chat, chat_streamed, chat_awaited, chat_awaited_streamed]


def join(events: Iterable[Any]) -> Wire:
    """The response that a stream amounts to. Fails if an item begins before the last one has ended."""
    found: Wire = {"message": {"role": "assistant"}}
    message = found["message"]
    is_open = False
    for event in events:
        delta: Wire = dump(event).get("delta") or {}
        inner = delta.get("message") or {}
        match event.type:
            case "message-start":
                found["id"] = event.id
            case "content-start":
                assert not is_open
                is_open = True
                assert event.index == len(message.setdefault("content", []))
                message["content"].append(inner["content"])
            case "content-delta":
                assert is_open
                for name, text in inner["content"].items():
                    message["content"][event.index][name] += text
            case "content-end":
                assert is_open
                is_open = False
            case "tool-plan-delta":
                message["tool_plan"] = message.get("tool_plan", "") + inner["tool_plan"]
            case "tool-call-start":
                message.setdefault("tool_calls", []).append(inner["tool_calls"])
            case "tool-call-delta":
                function = message["tool_calls"][event.index]["function"]
                function["arguments"] += inner["tool_calls"]["function"]["arguments"]
            case "tool-call-end":
                pass
            case "message-end":
                found |= delta
            case other:
                pytest.fail(f"an event of an unknown kind: {other}")
    assert not is_open
    return found


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("way", WAYS)
def test_thinking_is_apart_from_the_answer(stage: OpenStage, way: Asking) -> None:
    opened = stage(Say(thinking="Six times seven, by steps.", text="It is forty-two.", piece=5))
    found = way(opened, [user("What is 6 * 7?")], thinking={"type": "enabled", "token_budget": 500})
    assert found["message"]["content"] == [
        {"type": "thinking", "thinking": "Six times seven, by steps."},
        {"type": "text", "text": "It is forty-two."},
    ]
    assert found["finish_reason"] == "COMPLETE"
    assert found["usage"]["billed_units"] == {"input_tokens": 5, "output_tokens": 8}
    assert (found["usage"]["tokens"]["input_tokens"], found["usage"]["tokens"]["output_tokens"]) == (5, 8)


def test_every_reply_has_an_id_of_its_own(stage: OpenStage) -> None:
    opened = stage(Say(text="fine"))
    assert len({"", *(way(opened, [user("?")])["id"] for way in (chat, chat, chat_streamed, chat_streamed))}) == 5


def planned(plan: str, *calls: ToolCall) -> tuple[Event, ...]:
    deltas = [
        ToolCallDelta(number, call.id, call.name, msgspec.json.encode(call.arguments).decode())
        for number, call in enumerate(calls)
    ]
    sealed = ThoughtSealed(Seal("tool_plan", "", None, f'"{plan}"'), 0)
    return (ReplyStarted(MODEL), *deltas, sealed, ReplyEnded(StopReason("tool_calls")))


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_loop_with_its_plan_is_accepted(stage: OpenStage, way: Asking) -> None:
    calls = (ToolCall("a", "look", {"at": "sky"}), ToolCall("b", "look", {"at": "sea"}))
    opened = stage(
        Say(events=planned("I will look.", *calls)),
        Say(thinking="One more.", tool_calls=(ToolCall("c", "look", {"at": "land"}),)),
        Say(thinking="All fine.", text="All is fine."),
        Say(text="You are welcome."),
    )
    messages: list[Any] = [user("Look around.")]
    found: Wire = {}
    for expected in (2, 1, 0):
        found = way(opened, messages, tools=TOOLS)
        made = found["message"].get("tool_calls", [])
        assert (found["finish_reason"], len(made)) == ("TOOL_CALL" if expected else "COMPLETE", expected)
        messages.append(found["message"])
        for call in made:
            document = {"type": "document", "document": {"data": {"result": "fine"}}}
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": [document]})
    assert messages[1]["tool_plan"] == "I will look."
    assert [call["function"]["arguments"] for call in messages[1]["tool_calls"]] == ['{"at":"sky"}', '{"at":"sea"}']
    assert found["message"]["content"][-1] == {"type": "text", "text": "All is fine."}
    answer = way(opened, [*messages, user("Thank you.")], tools=TOOLS)
    assert answer["message"]["content"] == [{"type": "text", "text": "You are welcome."}]
    assert [received.problem for received in opened.requests] == [None] * 4


# --- models, tokens, errors -------------------------------------------------------------------------------------------


def test_models_are_listed_without_a_query_and_shown_one_by_one(stage: OpenStage) -> None:
    models = (ModelInfo(MODEL, None, None, 256_000, None, ThinkingInfo(True)), "command-r7b")
    with connect(stage(models=models)) as client:
        for listed in (
            client.models.list(),
            client.models.list(endpoint="chat"),
            client.models.list(default_only=True),
        ):
            assert [model.name for model in listed.models] == [MODEL, "command-r7b"]
        assert [model.name for model in client.models.list(page_size=1).models] == [MODEL]
        model = client.models.get(MODEL)
        assert (model.name, model.context_length, model.features) == (MODEL, 256_000, ["reasoning"])
        with pytest.raises(cohere.NotFoundError):
            client.models.get("absent")


def test_a_text_is_cut_into_tokens(stage: OpenStage) -> None:
    with connect(stage()) as client:
        tokens = client.tokenize(text="one two three", model=MODEL, offline=False)
    assert tokens.token_strings == ["one", " two", " three"]
    assert len(set(tokens.tokens)) == 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, cohere.BadRequestError),
        (401, cohere.UnauthorizedError),
        (404, cohere.NotFoundError),
        (429, cohere.TooManyRequestsError),
        (500, cohere.InternalServerError),
        (503, cohere.ServiceUnavailableError),
    ],
)
def test_an_error_is_the_exception_of_its_status(
    stage: OpenStage, way: Asking, status: int, error: type[Exception]
) -> None:
    opened = stage(Fail(status=status, message="not today"))
    with pytest.raises(error) as caught:
        way(opened, [user("?")], request_options={"max_retries": 0})
    body: Any = caught.value.body  # type: ignore[attr-defined]
    assert body["message"] == "not today"


def test_a_call_without_its_result_is_refused_as_the_real_servers_do(stage: OpenStage) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [user("Look."), {"role": "assistant", "tool_calls": [call]}, user("Well?")]
    with pytest.raises(cohere.BadRequestError, match="all tool calls must have tool results"):
        chat(stage(Say(text="42")), messages, tools=TOOLS)
