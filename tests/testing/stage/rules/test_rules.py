"""The lookup of rules, and the checks that dialects with a flat list of messages share."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects import DIALECTS, register_temporarily
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import HistoryRules, RulesByDialect, find_pairing_faults, find_turn_start, list_call_ids
from tests.testing.conformance.toy import ToyDialect, ToyRules

USER = {"role": "user", "content": "go"}


def calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": name} for name in ids]}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name}


def test_every_dialect_of_ours_has_rules_and_they_are_built_once() -> None:
    rules = RulesByDialect()
    for name in DIALECTS:
        found = rules.find(name)
        assert found is not None
        assert rules.find(name) is found


def test_a_registered_dialect_brings_its_rules_or_has_none() -> None:
    class Lenient(ToyDialect):
        request_rules = None  # type: ignore[assignment]

    with register_temporarily("toy", ToyDialect()):
        assert isinstance(RulesByDialect().find("toy"), ToyRules)
    with register_temporarily("toy", Lenient()):
        assert RulesByDialect().find("toy") is None


@pytest.mark.parametrize(
    ("messages", "faults"),
    [
        ([USER, calls("a", "b"), result("b"), result("a"), USER], []),
        ([USER, calls("a")], [("unanswered", 1, ("a",))]),
        ([USER, calls("a", "b"), result("a"), USER], [("unanswered", 1, ("b",))]),
        ([USER, result("a")], [("unasked", 1, ("a",))]),
        ([USER, calls("a"), result("a"), result("a")], [("twice", 3, ("a",))]),
        ([USER, calls("a", "a"), result("a")], [("twice", 1, ("a",))]),
    ],
)
def test_calls_and_results_pair(messages: list[dict[str, Any]], faults: list[tuple[str, int, tuple[str, ...]]]) -> None:
    assert [(fault.kind, fault.place, fault.ids) for fault in find_pairing_faults(messages)] == faults


def test_only_an_assistant_makes_calls_and_a_user_starts_a_turn() -> None:
    assert list_call_ids(calls("a", "b")) == ["a", "b"]
    assert list_call_ids({**calls("a"), "role": "user"}) == []
    assert find_turn_start([USER, calls("a"), result("a")]) == 0
    assert find_turn_start([calls("a")]) == -1


def test_rules_of_a_history_refuse_with_the_first_problem_and_seal_nothing() -> None:
    rules = HistoryRules(lambda messages: (f"no {message['role']}" for message in messages))
    assert rules.refuse(Request("POST", "/", "", {}, b'{"messages": [{"role": "a"}, {"role": "b"}]}')) == "no a"
    request = Request("POST", "/", "", {}, b"{}")
    assert rules.refuse(request) is None
    assert rules.seal([], request) == []
