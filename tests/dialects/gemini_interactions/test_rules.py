"""For each rule, a request that is refused, and the nearest one that is accepted. Written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects.gemini.rules import LEVEL_VALUE
from asides.dialects.gemini_interactions import rules
from asides.dialects.rulebook import Rule, WireRequest
from asides_stage.stage.rules.hosts import find_target
from tests.dialects.gemini_interactions.interactions import ANSWER, CALL, GO, RESULT, THOUGHT, Wire

PRO = "gemini-3-pro-preview"
UNSIGNED: Wire = {"type": "thought", "summary": [{"type": "text", "text": "hm"}]}
WRAPPED: Wire = {"type": "user_input", "content": [RESULT]}


def find_broken(body: Wire, model: str = PRO) -> list[Rule]:
    request = WireRequest({"model": model, "input": [GO], **body}, path="/v1beta/interactions")
    return [broken.rule for broken in rules.check(request, find_target("gemini_interactions", request.path, model))]


def level(word: str) -> Wire:
    return {"generation_config": {"thinking_level": word}}


CASES: dict[str, tuple[Rule, Wire, Wire]] = {
    "old schema": (rules.OLD_SCHEMA, {"input": [{"role": "user", "content": "go"}]}, {"input": [GO]}),
    "a thought without a signature": (
        rules.UNSIGNED_THOUGHT,
        {"input": [GO, UNSIGNED, ANSWER, GO]},
        {"input": [GO, THOUGHT, ANSWER, GO]},
    ),
    "a call without a thought": (
        rules.UNSIGNED_CALL,
        {"input": [GO, CALL, RESULT]},
        {"input": [GO, THOUGHT, CALL, RESULT]},
    ),
    "a result without its call": (
        rules.RESULT_WITHOUT_CALL,
        {"input": [GO, RESULT]},
        {"input": [RESULT], "previous_interaction_id": "v1_1"},
    ),
    "a call without its result": (
        rules.CALL_WITHOUT_RESULT,
        {"input": [GO, THOUGHT, CALL, GO]},
        {"input": [GO, THOUGHT, CALL, WRAPPED]},
    ),
    "a task that is not stored": (
        rules.NOT_STORED,
        {"store": False, "background": True},
        {"store": True, "background": True},
    ),
    "a level that the model does not have": (LEVEL_VALUE, level("medium"), level("high")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_and_its_neighbour_is_not(name: str) -> None:
    rule, broken, legal = CASES[name]
    assert find_broken(broken) == [rule]
    assert find_broken(legal) == []


def test_models_that_do_not_sign_need_no_signed_thought() -> None:
    assert find_broken({"input": [GO, CALL, RESULT]}, "gemini-2.5-flash") == []


def test_a_request_of_any_form_breaks_nothing_by_accident() -> None:
    for odd in ("go", None, 5, [1, None], [{"type": None}], {"type": "text", "text": "go"}):
        assert find_broken({"input": odd}) == []


def test_each_rule_is_listed_with_its_source() -> None:
    assert {rules.UNKNOWN_PREVIOUS, rules.INVALID_SIGNATURE} <= set(rules.RULES)
    assert all(rule.since and rule.source for rule in rules.RULES)


def test_signatures_are_found_in_every_step() -> None:
    steps: list[Any] = [GO, THOUGHT, {"type": "google_search_call", "id": "s", "signature": "b"}]
    assert list(rules.list_signatures(steps)) == [("input[1].signature", "c2ln"), ("input[2].signature", "b")]
