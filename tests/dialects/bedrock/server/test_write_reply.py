"""The server half of Converse: requests read, replies written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.messages import (
    File,
    Image,
    Message,
    OutputSchema,
    Prompt,
    Sampling,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
    assistant,
)
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides.wire.aws_frames import FrameReader
from tests.decoding import reply_of, target

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


def test_what_we_send_is_read_back_as_it_was() -> None:
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
    # Thinking between calls was asked for besides, by a beta, which is the model's own affair.
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
def test_every_familys_way_to_ask_is_understood(fields: dict[str, Any], thinking: Thinking) -> None:
    prompt = read(additionalModelRequestFields={**fields, "news": 1}).prompt
    assert prompt.thinking == thinking
    assert prompt.extra == {"additionalModelRequestFields": {"news": 1}}


def test_what_is_not_ours_stays_as_it_is() -> None:
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
    assert prompt.extra == {"toolConfig": {"tools": [system_tool]}, "outputConfig": {"news": 1}}
    first, second, third = prompt.messages
    assert first.parts == (Image(url="s3://b/a", media_type="image/png"),)
    assert isinstance(second.parts[0], ServerTool)
    assert isinstance(second.parts[1], UnknownPart)
    assert third.parts[1] == File("file", b"x", media_type="text/plain")


def test_results_are_text_json_and_pictures() -> None:
    content: list[Any] = [{"text": "a"}, {"json": {"b": 1}}]
    told = {"toolResult": {"toolUseId": "t", "content": content, "status": "success"}}
    assert read(messages=[{"role": "user", "content": [told]}]).prompt.messages[0] == Message(
        "tool", (ToolResult("t", 'a\n{"b":1}'),)
    )
    content.append({"image": {"format": "png", "source": {"bytes": "aGk="}}})
    message = read(messages=[{"role": "user", "content": [told, {"text": "?"}]}]).prompt.messages[0]
    assert message == Message("user", (ToolResult("t", (Text("a"), Text('{"b":1}'), Image(data=b"hi"))), Text("?")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"messages": []}, "messages is missing"),
        ({"messages": [{"role": "system", "content": []}]}, r"messages\[0\]: the role 'system'"),
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
def test_nonsense_is_refused_with_words_for_the_client(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(**fields)


EVENTS: list[Event] = [
    ReplyStarted(MODEL),
    ThinkingDelta("plan", 0, "raw", "block", "reasoningContent"),
    TextDelta("42", 2),
    ToolCallDelta(3, None, "look", '{"n":'),
    ToolCallDelta(3, arguments="1}"),
    ToolCallDelta(4, "t2", "look"),
    ToolCallDelta(4, arguments="{"),
    UsageReported(Usage(30, 5, None, 20, 35)),
    ReplyEnded(StopReason("tool_calls")),
]


def test_frames_have_the_names_of_their_events() -> None:
    writer = DIALECT.writer(model=MODEL, stream=True)
    body = b"".join(writer.write([event]) for event in EVENTS)
    assert writer.content_type == "application/vnd.amazon.eventstream"
    assert writer.write([TextDelta("late")]) == b""
    frames = FrameReader().feed(body)
    names = [frame.headers[":event-type"] for frame in frames]
    assert names[:3] == ["messageStart", "contentBlockDelta", "contentBlockDelta"]
    assert names[-2:] == ["messageStop", "metadata"]
    assert names.count("contentBlockStart") == 2
    told = json.loads(frames[-1].payload)["usage"]
    assert told == {"inputTokens": 10, "outputTokens": 5, "totalTokens": 35, "cacheReadInputTokens": 20}


def test_whole_and_streamed_are_the_same_reply() -> None:
    replies = []
    for stream in (True, False):
        writer = DIALECT.writer(model=MODEL, stream=stream)
        replies.append(reply_of([writer.write(EVENTS)], target(), "bedrock")[0])
    streamed, whole = replies
    assert (streamed.text, streamed.usage, streamed.stop) == (whole.text, whole.usage, whole.stop)
    called, broken = sorted(whole.tool_calls, key=lambda call: call.id == "t2")
    assert called.id == fold(EVENTS).tool_calls[0].id
    assert broken.raw_arguments == "{"
    assert streamed.stop == StopReason("tool_calls", "tool_use")


def test_usage_is_left_out_where_nobody_asked_for_it() -> None:
    writer = DIALECT.writer(model=MODEL, stream=True, include_usage=False)
    assert b"inputTokens" not in writer.write(EVENTS)


def test_an_error_is_a_message() -> None:
    assert json.loads(DIALECT.write_error(400, "bad")) == {"message": "bad"}
    assert json.loads(DIALECT.write_error(400, "bad", "ValidationException"))["__type"] == "ValidationException"
