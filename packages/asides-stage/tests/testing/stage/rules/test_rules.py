"""The lookup of rules, and the checks that dialects with a flat list of messages share."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from asides.dialects import DIALECTS, register_temporarily, rulebook
from asides.dialects.flat_messages import find_pairing_faults, find_turn_start, list_call_ids
from asides.dialects.rulebook import Rule
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import (
    RulebookRules,
    RulesByDialect,
    read_account,
    read_credential,
    refuse_broken,
)
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


def test_a_rulebook_refuses_with_the_first_problem_and_seals_nothing() -> None:
    rules = RulebookRules("ollama", date(2026, 11, 18))
    request = Request("POST", "/", "", {}, b'{"messages": [{"role": "a"}, {"role": "b"}]}')
    assert rules.refuse(request) == "invalid role: a"
    assert rules.refuse(Request("POST", "/", "", {}, b"{}")) is None
    assert rules.seal([], request) == []


# --- rules as data ----------------------------------------------------------------------------------------------------

REAL_BODIES = Path(__file__).parents[7] / "shared" / "reference" / "rejections.jsonl"
MODULES = ("anthropic", "bedrock", "gemini")
SLUG = re.compile(r"[a-z]+(_[a-z]+)+")
DAY = re.compile(r"20\d\d(-\d\d){0,2}")


def list_rules(dialect: str) -> tuple[rulebook.Rule, ...]:
    found = rulebook.find_rulebook(dialect)
    assert found is not None
    return found.RULES


@pytest.mark.parametrize("module", MODULES)
def test_every_rule_has_a_kind_a_day_and_a_source(module: str) -> None:
    for rule in list_rules(module):
        assert rule.kind is None or SLUG.fullmatch(rule.kind), rule
        assert DAY.fullmatch(rule.since), rule
        assert rule.source, rule


def test_a_rule_reports_what_breaks_it() -> None:
    rule = Rule(kind="empty_content", text="messages.{place}: {{empty}}", since="2026-11", source="made up", status=422)
    refusal = refuse_broken(rule.broken("messages[3]", place=3))
    assert (refusal, refusal.kind, refusal.status) == ("messages.3: {empty}", "empty_content", 422)
    assert refusal.body is None


def to_pattern(text: str) -> re.Pattern[str]:
    """A rule's words as a pattern, with anything where a name stands."""
    pieces = re.split(r"(?<!\{)\{\w+\}(?!\})", text)
    return re.compile(
        ".*".join(re.escape(piece.replace("{{", "{").replace("}}", "}")).replace("`", "`?") for piece in pieces)
    )


@pytest.mark.skipif(not REAL_BODIES.exists(), reason="the real bodies are not in this clone")
def test_the_words_are_those_of_real_bodies() -> None:
    """Of each body of these servers, a rule of the same kind has the words, but for the rest of a long one."""
    rules = [rule for module in MODULES for rule in list_rules(module)]
    missing: list[tuple[str, str]] = []
    for line in REAL_BODIES.read_text().splitlines():
        body = json.loads(line)
        if body["provider"] not in ("anthropic", "bedrock", "gemini", "vertex"):
            continue
        said = re.sub(r"^The model returned the following errors: ", "", body["message"])
        fitting = [rule for rule in rules if rule.kind == body["kind"] and to_pattern(rule.text).match(said)]
        # Older words, and those without the link at the end.
        begun = [rule for rule in rules if rule.kind == body["kind"] and rule.text.startswith(said[:40])]
        if not fitting and not begun:
            missing.append((body["id"], said))
    assert missing == []


# --- accounts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "query", "credential"),
    [
        ({"authorization": "Bearer k"}, "", "k"),
        ({"authorization": "bearer  k "}, "", "k"),
        ({"x-api-key": "k"}, "", "k"),
        ({"api-key": "k"}, "", "k"),
        ({"x-goog-api-key": "k"}, "key=other", "k"),
        ({}, "alt=sse&key=k", "k"),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20261115/us-east-1/bedrock, Signature=1"}, "", "AKIA"),
        ({"authorization": "Basic k"}, "", ""),
        ({}, "", ""),
    ],
)
def test_the_account_is_a_fingerprint_of_the_credential(headers: dict[str, str], query: str, credential: str) -> None:
    request = Request("POST", "/", query, headers, b"")
    assert read_credential(request) == credential
    account = read_account(request)
    assert len(account) == (12 if credential else 0)
    assert not credential or credential not in account
    assert account == read_account(Request("GET", "/x", "", {"x-api-key": credential} if credential else {}, b"{}"))
