"""The facts of a target are computed once, and one place decides whether it thinks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.providers.find import list_providers
from asides.providers.provider import Facts, ModelRule, Provider, Quirks, Target, merge_facts
from asides.providers.settle import settle
from asides.values.thinking import EFFORTS, Effort, Thinking, nearest_effort

HOST = Quirks(
    tags=("think",),
    ask_by="enable_thinking",
    output_limit="max_tokens",
    system_role="system",
    replay_as="field",
    structured_output="json_schema",
    output_with_tools=True,
    pictures=True,
    account_bound=True,
    fields=(("host", True),),
)
OF_THE_MODEL: dict[str, Any] = {
    "tags": ("[think]",),
    "ask_by": "reasoning_effort",
    "output_limit": "max_completion_tokens",
    "system_role": "developer",
    "replay_as": "tags",
    "structured_output": "nothing",
    "output_with_tools": False,
    "pictures": False,
    "refuses_files": ("video",),
    "account_bound": False,
    "empty_thinking": True,
    "enforces": ("numbered_errors",),
}


def target(rule: ModelRule | None = None, quirks: Quirks = HOST) -> Target:
    row = Provider(name="made-up", quirks=quirks)
    return Target(row, "model", "http://localhost/v1", ModelRule() if rule is None else rule)


@pytest.mark.parametrize("name", OF_THE_MODEL)
def test_the_models_fact_wins_over_the_hosts(name: str) -> None:
    assert getattr(target().facts, name) == getattr(HOST, name)
    rule = msgspec.convert({name: OF_THE_MODEL[name]}, ModelRule)
    assert getattr(target(rule).facts, name) == OF_THE_MODEL[name]


def test_no_field_that_a_rule_and_the_quirks_share_is_left_to_be_merged_by_hand() -> None:
    shared = set(ModelRule.__struct_fields__) & set(Quirks.__struct_fields__)
    assert shared == {*OF_THE_MODEL, "fields", "message_rules"}
    assert shared <= set(Facts.__struct_fields__)


def test_the_template_of_a_model_adds_to_what_its_host_demands_of_messages() -> None:
    rule = ModelRule(message_rules=("alternate", "system_first"))
    assert target(rule, Quirks(message_rules=("filled", "alternate"))).facts.message_rules == (
        *("filled", "alternate", "system_first"),
    )


def test_a_rule_set_may_hold_for_some_models_of_a_host() -> None:
    quirks = Quirks(enforces=("known_fields", ("system_first", "*qwen*", "mod*"), ("no_prefill", "other*")))
    assert target(quirks=quirks).facts.enforces == ("known_fields", "system_first")


def test_a_model_without_tags_at_a_host_that_inlines_has_none() -> None:
    assert target(ModelRule(tags=())).facts.tags == ()


def test_fields_of_host_and_model_add_up() -> None:
    assert target(ModelRule(fields=(("model", "x"),))).facts.fields == (("host", True), ("model", "x"))


def test_an_override_wins_and_survives_another_rule() -> None:
    changed = settle(target(), overrides={"tags": ("own",), "starts_inside": True})
    assert (changed.facts.tags, changed.facts.starts_inside) == (("own",), True)
    again = msgspec.structs.replace(changed, rule=ModelRule(tags=(), pictures=False))
    assert (again.facts.tags, again.facts.pictures) == (("own",), False)


def test_facts_are_computed_and_cannot_be_given() -> None:
    other = merge_facts(ModelRule(pictures=False), Quirks())
    row = Provider(name="made-up")
    assert Target(row, "model", "http://localhost/v1", facts=other).facts == merge_facts(ModelRule(), row.quirks)


def test_every_row_settles() -> None:
    for row in list_providers():
        for rule in row.models:
            assert msgspec.UNSET not in msgspec.structs.astuple(merge_facts(rule, row.quirks))


_Amount = Literal["unset", "off", "on", "effort"]
_ASKED: dict[_Amount, Thinking] = {
    "unset": Thinking(),
    "off": Thinking(mode="off"),
    "on": Thinking(mode="on"),
    "effort": Thinking(effort="high"),
}


@pytest.mark.parametrize(
    ("thinking", "default", "asked"),
    list(product(("always", "optional", "never", "unknown"), ("on", "off", None), _ASKED)),
)
def test_whether_a_model_thinks_has_one_answer(
    thinking: Literal["always", "optional", "never", "unknown"], default: Literal["on", "off"] | None, asked: _Amount
) -> None:
    """All 48 combinations, by the words of the rule."""
    found = target(ModelRule(thinking=thinking, default=default)).thinks(_ASKED[asked])
    if thinking == "always":
        expected: bool | None = True
    elif thinking == "never" or asked == "off":
        expected = False
    elif asked in ("on", "effort"):
        expected = True
    else:
        expected = {"on": True, "off": False, None: None}[default]
    assert found is expected


@pytest.mark.parametrize(
    ("thinking", "asked", "expected"),
    [("never", "unset", False), ("never", "on", False), ("optional", "off", False), ("unknown", "unset", True)],
)
def test_a_default_does_not_rule_thinking_out(
    thinking: Literal["never", "optional", "unknown"], asked: _Amount, expected: bool
) -> None:
    assert target(ModelRule(thinking=thinking, default="off")).may_think(_ASKED[asked]) is expected


@pytest.mark.parametrize(
    ("asked", "supported", "expected"),
    [
        ("medium", ("low", "high"), "low"),
        ("xhigh", ("low", "high", "max"), "high"),
        ("minimal", ("high",), "high"),
        ("max", ("low", "medium"), "medium"),
        *((effort, EFFORTS, effort) for effort in EFFORTS),
    ],
)
def test_the_nearest_effort_is_the_closest_and_of_two_the_lower(
    asked: Effort, supported: tuple[Effort, ...], expected: Effort
) -> None:
    assert nearest_effort(asked, supported) == expected


_GLOBS = st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[*]", "[!a]", "[", "]"]), max_size=5).map("".join)


@settings(max_examples=1000)
@given(st.text("ab*[]", max_size=5), _GLOBS)
def test_a_glob_means_what_it_means_everywhere(name: str, glob: str) -> None:
    row = Provider(name="made-up", models=(ModelRule(models=glob, kind="summary"),))
    assert (row.rule(name).kind == "summary") is fnmatchcase(name, glob)


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("*", "", True),
        ("*qwen3*thinking*", "x/qwen3-8b-thinking-2507", True),
        ("*qwen3*thinking*", "thinking-qwen3", False),
        ("*glm-[45].[1-9]*", "glm-4.6", True),
        ("*glm-[45].[1-9]*", "glm-4", False),
        ("a[*]b", "a*b", True),
        ("a[*]b", "axb", False),
        ("a[b", "a[b", True),
        ("gpt-?o*", "gpt-4o-mini", True),
    ],
)
def test_a_glob_of_a_row(glob: str, name: str, fits: bool) -> None:
    row = Provider(name="made-up", models=(ModelRule(models=glob, kind="summary"),))
    assert (row.rule(name).kind == "summary") is fits
