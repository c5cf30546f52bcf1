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
        ("openai.gpt-6-sol", "*openai.gpt-*", "optional", "reasoning_object", ()),
        ("us.openai.gpt-5.6-terra", "*openai.gpt-*", "optional", "reasoning_object", ()),
        ("global.openai.gpt-6-astra", "*openai.gpt-6-astra*", "always", "reasoning_object", ()),
        ("openai.gpt-6.1-sol", "*openai.gpt-6.1-sol*", "always", "reasoning_object", ()),
        ("us.anthropic.claude-fable-5-2-v1:0", "*claude-fable-5-2[-:@]*", "always", "thinking_toggle", ()),
        ("anthropic.claude-v2:1", "*claude-v[12]*", "never", "thinking_toggle", ("thinking",)),
        ("us.amazon.nova-2-lite-v1:0", "*amazon.nova-2*", "optional", "max_reasoning_effort", ("thinking",)),
        ("us.amazon.nova-pro-v1:0", "*amazon.nova*", "never", None, ("thinking",)),
        ("qwen.qwen3-32b-v1:0", "*qwen.qwen3*", "optional", "reasoning_config", ("think",)),
        ("qwen.qwen3-coder-480b-a35b-v1:0", "*qwen.qwen3-coder*", "never", None, None),
        ("qwen.qwen3-coder-next", "*qwen.qwen3-coder*", "never", None, None),
        ("us.deepseek.v3.2", "*deepseek.v3*", "optional", "reasoning_effort", None),
        ("us.xai.grok-4.6", "*xai.grok-4.[67]*", "always", "reasoning_object", None),
        ("global.xai.grok-4.7", "*xai.grok-4.[67]*", "always", "reasoning_object", None),
        ("global.moonshotai.kimi-k3", "*moonshot*kimi-k3*", "always", "reasoning_effort", None),
        ("moonshot.kimi-k2-thinking", "*moonshot*kimi-k2-thinking*", "always", None, None),
        ("moonshotai.kimi-k2.5", "*moonshot*kimi-k2.[56]*", "optional", None, None),
        ("minimax.minimax-m2.5", "*minimax.minimax-m2*", "always", None, None),
        ("us.zai.glm-5.3", "*zai.glm-5.3*", "always", "reasoning_effort", None),
        ("zai.glm-4.7-flash", "*zai.glm-[45]*", "optional", None, None),
        ("us-gov.nvidia.nemotron-super-3-120b", "*nvidia.nemotron*", "optional", None, None),
        ("mistral.magistral-small-2509", "*mistral.magistral*", "always", None, None),
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
    assert [rule.when for rule in BEDROCK_REPLAY] == ["never"] * 2 + ["tool_turns"] * 5 + ["sealed"]
    assert without_proof(BEDROCK_REPLAY) == []
    assert without_proof(BEDROCK_MODELS) == []
