"""The models of six makers and two more: the rule that each name finds."""

from __future__ import annotations

import pytest

from asides.providers.find import find_target
from asides.providers.models import makers
from asides.providers.models.makers import (
    COMMAND_MODELS,
    DEEPSEEK_MODELS,
    GLM_MODELS,
    GROK_MODELS,
    KIMI_MODELS,
    MINIMAX_MODELS,
    MISTRAL_MODELS,
    QWEN_MODELS,
)
from asides.providers.provider import ModelRule
from asides.values.thinking import Effort
from tests.providers.models.rules import rule_of, without_proof

LOW_HIGH_MAX: tuple[Effort, ...] = ("low", "high", "max")
THREE: tuple[Effort, ...] = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("rules", "model", "rule", "thinking", "default", "efforts"),
    [
        (DEEPSEEK_MODELS, "deepseek-v4-pro", "deepseek-v4*", "optional", "on", LOW_HIGH_MAX),
        (DEEPSEEK_MODELS, "deepseek-v4-flash-0731", "deepseek-v4-flash*", "optional", "on", LOW_HIGH_MAX),
        (DEEPSEEK_MODELS, "deepseek-flash", "deepseek-flash*", "optional", "on", LOW_HIGH_MAX),
        (DEEPSEEK_MODELS, "deepseek-reasoner", "deepseek-reasoner*", "always", "on", LOW_HIGH_MAX),
        (DEEPSEEK_MODELS, "deepseek-chat", "deepseek-chat*", "optional", "off", LOW_HIGH_MAX),
        (KIMI_MODELS, "kimi-k3-preview", "kimi-k3*", "always", "on", LOW_HIGH_MAX),
        (KIMI_MODELS, "kimi-k3.1-pro-highspeed", "kimi-k3*", "always", "on", LOW_HIGH_MAX),
        (KIMI_MODELS, "kimi-k2.7", "kimi-k2.7*", "always", "on", ()),
        (KIMI_MODELS, "kimi-k2.5", "kimi-k2.[56]*", "optional", "on", ()),
        (KIMI_MODELS, "kimi-k2-thinking-turbo", "kimi-k2-thinking*", "always", "on", ()),
        (KIMI_MODELS, "kimi-thinking-preview", "kimi-thinking*", "always", "on", ()),
        (KIMI_MODELS, "kimi-k2-0905-preview", "kimi-k2*", "never", None, ()),
        (KIMI_MODELS, "moonshot-v1-8k", "moonshot-v1*", "never", None, ()),
        (QWEN_MODELS, "qwen3-235b-a22b-thinking-2507", "*-thinking*", "always", "on", ()),
        (QWEN_MODELS, "qwq-plus", "qwq*", "always", "on", ()),
        (QWEN_MODELS, "qvq-max", "qvq*", "always", "on", ()),
        (QWEN_MODELS, "qwen3-30b-a3b-instruct-2507", "*-instruct*", "never", None, ()),
        (QWEN_MODELS, "qwen3-coder-plus", "qwen3-coder*", "never", None, ()),
        (QWEN_MODELS, "qwen2.5-72b", "qwen2*", "never", None, ()),
        (QWEN_MODELS, "qwen3.8-max", "qwen3.8*", "optional", "on", ("low", "medium", "xhigh")),
        (QWEN_MODELS, "qwen3.8-flash", "qwen3.8*", "optional", "on", ("low", "medium", "xhigh")),
        (QWEN_MODELS, "deepseek-v4-pro", "deepseek-v[34]*", "optional", None, ()),
        (QWEN_MODELS, "glm-5.2", "glm-[45]*", "optional", "on", ()),
        (QWEN_MODELS, "kimi-k2.7-code", "kimi-k2.7*", "always", "on", ()),
        (QWEN_MODELS, "qwen3-max", "qwen3-max*", "optional", "off", ()),
        (QWEN_MODELS, "qwen3.5-plus", "qwen3.[0-9]*", "optional", None, ()),
        (QWEN_MODELS, "qwen3-32b", "qwen3-[0-9]*b*", "optional", "on", ()),
        (QWEN_MODELS, "qwen-plus-latest", "qwen-plus*", "optional", "off", ()),
        (QWEN_MODELS, "qwen-flash", "qwen-flash*", "optional", "off", ()),
        (QWEN_MODELS, "qwen-turbo", "qwen-turbo*", "optional", "off", ()),
        (GLM_MODELS, "glm-5.3", "glm-5.3*", "always", "on", LOW_HIGH_MAX),
        (GLM_MODELS, "glm-5.2-air", "glm-5.2*", "optional", "on", ("high", "max")),
        (GLM_MODELS, "glm-5", "glm-5*", "optional", "on", ()),
        (GLM_MODELS, "glm-4.6v", "glm-4.[56]v*", "unknown", None, None),
        (GLM_MODELS, "glm-4.6", "glm-4.[67]*", "optional", "on", ()),
        (GLM_MODELS, "glm-4.5-air", "glm-4.5*", "optional", "on", ()),
        (GLM_MODELS, "glm-4-plus", "glm-4*", "never", None, ()),
        (GROK_MODELS, "grok-4-fast-non-reasoning", "*non-reasoning*", "never", None, ()),
        (GROK_MODELS, "grok-4.20-beta", "grok-4.20*", "always", "on", ()),
        (GROK_MODELS, "grok-4.3", "grok-4.3*", "optional", None, THREE),
        (GROK_MODELS, "grok-4.5", "grok-4.5*", "always", "on", THREE),
        (GROK_MODELS, "grok-4.7", "grok-4.[67]*", "always", "on", (*THREE, "xhigh")),
        (GROK_MODELS, "grok-4.20-multi-agent-0309", "grok-4.20-multi-agent*", "always", "on", ()),
        (GROK_MODELS, "grok-latest", "grok-latest", "optional", None, THREE),
        (GROK_MODELS, "grok-build-latest", "grok-build-latest", "always", "on", THREE),
        (GROK_MODELS, "grok-build-0.1", "grok-build*", "always", "on", ()),
        (GROK_MODELS, "grok-4-0709", "grok-4*", "always", "on", ()),
        (GROK_MODELS, "grok-code-fast-1", "grok-code*", "always", "on", ()),
        (GROK_MODELS, "grok-3-mini", "grok-3-mini*", "always", "on", ("low", "high")),
        (GROK_MODELS, "grok-3", "grok-[23]*", "never", None, ()),
        (MINIMAX_MODELS, "MiniMax-M2.5", "minimax-m2*", "always", "on", ()),
        (MINIMAX_MODELS, "MiniMax-M3.1-Flash", "minimax-m3.1*", "always", "on", (*THREE, "xhigh", "max")),
        (MINIMAX_MODELS, "MiniMax-M3.1-Flash-Preview", "minimax-m3.1*", "always", "on", (*THREE, "xhigh", "max")),
        (MINIMAX_MODELS, "MiniMax-M3", "minimax-m*", "optional", "on", ()),
        (MISTRAL_MODELS, "magistral-medium-2509", "magistral*", "always", "on", ()),
        (MISTRAL_MODELS, "mistral-small-latest", "mistral-small-latest", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "mistral-small-2603", "mistral-small-26*", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "mistral-medium-3.5", "mistral-medium-3[.-]5*", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "mistral-medium-latest", "mistral-medium-latest", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "mistral-medium-2604", "mistral-medium-2604*", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "mistral-medium-2508", "*", "unknown", None, None),
        (MISTRAL_MODELS, "mistral-large-4-0", "mistral-large-4*", "optional", "off", ("high",)),
        (MISTRAL_MODELS, "zai-glm-5-3", "zai-glm-*", "always", "on", LOW_HIGH_MAX),
        (MISTRAL_MODELS, "mistral-large-latest", "*", "unknown", None, None),
        (COMMAND_MODELS, "command-a-reasoning-08-2025", "command-a-reasoning*", "optional", "on", ()),
        (COMMAND_MODELS, "command-a-plus", "command-a-plus*", "optional", "on", ()),
        (COMMAND_MODELS, "command-a-03-2025", "command-a-0*", "never", None, ()),
        (COMMAND_MODELS, "command-a-vision-07-2025", "command-a-vision*", "never", None, ()),
        (COMMAND_MODELS, "command-a-translate-08-2025", "command-a-translate*", "never", None, ()),
        (COMMAND_MODELS, "command-r-plus", "command-r*", "never", None, ()),
        (COMMAND_MODELS, "c4ai-aya-expanse-32b", "c4ai-*", "never", None, ()),
    ],
)
def test_the_first_rule_that_matches_is_the_one_of_the_model(
    rules: tuple[ModelRule, ...],
    model: str,
    rule: str,
    thinking: str,
    default: str | None,
    efforts: tuple[Effort, ...] | None,
) -> None:
    found = rule_of(model, rules)
    assert (found.models, found.thinking, found.default, found.efforts) == (rule, thinking, default, efforts)


def test_makers_that_refuse_a_forced_tool_while_their_model_thinks() -> None:
    for rules in (DEEPSEEK_MODELS, KIMI_MODELS, QWEN_MODELS, GLM_MODELS, MINIMAX_MODELS):
        thinking = [rule for rule in rules if rule.thinking in ("always", "optional")]
        # One of them accepts it, as recorded requests show.
        assert [rule.models for rule in thinking if rule.forced_tools is True] in ([], ["glm-4.7-flash*"])
    assert [rule.models for rule in KIMI_MODELS if rule.forced_tools == "required"] == ["kimi-k3*"]


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        ("deepseek-flash", True),
        ("deepseek-v4-flash", True),
        ("deepseek-v4-flash-vision-exp", True),
        ("deepseek-v4-pro", False),
        ("deepseek-reasoner", False),
    ],
)
def test_only_the_flash_models_of_deepseek_read_pictures(model: str, reads: bool) -> None:
    assert find_target(f"deepseek:{model}", environ={}).facts.pictures is reads


@pytest.mark.parametrize(
    ("model", "asks"),
    [
        ("glm-4.6", True),
        ("glm-4.7-flash", True),
        ("glm-5", True),
        ("glm-5.2", True),
        ("glm-5.3", True),
        ("glm-4.5", False),
        ("glm-4.5v", False),
        ("glm-4-plus", False),
    ],
)
def test_newer_models_of_zai_are_asked_for_calls_as_they_are_written(model: str, asks: bool) -> None:
    assert rule_of(model, GLM_MODELS).tool_stream is asks


@pytest.mark.parametrize("model", ["glm-5.3", "kimi-k3", "minimax-m3.1-flash"])
def test_an_effort_of_none_is_never_sent_to_a_model_that_takes_it_for_another(model: str) -> None:
    rule = rule_of(model, (*GLM_MODELS, *KIMI_MODELS, *MINIMAX_MODELS))
    assert (rule.thinking, rule.off_as_effort, rule.ask_by) == ("always", False, "reasoning_effort")


def test_every_rule_has_a_date_and_a_source() -> None:
    lists = {name: rules for name, rules in vars(makers).items() if name.endswith("_MODELS")}
    assert len(lists) == 8
    assert {name: lacking for name, rules in lists.items() if (lacking := without_proof(rules))} == {}
