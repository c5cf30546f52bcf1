"""The Gemini models: the second family takes a budget, later ones a level, and those that draw or speak neither."""

from __future__ import annotations

import pytest

from asides.providers.models.gemini import GEMINI_MODELS, GEMINI_REPLAY
from asides.values.thinking import Effort
from tests.providers.models.rules import rule_of, without_proof

LEVELS: tuple[Effort, ...] = ("low", "medium", "high")
FROM_MINIMAL: tuple[Effort, ...] = ("minimal", *LEVELS)


@pytest.mark.parametrize(
    ("model", "rule", "thinking", "ask_by", "efforts"),
    [
        ("gemini-2.5-flash-preview-tts", "gemini-*-tts*", "never", None, ()),
        ("gemini-2.5-flash-image", "gemini-2.5-flash-image*", "never", None, ()),
        ("gemini-3-pro-image-preview", "gemini-3*-image*", "always", "thinking_level", ()),
        ("gemini-3.7-flash", "gemini-3.[7-9]*", "always", "thinking_level", LEVELS),
        ("gemini-3-pro-preview", "gemini-3-pro*", "always", "thinking_level", ("low", "high")),
        ("gemini-3.1-pro-preview", "gemini-3*-pro*", "always", "thinking_level", LEVELS),
        ("gemini-3-flash-preview", "gemini-3*-flash*", "always", "thinking_level", FROM_MINIMAL),
        ("gemini-3.1-flash-lite", "gemini-3*-flash*", "always", "thinking_level", FROM_MINIMAL),
        ("gemini-3-ultra", "gemini-3*", "always", "thinking_level", LEVELS),
        ("gemini-pro-latest", "gemini-pro-latest", "always", "thinking_level", LEVELS),
        ("gemini-flash-latest", "gemini-flash-latest", "always", "thinking_level", LEVELS),
        ("gemini-flash-lite-latest", "gemini-flash-lite-latest", "always", "thinking_level", FROM_MINIMAL),
        ("gemini-3.5-flash-lite", "gemini-3*-flash*", "always", "thinking_level", FROM_MINIMAL),
        ("gemma-4-31b-it", "gemma-4*", "always", "thinking_level", ("minimal", "high")),
        ("gemma-4-26b-a4b-it", "gemma-4*", "always", "thinking_level", ("minimal", "high")),
        ("gemini-4-pro", "gemini-4*", "always", "thinking_level", LEVELS),
        ("gemini-5-pro", "gemini-[5-9]*", "unknown", "thinking_level", None),
        ("gemini-2.5-pro", "gemini-2.5-pro*", "always", "thinking_budget", FROM_MINIMAL),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite*", "optional", "thinking_budget", FROM_MINIMAL),
        ("gemini-2.5-flash", "gemini-2.5-flash*", "optional", "thinking_budget", FROM_MINIMAL),
        ("gemini-2.0-flash", "gemini-[12].*", "never", None, ()),
        ("gemini-1.5-pro", "gemini-[12].*", "never", None, ()),
        ("gemma-3-27b-it", "*", "unknown", None, None),
    ],
)
def test_the_first_rule_that_matches_is_the_one_of_its_family(
    model: str, rule: str, thinking: str, ask_by: str | None, efforts: tuple[Effort, ...] | None
) -> None:
    found = rule_of(model, GEMINI_MODELS)
    assert (found.models, found.thinking, found.ask_by, found.efforts) == (rule, thinking, ask_by, efforts)


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        ("gemini-2.5-pro", (128, 32_768)),
        ("gemini-2.5-flash-lite", (512, 24_576)),
        ("gemini-2.5-flash", (1, 24_576)),
        ("gemini-3-pro", None),
    ],
)
def test_the_least_and_the_most_tokens_of_thinking(model: str, budget: tuple[int, int] | None) -> None:
    assert rule_of(model, GEMINI_MODELS).budget == budget


def test_later_families_want_the_signature_of_their_calls_and_those_before_take_no_schema_beside_tools() -> None:
    for rule in GEMINI_MODELS:
        by_level = rule.ask_by == "thinking_level"
        signs = by_level and "image" not in rule.models and "gemma" not in rule.models
        assert rule.signed_calls is signs, rule.models
        assert (rule.output_with_tools is False) is not by_level, rule.models
        assert rule.tools is not ("image" in rule.models or "tts" in rule.models), rule.models


def test_what_is_signed_goes_back_and_every_rule_has_a_date_and_a_source() -> None:
    assert [rule.when for rule in GEMINI_REPLAY] == ["sealed"]
    assert without_proof(GEMINI_MODELS) == []
