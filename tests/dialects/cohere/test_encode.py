"""Encode prompts as requests of Cohere's v2 chat, and read them back with the server half."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_target
from asides.values.errors import ConfigError, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

MODEL = "cohere:command-a-reasoning-08-2025"
DIALECT = find_dialect("cohere")
TOOL = Tool("look", "Look.", {"type": "object"})


def sent(prompt: Prompt, model: str = MODEL) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    request, notices = DIALECT.encode(prompt, find_target(model, environ={}))
    return json.loads(request.body), notices


def codes(notices: tuple[Notice, ...]) -> list[str]:
    return [notice.code for notice in notices]


def test_a_plain_question() -> None:
    request, notices = DIALECT.encode(Prompt((user("hi"),), system="Be brief."), find_target(MODEL, environ={}))
    assert request.url == "https://api.cohere.com/v2/chat"
    assert json.loads(request.body) == {
        "model": "command-a-reasoning-08-2025",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
    }
    assert notices == ()


def test_an_address_without_a_version_gets_one() -> None:
    for given, url in (
        ("https://h", "https://h/v2/chat"),
        ("https://h/v1", "https://h/v1/chat"),
        ("https://h/v2/chat", "https://h/v2/chat"),
    ):
        where = find_target(MODEL, base_url=given, environ={})
        assert DIALECT.encode(Prompt((user("hi"),)), where)[0].url == url


@pytest.mark.parametrize(
    ("thinking", "expected", "code"),
    [
        (Thinking(), None, None),
        (Thinking(mode="auto"), None, None),
        (Thinking(mode="off"), {"type": "disabled"}, None),
        (Thinking(mode="on"), {"type": "enabled"}, None),
        (Thinking(budget=500), {"type": "enabled", "token_budget": 500}, None),
        (Thinking(effort="high"), {"type": "enabled"}, "effort_not_sent"),
    ],
)
def test_thinking_is_a_switch_and_a_budget(thinking: Thinking, expected: Any, code: str | None) -> None:
    body, notices = sent(Prompt((user("?"),), thinking=thinking))
    assert body.get("thinking") == expected
    assert codes(notices) == ([] if code is None else [code])
    assert "thinking" not in sent(Prompt((user("?"),), thinking=thinking), "cohere:command-r-plus")[0]


def test_settings_have_the_names_of_the_dialect() -> None:
    prompt = Prompt(
        (user("?"),),
        max_tokens=100,
        sampling=Sampling(temperature=0.5, top_p=0.9, top_k=3, min_p=0.1),
        stop=("END",),
        output=OutputSchema("answer", {"type": "object"}),
        metadata={"a": "b"},
        user="me",
        extra={"safety_mode": "STRICT"},
    )
    body, notices = sent(prompt)
    del body["model"], body["messages"], body["stream"]
    assert body == {
        "max_tokens": 100,
        "temperature": 0.5,
        "p": 0.9,
        "k": 3,
        "stop_sequences": ["END"],
        "response_format": {"type": "json_object", "json_schema": {"type": "object"}},
        "safety_mode": "STRICT",
    }
    assert codes(notices) == ["setting_dropped"] * 3
    assert sent(Prompt((user("?"),), output="json"))[0]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("choice", "expected", "tools"),
    [(None, None, 2), ("auto", None, 2), ("none", "NONE", 2), ("required", "REQUIRED", 2), ("look", "REQUIRED", 1)],
)
def test_a_tool_that_is_named_is_sent_alone(choice: str | None, expected: str | None, tools: int) -> None:
    body, notices = sent(Prompt((user("?"),), tools=(TOOL, Tool("listen", strict=True)), tool_choice=choice))
    assert (body.get("tool_choice"), len(body["tools"])) == (expected, tools)
    assert body.get("strict_tools") == (True if tools == 2 else None)
    assert codes(notices) == (["tool_choice_adjusted"] if tools == 1 else [])


def test_a_tool_choice_without_tools_gives_a_notice() -> None:
    _, notices = sent(Prompt((user("?"),), tool_choice="required", parallel_tool_calls=False))
    assert codes(notices) == ["setting_dropped", "setting_dropped"]


def test_a_turn_goes_back_with_all_that_came_with_it() -> None:
    plan = Seal("tool_plan", "", None, '"I will look."')
    cited = Seal("citations", "", None, '[{"start":0,"end":2,"text":"42"}]')
    history = (
        user("go", Image(url="https://h/a.png", detail="low"), UnknownPart('{"type":"document","id":1}')),
        assistant(
            Thought("plan"), Text("Well.", (cited,)), Thought("more"), ToolCall("1", "look", {"n": 1}, None, (plan,))
        ),
        Message("tool", (ToolResult("1", (Text("4"), Text("2"), Image(data=b"x"))),)),
        system("New rules."),
        assistant(Refusal("No."), UnknownPart('{"type":"sound"}')),
        assistant(ToolCall("2", "look", raw_arguments="{broken")),
        assistant(ServerTool("search")),
    )
    body, notices = sent(Prompt(history))
    function = {"name": "look", "arguments": '{"n":1}'}
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "go"},
                {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
                {"type": "document", "id": 1},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "plan"},
                {"type": "text", "text": "Well."},
                {"type": "thinking", "thinking": "more"},
            ],
            "tool_plan": "I will look.",
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
            "citations": [{"start": 0, "end": 2, "text": "42"}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        {"role": "system", "content": "New rules."},
        {"role": "assistant", "content": [{"type": "text", "text": "No."}, {"type": "sound"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "2", "type": "function", "function": {"name": "look", "arguments": "{broken"}}],
        },
    ]
    assert codes(notices) == ["result_part_not_sent", "part_not_sent", "message_not_sent"]


def test_content_without_a_field_gives_a_notice_or_an_error() -> None:
    body, notices = sent(Prompt((user(File("a.txt", b"words", media_type="text/plain")),)))
    assert (body["messages"], codes(notices)) == ([{"role": "user", "content": "words"}], [])
    with pytest.raises(Unsupported, match="files are text here, not application/pdf"):
        sent(Prompt((user(File("a.pdf", b"%")),)))
    with pytest.raises(Unsupported, match="neither data nor an address"):
        sent(Prompt((user(msgspec.convert({"type": "image"}, Image)),)))
    with pytest.raises(Unsupported, match="role 'tool'"):
        sent(Prompt((Message("tool", (Text("x"),)),)))
    assert sent(Prompt((user(Image(data=b"hi")),)))[0]["messages"][0]["content"][0]["image_url"] == {
        "url": "data:image/png;base64,aGk="
    }


# --- the server half ----------------------------------------------------------------------------------------------


def read(**fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    return DIALECT.read(json.dumps(body).encode())


def test_our_requests_are_read_back_unchanged() -> None:
    plan, cited = Seal("tool_plan", "", None, '"I will."'), Seal("citations", "", None, '[{"start":0}]')
    prompt = Prompt(
        (
            user("hi", Image(data=b"hi")),
            assistant(
                Thought("plan", source="block", via="content"),
                Text("Well.", (cited,)),
                ToolCall("1", "look", {"n": 1}, None, (plan,)),
            ),
            Message("tool", (ToolResult("1", "42"),)),
        ),
        system="Be brief.",
        thinking=Thinking(budget=500),
        tools=(TOOL,),
        tool_choice="required",
        output=OutputSchema("answer", {"type": "object"}),
        max_tokens=1000,
        sampling=Sampling(temperature=0.5, top_p=0.9, top_k=3),
        stop=("END",),
        stream=False,
        extra={"safety_mode": "STRICT"},
    )
    served = DIALECT.read(DIALECT.encode(prompt, find_target(MODEL, environ={}))[0].body)
    assert served.prompt == prompt
    assert (served.model, served.stream) == ("command-a-reasoning-08-2025", False)


def test_other_forms_are_read_too() -> None:
    document = {"type": "document", "document": {"data": "42"}}
    other = {"type": "document", "document": {"id": 1}}
    served = read(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "?"}}]},
            {"role": "tool", "tool_call_id": "1", "content": [document, {"type": "text", "text": "!"}, other]},
        ],
        thinking={"type": "disabled", "news": 1},
        strict_tools=True,
        tools=[{"type": "function", "function": {"name": "look"}}],
        tool_choice="NONE",
        response_format={"type": "text"},
    )
    prompt = served.prompt
    assert (prompt.system, prompt.thinking, prompt.tool_choice) == ("Be brief.", Thinking(mode="off"), "none")
    assert prompt.messages[0].tool_calls == (ToolCall("1", "look", {}, "?"),)
    assert prompt.messages[1].parts == (ToolResult("1", '42\n!\n{"id":1}'),)
    assert (prompt.tools[0].strict, prompt.extra) == (True, {"thinking": {"news": 1}})
    assert read(thinking={"type": "enabled"}, response_format={"type": "json_object"}).prompt.output == "json"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": None}, "model is missing"),
        ({"messages": []}, "messages is missing"),
        ({"messages": [{"role": "judge"}]}, r"messages\[0\]: the role 'judge'"),
        ({"messages": [{"role": "user", "content": 3}]}, "content is text"),
        ({"messages": [{"role": "user", "content": [3]}]}, "an object with a type"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "tool_call_id is missing"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": 3}]}, "content is text"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": [3]}]}, "text or documents"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "a tool call has an id"),
        ({"temperature": "warm"}, "sampling"),
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(**fields)


def test_an_error_is_a_message() -> None:
    assert json.loads(DIALECT.write_error(404, "no such model")) == {"message": "no such model"}
    assert json.loads(DIALECT.write_error(404, "no", "nf")) == {"message": "no", "code": "nf"}
