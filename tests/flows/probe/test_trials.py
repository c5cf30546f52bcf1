"""The requests of a probe: addresses, lists of models, the second turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import DIALECTS
from asides.flows.probe.trials import (
    Setup,
    build_check,
    build_question,
    build_row,
    build_second_turn,
    choose_model,
    list_addresses,
    order_dialects,
    read_list,
    strip_ending,
)
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Seal, Thought

CHAT = Setup("openai_chat", "http://127.0.0.1:1/v1", "m")


@pytest.mark.parametrize(
    ("dialect", "base", "urls"),
    [
        ("openai_chat", "http://h", ["http://h/v1/chat/completions", "http://h/chat/completions"]),
        ("openai_chat", "http://h/v1", ["http://h/v1/chat/completions"]),
        ("openai_chat", "http://h/api", ["http://h/api/chat/completions", "http://h/api/v1/chat/completions"]),
        ("openai_responses", "http://h", ["http://h/v1/responses", "http://h/responses"]),
        ("anthropic", "http://h", ["http://h/v1/messages"]),
        ("anthropic", "http://h/v1", ["http://h/v1/messages"]),
        ("ollama", "http://h/v1", ["http://h/api/chat"]),
        ("gemini", "http://h", ["http://h/v1beta/models/m:generateContent", "http://h/models/m:generateContent"]),
        ("gemini", "http://h/v1beta", ["http://h/v1beta/models/m:generateContent"]),
        ("cohere", "http://h/v1", ["http://h/v2/chat"]),
        ("bedrock", "http://h", ["http://h/model/m/converse"]),
    ],
)
def test_where_a_dialect_is_looked_for(dialect: str, base: str, urls: list[str]) -> None:
    addresses = list_addresses(dialect, base)
    assert [build_question(Setup(dialect, address, "m")).url for address in addresses] == urls


@pytest.mark.parametrize(
    ("given", "base", "first"),
    [
        ("http://h/v1/chat/completions", "http://h/v1", "openai_chat"),
        ("http://h/v1/messages/", "http://h/v1", "anthropic"),
        ("http://h/api/chat", "http://h", "ollama"),
        ("http://h/api/tags", "http://h", "ollama"),
        ("http://h/v1beta", "http://h/v1beta", "gemini"),
        ("http://h/v2", "http://h/v2", "cohere"),
        ("http://h/anthropic", "http://h/anthropic", "anthropic"),
        ("http://h/v1", "http://h/v1", "openai_chat"),
    ],
)
def test_the_end_of_an_address_is_a_hint(given: str, base: str, first: str) -> None:
    assert (strip_ending(given), order_dialects(given, None)[0]) == (base, first)
    # Interactions have one host, which is known.
    assert sorted(order_dialects(given, None)) == sorted(set(DIALECTS) - {"gemini_interactions"})


@pytest.mark.parametrize(
    ("document", "models", "dialect"),
    [
        ({"data": [{"id": "a"}, {"id": "a"}, {"id": "b"}]}, ("a", "b"), None),
        ({"models": [{"name": "models/gem"}]}, ("models/gem",), "gemini"),
        ({"models": [{"name": "q:8b", "model": "q:8b", "digest": "x"}]}, ("q:8b",), "ollama"),
        ({"data": [{"type": "model", "id": "c", "display_name": "C"}]}, ("c",), "anthropic"),
        ({"models": [{"name": "command", "endpoints": ["chat"]}]}, ("command",), "cohere"),
        (["a", {"id": "b"}, 7, {"id": 8}], ("b", "a"), None),
        ({"models": {"a": 1}}, (), None),
        ("text", (), None),
        (None, (), None),
    ],
)
def test_lists_of_models(document: Any, models: tuple[str, ...], dialect: str | None) -> None:
    assert read_list(document) == (models, dialect)


def test_the_first_model_that_chats_is_asked() -> None:
    assert choose_model(["text-embed-1", "whisper", "thinker"]) == "thinker"
    assert choose_model(["text-embed-1"]) == "text-embed-1"
    assert choose_model([]) is None


def test_a_second_turn_with_thinking_and_without() -> None:
    thought = Thought("a plan", via="reasoning_content")
    turn = Message("assistant", (thought, ToolCall("call_1", "get_weather", {"location": "Paris"})))
    row = build_row(CHAT)

    def send(thinking: Any) -> dict[str, Any]:
        request = build_second_turn(CHAT, row, turn, thinking=thinking, tools=True)
        return dict(json.loads(request.body)["messages"][1])

    kept, without, altered = send("kept"), send("left_out"), send("altered")
    assert kept["reasoning_content"] == "a plan"
    assert "reasoning_content" not in without
    assert altered["reasoning_content"] == "a plan (edited)"
    assert kept["tool_calls"] == without["tool_calls"]


def test_an_altered_seal_does_not_fit() -> None:
    setup = Setup("anthropic", "http://127.0.0.1:1", "m")
    turn = Message("assistant", (Thought("a plan", seals=(Seal("signature", "abc"),)), Text("132")))
    request = build_second_turn(setup, build_row(setup), turn, thinking="altered", tools=False)
    block = json.loads(request.body)["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "a plan (edited)", "signature": "cba"}


def test_a_turn_of_thinking_alone_is_never_empty() -> None:
    turn = Message("assistant", (Thought("a plan"),))
    request = build_second_turn(CHAT, build_row(CHAT), turn, thinking="left_out", tools=False)
    assert json.loads(request.body)["messages"][1]["content"] == "132"
    assert Message("assistant", (Text("132"),)).text == "132"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_check_asks_nothing(dialect: str) -> None:
    assert build_check(Setup(dialect, "http://127.0.0.1:1", "m")).body == b"{}"
