"""Requests in the dialect of a host leave as they came, unless the host treats something in them in its own way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.flows.call import encode_request
from asides.providers.find import find_provider, list_providers
from asides.providers.provider import ModelRule, Target
from asides.relay.plain_requests import differs_for
from asides.values.traits import find_traits
from asides_stage import Stage
from asides_stage.stage import Fail, Say
from tests.relay.relaying import Door

_CHAT = (
    b'{"model" : "%b",  "messages":[ {"role":"user","content":"?" } ,{"role":"assistant","content":"b","x":1},'
    b'{"role":"user","content":[ {"type":"text","text":"q"}]}], "unknown_to_us": {"a": [1 ,1.50]}, "max_tokens":50%b}'
)
_CLAUDE = (
    b'{"max_tokens" : 64,  "model":"%b","messages":[ {"role":"user","content":"?"},{"role":"assistant","content":"b"},'
    b'{"role":"user","content":[{"type":"text","text":"q","new":[1.50]}]}], "unknown_to_us": {"a": [1 ]}%b}'
)
_HOSTS = """
    groq:llama-3.3-70b openrouter:meta/llama together:Qwen/Qwen3 fireworks:x cerebras:x deepseek:deepseek-chat vllm:x
    openai-compatible:x openai-chat:gpt-4.1 huggingface:x nvidia:x
""".split()
_CLONES = [
    "deepseek-anthropic:deepseek-chat",
    "anthropic-compatible:x",
    "anthropic:claude-opus-4-5",
    "minimax-anthropic:x",
]


def _post(model: str, more: bytes = b"") -> tuple[bytes, bytes, str]:
    """Post a request. Returns its bytes as they should leave, those that left, and why they changed."""
    is_claude = model in _CLONES
    body = (_CLAUDE if is_claude else _CHAT) % (b"%b", more)
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        door = Door(stage)
        response = door.post("/v1/messages" if is_claude else "/v1/chat/completions", body % model.encode())
        received = stage.requests[0].body
    assert response.status == 200, response.body
    assert response.outcome is not None
    return body % model.partition(":")[2].encode(), received, response.outcome.reason


@pytest.mark.parametrize("more", [b"", b', "stream":true'], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [*_HOSTS, *_CLONES])
def test_a_request_leaves_as_it_came(model: str, more: bytes) -> None:
    expected, received, _ = _post(model, more)
    assert received == expected


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("groq:openai/gpt-oss-20b", b', "temperature": 0.70'),
        ("openai-compatible:x", b', "tools": [ {"type":"browser_search"} ]'),
        ("openai-compatible:x", b', "tools": [ {"type":"function","function":{"name":"a"}} ], "tool_choice": "any"'),
        ("openai-compatible:x", b', "response_format" : {"type":"json_object"}'),
        ("openai-compatible:x", b', "reasoning_effort" : "low"'),
        ("deepseek:deepseek-chat", b', "stop": [ "x" ]'),
        ("anthropic-compatible:x", b', "tools": [ {"name":"look","input_schema":{"type":"object"}} ]'),
        ("anthropic-compatible:x", b', "thinking": {"type":"disabled"} '),
    ],
)
def test_a_plan_that_changes_nothing_keeps_the_bytes(model: str, more: bytes) -> None:
    expected, received, reason = _post(model, more)
    assert received == expected
    assert "differs" not in reason


@pytest.mark.parametrize(("choice", "is_planned"), [("auto", False), ("none", False), ("required", True)])
def test_tools_are_planned_where_a_model_may_refuse_a_demanded_call(choice: str, is_planned: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": _TOOLS, "tool_choice": choice}
    prompt = find_dialect("openai_chat").read(json.dumps(body).encode(), "").prompt
    row = find_provider("deepseek")
    target = Target(row, "deepseek-chat", row.base_url, row.rule("deepseek-chat"))
    assert differs_for(prompt, target, find_traits(prompt.messages)) is is_planned


def test_a_history_with_calls_is_planned_for_a_model_without_tools() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}, *_CALLS]}
    prompt = find_dialect("openai_chat").read(json.dumps(body).encode(), "").prompt
    row = msgspec.structs.replace(find_provider("openai-compatible"), models=(ModelRule(tools=False),))
    target = Target(row, "m", "http://127.0.0.1:9/v1", row.rule("m"))
    assert differs_for(prompt, target, find_traits(prompt.messages))


def test_members_that_the_plan_does_not_change_keep_their_bytes() -> None:
    expected, received, reason = _post("xai:grok-4", b', "presence_penalty": 0.70, "temperature" : 1.0')
    before, after = json.loads(expected), json.loads(received)
    assert after != before
    assert "presence_penalty" not in after
    assert expected[: expected.index(b', "max_tokens"')] == received[: expected.index(b', "max_tokens"')]
    assert reason == "xai differs from the plain dialect"


@pytest.mark.parametrize(
    ("model", "more", "changed"),
    [
        ("openai-compatible:x", {"max_completion_tokens": 50}, {"max_completion_tokens": None, "max_tokens": 50}),
        (
            "openai-compatible:x",
            {"messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": "?"}]},
            {},
        ),
        ("moonshot:kimi-k2", {"max_tokens": 50}, {"max_tokens": None, "max_completion_tokens": 50}),
        ("azure:gpt-5", {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "?"}]}, {}),
        ("azure:gpt-5", {"temperature": 0.5}, {"temperature": None}),
        ("groq:llama-3.3", {"top_k": 3}, {"top_k": None}),
        (
            "mistral:mistral-large-latest",
            {"messages": [{"role": "assistant", "content": "b", "x": 1}, {"role": "user", "content": "?"}]},
            {},
        ),
        ("minimax:MiniMax-M2", {}, {"reasoning_split": True}),
        (
            "groq:llama-3.3",
            {"tools": [{"type": "function", "function": {"name": "look"}}], "tool_choice": "any"},
            {"tool_choice": "required"},
        ),
    ],
)
def test_what_a_host_treats_in_its_own_way_is_planned(
    model: str, more: dict[str, Any], changed: dict[str, Any]
) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "?"}], **more}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage).post("/v1/chat/completions", body)
        received = stage.requests[0].json
    assert response.status == 200, response.body
    assert received != {**body, "model": model.partition(":")[2]}
    assert {name: received.get(name) for name in changed} == changed


def test_a_busy_host_is_asked_again() -> None:
    with Stage([Fail(status=503, retry_after=0), Say(text="Hi")], rules="lenient") as stage:
        response = Door(stage).post("/v1/chat/completions", _CHAT % (b"deepseek:deepseek-chat", b""))
        assert [received.body for received in stage.requests] == [_CHAT % (b"deepseek-chat", b"")] * 2
    assert response.status == 200, response.body


# --- the law ----------------------------------------------------------------------------------------------------------

_TARGETS = 250
_HISTORY = {"openai_chat": "messages", "anthropic": "messages", "openai_responses": "input"}
_PARAMETERS = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}
_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": _PARAMETERS}}]
_PICTURE = "iVBORw0KGgo="
_MORE: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        {"tools": _TOOLS},
        {"tools": _TOOLS, "tool_choice": "required"},
        {"tools": _TOOLS, "tool_choice": "any"},
        {"tools": _TOOLS, "tool_choice": "auto"},
        {"tools": _TOOLS, "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"tools": [{"type": "browser_search"}]},
        {"max_tokens": 50},
        {"max_completion_tokens": 50},
        {"reasoning_effort": "high"},
        {"response_format": {"type": "json_object"}},
        {"stop": ["x"]},
        {"user": "u", "metadata": {"a": "b"}, "unknown": {"a": [1, 1.5]}, "service_tier": "auto", "n": 1},
        {"logit_bias": {"1": 2}, "seed": 3, "presence_penalty": 0.5},
        {"top_k": 3},
        {"stream_options": {"include_usage": True}},
    ],
    "openai_responses": [
        {"tools": [{"type": "function", "name": "look", "parameters": _PARAMETERS}]},
        {
            "tools": [{"type": "function", "name": "look", "parameters": _PARAMETERS}],
            "tool_choice": {"type": "function", "name": "look"},
        },
        {"instructions": "s"},
        {"reasoning": {"effort": "high"}},
        {"max_output_tokens": 50},
        {"store": False, "include": ["reasoning.encrypted_content"]},
    ],
    "anthropic": [
        {"tools": [{"name": "look", "input_schema": _PARAMETERS}]},
        {"tools": [{"name": "look", "input_schema": _PARAMETERS}], "tool_choice": {"type": "any"}},
        {"tools": [{"name": "look", "input_schema": _PARAMETERS}], "tool_choice": {"type": "tool", "name": "look"}},
        {"tools": [{"name": "look", "input_schema": _PARAMETERS}], "tool_choice": {"type": "auto"}},
        {"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinking": {"type": "disabled"}},
        {"metadata": {"user_id": "x"}, "top_k": 3, "stop_sequences": ["a"]},
        {"output_config": {"format": {"type": "json_schema", "schema": _PARAMETERS}}},
    ],
}
_COMMON: list[dict[str, Any]] = [{"temperature": 0.7}, {"top_p": 0.7}, {"stream": True}]
_TURNS: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "s"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PICTURE}"}}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": _PICTURE, "format": "wav"}}]},
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": "b", "reasoning_content": "t"},
        {"role": "assistant", "content": "b", "x": 1},
    ],
    "openai_responses": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}],
    "anthropic": [
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PICTURE}}],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"}],
        },
    ],
}
_CALLS: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_1234567", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1234567", "content": "r"},
]


def _list_targets() -> list[Target]:
    rows = [
        row
        for base in list_providers()
        for row in (base, *map(base.with_dialect, [each.dialect for each in base.also]))
    ]
    return [
        Target(row, name, row.base_url or "http://127.0.0.1:9/v1", row.rule(name))
        for row in rows
        if row is not None and row.dialect in _HISTORY and row.quirks.transport == "direct"
        for name in sorted({"some-model", *(rule.models.replace("*", "").strip("[]!") or "x" for rule in row.models)})
    ]


def _write_random(dialect: str, dice: random.Random) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "a"}]
    if dice.random() < 0.5:
        kind = "output_text" if dialect == "openai_responses" else "text"
        said = "b" if dialect == "openai_chat" else [{"type": kind, "text": "b"}]
        turns += [{"role": "assistant", "content": said}, {"role": "user", "content": "c"}]
    if dice.random() < 0.3:
        more = dice.choice(_TURNS[dialect])
        if more.get("role") == "assistant":
            turns += [more, {"role": "user", "content": "d"}]
        elif dialect == "anthropic":
            turns[0] = more
        else:
            turns.insert(0, more)
    if dialect == "openai_chat" and dice.random() < 0.2:
        turns += _CALLS
    body: dict[str, Any] = {_HISTORY[dialect]: turns, **({"max_tokens": 4000} if dialect == "anthropic" else {})}
    for fields in dice.sample([*_MORE[dialect], *_COMMON], k=dice.choice([0, 1, 1, 2])):
        body |= fields
    return body


def _list_said(body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    # What asides itself asks for, beside the request: counts, and reasoning that its provider does not store.
    ours = ("model", "stream_options") if "input" not in body else ("model", "include", "store")
    for name, value in body.items():
        if name == "messages":
            yield name, [{key: each for key, each in turn.items() if each not in (None, "")} for turn in value]
        elif name not in ours and value not in (None, False, "", [], {}):
            yield name, value


def test_a_request_that_is_not_planned_says_what_the_plan_would_say(request: pytest.FixtureRequest) -> None:
    dice = random.Random(29)
    targets = _list_targets()
    is_thorough = "thorough" in str(request.config.getoption("-m"))
    planned = passed = 0
    for target in targets if is_thorough else dice.sample(targets, k=_TARGETS):
        for _ in range(8):
            body = {"model": target.model, **_write_random(target.dialect, dice)}
            served = find_dialect(target.dialect).read(json.dumps(body).encode(), "/v1")
            prompt = msgspec.structs.replace(served.prompt, stream=served.stream)
            if differs_for(
                prompt, target, find_traits(prompt.messages), has_developer='"developer"' in json.dumps(body)
            ):
                planned += 1
                continue
            passed += 1
            sent = json.loads(encode_request(prompt, target, on_conflict="adjust").request.body)
            assert dict(_list_said(sent)) == dict(_list_said(body)), (target.provider.name, target.model)
    assert min(planned, passed) > _TARGETS
