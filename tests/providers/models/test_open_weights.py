"""Open models by name: the rule that each finds, its tags, and whether its text begins inside of one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.providers.find import find_provider
from asides.providers.models.open_weights import (
    HOSTED,
    SELF_HOSTED,
    SELF_HOSTED_AUTO,
    TINY_REASONER,
    extend_hosted,
    open_weights,
)
from asides.providers.provider import ModelRule
from asides.providers.quirks import ANY_TAGS
from asides.wire.inline_tags import GRAMMARS
from tests.providers.models.rules import rule_of, without_proof


@pytest.mark.parametrize(
    ("model", "rule", "thinking", "tags", "inside"),
    [
        # inside: at a server of one's own · there, where a hybrid may begin inside · at a host for hire
        (
            "openai/gpt-oss-20b",
            "*gpt-oss*",
            "always",
            ("harmony", "harmony-text", "reasoning", "think"),
            (False, False, False),
        ),
        ("deepseek-ai/DeepSeek-R1-0528", "*deepseek-r1*", "always", ("think",), (True, True, False)),
        ("qwq-32b", "*qwq*", "always", ("think",), (True, True, False)),
        ("Qwen/Qwen3-4B-Thinking-2507", "*qwen3*thinking*", "always", ("think",), (True, True, False)),
        ("Qwen/Qwen3-4B-Instruct-2507", "*qwen3*instruct*", "never", None, (False, False, False)),
        ("qwen3-coder:30b", "*qwen3-coder*", "never", None, (False, False, False)),
        ("Qwen/Qwen3.8-2.4T-A95B", "*qwen3.8*", "optional", ("think",), ("auto", "auto", False)),
        ("qwen3.8-27b", "*qwen3.8*", "optional", ("think",), ("auto", "auto", False)),
        ("Qwen/Qwen3.5-9B", "*qwen3.[5-9]*", "optional", ("think",), ("auto", "auto", False)),
        ("qwen3:8b", "*qwen3*", "optional", ("think",), (False, "auto", False)),
        ("deepseek-ai/DeepSeek-V3.2", "*deepseek-v3.[12]*", "optional", ("think",), (False, "auto", False)),
        ("deepseek-ai/DeepSeek-V4", "*deepseek-v4*", "optional", ("think",), (False, "auto", False)),
        ("MiniMaxAI/MiniMax-M2", "*minimax-m2*", "always", ("think",), ("auto", "auto", False)),
        ("MiniMax/MiniMax-M3.1-Flash", "*minimax-m3.1*", "always", ("mm", "think"), (False, False, False)),
        ("MiniMaxAI/MiniMax-M3", "*minimax-m3*", "optional", ("mm", "think"), (False, "auto", False)),
        ("zai-org/GLM-4.6", "*glm-[45].[1-9]*", "optional", ("think",), (False, "auto", False)),
        ("zai-org/GLM-5", "*glm-5*", "optional", ("think",), (False, "auto", False)),
        ("nvidia/Nemotron-3-Nano", "*nemotron*", "optional", ("think",), (False, "auto", False)),
        ("stepfun-ai/step3", "*step3*", "always", ("think",), ("auto", "auto", False)),
        ("moonshotai/Kimi-K3", "*kimi-k3*", "always", ("kimi-k3", "think"), (False, False, False)),
        ("moonshotai/Kimi-K2.7-Code", "*kimi-k2.7*", "always", ("think",), (False, False, False)),
        ("moonshotai/Kimi-K2-Thinking", "*kimi-k2-thinking*", "always", ("think",), (False, False, False)),
        ("moonshotai/Kimi-K2.5", "*kimi-k2.[56]*", "optional", ("think",), (False, False, False)),
        ("mistralai/Magistral-Small-2509", "*magistral*", "always", ("[think]", "think"), (False, False, False)),
        ("google/gemma-4-27b-it", "*gemma-4*", "optional", ("gemma", "think"), (False, False, False)),
        ("gemma4:12b", "*gemma4*", "optional", ("gemma", "think"), (False, False, False)),
        ("ByteDance-Seed/Seed-OSS-36B", "*seed-oss*", "optional", ("seed", "think"), (False, False, False)),
        ("CohereLabs/command-a-reasoning", "*command-a*", "optional", ("command", "think"), (False, False, False)),
        (
            "ibm-granite/granite-3.3-8b",
            "*granite-3*",
            "optional",
            ("granite", "ernie-response", "think"),
            (False, False, False),
        ),
        ("swiss-ai/Apertus-70B", "*apertus*", "optional", ("apertus", "think"), (False, False, False)),
        ("meta/Muse-Glimmer-27B", "*muse*glimmer*", "unknown", ("muse-glimmer", "think"), (False, False, False)),
        (
            "ServiceNow/Apriel-Nemotron-15b-Thinker",
            "*apriel*",
            "unknown",
            ("apriel", "thinking", "think"),
            ("auto", "auto", False),
        ),
        ("tencent/Hy3-preview", "*hy[34]*", "unknown", ("hy", "think"), ("auto", "auto", False)),
        ("upstage/Solar-Open-100B", "*solar-open*", "unknown", ("solar-open", "think"), (False, False, False)),
        (
            "tencent/Hunyuan-A13B-Instruct",
            "*hunyuan*",
            "unknown",
            ("hunyuan-answer", "think"),
            (False, "auto", False),
        ),
        ("llama-3.3-70b", "*", "unknown", None, (False, False, False)),
    ],
)
def test_the_first_rule_that_matches_is_the_one_of_the_model(
    model: str, rule: str, thinking: str, tags: tuple[str, ...] | None, inside: tuple[Any, Any, Any]
) -> None:
    found = [rule_of(model, rules) for rules in (SELF_HOSTED, SELF_HOSTED_AUTO, HOSTED)]
    assert [(one.models, one.thinking, one.tags) for one in found] == [(rule, thinking, tags)] * 3
    assert tuple(one.starts_inside for one in found) == inside


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("deepseek-v3.1", "thinking"),
        ("kimi-k2.5", "thinking"),
        ("granite-3.3", "thinking"),
        ("qwen3", "enable_thinking"),
    ],
)
def test_the_switch_in_a_template_has_its_own_name(model: str, key: str) -> None:
    assert rule_of(model, SELF_HOSTED).template_key == key


def test_a_host_s_own_rules_come_first_and_replace_ours_of_the_same_name() -> None:
    own = (ModelRule(models="mine*"), ModelRule(models="*qwen3*", thinking="never"))
    rules = extend_hosted(*own)
    assert rules[:2] == own
    assert rules[2:] == tuple(rule for rule in HOSTED if rule.models != "*qwen3*")
    assert extend_hosted() == HOSTED


@pytest.mark.parametrize(
    ("model", "efforts"),
    [("qwen3.8-27b", ("low", "medium", "xhigh")), ("kimi-k3", ("low", "high", "max")), ("qwen3.7-max", ())],
)
def test_a_template_that_reads_an_effort_has_the_efforts_of_its_maker(model: str, efforts: tuple[str, ...]) -> None:
    assert [rule_of(model, rules).efforts for rules in (SELF_HOSTED, HOSTED)] == [efforts] * 2


@pytest.mark.parametrize(
    ("spelled", "written"),
    [
        ("accounts/fireworks/models/kimi-k2p6", "*kimi-k2.[56]*"),
        ("accounts/fireworks/routers/kimi-k2p7-code-fast", "*kimi-k2.7*"),
        ("accounts/fireworks/models/glm-4p7", "*glm-[45].[1-9]*"),
        ("glm-5p3-flash", "*glm-5.3*"),
        ("glm-5p2-fast", "*glm-5*"),
        ("accounts/fireworks/models/deepseek-v3p1-terminus", "*deepseek-v3.[12]*"),
        ("accounts/fireworks/models/qwen3p8-max", "*qwen3.8*"),
        ("accounts/fireworks/models/qwen3p7-plus", "*qwen3.[5-9]*"),
        ("accounts/fireworks/models/qwen3-0p6b", "*qwen3*"),
        ("accounts/fireworks/models/minimax-m2p7", "*minimax-m2*"),
        ("accounts/fireworks/models/kimi-k2.6", "*kimi-k2.[56]*"),
    ],
)
def test_fireworks_writes_the_point_of_a_version_as_p(spelled: str, written: str) -> None:
    rules = find_provider("fireworks").models
    original = next(rule for rule in rules if rule.models == written)
    found = rule_of(spelled, rules)
    assert msgspec.structs.replace(found, models=written) == original


def test_every_grammar_is_one_that_we_read() -> None:
    assert set(ANY_TAGS) <= set(GRAMMARS)
    for rule in (*SELF_HOSTED, TINY_REASONER):
        assert set(rule.tags or ()) <= set(GRAMMARS), rule.models


def test_every_rule_has_a_date_and_a_source() -> None:
    assert without_proof((*open_weights(opened=True, hybrid="auto"), TINY_REASONER)) == []
