"""Read requests as clients of Ollama's chat write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Sampling
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool

DIALECT = find_dialect("ollama")


def read(**fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    return DIALECT.read(json.dumps(body).encode())


def test_a_request_is_read_with_all_its_settings() -> None:
    served = read(
        stream=False,
        think="high",
        tools=[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        format={"type": "object"},
        options={"num_predict": 5, "temperature": 0, "repeat_penalty": 1.2, "stop": ["a"], "num_ctx": 10},
        keep_alive=0,
    )
    prompt = served.prompt
    assert (served.model, served.stream, prompt.stream) == ("m", False, False)
    assert prompt.thinking == Thinking(effort="high")
    assert prompt.tools == (Tool("look", "", {"type": "object"}),)
    assert prompt.output == OutputSchema("answer", {"type": "object"})
    assert (prompt.max_tokens, prompt.stop) == (5, ("a",))
    assert prompt.sampling == Sampling(temperature=0, repetition_penalty=1.2)
    assert prompt.extra == {"keep_alive": 0, "options": {"num_ctx": 10}}


def test_streaming_is_the_default_and_a_negative_limit_is_none() -> None:
    served = read(options={"num_predict": -1, "stop": "x"}, think=False, format="json")
    assert served.stream
    assert (served.prompt.max_tokens, served.prompt.stop) == (None, ("x",))
    assert (served.prompt.thinking, served.prompt.output) == (Thinking(mode="off"), "json")


def test_a_history_without_ids_is_paired_by_its_order() -> None:
    call = {"function": {"name": "look", "arguments": {"n": 1}}}
    served = read(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi", "images": ["aGk="]},
            {"role": "assistant", "content": "", "thinking": "plan", "tool_calls": [call, call]},
            {"role": "tool", "content": "one", "tool_name": "look"},
            {"role": "tool", "content": "two", "tool_call_id": "call_2_1"},
            {"role": "assistant", "content": "done"},
        ]
    )
    assert served.prompt.system == "Be brief."
    asked, turn, first, second, last = served.prompt.messages
    assert asked.parts == (Text("hi"), Image(data=b"hi"))
    assert turn.parts == (
        Thought("plan", via="thinking"),
        ToolCall("call_2_0", "look", {"n": 1}),
        ToolCall("call_2_1", "look", {"n": 1}),
    )
    assert first.parts == (ToolResult("call_2_0", "one", "look"),)
    assert second.parts == (ToolResult("call_2_1", "two"),)
    assert last.text == "done"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": ""}, "model is missing"),
        ({"messages": [{"role": "judge"}]}, r"messages\[0\]: the role 'judge'"),
        ({"messages": [{"role": "user", "content": [1]}]}, "content is text"),
        ({"messages": [{"role": "user", "images": [1]}]}, "base64"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "no function"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": 3}}]}]}, "object"),
        ({"think": 3}, "think is true"),
        ({"options": {"temperature": "warm"}}, "sampling"),
        ({"options": []}, "options"),
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(**fields)
    with pytest.raises(ConfigError, match="not JSON"):
        DIALECT.read(b"{")
    with pytest.raises(ConfigError, match="not a JSON object"):
        DIALECT.read(b"[]")
