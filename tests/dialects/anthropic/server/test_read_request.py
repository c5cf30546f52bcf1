"""Read requests as clients of Messages write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.dialects.anthropic.encode import encode
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

DIALECT = find_dialect("anthropic")


def body(**fields: Any) -> bytes:
    asked = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps(asked | fields).encode()


def test_an_encoded_request_reads_back() -> None:
    target = find_target("anthropic:claude-opus-4-6", environ={})
    prompt = Prompt(
        (
            Message("system", (Text("Be brief."), Text("Long.", cache=True))),
            user("look", Image(url="https://x/y.png"), File("a.txt", b"x", media_type="text/plain")),
            assistant(
                Thought("plan", "summary", "block", None, (Seal("signature", "s=="),), "thinking"),
                Thought("", "hidden", "block", None, (Seal("redacted", "cipher"),)),
                Text("I look.", (Seal("citations", "", None, '[{"type":"char_location"}]'),)),
                ToolCall("t1", "look_up", {"n": 1}, None, (Seal("caller", "", None, '{"type":"code_execution"}'),)),
            ),
            Message("tool", (ToolResult("t1", (Text("42"), Image(data=b"p")), is_error=True, cache=True),)),
            user("and?"),
        ),
        thinking=Thinking(budget=2000, effort="high", show="none"),
        tools=(Tool("look_up", "Look.", {"type": "object"}, strict=True),),
        tool_choice="required",
        parallel_tool_calls=False,
        output=OutputSchema("answer", {"type": "object"}),
        max_tokens=4000,
        sampling=Sampling(top_p=0.97),
        stop=("END",),
        user="u1",
        extra={"service_tier": "auto"},
    )
    served = DIALECT.read(encode(prompt, target)[0].body)
    assert served.prompt == prompt
    assert (served.model, served.stream) == ("claude-opus-4-6", True)


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, Thinking()),
        ({"thinking": {"type": "disabled"}}, Thinking(mode="off")),
        ({"thinking": {"type": "adaptive"}}, Thinking(mode="auto")),
        ({"thinking": {"type": "between_tools"}}, Thinking(mode="between_tools")),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, Thinking(effort="low")),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, Thinking(budget=2000)),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, Thinking(mode="auto", show="none")),
        ({"output_config": {"effort": "max"}}, Thinking(effort="max")),
    ],
)
def test_every_setting_for_thinking_is_understood(fields: dict[str, Any], thinking: Thinking) -> None:
    assert DIALECT.read(body(**fields)).prompt.thinking == thinking


def test_tools_of_the_provider_stay_in_the_list() -> None:
    tools = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "mine", "input_schema": {"type": "object"}},
    ]
    prompt = DIALECT.read(body(tools=tools)).prompt
    assert [tool.name for tool in prompt.tools] == ["mine"]
    assert prompt.extra["tools"] == tools


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "owl", "content": "hu"}]}, "messages.0: the role 'owl'"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "fax"}}]}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "text: Field required"),
        ({"messages": [{"role": "user", "content": 7}]}, "text or a list"),
        ({"tools": [{"description": "nameless"}]}, "tools"),
        ({"max_tokens": "many"}, "max_tokens"),
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        DIALECT.read(body(**fields))
    with pytest.raises(ConfigError):
        DIALECT.read(b"nonsense")
