"""Which field a refusal names, and which efforts it lists; also in real refusals, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.flows.probe.refused_switches import find_named, is_named, read_efforts
from asides.providers.switches.table import list_switches

_REAL = Path(__file__).resolve().parents[4] / "shared" / "reference" / "rejections.jsonl"
OFF = list_switches("openai_chat", "off")


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ('{"error":{"message":"Unknown parameter: \'thinking\'.","param":"thinking"}}', ["thinking.type"]),
        (
            "property 'chat_template_kwargs' is unsupported",
            ["chat_template_kwargs.enable_thinking", "chat_template_kwargs.thinking"],
        ),
        (
            '{"detail":[{"loc":["body","enable_thinking"],"msg":"Extra inputs are not permitted"}]}',
            ["enable_thinking"],
        ),
        ("reasoning_effort: Input should be 'low', 'medium' or 'high'", ["reasoning_effort"]),
        ("Invalid value: 'none'. Supported values are: 'low', 'high'.", ["reasoning_effort"]),
        ("Unsupported value: 'disabled'", ["thinking.type"]),
        ("thinking.type: Input should be 'enabled'", ["thinking.type"]),
        ('"m" does not support thinking', ["thinking.type"]),
        ("something went wrong", []),
        ('"loc":["body","chat_template_kwargs","thinking"]', ["chat_template_kwargs.thinking"]),
        (
            '[{"loc":["body","enable_thinking"]},{"loc":["body","chat_template_kwargs"]}]',
            ["enable_thinking", "chat_template_kwargs.enable_thinking"],
        ),
    ],
)
def test_a_refusal_names_switches(said: str, names: list[str]) -> None:
    assert [switch.name for switch in find_named(OFF, said, "off")] == names


@pytest.mark.parametrize(
    ("said", "efforts"),
    [
        ("Supported values are: 'low', 'medium', and 'high'.", ("low", "medium", "high")),
        ("reasoning_effort 'none' is not supported. Must be one of low, high, max", ("low", "high", "max")),
        ("Input should be 'none', 'minimal' or 'xhigh'", ("none", "minimal", "xhigh")),
        ("no such thing", ()),
        # The refused effort is none of those that the server knows.
        ("This model does not support effort level 'xhigh'. Supported levels: high, low.", ("low", "high")),
        ("Unexpected effort high. Supported types are xhigh (default), medium, and low", ("low", "medium", "xhigh")),
    ],
)
def test_the_efforts_of_a_refusal(said: str, efforts: tuple[str, ...]) -> None:
    assert read_efforts(said) == efforts


def test_a_word_of_prose_is_no_field() -> None:
    assert not is_named("thinking", "the model is thinking hard")
    assert is_named("thinking", "`thinking` is not allowed")
    assert not is_named("max_tokens", "max_tokens_to_sample is gone")


@pytest.mark.skipif(not _REAL.exists(), reason="the folder with real refusals is not here")
def test_real_refusals_of_efforts_list_what_they_list() -> None:
    """Of the real refusals of an effort's value, most list the efforts; none lists nonsense."""
    bodies = [json.loads(line) for line in _REAL.read_text(encoding="utf-8").splitlines()]
    values = [entry for entry in bodies if entry.get("kind") == "effort_unsupported_value"]
    assert values
    read = [
        read_efforts(json.dumps(entry["body"]) if not isinstance(entry["body"], str) else entry["body"])
        for entry in values
    ]
    assert sum(len(efforts) >= 2 for efforts in read) >= len(values) // 2
