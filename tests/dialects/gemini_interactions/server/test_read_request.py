"""Requests of clients, as prompts; what is not understood stays in `extra`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt, Sampling
from asides.values.thinking import Thinking
from tests.dialects.gemini_interactions.interactions import DIALECT, FLASH, GO, encode

FULL: dict[str, Any] = {
    "model": FLASH,
    "input": [GO],
    "system_instruction": "Be brief.",
    "tools": [{"type": "function", "name": "look", "description": "see", "parameters": {"type": "object"}}],
    "generation_config": {
        "temperature": 0.5,
        "max_output_tokens": 77,
        "stop_sequences": ["END"],
        "thinking_level": "low",
        "thinking_summaries": "auto",
        "tool_choice": "any",
        "speech_config": {"voice": "a"},
    },
    "response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
    "stream": True,
    "labels": {"team": "a"},
    "previous_interaction_id": "v1_1",
    "service_tier": "flex",
}


def read(body: dict[str, Any]) -> Prompt:
    return DIALECT.read(json.dumps(body).encode()).prompt


def test_a_full_request_is_read_and_comes_out_as_it_went_in() -> None:
    served = DIALECT.read(json.dumps(FULL).encode())
    prompt = served.prompt
    assert (served.model, served.stream) == (FLASH, True)
    assert prompt.system == "Be brief."
    assert prompt.thinking == Thinking(effort="low")
    assert (prompt.tool_choice, prompt.max_tokens, prompt.stop) == ("required", 77, ("END",))
    assert prompt.sampling == Sampling(temperature=0.5)
    assert prompt.output == OutputSchema("answer", {"type": "object"})
    assert prompt.state.previous_response_id == "v1_1"
    assert prompt.extra == {"generation_config": {"speech_config": {"voice": "a"}}, "service_tier": "flex"}
    assert encode(prompt) == (FULL, [])


@pytest.mark.parametrize(
    ("fields", "stored"), [({}, True), ({"store": True}, True), ({"store": False}, False)], ids=str
)
def test_a_server_stores_what_does_not_say_otherwise(fields: dict[str, Any], stored: bool) -> None:
    prompt = read({"model": FLASH, "input": "go", **fields})
    assert prompt.state.store is stored
    assert encode(prompt)[0].get("store", True) is stored


def test_an_agent_is_named_in_its_own_field() -> None:
    body = {"agent": "deep-research-preview-04-2026", "input": [GO], "background": True}
    served = DIALECT.read(json.dumps(body).encode())
    assert served.model == "deep-research-preview-04-2026"
    assert encode(served.prompt, served.model)[0] == body


def test_tools_of_the_provider_stay_as_they_are() -> None:
    tools = [{"type": "google_search"}, {"type": "function", "name": "look", "parameters": {"type": "object"}}]
    assert encode(read({"model": FLASH, "input": [GO], "tools": tools}))[0]["tools"] == tools


def test_one_allowed_tool_is_a_choice_and_other_choices_stay() -> None:
    one = {"allowed_tools": {"mode": "any", "tools": ["look"]}}
    many = {"allowed_tools": {"mode": "validated", "tools": ["look", "feel"]}}
    tools = FULL["tools"]
    for choice, ours in ((one, "look"), (many, None), ("validated", None)):
        prompt = read({"model": FLASH, "input": [GO], "tools": tools, "generation_config": {"tool_choice": choice}})
        assert prompt.tool_choice == ours
        assert encode(prompt)[0]["generation_config"] == {"tool_choice": choice}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": "go"}, "model is missing"),
        ({"model": FLASH}, "input is missing"),
        ({"model": FLASH, "input": []}, "input is missing"),
        ({"model": FLASH, "input": "go", "system_instruction": 5}, "system_instruction is a text"),
        ({"model": FLASH, "input": "go", "generation_config": {"temperature": "hot"}}, "sampling"),
        ({"model": FLASH, "input": "go", "stream": "yes"}, "stream"),
    ],
    ids=str,
)
def test_a_request_that_is_wrong_is_told(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(body)
