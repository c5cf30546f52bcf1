"""Read requests as clients of v2 chat write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.cohere.server.read_request import read
from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, user
from asides.values.parts import Image, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool


def served(**fields: Any) -> ServedRequest:
    return read(json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}], **fields}).encode())


def prompt(**fields: Any) -> Prompt:
    given: dict[str, Any] = {"messages": (user("?"),), "stream": False, **fields}
    return Prompt(**given)


LOOK = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, prompt()),
        ({"stream": True}, prompt(stream=True)),
        ({"thinking": {"type": "disabled"}}, prompt(thinking=Thinking(mode="off"))),
        ({"thinking": {"type": "enabled"}}, prompt(thinking=Thinking(mode="on"))),
        ({"thinking": {"type": "enabled", "token_budget": 500}}, prompt(thinking=Thinking(budget=500))),
        ({"thinking": {"novel": 1}}, prompt(extra={"thinking": {"novel": 1}})),
        ({"tools": [LOOK]}, prompt(tools=(Tool("look", "d", {"type": "object"}),))),
        (
            {"tools": [LOOK], "strict_tools": True, "tool_choice": "REQUIRED"},
            prompt(tools=(Tool("look", "d", {"type": "object"}, strict=True),), tool_choice="required"),
        ),
        ({"response_format": {"type": "text"}}, prompt()),
        ({"response_format": {"type": "json_object"}}, prompt(output="json")),
        (
            {"response_format": {"type": "json_object", "json_schema": {"type": "object"}}},
            prompt(output=OutputSchema("answer", {"type": "object"})),
        ),
        ({"response_format": {"type": "novel"}}, prompt(extra={"response_format": {"type": "novel"}})),
        (
            {"max_tokens": 5, "temperature": 0, "p": 0.5, "k": 3, "seed": 7, "stop_sequences": ["END"], "novel": 1},
            prompt(
                max_tokens=5,
                sampling=Sampling(temperature=0, top_p=0.5, top_k=3, seed=7),
                stop=("END",),
                extra={"novel": 1},
            ),
        ),
    ],
)
def test_each_field_is_a_setting_of_the_prompt(fields: dict[str, Any], expected: Prompt) -> None:
    assert served(**fields) == ServedRequest(expected, "m", expected.stream, include_usage=True)


def test_a_history_is_read_message_by_message() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "novel"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}]},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://a.example", "detail": "low"}}],
        },
        {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "document", "document": {"data": "one"}}]},
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": [{"type": "text", "text": "two"}, {"type": "document", "document": {"id": 3}}],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "42"}],
            "citations": [{"start": 0}],
        },
        {"role": "developer", "content": ""},
    ]
    request = served(messages=messages)
    assert request.prompt.system == "Be brief."
    assert request.prompt.messages == (
        user("?", UnknownPart('{"type":"novel"}')),
        user(Image(data=b"x")),
        user(Image(url="https://a.example", detail="low")),
        assistant(ToolCall("c1", "look", {"a": 1}, None, (Seal("tool_plan", "", None, '"I look."'),))),
        Message("tool", (ToolResult("c1", "one"),)),
        Message("tool", (ToolResult("c2", 'two\n{"id":3}'),)),
        assistant(
            Thought("so", source="block", via="content"), Text("42", (Seal("citations", "", None, '[{"start":0}]'),))
        ),
        Message("system"),
    )


def test_arguments_that_do_not_parse_stay_raw() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": "{a"}}
    request = served(messages=[{"role": "assistant", "tool_calls": [call]}])
    assert request.prompt.messages == (assistant(ToolCall("c1", "look", {}, "{a")),)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"messages": [{"role": "robot"}]}, "the role 'robot' is not known"),
        ({"messages": [{"role": "tool", "content": ""}]}, "tool_call_id is missing"),
        ({"messages": [{"role": "user", "content": 3}]}, "content is text or a list"),
        ({"messages": [{"role": "user", "content": [3]}]}, "a part of the content is an object"),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": [3]}]}, "text or documents"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "a tool call has an id"),
        ({"messages": []}, "messages"),
        ({"model": None}, "model"),
    ],
)
def test_a_wrong_request_is_refused_with_a_message_for_the_client(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        served(**fields)
