"""The server half: requests as clients write them, replies as servers do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.dialects.anthropic.encode import encode
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.events import (
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from asides.values.messages import (
    File,
    Image,
    Message,
    OutputSchema,
    Prompt,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

DIALECT = find_dialect("anthropic")


def body(**fields: Any) -> bytes:
    asked = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps(asked | fields).encode()


def test_what_is_encoded_reads_back() -> None:
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
def test_every_way_to_ask_is_one_wish(fields: dict[str, Any], thinking: Thinking) -> None:
    assert DIALECT.read(body(**fields)).prompt.thinking == thinking


def test_the_providers_own_tools_stay_in_the_list() -> None:
    tools = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "mine", "input_schema": {"type": "object"}},
    ]
    prompt = DIALECT.read(body(tools=tools)).prompt
    assert [tool.name for tool in prompt.tools] == ["mine"]
    assert prompt.extra["tools"] == tools


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "owl", "content": "hu"}]}, "messages.0: the role 'owl'"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "fax"}}]}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "text: Field required"),
        ({"messages": [{"role": "user", "content": 7}]}, "text or a list"),
        ({"thinking": {"type": "deep"}}, "deep"),
        ({"tool_choice": {"type": "maybe"}}, "maybe"),
        ({"tools": [{"description": "nameless"}]}, "tools"),
        ({"max_tokens": "many"}, "max_tokens"),
    ],
)
def test_nonsense_is_told_to_whoever_sent_it(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        DIALECT.read(body(**fields))
    with pytest.raises(ConfigError):
        DIALECT.read(b"nonsense")


def test_a_stream_is_what_clients_of_the_maker_expect() -> None:
    writer = DIALECT.writer(model="claude-opus-4-6", stream=True)
    events: list[Event] = [
        ReplyStarted(None, "msg_1"),
        ThinkingDelta("plan", 7),
        TextDelta("I ", 9),
        TextDelta("look.", 9),
        ToolCallDelta(12, "t1", "look_up"),
        ReplyEnded(StopReason("tool_calls", "tool_calls")),
    ]
    lines = b"".join(writer.write([event]) for event in events).decode().split("\n\n")
    told = [(line.partition("\n")[0], json.loads(line.partition("data: ")[2])) for line in lines if line]
    assert [name.removeprefix("event: ") for name, _ in told] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]
    assert all(name == f"event: {document['type']}" for name, document in told)
    assert [document["index"] for _, document in told if "index" in document] == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert told[0][1]["message"]["role"] == "assistant"
    assert told[-2][1]["delta"]["stop_reason"] == "tool_use"


def test_a_refusal_of_another_dialect_is_told_in_the_details() -> None:
    writer = DIALECT.writer(model="m", stream=False)
    told = json.loads(writer.write([ReplyStarted(), RefusalDelta("No."), ReplyEnded(StopReason("stop", "stop"))]))
    assert (told["stop_reason"], told["stop_details"]["explanation"], told["content"]) == ("refusal", "No.", [])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (529, "overloaded_error"),
        (502, "api_error"),
    ],
)
def test_errors(status: int, kind: str) -> None:
    assert json.loads(DIALECT.write_error(status, "no")) == {"type": "error", "error": {"type": kind, "message": "no"}}
