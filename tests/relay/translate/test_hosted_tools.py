"""A web search of one provider at another: its own search, or a line that a person reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.relay.translate.hosted_tools import may_hold_report, strip_reports
from asides.values.messages import assistant
from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door, Response

_SCHEMA = {"type": "object", "properties": {}}
_QUESTION = {"role": "user", "content": "?"}
_LINE = "(asides: deepseek does not run web_search"


def _ask(client: str, model: str, items: list[dict[str, Any]], *, functions: bool = True, **more: Any) -> Any:
    """The path and the body of a request with a search, and with a function beside it."""
    match client:
        case "responses":
            tools: list[Any] = [{"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}]
            tools += [{"type": "function", "name": "look", "parameters": _SCHEMA}] if functions else []
            return "/v1/responses", {"model": model, "input": items, "tools": tools, "store": False, **more}
        case "messages":
            tools = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]
            tools += [{"name": "look", "input_schema": _SCHEMA}] if functions else []
            return "/v1/messages", {"model": model, "messages": items, "tools": tools, "max_tokens": 99, **more}
        case _:
            tools = [{"googleSearch": {}}]
            tools += [{"functionDeclarations": [{"name": "look", "parameters": _SCHEMA}]}] if functions else []
            body = {"contents": [{"role": "user", "parts": [{"text": "?"}]}], "tools": tools, **more}
            return f"/v1beta/models/{model.replace(':', '%3A')}:generateContent", body


@pytest.mark.parametrize(
    ("client", "model", "functions", "sent"),
    [
        (
            "responses",
            "anthropic:claude-opus-4-5",
            True,
            {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.org"]},
        ),
        ("messages", "openai-responses:gpt-5.2", True, {"type": "web_search"}),
        ("messages", "gemini:gemini-3-pro-preview", False, {"google_search": {}}),
        ("gemini", "openai-responses:gpt-5.2", True, {"type": "web_search"}),
        ("gemini", "anthropic:claude-opus-4-5", True, {"type": "web_search_20250305", "name": "web_search"}),
    ],
)
def test_a_search_becomes_that_of_the_target(client: str, model: str, functions: bool, sent: Any) -> None:
    with Stage(Say(text="Found."), rules="lenient") as stage:
        response = Door(stage).post(*_ask(client, model, [_QUESTION], functions=functions))
        assert response.status == 200, response.body
        tools = stage.requests[-1].json["tools"]
    assert sent in tools
    assert len(tools) == 1 + functions
    assert b"asides:" not in response.body
    assert "tool_not_sent" not in response.headers.get("x-asides-notice", "")


@pytest.mark.parametrize(
    ("client", "model", "functions"),
    [
        ("responses", "gemini:gemini-3-pro-preview", False),  # domains that it cannot limit
        ("messages", "deepseek:deepseek-v4-pro", False),
        ("gemini", "ollama:qwen3:8b", False),
    ],
)
def test_a_search_alone_is_refused_where_there_is_none(client: str, model: str, functions: bool) -> None:
    with Stage(Say(text="Found.")) as stage:
        response = Door(stage).post(*_ask(client, model, [_QUESTION], functions=functions))
        assert not stage.requests
    assert response.status == 400
    assert b"does not run" in response.body


def _read_items(client: str, response: Response) -> list[dict[str, Any]]:
    if client == "responses":
        items: list[dict[str, Any]] = response.json["output"]
        return items
    return [{"role": "assistant", "content": response.json["content"]}]


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("client", ["responses", "messages"])
def test_the_first_words_of_a_conversation_say_what_is_missing(client: str, store: bool) -> None:
    call = ToolCall("call_1", "look", {})
    scenes = [Say(text="One.", thinking="hm", tool_calls=(call,)), Say(text="Two."), Say(text="Three.")]
    with Stage(scenes) as stage:
        door = Door(stage, store=store)
        items: list[dict[str, Any]] = [_QUESTION]
        first = door.post(*_ask(client, "deepseek:deepseek-v4-pro", items))
        assert first.status == 200, first.body
        assert json.dumps(first.json).count(_LINE) == 1
        given = _read_items(client, first)
        if client == "responses":
            (called,) = [item for item in given if item["type"] == "function_call"]
            given += [{"type": "function_call_output", "call_id": called["call_id"], "output": "42"}]
            texts = [item for item in given if item["type"] == "message"]
            assert texts[0]["phase"] == "commentary"
            assert texts[-1]["content"][0]["text"] == "One."
        else:
            (called,) = [block for block in given[0]["content"] if block["type"] == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": called["id"], "content": "42"}
            given += [{"role": "user", "content": [result]}]
        items += given
        second = door.post(*_ask(client, "deepseek:deepseek-v4-pro", items))
        assert second.status == 200, second.body
        assert b"asides:" not in second.body
        assert b"asides:" not in stage.requests[-1].body
        (turn,) = [each for each in stage.requests[-1].json["messages"] if each["role"] == "assistant"]
        assert (turn["content"], turn["reasoning_content"]) == ("One.", "hm")
        assert [received.problem for received in stage.requests] == [None, None]


@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_a_stream_has_the_line_too(client: str) -> None:
    more = {} if client == "gemini" else {"stream": True}
    path, body = _ask(client, "deepseek:deepseek-v4-pro", [_QUESTION], **more)
    with Stage(Say(text="One.", thinking="hm")) as stage:
        response = Door(stage).post(path.replace(":generate", ":streamGenerate"), body)
    assert response.status == 200, response.body
    assert b"(asides: deepseek does not run" in response.body


def test_json_has_no_such_line() -> None:
    text = {"format": {"type": "json_schema", "name": "it", "schema": {"type": "object", "properties": {}}}}
    path, body = _ask("responses", "deepseek:deepseek-v4-pro", [_QUESTION], text=text)
    with Stage(Say(text="{}")) as stage:
        response = Door(stage).post(path, body)
    assert b"asides:" not in response.body


@pytest.mark.parametrize("mark", ["(", "\\u0028"])
@pytest.mark.parametrize("letter", ["a", "\\u0061"])
def test_a_report_is_found_in_any_spelling_of_json(mark: str, letter: str) -> None:
    body = f'{{"content": "{mark}{letter}sides: x is left out)\\n\\nHi"}}'
    text = json.loads(body)["content"]
    assert strip_reports((assistant(text),)) == (assistant("Hi"),)
    assert may_hold_report(body.encode())
    assert not may_hold_report(b'{"content": "Hi (asides)"}')
