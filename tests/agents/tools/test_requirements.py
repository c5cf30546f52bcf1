"""Tools: what the model sees of a function, what it is told of its calls, and which result belongs to which call."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.agents.tools.executor import Raised, Returned, Runnable
from asides.agents.tools.function_tool import build_toolset, tool
from asides.agents.tools.results import build_result, deny_call, reject_unknown_tool
from asides.values.messages import Message, user
from asides.values.parts import Image, Text, ToolCall, ToolResult

PICTURE = Image(data=b"\x89PNG", media_type="image/png")
PIXELS = "iVBORw=="


@tool
def get_weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather to come.

    Args:
        city: Where.
        days: How far ahead.
    """
    if city == "Atlantis":
        raise LookupError("no such city; the key sk-live-1234567890 was tried")
    return {"city": city, "days": days}


@tool
def look(at: str) -> list[Any]:
    """Take a picture."""
    return [f"This is {at}:", PICTURE]


def run(call: ToolCall) -> ToolResult:
    """Run a call the way an agent does, with all that can become of it."""
    offered = build_toolset([get_weather, look])
    if call.name not in offered:
        return reject_unknown_tool(call, offered)
    runnable = offered[call.name].runnable
    assert isinstance(runnable, Runnable)
    try:
        return build_result(call, Returned(runnable.run(call)))
    except Exception as error:  # noqa: BLE001 - as the shells do
        return build_result(call, Raised(error))


def next_request(model: str, *calls: ToolCall) -> Any:
    """The body of the request that brings the results of these calls."""
    results = tuple(run(call) for call in calls)
    history = [user("?"), Message("assistant", calls), Message("tool", results)]
    return asides.explain(model, history, tools=[get_weather, look], base_url="https://example.org").body


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("1", "get_wether", {"city": "Ulm"}), "no tool named 'get_wether'. Did you mean get_weather?"),
        (ToolCall("1", "get_weather", {"city": "Atlantis"}), "LookupError: no such city; the key *** was tried"),
        (ToolCall("1", "get_weather", {"town": "Ulm"}), "city is missing"),
        (ToolCall("1", "get_weather", {"city": "Ulm", "days": "some"}), "days: Expected `int`, got `str`"),
        (ToolCall("1", "get_weather", {}, '{"city": '), "they are not JSON"),
    ],
)
@pytest.mark.requirement("FT-41")
def test_K2_a_call_that_fails_is_an_error_result_in_words_and_the_next_request_carries_it(
    call: ToolCall, words: str
) -> None:
    result = run(call)
    assert result.is_error
    assert words in result.text
    assert "Traceback" not in result.text
    sent = next_request("anthropic:claude-sonnet-4-5", call)["messages"][-1]["content"][0]
    assert (sent["type"], sent["is_error"]) == ("tool_result", True)
    assert words in json.dumps(sent, ensure_ascii=False).replace('\\"', '"')


def test_K3_calls_without_ids_get_different_ones_and_each_result_finds_its_call() -> None:
    same = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Ulm"}'}}
    other = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [same, same, other]}
    body = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    calls = asides.decode("openai_chat", json.dumps(body).encode()).tool_calls
    assert len({call.id for call in calls}) == 3
    assert all(call.id for call in calls)
    results = [run(call) for call in calls]
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert [json.loads(result.text)["city"] for result in results] == ["Ulm", "Ulm", "Bern"]
    sent = next_request("openai:gpt-4o", *calls)["messages"]
    assert [each["tool_call_id"] for each in sent[-3:]] == [call["id"] for call in sent[-4]["tool_calls"]]


def test_K3_a_result_that_names_another_call_gets_the_id_of_its_own() -> None:
    result = build_result(ToolCall("call_9", "look"), Returned(ToolResult("call_1", "x")))
    assert result == ToolResult("call_9", "x", "look")


@pytest.mark.requirement("FT-41")
def test_K8_a_denied_call_is_told_as_one_that_was_not_run() -> None:
    call = ToolCall("call_9", "get_weather", {"city": "Ulm"})
    result = deny_call(call, "ask me on Monday")
    assert (result.call_id, result.name, result.is_error) == ("call_9", "get_weather", True)
    assert result.text == ("The call of get_weather was not allowed: ask me on Monday. Go on without it.")


@pytest.mark.requirement("FT-41")
def test_K8_a_tool_says_itself_whether_it_may_be_run() -> None:
    @tool(approval="ask")
    def pay(amount: int) -> None: ...

    @tool(approval="deny")
    def erase() -> None: ...

    assert [each.approval for each in (pay, erase, get_weather)] == ["ask", "deny", None]


@pytest.mark.parametrize(
    ("model", "where"),
    [
        ("openai:gpt-4o", lambda tools: tools[0]["function"]["parameters"]),
        ("openai-responses:gpt-5", lambda tools: tools[0]["parameters"]),
        ("anthropic:claude-sonnet-4-5", lambda tools: tools[0]["input_schema"]),
        ("gemini:gemini-2.5-pro", lambda tools: tools[0]["functionDeclarations"][0]["parametersJsonSchema"]),
        ("ollama:qwen3", lambda tools: tools[0]["function"]["parameters"]),
    ],
)
def test_FT_41_a_typed_function_is_a_schema_with_its_words_for_every_model(model: str, where: Any) -> None:
    body = asides.explain(model, "?", tools=[get_weather], base_url="https://example.org").body
    assert where(body["tools"]) == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "description": "How far ahead.", "default": 1},
        },
        "required": ["city"],
    }
    assert "The weather to come." in json.dumps(body["tools"])


@pytest.mark.parametrize(
    "model",
    ["openai-responses:gpt-5", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-pro", "ollama:qwen3"],
)
def test_FT_53_a_picture_that_a_tool_gave_is_shown_to_the_model(model: str) -> None:
    call = ToolCall("call_1", "look", {"at": "the sea"})
    assert run(call).content == (Text("This is the sea:"), PICTURE)
    sent = json.dumps(next_request(model, call))
    assert PIXELS in sent
    assert "This is the sea:" in sent


def test_FT_53_where_tools_answer_in_text_alone_a_notice_says_what_was_not_shown() -> None:
    call = ToolCall("call_1", "look", {"at": "the sea"})
    history = [user("?"), Message("assistant", (call,)), Message("tool", (run(call),))]
    told = asides.explain("openai:gpt-4o", history)
    assert PIXELS not in json.dumps(told.body)
    assert "This is the sea:" in told.body["messages"][-1]["content"]
    assert [notice.code for notice in told.notices] == ["result_part_not_sent"]
