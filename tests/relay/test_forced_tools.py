"""A client demands a tool, and a route asks for thinking: where a model takes one of them alone, the tool wins."""

from __future__ import annotations

from typing import Any

import pytest

from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door, load

_TOOL = {"type": "object", "properties": {}}
_CHOICES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": _TOOL}}]},
        {"tool_choice": "required"},
        {"reasoning_effort": "high"},
    ),
    "messages": (
        "/v1/messages",
        {"max_tokens": 9000, "tools": [{"name": "look", "input_schema": _TOOL}]},
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
}


def _ask(client: str, model: str, amount: Any, *, demands: bool = True, asks: bool = False, **config: Any) -> Any:
    """What the provider gets of a request to a route that thinks."""
    path, tools, choice, effort = _CHOICES[client]
    more = (choice if demands else {}) | (effort if asks else {})
    body = {"model": "thinker", "messages": [{"role": "user", "content": "?"}], **tools, **more}
    routes = {"thinker": {"targets": [model], "thinking": amount}}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage, settings=load(routes=routes), **config).post(path, body)
        assert response.status == 200, response.body
        return stage.requests[-1].json


@pytest.mark.parametrize("amount", ["high", 4000])
@pytest.mark.parametrize("client", _CHOICES)
@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "anthropic:claude-sonnet-4-5"])
def test_the_tool_wins_over_the_thinking_of_a_route(model: str, client: str, amount: Any) -> None:
    sent = _ask(client, model, amount)
    assert sent["tool_choice"]["type"] == "any"
    assert sent.get("thinking", {"type": "disabled"})["type"] == "disabled"


@pytest.mark.parametrize("client", _CHOICES)
def test_thinking_stays_without_a_demand(client: str) -> None:
    assert _ask(client, "anthropic:claude-opus-4-5", "high", demands=False)["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("client", _CHOICES)
def test_a_client_that_asks_for_both_keeps_its_thinking(client: str) -> None:
    sent = _ask(client, "anthropic:claude-opus-4-5", "high", asks=True, forwards=False)
    assert (sent["tool_choice"]["type"], sent["thinking"]["type"]) == ("auto", "enabled")


def test_a_model_that_always_thinks_keeps_the_amount() -> None:
    sent = _ask("messages", "anthropic:claude-opus-5-5", "high")
    assert (sent["tool_choice"]["type"], sent["output_config"]["effort"]) == ("auto", "high")


def test_a_model_that_takes_both_gets_both() -> None:
    sent = _ask("chat", "openai-responses:gpt-5.2", "high")
    assert (sent["tool_choice"], sent["reasoning"]["effort"]) == ("required", "high")
