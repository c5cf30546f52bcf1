"""Encode prompts as requests of Ollama's chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_target
from asides.values.errors import Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool


def sent(prompt: Prompt, model: str = "ollama:qwen3", **where: Any) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    target = find_target(model, environ={}, **where)
    request, notices = find_dialect("ollama").encode(prompt, target)
    return json.loads(request.body), notices


def codes(notices: tuple[Notice, ...]) -> list[str]:
    return [notice.code for notice in notices]


def test_a_plain_question() -> None:
    target = find_target("ollama:qwen3:8b", environ={})
    request, notices = find_dialect("ollama").encode(Prompt((user("hi"),), system="Be brief.", stream=False), target)
    assert request.url == "http://localhost:11434/api/chat"
    assert json.loads(request.body) == {
        "model": "qwen3:8b",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": False,
    }
    assert notices == ()
    assert request.headers["Accept"] == "application/json"
    assert request.credential_header == ("Authorization", "Bearer ")


@pytest.mark.parametrize(
    "base_url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/api", "http://h:1/api/chat", "h:1"]
)
def test_the_base_url_may_be_that_of_another_dialect(base_url: str) -> None:
    environ = {"OLLAMA_HOST": base_url}
    request, _ = find_dialect("ollama").encode(Prompt((user("hi"),)), find_target("ollama:m", environ=environ))
    assert request.url == "http://h:1/api/chat"
    below = find_target("ollama:m", base_url="https://h/proxy/v1", environ={})
    assert find_dialect("ollama").encode(Prompt((user("hi"),)), below)[0].url == "https://h/proxy/api/chat"


@pytest.mark.parametrize(
    ("model", "thinking", "think"),
    [
        ("ollama:qwen3", Thinking(), None),
        ("ollama:qwen3", Thinking(mode="auto"), None),
        ("ollama:qwen3", Thinking(mode="on"), True),
        ("ollama:qwen3", Thinking(mode="off"), False),
        ("ollama:qwen3", Thinking(effort="high"), True),
        ("ollama:qwen3", Thinking(budget=2000), True),
        ("ollama:gpt-oss:20b", Thinking(effort="low"), "low"),
        ("ollama:unheard-of", Thinking(effort="xhigh"), "high"),
        ("ollama:unheard-of", Thinking(effort="max"), "max"),
        ("ollama:unheard-of", Thinking(effort="minimal"), "low"),
        ("ollama:qwen3-coder:30b", Thinking(mode="on"), None),
    ],
)
def test_thinking_is_asked_for_in_one_field(model: str, thinking: Thinking, think: bool | str | None) -> None:
    assert sent(Prompt((user("?"),), thinking=thinking), model)[0].get("think") == think


def test_content_that_cannot_be_sent_gives_a_notice() -> None:
    prompt = Prompt(
        (user("?"),),
        thinking=Thinking(budget=2000),
        tools=(Tool("look"),),
        tool_choice="required",
        parallel_tool_calls=True,
        sampling=Sampling(logit_bias={"1": 1.0}),
        metadata={"a": "b"},
        user="me",
    )
    body, notices = sent(prompt)
    assert set(body) == {"model", "messages", "stream", "tools", "think"}
    assert sorted(codes(notices)) == sorted(
        ["tool_choice_adjusted", "setting_dropped", "budget_not_sent", *["setting_dropped"] * 3]
    )


def test_settings_go_into_options_and_native_fields_win() -> None:
    prompt = Prompt(
        (user("?"),),
        max_tokens=100,
        sampling=Sampling(temperature=0.5, top_k=3, repetition_penalty=1.1, logprobs=True),
        stop=("END",),
        output=OutputSchema("answer", {"type": "object"}),
        extra={"keep_alive": "5m", "options": {"num_ctx": 8192, "temperature": 0.1}},
    )
    body, _ = sent(prompt)
    assert body["options"] == {
        "temperature": 0.1,
        "top_k": 3,
        "repeat_penalty": 1.1,
        "num_predict": 100,
        "stop": ["END"],
        "num_ctx": 8192,
    }
    assert (body["format"], body["logprobs"], body["keep_alive"]) == ({"type": "object"}, True, "5m")
    assert sent(Prompt((user("?"),), output="json"))[0]["format"] == "json"


def test_tools_are_left_out_where_none_may_be_called() -> None:
    prompt = Prompt((user("?"),), tools=(Tool("look", "Look."),), tool_choice="none")
    assert "tools" not in sent(prompt)[0]


def test_a_tool_loop_goes_back_with_its_thinking() -> None:
    call = ToolCall("call_1", "look", {"at": "é"})
    history = (
        user("go", Image(data=b"hi")),
        assistant(Thought("plan"), Thought("more"), Text("Let me see."), call),
        Message("tool", (ToolResult("call_1", "42"),)),
        Message("user", (ToolResult("call_1", (Text("43"), Image(data=b"ho")), "other"), Text("and?"))),
        system("New rules."),
        assistant(Refusal("No.")),
    )
    body, notices = sent(Prompt(history))
    assert body["messages"] == [
        {"role": "user", "content": "go", "images": ["aGk="]},
        {
            "role": "assistant",
            "content": "Let me see.",
            "thinking": "plan\n\nmore",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": {"at": "é"}}}
            ],
        },
        {"role": "tool", "content": "42", "tool_name": "look", "tool_call_id": "call_1"},
        {"role": "tool", "content": "43", "images": ["aG8="], "tool_name": "other", "tool_call_id": "call_1"},
        {"role": "user", "content": "and?"},
        {"role": "system", "content": "New rules."},
        {"role": "assistant", "content": "No."},
    ]
    assert notices == ()


def test_content_without_a_field_gives_a_notice_or_an_error() -> None:
    body, notices = sent(
        Prompt(
            (
                user("a", "b", File("f.txt", b"words", media_type="text/plain")),
                assistant(ServerTool("search"), Text("x")),
                assistant(),
                assistant(ToolCall("1", "look", raw_arguments="{broken")),
            )
        )
    )
    assert body["messages"][0] == {"role": "user", "content": "a\n\nb\n\nwords"}
    assert codes(notices) == ["part_not_sent", "message_not_sent", "arguments_not_sent"]
    refused: tuple[tuple[Part, str], ...] = (
        (Image(url="https://h/a.png"), "by their bytes"),
        (File("f.pdf", b"%PDF"), "files are text here, not application/pdf"),
    )
    for part, match in refused:
        with pytest.raises(Unsupported, match=match):
            sent(Prompt((user(part),)))
    with pytest.raises(Unsupported, match="role 'tool'"):
        sent(Prompt((Message("tool", (Text("x"),)),)))
    words: tuple[Part, ...] = (Image(url="data:image/png;base64,aGk="),)
    assert sent(Prompt((Message("user", words),)))[0]["messages"][0]["images"] == ["aGk="]
