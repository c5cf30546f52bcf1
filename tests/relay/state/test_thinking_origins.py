"""Thinking goes back only to who made it: after a restart, at a second gateway, and after an edit by the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import StateMode
from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door, Response

_KEYS = RelayKeys((b"k" * 32,))
_TOOL = {"type": "object", "properties": {}}
_QUESTION: dict[str, Any] = {"role": "user", "content": "What is the time?"}
_SCENES = [
    Say(text="", thinking="The CANARY sings of the clock.", tool_calls=(ToolCall("call_1", "now", {}),)),
    *[Say(text="Four.")] * 5,
]
Items = list[dict[str, Any]]
Edit = Callable[[str], str]


def _ask_chat(model: str, items: Items) -> tuple[str, dict[str, Any]]:
    tools = [{"type": "function", "function": {"name": "now", "parameters": _TOOL}}]
    return "/v1/chat/completions", {"model": model, "messages": items, "tools": tools, "reasoning_effort": "high"}


def _echo_chat(reply: Any, edit: Edit) -> Items:
    message = reply["choices"][0]["message"]
    if message.get("reasoning_content"):
        message["reasoning_content"] = edit(message["reasoning_content"])
    return [message, *({"role": "tool", "tool_call_id": call["id"], "content": "4"} for call in message["tool_calls"])]


def _ask_messages(model: str, items: Items) -> tuple[str, dict[str, Any]]:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    tools = [{"name": "now", "input_schema": _TOOL}]
    return "/v1/messages", {
        "model": model,
        "max_tokens": 9000,
        "thinking": thinking,
        "messages": items,
        "tools": tools,
    }


def _echo_messages(reply: Any, edit: Edit) -> Items:
    blocks = reply["content"]
    for block in blocks:
        if block["type"] == "thinking":
            block["thinking"] = edit(block["thinking"])
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "4"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def _ask_responses(model: str, items: Items) -> tuple[str, dict[str, Any]]:
    tools = [{"type": "function", "name": "now", "parameters": _TOOL}]
    more = {"store": False, "include": ["reasoning.encrypted_content"]}
    return "/v1/responses", {
        "model": model,
        "input": items,
        "tools": tools,
        "reasoning": {"effort": "high", "summary": "auto"},
        **more,
    }


def _echo_responses(reply: Any, edit: Edit) -> Items:
    items: Items = reply["output"]
    for item in items:
        if item["type"] == "reasoning":
            for piece in (*item.get("summary", ()), *(item.get("content") or ())):
                piece["text"] = edit(piece["text"])
    calls = [item for item in items if item["type"] == "function_call"]
    return [*items, *({"type": "function_call_output", "call_id": call["call_id"], "output": "4"} for call in calls)]


_CLIENTS: dict[str, tuple[Callable[[str, Items], tuple[str, dict[str, Any]]], Callable[[Any, Edit], Items]]] = {
    "chat": (_ask_chat, _echo_chat),
    "messages": (_ask_messages, _echo_messages),
    "responses": (_ask_responses, _echo_responses),
}
_EDITS: dict[str, Edit] = {
    "none": lambda text: text,
    "lower": str.lower,
    "cut": lambda text: text[:14],
    "quoted": lambda text: f"> {text}",
}
_MAKERS = (
    "anthropic:claude-opus-4-5",
    "openai-responses:gpt-5.2",
    "deepseek:deepseek-v4-pro",
    "gemini:gemini-3-pro-preview",
    "openrouter:google/gemini-3-pro-preview",
    "minimax-anthropic:MiniMax-M2",
)
_OTHERS = (
    "anthropic:claude-opus-4-5",
    "openai-responses:gpt-5.2",
    "deepseek:deepseek-v4-pro",
    "moonshot:kimi-k2-thinking",
    "openrouter:anthropic/claude-opus-5.5",
    "deepseek-anthropic:deepseek-v4-pro",
    "xai:grok-4",
    "vllm:Qwen/Qwen3-8B",
    "mistral:magistral-medium",
    "cohere:command-a-reasoning-08-2025",
    "ollama:qwen3:8b",
)


def _move(
    stage: Stage, client: str, models: tuple[str, str], mode: StateMode, edit: str, *, restarts: bool
) -> Response:
    """A turn of one model, given back by the client to another one."""
    ask, echo = _CLIENTS[client]

    def open_door() -> Door:
        return Door(stage, store=mode == "memory", keys=_KEYS, state_mode=mode)

    door = open_door()
    first = door.post(*ask(models[0], [_QUESTION]))
    assert first.status == 200, first.body
    items = echo(first.json, _EDITS[edit])
    return (open_door() if restarts else door).post(*ask(models[1], [_QUESTION, *items]))


def _is_same_house(one: str, other: str) -> bool:
    return one.partition(":")[0].partition("-")[0] == other.partition(":")[0].partition("-")[0]


@pytest.mark.parametrize(
    ("mode", "restarts", "edit"),
    [
        ("carry-only", True, "none"),
        ("carry-only", False, "lower"),
        ("carry-only", True, "cut"),
        ("off", True, "none"),
        ("memory", True, "none"),  # another gateway has other records
        ("memory", True, "quoted"),
    ],
)
@pytest.mark.parametrize("client", _CLIENTS)
@pytest.mark.parametrize("maker", _MAKERS)
def test_no_other_provider_gets_it(maker: str, client: str, mode: StateMode, restarts: bool, edit: str) -> None:
    for other in _OTHERS:
        if _is_same_house(maker, other):
            continue
        with Stage(_SCENES, rules="strict") as stage:
            response = _move(stage, client, (maker, other), mode, edit, restarts=restarts)
            assert response.status == 200, (other, response.body)
            assert not [sent.path for sent in stage.requests[1:] if b"canary" in sent.body.lower()], other


@pytest.mark.parametrize(
    "model",
    [
        "deepseek:deepseek-v4-pro",
        "moonshot:kimi-k2-thinking",
        "openrouter:anthropic/claude-opus-5.5",
        "zai:glm-5",
        "anthropic:claude-opus-4-5",
    ],
)
def test_its_maker_gets_it_back_after_a_restart(model: str) -> None:
    """A client of chat completions that gives messages back as they came, and a gateway that stores nothing."""
    with Stage(_SCENES, rules="strict") as stage:
        response = _move(stage, "chat", (model, model), "carry-only", "none", restarts=True)
        assert response.status == 200, response.body
        assert b"CANARY" in stage.requests[-1].body
        assert [sent.problem for sent in stage.requests] == [None, None]
        assert b"asd1" not in stage.requests[-1].body


def test_the_maker_of_a_dialect_gets_its_own_seals_back() -> None:
    for client, model in (("messages", "anthropic:claude-opus-4-5"), ("responses", "openai-responses:gpt-5.2")):
        with Stage(_SCENES, rules="strict") as stage:
            response = _move(stage, client, (model, model), "carry-only", "none", restarts=True)
            assert response.status == 200, response.body
            assert b"CANARY" in stage.requests[-1].body
            assert [sent.problem for sent in stage.requests] == [None, None]


def test_a_notice_says_that_it_is_left_out() -> None:
    message = {"role": "assistant", "content": "Hi", "reasoning_content": "of the CANARY"}
    items: Items = [_QUESTION, message, _QUESTION]
    with Stage(Say(text="Hi"), rules="strict") as stage:
        response = Door(stage, store=False).post(*_ask_chat("mistral:magistral-medium", items))
        assert "relay_thinking_unknown;messages" in response.headers["x-asides-notice"]
        assert b"CANARY" not in stage.requests[-1].body


def test_a_caller_in_this_process_answers_for_its_history() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "reasoning_content": "of the CANARY", "tool_calls": [call]}
    items: Items = [_QUESTION, message, {"role": "tool", "tool_call_id": "call_1", "content": "4"}]
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage, store=False, trusts_callers=True).post(*_ask_chat("deepseek:deepseek-v4-pro", items))
        assert "relay_thinking_unknown" not in response.headers.get("x-asides-notice", "")
        assert b"of the CANARY" in stage.requests[-1].body
