"""What is said about models and providers that are not known. Their messages: tests/providers/test_model_strings."""

from __future__ import annotations

from asides.providers.provider import ModelRule, Provider
from asides.providers.unknown_names import find_candidates


def test_candidates_are_those_with_a_rule_for_the_model_makers_first() -> None:
    assert find_candidates("gpt-5-mini") == ("openai", "azure")
    assert find_candidates("deepseek-v4-pro")[0] == "deepseek"
    assert find_candidates("nobody-knows-me") == ()
    assert find_candidates("nobody-knows-me", [Provider(name="mine", models=(ModelRule(models="nobody*"),))]) == (
        "mine",
    )
