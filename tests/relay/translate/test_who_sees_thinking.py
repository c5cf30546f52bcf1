"""Who sees thinking: the table of docs/gateway.md, for every dialect of a client and every dialect of a provider."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import CALLERS, UPSTREAMS, Door, Response

_ASKS_FOR_IT = ("anthropic", "gemini")
"""Where the first block of a reply is taken for its answer."""
_THOUGHT = "PONDER"
_QUESTION = [{"role": "user", "content": "?"}]


def _write(dialect: str, model: str, *, asks: bool, stream: bool = False) -> tuple[str, dict[str, Any]]:
    """A request as a client writes it by hand."""
    name = model.replace(":", "%3A").replace("/", "%2F")
    streamed: dict[str, Any] = {"stream": stream} if stream or dialect == "ollama" else {}
    more: dict[str, Any]
    config: dict[str, Any]
    match dialect:
        case "anthropic":
            more = {"thinking": {"type": "enabled", "budget_tokens": 2000}} if asks else {}
            return "/v1/messages", {"model": model, "max_tokens": 4000, "messages": _QUESTION, **more, **streamed}
        case "gemini":
            config = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}} if asks else {}
            body = {"contents": [{"role": "user", "parts": [{"text": "?"}]}], "generationConfig": config}
            return f"/v1beta/models/{name}:{'streamG' if stream else 'g'}enerateContent", body
        case "gemini_interactions":
            config = {"generation_config": {"thinking_level": "high", "thinking_summaries": "auto"}} if asks else {}
            return "/v1beta/interactions", {"model": model, "input": "?", **config, **streamed}
        case "bedrock":
            more = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}
            config = {"inferenceConfig": {"maxTokens": 4000}}
            body = {"messages": [{"role": "user", "content": [{"text": "?"}]}], **config, **(more if asks else {})}
            return f"/model/{name}/converse{'-stream' if stream else ''}", body
        case "openai_responses":
            more = {"reasoning": {"effort": "high", "summary": "auto"}} if asks else {}
            return "/v1/responses", {"model": model, "input": "?", **more, **streamed}
        case "openai_chat":
            more = {"reasoning_effort": "high"} if asks else {}
            return "/v1/chat/completions", {"model": model, "messages": _QUESTION, **more, **streamed}
        case "ollama":
            return "/api/chat", {"model": model, "messages": _QUESTION, **({"think": True} if asks else {}), **streamed}
        case "cohere":
            more = {"thinking": {"type": "enabled"}} if asks else {}
            return "/v2/chat", {"model": model, "messages": _QUESTION, **more, **streamed}
        case _:
            raise AssertionError(dialect)


def _find_first(dialect: str, response: Response) -> str:
    """What everybody writes to get at the answer."""
    if dialect == "anthropic":
        return str(response.json["content"][0]["text"])
    return str(response.json["candidates"][0]["content"]["parts"][0]["text"])


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("forwards", [False, True])
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("model", UPSTREAMS)
@pytest.mark.parametrize("dialect", CALLERS)
def test_the_table(dialect: str, model: str, store: bool, forwards: bool, stream: bool, asks: bool) -> None:
    if forwards and not asks and dialect == "anthropic" and model.startswith("anthropic"):
        model = "anthropic:claude-opus-5-5"  # thinks unasked; the other one does not, and its reply passes unread
    path, body = _write(dialect, model, asks=asks, stream=stream)
    with Stage(Say(text="Hi", thinking=_THOUGHT), rules="lenient") as stage:
        # Whatever the client says, this host thinks: as a route with thinking= would have it, or a model by default.
        response = Door(stage, store=store, forwards=forwards).post(path, body)
    assert response.status == 200, response.body
    is_shown = _THOUGHT.encode() in response.body
    # Responses has no summary for those who want none: there is nothing to show.
    assert is_shown is (asks or (dialect not in _ASKS_FOR_IT and "responses" not in model))
    assert b"Hi" in response.body
    if dialect in _ASKS_FOR_IT and not asks and not stream:
        assert _find_first(dialect, response) == "Hi"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", UPSTREAMS)
@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        ("ollama", {"think": False}),
        ("anthropic", {"thinking": {"type": "disabled"}}),
        ("gemini", {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}}),
    ],
)
def test_a_client_that_turns_it_off_gets_none(dialect: str, more: dict[str, Any], model: str, stream: bool) -> None:
    path, body = _write(dialect, model, asks=False, stream=stream)
    with Stage(Say(text="Hi", thinking=_THOUGHT), rules="lenient") as stage:
        # A maker does not think where its own client turns that off, and its reply passes unread.
        response = Door(stage, forwards=not model.startswith(dialect)).post(path, {**body, **more})
    assert response.status == 200, response.body
    assert _THOUGHT.encode() not in response.body
    assert b"Hi" in response.body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("dialect", "model"), [("anthropic", "anthropic:claude-opus-4-5"), ("gemini", UPSTREAMS[3])])
def test_a_reply_without_thinking_passes(dialect: str, model: str, stream: bool) -> None:
    path, body = _write(dialect, model, asks=False, stream=stream)
    call = ToolCall("call_1", "look", {"a": 1})
    with Stage(Say(text="Hi", tool_calls=(call,)), rules="lenient") as stage:
        response = Door(stage).post(path, body)
    assert response.outcome is not None
    assert response.outcome.passed


@pytest.mark.parametrize("own", [{"thinking": "low"}, {"visibility": ["raw", "summary"]}])
def test_an_option_of_ours_asks_too(own: dict[str, Any]) -> None:
    path, body = _write("anthropic", "deepseek:deepseek-v4-pro", asks=False)
    with Stage(Say(text="Hi", thinking=_THOUGHT), rules="lenient") as stage:
        response = Door(stage).post(path, {**body, "asides": own})
    assert _THOUGHT.encode() in response.body


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("dialect", _ASKS_FOR_IT)
@pytest.mark.parametrize(
    "model", ["deepseek:deepseek-v4-pro", "anthropic:claude-opus-4-5", "gemini:gemini-3-pro-preview"]
)
def test_what_is_not_shown_goes_back_all_the_same(model: str, dialect: str, store: bool) -> None:
    """A strict host that thinks in a tool loop, and a client that knows nothing of it: only the provider reads it."""
    path, body = _write(dialect, model, asks=False)
    tool = {"type": "object", "properties": {}}
    if dialect == "anthropic":
        body["tools"] = [{"name": "look", "input_schema": tool}]
    else:
        body["tools"] = [{"functionDeclarations": [{"name": "look", "parameters": tool}]}]
    scenes = [Say(text="", thinking=_THOUGHT, tool_calls=(ToolCall("call_1", "look", {"a": 1}),)), Say(text="Done.")]
    with Stage(scenes) as stage:
        door = Door(stage, store=store, forwards=False)
        first = door.post(path, body)
        assert first.status == 200, first.body
        assert _THOUGHT.encode() not in first.body
        if dialect == "anthropic":
            content = first.json["content"]
            (call,) = [block for block in content if block["type"] == "tool_use"]
            assert [block["type"] for block in content if block["type"] == "thinking"] == []
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": "42"}
            turns = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
            second = door.post(path, {**body, "messages": [*_QUESTION, *turns]})
        else:
            content = first.json["candidates"][0]["content"]
            (call,) = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            answer = {"functionResponse": {"name": "look", "id": call.get("id"), "response": {"output": "42"}}}
            second = door.post(
                path, {**body, "contents": [*body["contents"], content, {"role": "user", "parts": [answer]}]}
            )
        assert second.status == 200, second.body
        assert [received.problem for received in stage.requests] == [None, None]
        if model.startswith("deepseek"):  # the others want their seals back, and made none
            assert _THOUGHT.encode() in stage.requests[-1].body
