"""OpenAI's models: the rule that each name finds, in chat completions and in Responses."""

from __future__ import annotations

import pytest

from asides.providers.find import find_provider
from asides.providers.models.gpt import GPT_MODELS, GPT_RESPONSES_MODELS, at_azure, gpt_oss
from asides.values.thinking import Effort
from tests.providers.models.rules import rule_of, without_proof

HIGH: tuple[Effort, ...] = ("low", "medium", "high")
XHIGH: tuple[Effort, ...] = (*HIGH, "xhigh")
MAX: tuple[Effort, ...] = (*XHIGH, "max")
MINIMAL: tuple[Effort, ...] = ("minimal", *HIGH)


@pytest.mark.parametrize(
    ("model", "rule", "thinking", "default", "efforts", "endpoint"),
    [
        ("gpt-6.1-sol", "gpt-6.1-sol*", "always", "on", XHIGH, "either"),
        ("gpt-6.1-terra", "gpt-6.1-terra*", "optional", "on", XHIGH, "either"),
        ("gpt-6.1-terra-2026-10-26", "gpt-6.1-terra*", "optional", "on", XHIGH, "either"),
        ("chat-latest", "chat-latest*", "always", "on", ("medium",), "either"),
        ("gpt-chat-latest", "gpt-chat-latest*", "always", "on", ("medium",), "either"),
        ("gpt-daybreak-blue-latest", "*daybreak-*", "optional", "on", XHIGH, "either"),
        ("gpt-6-astra-2026-11-04", "gpt-6-astra*", "always", "on", XHIGH, "either"),
        ("gpt-6-sol", "gpt-6-sol*", "optional", None, XHIGH, "either"),
        ("gpt-6-luna", "gpt-6-luna*", "optional", None, XHIGH, "either"),
        ("gpt-6-rosalind", "gpt-6-rosalind*", "always", "on", XHIGH, "responses"),
        ("gpt-6-terra", "gpt-6*", "unknown", None, None, "either"),
        ("gpt-5.6", "gpt-5.6*", "optional", "on", XHIGH, "either"),
        ("gpt-5.4-pro", "gpt-5.[245]-pro*", "always", "on", ("medium", "high", "xhigh"), "responses"),
        ("gpt-5.5", "gpt-5.5*", "optional", "on", XHIGH, "either"),
        ("gpt-5.2-chat-latest", "gpt-5.[123]-chat*", "always", "on", ("medium",), "either"),
        ("gpt-5.4-mini", "gpt-5.4*", "optional", "off", XHIGH, "either"),
        ("gpt-5.3-codex", "gpt-5.3*", "optional", "off", XHIGH, "either"),
        ("gpt-5.2", "gpt-5.2*", "optional", "off", XHIGH, "either"),
        ("gpt-5.1-codex-max", "gpt-5.1-codex-max*", "always", "on", XHIGH, "either"),
        ("gpt-5.1-codex-mini", "gpt-5.1-codex*", "always", "on", HIGH, "either"),
        ("gpt-5.1-2025-11-13", "gpt-5.1*", "optional", "off", HIGH, "either"),
        ("gpt-5.9", "gpt-5.*", "unknown", None, None, "either"),
        ("gpt-5-chat-latest", "gpt-5-chat*", "never", None, (), "either"),
        ("gpt-5-pro-2025-10-06", "gpt-5-pro*", "always", "on", ("high",), "responses"),
        ("gpt-5-codex", "gpt-5-codex*", "always", "on", HIGH, "responses"),
        ("gpt-5-mini", "gpt-5-*", "always", "on", MINIMAL, "either"),
        ("gpt-5", "gpt-5", "always", "on", MINIMAL, "either"),
        ("o1-mini", "o1-mini*", "always", "on", (), "either"),
        ("o1-preview", "o1-preview*", "always", "on", (), "either"),
        ("o3-pro", "o[13]-pro*", "always", "on", HIGH, "responses"),
        ("o4-mini-deep-research", "o[34]*-deep-research*", "always", "on", (), "responses"),
        ("codex-mini-latest", "codex-mini*", "always", "on", HIGH, "responses"),
        ("computer-use-preview", "computer-use-preview*", "always", "on", (), "responses"),
        ("o1-2024-12-17", "o1*", "always", "on", HIGH, "either"),
        ("o3-mini", "o3-mini*", "always", "on", HIGH, "either"),
        ("o4-mini", "o[34]*", "always", "on", HIGH, "either"),
        ("gpt-4o", "gpt-4o*", "never", None, (), "either"),
        ("gpt-4.1-mini", "gpt-4.1*", "never", None, (), "either"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05*", "never", None, (), "either"),
        ("gpt-4-turbo-2024-04-09", "gpt-4-turbo*", "never", None, (), "either"),
        ("gpt-4-1106-preview", "gpt-4-1106*", "never", None, (), "either"),
        ("gpt-4-0125-preview", "gpt-4-0125*", "never", None, (), "either"),
        ("gpt-4", "gpt-4", "never", None, (), "either"),
        ("gpt-4-0613", "gpt-4-0[36]*", "never", None, (), "either"),
        ("gpt-4-32k-0613", "gpt-4-32k*", "never", None, (), "either"),
        ("gpt-3.5-turbo", "gpt-3.5*", "never", None, (), "either"),
        ("chatgpt-4o-latest", "chatgpt-*", "never", None, (), "either"),
    ],
)
def test_the_first_rule_that_matches_is_the_one_of_the_model(
    model: str, rule: str, thinking: str, default: str | None, efforts: tuple[Effort, ...] | None, endpoint: str
) -> None:
    found = rule_of(model, GPT_MODELS)
    assert (found.models, found.thinking, found.default, found.efforts, found.endpoint) == (
        rule,
        thinking,
        default,
        efforts,
        endpoint,
    )


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gpt-4o", None),
        ("gpt-4o-2024-05-13", "json_object"),
        ("gpt-4-turbo", "json_object"),
        ("gpt-4", "nothing"),
        ("gpt-4-0613", "nothing"),
        ("o1-mini", "nothing"),
    ],
)
def test_older_models_take_no_schema(model: str, takes: str | None) -> None:
    assert rule_of(model, GPT_MODELS).structured_output == takes


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("gpt-4o", 16_384),
        ("gpt-4o-mini", 16_384),
        ("gpt-4o-2024-05-13", 4_096),
        ("gpt-4-turbo", 4_096),
        ("gpt-4-0613", 8_192),
        # Not known, or more than anyone reserves.
        ("gpt-4.1", None),
        ("gpt-4o-audio-preview", None),
        ("gpt-4-32k", None),
        ("gpt-3.5-turbo-16k", None),
    ],
)
def test_older_models_write_little(model: str, most: int | None) -> None:
    assert rule_of(model, GPT_MODELS).max_output == most


def test_a_model_that_reasons_hides_it_in_chat_and_summarises_it_in_responses() -> None:
    for chat, responses in zip(GPT_MODELS, GPT_RESPONSES_MODELS, strict=True):
        if chat.thinking == "never":
            assert responses is chat
        else:
            assert (chat.kind, responses.kind) == ("hidden", "summary"), chat.models
            assert responses.tools_while_thinking, chat.models
            role = "user" if chat.models in ("o1-mini*", "o1-preview*") else "developer"
            assert (chat.output_limit, chat.system_role) == ("max_completion_tokens", role), chat.models


def test_chat_refuses_tools_beside_thinking_from_5_4_on_and_the_effort_max_on_every_model() -> None:
    refuses = [rule.models for rule in GPT_MODELS if rule.tools_while_thinking is not True]
    assert refuses == [
        "gpt-6.1-sol*",
        "gpt-6.1-terra*",
        "gpt-6-astra*",
        "gpt-6-sol*",
        "gpt-6-luna*",
        "gpt-6*",
        "gpt-5.6*",
        "gpt-5.[245]-pro*",
        "gpt-5.5*",
        "*daybreak-*",
        "gpt-5.4*",
    ]
    differ = [a.models for a, b in zip(GPT_MODELS, GPT_RESPONSES_MODELS, strict=True) if a.efforts != b.efforts]
    assert differ == [rule.models for rule in GPT_RESPONSES_MODELS if rule.efforts and "max" in rule.efforts]
    assert "gpt-6.1-sol*" in differ
    assert not any("max" in (rule.efforts or ()) for rule in GPT_MODELS)
    assert rule_of("gpt-6.1-sol", GPT_RESPONSES_MODELS).efforts == MAX


def test_the_open_weights_always_think_at_three_efforts() -> None:
    rule = gpt_oss("*gpt-oss*", "2026-08", "a card", tags=("harmony",))
    assert (rule.thinking, rule.efforts, rule.off_as_effort, rule.tags) == ("always", HIGH, False, ("harmony",))


def test_every_rule_has_a_date_and_a_source() -> None:
    assert without_proof((*GPT_MODELS, *GPT_RESPONSES_MODELS, gpt_oss("*", "2026-08", "a card"))) == []


def test_azure_differs_in_two_models() -> None:
    for rules in (at_azure(GPT_MODELS), at_azure(GPT_RESPONSES_MODELS)):
        assert rule_of("gpt-6-astra", rules).efforts == XHIGH
        terra = rule_of("gpt-6.1-terra", rules)
        assert (terra.thinking, terra.off_as_effort) == ("always", False)
        assert rule_of("gpt-6.1-sol", rules).models == "gpt-6.1-sol*"


@pytest.mark.parametrize("model", ["ft:gpt-4.1-mini-2025-04-14:acme:bot:abc", "ft:o4-mini-2025-04-16:acme::x", "ft:"])
def test_a_fine_tuned_model_follows_its_base(model: str) -> None:
    row = find_provider("openai")
    base = model.split(":")[1] or model
    assert row.rule(model) == row.rule(base)
    assert row.replay_rule(model) == row.replay_rule(base)
