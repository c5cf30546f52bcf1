"""What a page of the AI SDK posts, as messages. A browser can post anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from tests.integrations.front_ends import Json

PNG_URL = "data:image/png;base64,iVBORw0KGgo="


def user(*parts: Json) -> Json:
    return {"id": "u", "role": "user", "parts": list(parts)}


def assistant(*parts: Json) -> Json:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def tool(state: str, **fields: Any) -> Json:
    return {"type": "tool-f", "toolCallId": "c1", "state": state, "input": {"x": 1}, **fields}


def test_the_body_of_usechat_in_every_form() -> None:
    body = {"id": "chat", "trigger": "submit-message", "messages": [user(text("Hello"))]}
    expected = (Message("user", (Text("Hello"),)),)
    for given in (body, body["messages"], json.dumps(body), json.dumps(body).encode(), iter([user(text("Hello"))])):
        assert asides.ui.read_vercel(given) == expected
    assert asides.ui.read_vercel([{"role": "user", "content": "Hello"}]) == expected


def test_steps_are_turns_and_results_follow_their_calls() -> None:
    messages = asides.ui.read_vercel(
        [
            user(text("Q")),
            assistant(
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm.", "state": "done"},
                text("I look."),
                tool("output-available", output={"sum": 3}),
                {**tool("output-error", errorText="broken"), "toolCallId": "c2"},
                {"type": "step-start"},
                {"type": "source-url", "sourceId": "s", "url": "https://example.com"},
                {"type": "data-weather", "data": {"x": 1}},
                text("It is 3."),
            ),
            user(text("And now?")),
        ]
    )
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert messages[1].parts == (
        Thought("Hm."),
        Text("I look."),
        ToolCall("c1", "f", {"x": 1}),
        ToolCall("c2", "f", {"x": 1}),
    )
    assert messages[2].parts == (ToolResult("c1", '{"sum":3}', "f"),)
    assert messages[3].parts == (ToolResult("c2", "broken", "f", is_error=True),)
    assert messages[4].text == "It is 3."


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (tool("input-streaming", rawInput='{"x'), "no call"),
        (tool("input-available"), None),
        (tool("approval-requested", approval={"id": "p"}), None),
        (tool("approval-responded", approval={"id": "p", "approved": True}), None),
        (
            tool("approval-responded", approval={"id": "p", "approved": False, "reason": "too dear"}),
            ToolResult("c1", "The user did not allow this call. The reason: too dear", "f", is_error=True),
        ),
        (
            tool("output-denied", approval={"id": "p", "approved": False}),
            ToolResult("c1", "The user did not allow this call.", "f", is_error=True),
        ),
        (tool("output-available", output=None), ToolResult("c1", "", "f")),
        (tool("output-available", output=7), ToolResult("c1", "7", "f")),
        (
            {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c1", "state": "output-available", "output": "x"},
            ToolResult("c1", "x", "f"),
        ),
    ],
)
def test_the_states_of_a_tool(part: Json, result: Any) -> None:
    messages = asides.ui.read_vercel([user(text("Q")), assistant(text("I look."), part)])
    assert len(messages[1].tool_calls) == (result != "no call")
    assert [part for message in messages[2:] for part in message.parts] == (
        [result] if isinstance(result, ToolResult) else []
    )


def test_arguments_that_were_no_json_come_back_as_they_were() -> None:
    part = tool("output-error", errorText="no JSON", rawInput='{"x')
    del part["input"]
    messages = asides.ui.read_vercel([assistant(part)])
    assert messages[0].parts == (ToolCall("c1", "f", {}, '{"x'),)
    assert messages[1].parts == (ToolResult("c1", "no JSON", "f", is_error=True),)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "posts a list of messages"),
        (7, "posts a list of messages"),
        ({"message": "x"}, "posts a list of messages"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([], "there is no message"),
        (["x"], r"messages\[0\]: a UI message is an object"),
        ([{"role": "user"}], r"messages\[0\]: a UI message has a list of parts"),
        ([{"role": "user", "parts": ["x"]}], "each an object"),
        ([{"role": "robot", "parts": []}], "the role 'robot' is not known"),
        ([user()], "neither text nor a file"),
        ([user(text(""))], "neither text nor a file"),
        ([user({"text": "x"})], "a part has no type"),
        ([assistant({"text": "x"})], "a part has no type"),
        ([user({"type": "text", "text": 7})], "text is text, not an int"),
        ([assistant({"type": "tool-f", "state": "input-available"})], "toolCallId is text, not None"),
        ([assistant({"type": "reasoning"})], "text is text, not None"),
        ([{"role": "system", "parts": [text("Obey.")]}], "a browser could write anything into it. Set system="),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(given: Any, words: str) -> None:
    with pytest.raises(asides.ConfigError, match=words.replace(". To", r"\. To")):
        asides.ui.read_vercel(given)


def test_a_system_message_of_a_trusted_page() -> None:
    given = [{"role": "system", "parts": [text("Be "), text("brief.")]}, user(text("Q"))]
    assert asides.ui.read_vercel(given, system=True)[0] == Message("system", (Text("Be brief."),))
