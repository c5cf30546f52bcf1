"""The models at Bedrock: the rule that each of its long names finds, and how each family is asked."""

from __future__ import annotations

import pytest

from asides.providers.models.bedrock import BEDROCK_MODELS, BEDROCK_REPLAY
from tests.providers.models.rules import rule_of, without_proof


@pytest.mark.parametrize(
    ("model", "rule", "thinking", "ask_by", "tags"),
    [
        (
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "*claude-sonnet-4-5*",
            "optional",
            "thinking_toggle",
            (),
        ),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "*claude-3-5-*", "never", "thinking_toggle", ("thinking",)),
        ("openai.gpt-oss-120b-1:0", "*openai.gpt-oss*", "always", "reasoning_effort", ("reasoning",)),
        ("openai.gpt-6-sol", "*openai.gpt-*", "always", "reasoning_object", ()),
        ("us.amazon.nova-2-lite-v1:0", "*amazon.nova-2*", "optional", "max_reasoning_effort", ("thinking",)),
        ("us.amazon.nova-pro-v1:0", "*amazon.nova*", "never", None, ("thinking",)),
        ("qwen.qwen3-32b-v1:0", "*qwen.qwen3*", "optional", "reasoning_config", ("think",)),
        ("us.deepseek.r1-v1:0", "*deepseek.r1*", "always", None, ("think",)),
        ("meta.llama3-70b-instruct-v1:0", "*", "unknown", None, None),
    ],
)
def test_the_first_rule_that_matches_is_the_one_of_its_family(
    model: str, rule: str, thinking: str, ask_by: str | None, tags: tuple[str, ...] | None
) -> None:
    found = rule_of(model, BEDROCK_MODELS)
    assert (found.models, found.thinking, found.ask_by, found.tags) == (rule, thinking, ask_by, tags)


def test_what_is_signed_goes_back_and_every_rule_has_a_date_and_a_source() -> None:
    assert [rule.when for rule in BEDROCK_REPLAY] == ["sealed"]
    assert without_proof(BEDROCK_MODELS) == []
