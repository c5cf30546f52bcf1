"""The ten scenarios of the Open Responses compliance suite, over real sockets, before providers of every dialect.

The requests, the required fields and the events follow the schema and the tests of openresponses/openresponses (read
2026-11-19); they are written here as the types below. Where its versions differ, the stricter one counts.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Generator
from typing import Any, Literal, TypeAlias

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.options import Options
from asides.values.parts import ToolCall, ToolResult
from asides_gateway.embedded import Gateway
from asides_stage import Say, Stage
from tests.gateway.http_client import ask, gateway_before

# --- the schema -------------------------------------------------------------------------------------------------------

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class _Tagged(msgspec.Struct, tag_field="type"):
    """A type that is known by its field `type`."""


class UrlCitation(_Tagged, tag="url_citation"):
    url: str
    start_index: int
    end_index: int
    title: str


class OutputText(_Tagged, tag="output_text"):
    text: str
    annotations: list[UrlCitation]
    logprobs: list[Any]


class Refusal(_Tagged, tag="refusal"):
    refusal: str


class SummaryText(_Tagged, tag="summary_text"):
    text: str


class ReasoningText(_Tagged, tag="reasoning_text"):
    text: str


Content: TypeAlias = OutputText | Refusal | SummaryText | ReasoningText


class Message(_Tagged, tag="message"):
    id: str
    status: Status
    role: Literal["assistant", "user", "system", "developer"]
    content: list[Content]


class FunctionCall(_Tagged, tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status


class Reasoning(_Tagged, tag="reasoning"):
    id: str
    summary: list[Content]
    content: list[Content] = []
    encrypted_content: str | msgspec.UnsetType = msgspec.UNSET


Item: TypeAlias = Message | FunctionCall | Reasoning


class FunctionTool(_Tagged, tag="function"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class PlainFormat(_Tagged, tag="text"):
    pass


class JsonFormat(_Tagged, tag="json_object"):
    pass


class SchemaFormat(_Tagged, tag="json_schema"):
    name: str
    strict: bool


class TextField(msgspec.Struct):
    format: PlainFormat | JsonFormat | SchemaFormat
    verbosity: Literal["low", "medium", "high"] | msgspec.UnsetType = msgspec.UNSET


class ReasoningField(msgspec.Struct):
    effort: Effort | None
    summary: Literal["concise", "detailed", "auto"] | None


class Cached(msgspec.Struct):
    cached_tokens: int


class Thought(msgspec.Struct):
    reasoning_tokens: int


class Usage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: Cached
    output_tokens_details: Thought


class Problem(msgspec.Struct):
    code: str
    message: str


class Response(msgspec.Struct):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: str
    incomplete_details: dict[str, str] | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: Problem | None
    tools: list[FunctionTool]
    tool_choice: str | dict[str, Any]
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: TextField
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: ReasoningField | None
    user: str | None
    usage: Usage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None


class _Event(_Tagged):
    sequence_number: int


class _OfResponse(_Event):
    response: Response


class Created(_OfResponse, tag="response.created"):
    pass


class Queued(_OfResponse, tag="response.queued"):
    pass


class InProgress(_OfResponse, tag="response.in_progress"):
    pass


class Completed(_OfResponse, tag="response.completed"):
    pass


class Failed(_OfResponse, tag="response.failed"):
    pass


class Incomplete(_OfResponse, tag="response.incomplete"):
    pass


class ItemAdded(_Event, tag="response.output_item.added"):
    output_index: int
    item: Item | None


class ItemDone(_Event, tag="response.output_item.done"):
    output_index: int
    item: Item | None


class _InItem(_Event):
    item_id: str
    output_index: int


class PartAdded(_InItem, tag="response.content_part.added"):
    content_index: int
    part: Content


class PartDone(_InItem, tag="response.content_part.done"):
    content_index: int
    part: Content


class TextDelta(_InItem, tag="response.output_text.delta"):
    content_index: int
    delta: str
    logprobs: list[Any]


class TextDone(_InItem, tag="response.output_text.done"):
    content_index: int
    text: str
    logprobs: list[Any]


class RefusalDelta(_InItem, tag="response.refusal.delta"):
    content_index: int
    delta: str


class RefusalDone(_InItem, tag="response.refusal.done"):
    content_index: int
    refusal: str


class ArgumentsDelta(_InItem, tag="response.function_call_arguments.delta"):
    delta: str


class ArgumentsDone(_InItem, tag="response.function_call_arguments.done"):
    arguments: str


class ReasoningDelta(_InItem, tag="response.reasoning_text.delta"):
    content_index: int
    delta: str


class ReasoningDone(_InItem, tag="response.reasoning_text.done"):
    content_index: int
    text: str


class SummaryPartAdded(_InItem, tag="response.reasoning_summary_part.added"):
    summary_index: int
    part: Content


class SummaryPartDone(_InItem, tag="response.reasoning_summary_part.done"):
    summary_index: int
    part: Content


class SummaryDelta(_InItem, tag="response.reasoning_summary_text.delta"):
    summary_index: int
    delta: str


class SummaryDone(_InItem, tag="response.reasoning_summary_text.done"):
    summary_index: int
    text: str


Event: TypeAlias = (
    Created | Queued | InProgress | Completed | Failed | Incomplete | ItemAdded | ItemDone | PartAdded | PartDone
    | TextDelta | TextDone | RefusalDelta | RefusalDone | ArgumentsDelta | ArgumentsDone | ReasoningDelta
    | ReasoningDone | SummaryPartAdded | SummaryPartDone | SummaryDelta | SummaryDone
)  # fmt: skip

# --- a gateway before a model that calls a tool if it has one ---------------------------------------------------------

# One host of each dialect, with the client's dialect and without.
MODELS = (
    "openai:gpt-5",
    "anthropic:claude-sonnet-4-5",
    "gemini:gemini-2.5-pro",
    "deepseek:deepseek-v4-pro",
    "ollama:qwen3",
    "cohere:command-a-reasoning-08-2025",
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
)
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
_HEART = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="  # one red pixel
)
_PDF = b64encode(b"%PDF-1.1\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF").decode()


def _play(request: ServedRequest) -> Say:
    parts = [part for message in request.prompt.messages for part in message.parts]
    if request.prompt.tools and not any(isinstance(part, ToolResult) for part in parts):
        return Say(thinking="I look it up", tool_calls=(ToolCall("call_1", "get_weather", {"place": "Paris"}),))
    return Say(thinking="a greeting", text="Hello to you")


@pytest.fixture(scope="module")
def gateway() -> Generator[Gateway, None, None]:
    with Stage(_play, rules="lenient") as stage, gateway_before(stage, options=_ACCOUNT) as opened:
        yield opened


_ACCOUNT = Options(retries=0)


def _request(gateway: Gateway, model: str, given: Any, **more: Any) -> Response:
    """A whole response, valid by the schema."""
    answer = ask(gateway, "POST", "/v1/responses", {"model": model, "input": given, "stream": False, **more})
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body, type=Response)


def _stream(gateway: Gateway, model: str, given: Any, **more: Any) -> list[Event]:
    """The events of a stream, each valid by the schema. Clients of the suite read them line by line."""
    answer = ask(gateway, "POST", "/v1/responses", {"model": model, "input": given, "stream": True, **more})
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream"), answer.body
    data = [line[5:].strip() for line in answer.body.decode().split("\n") if line.startswith("data:")]
    events = [msgspec.json.decode(each, type=Event) for each in data if each != "[DONE]"]
    names = [line[6:].strip() for line in answer.body.decode().split("\n") if line.startswith("event:")]
    assert names == [json.loads(each)["type"] for each in data]
    assert [event.sequence_number for event in events] == [*range(len(events))]
    return events


def _user(content: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": content}


def _check_answer(response: Response) -> None:
    assert response.status == "completed"
    assert any(isinstance(item, Message) for item in response.output), response.output


def _find_calls(response: Response) -> list[FunctionCall]:
    return [item for item in response.output if isinstance(item, FunctionCall)]


# --- the ten scenarios ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
class TestScenarios:
    def test_01_a_text(self, gateway: Gateway, model: str) -> None:
        _check_answer(_request(gateway, model, [_user("Say hello in three words.")]))

    def test_02_a_stream(self, gateway: Gateway, model: str) -> None:
        events = _stream(gateway, model, [_user("Count to five.")])
        last = events[-1]
        assert isinstance(last, Completed)
        _check_answer(last.response)
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == "Hello to you"

    def test_03_a_system_message(self, gateway: Gateway, model: str) -> None:
        system = {"type": "message", "role": "system", "content": "Speak like a pirate."}
        _check_answer(_request(gateway, model, [system, _user("Say hello.")]))

    def test_04_a_tool_call(self, gateway: Gateway, model: str) -> None:
        response = _request(gateway, model, [_user("The weather in Paris?")], tools=[WEATHER])
        (call,) = _find_calls(response)
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"place": "Paris"})

    def test_05_a_tool_call_in_a_stream(self, gateway: Gateway, model: str) -> None:
        events = _stream(gateway, model, [_user("The weather in Paris?")], tools=[WEATHER])
        kinds = {type(event) for event in events}
        assert {ArgumentsDelta, ArgumentsDone} <= kinds
        for kind in (ItemAdded, ItemDone):
            items = [event.item for event in events if isinstance(event, kind)]
            assert any(isinstance(item, FunctionCall) for item in items)

    def test_06_a_round_trip_of_a_call(self, gateway: Gateway, model: str) -> None:
        choice = {"type": "function", "name": "get_weather"}
        first = _request(gateway, model, "The weather in Paris?", tools=[WEATHER], tool_choice=choice)
        (call,) = _find_calls(first)
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
        _check_answer(_request(gateway, model, [result], previous_response_id=first.id))

    def test_07_a_picture(self, gateway: Gateway, model: str) -> None:
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{_HEART}"}
        _check_answer(_request(gateway, model, [_user([{"type": "input_text", "text": "What is it?"}, picture])]))

    def test_08_a_file(self, gateway: Gateway, model: str) -> None:
        file = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{_PDF}"}
        content = [{"type": "input_text", "text": "Its title?"}, file]
        _check_answer(_request(gateway, model, [_user(content)]))

    def test_09_several_turns(self, gateway: Gateway, model: str) -> None:
        answer = {"type": "message", "role": "assistant", "content": "Hello Alice!"}
        _check_answer(_request(gateway, model, [_user("I am Alice."), answer, _user("Who am I?")]))

    def test_10_a_turn_after_a_stored_response(self, gateway: Gateway, model: str) -> None:
        first = _request(gateway, model, "The word is papaya.")
        second = _request(gateway, model, "What is the word?", previous_response_id=first.id)
        _check_answer(second)
        # The stage, as OpenAI, does not repeat it; its bytes pass through.
        assert second.previous_response_id == (None if model.startswith("openai:") else first.id)


def test_a_wrong_response_is_found() -> None:
    """The schema above is one: each required field counts, and so does each type."""
    with Stage(_play, rules="lenient") as stage, gateway_before(stage) as gateway:
        body = ask(gateway, "POST", "/v1/responses", {"model": MODELS[1], "input": "?"}).json
    msgspec.convert(body, Response)
    for name in Response.__struct_fields__:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({field: value for field, value in body.items() if field != name}, Response)
    for field in ("temperature", "top_p", "tools", "text"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({**body, field: None}, Response)
