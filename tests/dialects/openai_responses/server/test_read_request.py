"""Read requests as clients of Responses write them: the prompt is the one that was sent; errors name their field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides import dialects
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, Sampling, assistant, system, user
from asides.values.parts import Commentary, File, Image, Refusal, ServerTool, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool
from tests.responses import DIALECT, both_ways, call, message, reasoning, target


def read(**document: Any) -> Prompt:
    return dialects.find_dialect(DIALECT).read(json.dumps({"model": "m", **document}).encode()).prompt


def sent(prompt: Prompt) -> dict[str, Any]:
    request, _ = dialects.find_dialect(DIALECT).encode(prompt, target())
    document = json.loads(request.body)
    assert isinstance(document, dict)
    return document


def again(prompt: Prompt) -> Prompt:
    """The prompt, sent and read."""
    return dialects.find_dialect(DIALECT).read(json.dumps(sent(prompt)).encode()).prompt


PROMPTS = {
    "a question": Prompt((user("hi"),), system="be brief"),
    "thinking": Prompt((user("hi"),), thinking=Thinking(effort="high", summary="detailed")),
    "an effort without a summary": Prompt((user("hi"),), thinking=Thinking(effort="low", show="none")),
    "off": Prompt((user("hi"),), thinking=Thinking(mode="off", show="none")),
    "tools": Prompt((user("hi"),), tools=(Tool("f", "d", strict=False),), tool_choice="f", parallel_tool_calls=True),
    "a schema": Prompt((user("hi"),), output=OutputSchema("sky", {"type": "object"}, strict=True)),
    "json": Prompt((user("hi"),), output="json"),
    "settings": Prompt(
        (user("hi"),), max_tokens=5, sampling=Sampling(temperature=0.5, top_p=0.9), user="u", metadata={"a": "b"}
    ),
    "pictures and files": Prompt(
        (
            user(
                "see",
                Image(url="http://x/y.png", detail="low"),
                Image(data=b"p"),
                File("a.pdf", data=b"f"),
                File(id="f1"),
            ),
        )
    ),
    "calls": Prompt(
        (user("hi"), assistant(ToolCall("c1", "f", {"a": 1})), Message("tool", (ToolResult("c1", "x"),)), user("and?"))
    ),
    "custom calls": Prompt(
        (user("hi"), assistant(ToolCall("c1", "f", {}, "raw", custom=True)), Message("tool", (ToolResult("c1", "x"),)))
    ),
    "a refusal": Prompt((user("hi"), assistant(Refusal("no")), user("why?"))),
    "system in between": Prompt((user("hi"), system("be brief"), user("ho"))),
    "state": Prompt(
        (user("hi"),), state=ProviderState(store=True, previous_response_id="resp_1", truncation="auto", include=("x",))
    ),
    "context": Prompt(
        (user("hi"),),
        state=ProviderState(store=False, context="all_turns", mode="pro"),
        thinking=Thinking(mode="off", show="none"),
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_sent_request_is_read_as_the_same_prompt(name: str) -> None:
    prompt = PROMPTS[name]
    read_back = again(prompt)
    # The encoder adds what the endpoint needs where nothing is stored.
    state = msgspec.structs.replace(read_back.state, include=prompt.state.include)
    if prompt.state.store is None:
        state = msgspec.structs.replace(state, store=None)
    thinking = read_back.thinking if prompt.thinking.asked else prompt.thinking
    assert msgspec.structs.replace(read_back, state=state, thinking=thinking) == prompt


def test_a_turn_that_came_from_the_endpoint_is_sent_read_and_sent_as_the_same() -> None:
    items = (
        reasoning("plan", encrypted="gAAA"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        message("I look.", phase="commentary"),
        call(),
        {"type": "crystal_ball_call", "id": "cb_1"},
    )
    reply = both_ways(*items)
    history = (user("?"), Message("assistant", reply.parts), Message("tool", (ToolResult("call_abc", "x"),)))
    first = sent(Prompt(history))
    read_back = dialects.find_dialect(DIALECT).read(json.dumps(first).encode()).prompt
    assert [type(part) for part in read_back.messages[1].parts] == [
        Thought,
        ServerTool,
        Commentary,
        ToolCall,
        UnknownPart,
    ]
    assert sent(read_back)["input"] == first["input"]


def test_a_text_is_a_question_and_a_parent_needs_none() -> None:
    assert read(input="hi").messages == (user("hi"),)
    assert read(previous_response_id="resp_1").messages == ()
    assert read(input="hi", conversation={"id": "conv_1"}).state.conversation == "conv_1"


def test_unknown_fields_stay() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "name": "f"}]
    prompt = read(input="hi", tools=tools, service_tier="flex", text={"verbosity": "low"})
    assert prompt.extra == {"tools": tools, "service_tier": "flex", "text": {"verbosity": "low"}}
    assert [tool.name for tool in prompt.tools] == ["f"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "input is missing"),
        ({"input": []}, "input is missing"),
        ({"input": 5}, "input is missing"),
        ({"input": ["x"]}, r"input\[0\] is not an object"),
        ({"input": [{"role": "wizard", "content": "x"}]}, r"input\[0\]: role is"),
        ({"input": [{"role": "user"}]}, "content is a text"),
        ({"input": [{"role": "user", "content": [5]}]}, "part is not an object"),
        ({"input": [{"role": "user", "content": [{}]}]}, "has no type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "no image_url"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "neither file_data"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:a;base64,!"}]}]},
            "not valid base64",
        ),
        ({"input": [{"type": 5}]}, "type is not text"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "a name and a call_id"),
        ({"input": [{"type": "function_call", "name": 5}]}, "name is not text"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "no call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]}, "output is a text"),
        ({"input": "hi", "model": ""}, "model is missing"),
        ({"input": "hi", "stream": "yes"}, "stream"),
        ({"input": "hi", "temperature": "hot"}, "sampling"),
        ({"input": "hi", "conversation": 5}, "conversation"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(document: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(**document)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_object(body: bytes) -> None:
    with pytest.raises(ConfigError, match="the body is not"):
        dialects.find_dialect(DIALECT).read(body)
