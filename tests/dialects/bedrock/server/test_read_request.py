"""Read requests as clients of Converse write them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

DIALECT = find_dialect("bedrock")
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
PATH = "/v1/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"


def read(path: str = PATH, **fields: Any) -> Any:
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], **fields}
    return DIALECT.read(json.dumps(body).encode(), path)


def test_the_path_says_which_model_and_how_to_answer() -> None:
    assert (read().model, read().stream) == (MODEL, False)
    assert read(f"{PATH}-stream?x=1").stream
    with pytest.raises(ConfigError, match="the path names no model"):
        read("/v1/chat")


def test_our_requests_are_read_back_unchanged() -> None:
    prompt = Prompt(
        (
            Message("user", (Text("hi", cache=True), Image(data=b"hi"), File("report", b"%PDF"))),
            assistant(
                Thought("plan", source="block", via="reasoningContent", seals=(Seal("signature", "c2ln"),)),
                Thought("", "hidden", "block", seals=(Seal("redacted", "UkVE"),)),
                Text("Well.", (Seal("citations", "", None, '[{"title":"a"}]'),)),
                ToolCall("t1", "look", {"n": 1}),
            ),
            Message("tool", (ToolResult("t1", "42", is_error=True),)),
        ),
        system="Be brief.",
        thinking=Thinking(budget=2000),
        tools=(Tool("look", "Look.", {"type": "object"}),),
        tool_choice="auto",
        output=OutputSchema("answer", {"type": "object"}),
        max_tokens=4000,
        sampling=Sampling(top_p=0.99, top_k=3),
        stop=("END",),
        stream=False,
        metadata={"team": "a"},
        extra={"guardrailConfig": {"guardrailIdentifier": "g"}},
    )
    request, _ = DIALECT.encode(prompt, find_target(f"bedrock:{MODEL}", environ={"AWS_REGION": "us-east-1"}))
    served = DIALECT.read(request.body, request.url)
    # The encoder also asked for thinking between calls, by a beta of the model's own.
    beta = {"anthropic_beta": ["interleaved-thinking-2025-05-14"]}
    expected = msgspec.structs.replace(prompt, extra={**prompt.extra, "additionalModelRequestFields": beta})
    assert served.prompt == expected


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, Thinking(mode="auto", effort="high")),
        ({"reasoning_effort": "low"}, Thinking(effort="low")),
        ({"reasoning_config": "high"}, Thinking(effort="high")),
        ({"reasoning": {"effort": "low"}}, Thinking(effort="low")),
        ({"reasoningConfig": {"type": "disabled"}}, Thinking(mode="off")),
        ({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}, Thinking(effort="low")),
    ],
)
def test_every_familys_settings_for_thinking_are_understood(fields: dict[str, Any], thinking: Thinking) -> None:
    prompt = read(additionalModelRequestFields={**fields, "news": 1}).prompt
    assert prompt.thinking == thinking
    assert prompt.extra == {"additionalModelRequestFields": {"news": 1}}


def test_the_effort_that_all_models_have_in_common_is_understood() -> None:
    assert read(outputConfig={"effort": "high"}).prompt.thinking == Thinking(effort="high")
    native = {"thinking": {"type": "adaptive"}}
    prompt = read(outputConfig={"effort": "low", "news": 1}, additionalModelRequestFields=native).prompt
    assert (prompt.thinking, prompt.extra) == (Thinking(mode="auto", effort="low"), {"outputConfig": {"news": 1}})


def test_unknown_fields_tools_and_blocks_stay_as_they_are() -> None:
    system_tool = {"systemTool": {"name": "run"}}
    own = {"toolUse": {"toolUseId": "t", "name": "run", "input": {}, "type": "server_tool_use"}}
    served = read(
        toolConfig={"tools": [{"toolSpec": {"name": "look"}}, system_tool], "toolChoice": {"tool": {"name": "look"}}},
        messages=[
            {"role": "user", "content": [{"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a"}}}}]},
            {"role": "assistant", "content": [own, {"hologram": 1}]},
            {
                "role": "user",
                "content": [{"guardContent": 1}, {"document": {"format": "txt", "source": {"bytes": "eA=="}}}],
            },
        ],
        outputConfig={"news": 1},
    )
    prompt = served.prompt
    assert (prompt.tools[0].name, prompt.tool_choice) == ("look", "look")
    # The whole list stays: a merged `toolSpec` beside a tool of the provider would be lost.
    tools = [{"toolSpec": {"name": "look"}}, system_tool]
    assert prompt.extra == {"toolConfig": {"tools": tools}, "outputConfig": {"news": 1}}
    first, second, third = prompt.messages
    assert first.parts == (Image(url="s3://b/a", media_type="image/png"),)
    assert isinstance(second.parts[0], ServerTool)
    assert isinstance(second.parts[1], UnknownPart)
    assert third.parts[1] == File("file", b"x", media_type="text/plain")


def test_results_are_text_json_and_pictures() -> None:
    content: list[Any] = [{"text": "a"}, {"json": {"b": 1}}]
    result = {"toolResult": {"toolUseId": "t", "content": content, "status": "success"}}
    assert read(messages=[{"role": "user", "content": [result]}]).prompt.messages[0] == Message(
        "tool", (ToolResult("t", (Text("a"), Text('{"b":1}'))),)
    )
    content.append({"image": {"format": "png", "source": {"bytes": "aGk="}}})
    message = read(messages=[{"role": "user", "content": [result, {"text": "?"}]}]).prompt.messages[0]
    assert message == Message("user", (ToolResult("t", (Text("a"), Text('{"b":1}'), Image(data=b"hi"))), Text("?")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"messages": []}, "messages is missing"),
        ({"messages": [{"role": "robot", "content": []}]}, r"messages\[0\]: the role 'robot'"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "content is a list"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "content is a list"),
        ({"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "a"}}]}]}, "object"),
        ({"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [3]}}]}]}, "blocks"),
        (
            {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"a": 1}]}}]}]},
            "text",
        ),
        ({"inferenceConfig": {"maxTokens": "many"}}, "inferenceConfig.maxTokens"),
        ({"outputConfig": {"textFormat": {"structure": {"jsonSchema": {"schema": "{"}}}}}, "not JSON"),
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(**fields)
