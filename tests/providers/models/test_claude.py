"""Claude's rules: each generation is asked in its own way, with or without words in front of its name."""

from __future__ import annotations

import pytest

from asides.providers.models.claude import CLAUDE_REPLAY, claude_models
from asides.providers.provider import ReplayRule, ThinkingForm
from tests.providers.models.rules import rule_of, without_proof

PREFIXES = ("", "*", "anthropic/")


@pytest.mark.parametrize(
    ("model", "rule", "thinking", "forms"),
    [
        ("claude-fable-5-2", "claude-fable-5-2", "always", ("adaptive",)),
        ("claude-fable-5-2-v1:0", "claude-fable-5-2[-:@]*", "always", ("adaptive",)),
        ("claude-mythos-5-2@20261110", "claude-mythos-5-2[-:@]*", "always", ("adaptive",)),
        ("claude-mythos-5-1", "claude-mythos-5-1*", "always", ("adaptive",)),
        ("claude-fable-5-1-20261020", "claude-fable-5-1*", "always", ("adaptive",)),
        ("claude-opus-5-5", "claude-opus-5-5*", "always", ("adaptive",)),
        ("claude-sonnet-5-5", "claude-sonnet-5-5*", "always", ("adaptive", "between_tools")),
        ("claude-haiku-5-5", "claude-haiku-5-5*", "optional", ("adaptive", "disabled")),
        ("claude-fable-5", "claude-fable-5*", "always", ("adaptive",)),
        ("claude-fable-5-20260601", "claude-fable-5*", "always", ("adaptive",)),
        ("claude-mythos-preview", "claude-mythos*", "always", ("adaptive",)),
        ("claude-sonnet-5", "claude-sonnet-5*", "optional", ("adaptive", "disabled")),
        ("claude-opus-5-20260401", "claude-opus-5*", "optional", ("adaptive", "disabled")),
        ("claude-opus-4-8", "claude-opus-4-[78]*", "optional", ("adaptive", "disabled")),
        ("claude-opus-4-7-20260416", "claude-opus-4-[78]*", "optional", ("adaptive", "disabled")),
        ("claude-opus-4-6", "claude-opus-4-6*", "optional", ("adaptive", "enabled", "disabled")),
        ("claude-sonnet-4-6", "claude-sonnet-4-6*", "optional", ("adaptive", "enabled", "disabled")),
        ("claude-opus-4-5-20251101", "claude-opus-4-5*", "optional", ("enabled", "disabled")),
        ("claude-opus-4-1-20250805", "claude-opus-4-1*", "optional", ("enabled", "disabled")),
        ("claude-opus-4-20250514", "claude-opus-4*", "optional", ("enabled", "disabled")),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5*", "optional", ("enabled", "disabled")),
        ("claude-sonnet-4-20250514", "claude-sonnet-4*", "optional", ("enabled", "disabled")),
        ("claude-haiku-4-5-20251001", "claude-haiku-4*", "optional", ("enabled", "disabled")),
        ("claude-3-7-sonnet-20250219", "claude-3-7-*", "optional", ("enabled", "disabled")),
        ("claude-3-5-haiku-20241022", "claude-3-5-*", "never", ()),
        ("claude-3-opus-20240229", "claude-3-*", "never", ()),
        ("claude-2.1", "claude-2*", "never", ()),
        ("claude-v2:1", "claude-v[12]*", "never", ()),
        ("claude-instant-1.2", "claude-instant*", "never", ()),
        ("claude-saga-7", "claude-*", "optional", ("adaptive", "disabled")),
    ],
)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_first_rule_that_matches_is_the_one_of_its_generation(
    prefix: str, model: str, rule: str, thinking: str, forms: tuple[ThinkingForm, ...]
) -> None:
    found = rule_of(prefix.replace("*", "us.anthropic.") + model, claude_models(prefix))
    assert (found.models, found.thinking, found.forms) == (prefix + rule, thinking, forms)


def test_only_the_rule_for_models_that_are_not_known_yet_is_assumed() -> None:
    assert [rule.models for rule in claude_models() if rule.assumed] == ["claude-*"]


def test_models_that_take_a_budget_demand_their_thinking_back_and_later_ones_refuse_sampling() -> None:
    for rule in claude_models():
        assert rule.begins_with_thinking is ("enabled" in rule.forms) is (rule.budget is not None), rule.models
        assert (rule.refuses == ("temperature", "top_p", "top_k")) is (rule.display == "omitted"), rule.models
        assert (rule.tags == ("thinking",)) is (rule.thinking == "never"), rule.models


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-opus-4-6", 128_000),
        ("claude-sonnet-4-6", 128_000),
        ("claude-sonnet-4-5", 64_000),
        ("claude-opus-4-1", 32_000),
        ("claude-3-opus", 4096),
    ],
)
def test_the_most_tokens_of_output(model: str, most: int) -> None:
    assert rule_of(model, claude_models()).max_output == most


def test_the_clouds_give_sonnet_4_6_half_of_the_output() -> None:
    assert rule_of("us.anthropic.claude-sonnet-4-6", claude_models("*")).max_output == 64_000
    assert rule_of("us.anthropic.claude-opus-4-6-v1", claude_models("*")).max_output == 128_000


@pytest.mark.parametrize(
    ("model", "context"),
    [("claude-sonnet-4-5", 200_000), ("claude-sonnet-4-6", 1_000_000), ("claude-haiku-5-5", 1_000_000)],
)
def test_the_room_of_a_request(model: str, context: int) -> None:
    assert rule_of(model, claude_models()).context == context


@pytest.mark.parametrize("prefix", PREFIXES)
def test_only_the_thoughts_of_sonnet_and_haiku_5_5_are_bound_to_the_account_and_all_newest_ones_to_what_came_before(
    prefix: str,
) -> None:
    rules = [rule for rule in claude_models(prefix) if not rule.assumed]
    bound = [rule.models.removeprefix(prefix) for rule in rules if rule.account_bound]
    assert bound == ["claude-sonnet-5-5*", "claude-haiku-5-5*"]
    newest = ("fable-5-2", "fable-5-1", "mythos-5-2", "mythos-5-1", "opus-5-5", "sonnet-5-5", "haiku-5-5")
    for rule in rules:
        assert rule.prefix_bound is any(name in rule.models for name in newest), rule.models


def test_signed_thinking_goes_back_and_every_rule_has_a_date_and_a_source() -> None:
    assert without_proof(claude_models()) == []
    (replay,) = CLAUDE_REPLAY
    assert replay == ReplayRule(when="sealed", since=replay.since, source=replay.source)
    assert replay.since
    assert replay.source
