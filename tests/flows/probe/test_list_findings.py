"""Findings for people: each says what was seen, and "not known" where nothing showed it."""

from __future__ import annotations

import json
from typing import Any

from asides.flows.probe.knowledge import FoundEndpoint, Knowledge
from asides.flows.probe.list_findings import list_findings
from asides.flows.probe.observe import observe
from asides.flows.probe.trials import Setup
from asides.flows.steps import Head


def learn(**message: Any) -> Knowledge:
    document = {"choices": [{"message": message, "finish_reason": "stop"}]}
    seen = observe(Head(200, {}), json.dumps(document).encode(), "openai_chat")
    known = Knowledge()
    known.setup, known.baseline, known.replies = Setup("openai_chat", "http://h/v1", "m"), seen, [("default", seen)]
    return known


def test_nothing_is_known_at_first() -> None:
    assert [finding.text for finding in list_findings(Knowledge())] == ["not known", "no list was asked for"]


def test_what_was_not_seen_is_not_known() -> None:
    findings = {finding.topic: finding for finding in list_findings(learn(content="x"))}
    for topic in ("where", "stream", "switch", "effort", "tools", "replay"):
        assert findings[topic].text.startswith("not known"), topic
        assert findings[topic].value is None


def test_findings_hold_counts_and_names_and_no_words_of_the_model() -> None:
    known = learn(content="the answer of mine", reasoning="the plan of mine", reasoning_content="the plan of mine")
    findings = {finding.topic: finding.text for finding in list_findings(known)}
    assert findings["thinking"] == "1 of 1 replies with default settings had thinking"
    assert findings["where"] == (
        "field reasoning (1 of 1 replies with thinking, whole); field reasoning_content (1 of 1 replies with thinking, "
        "whole); reasoning and reasoning_content carry the same text"
    )
    assert "of mine" not in str(findings)


def test_outcomes_that_are_alike_stand_together_and_refusals_are_cut() -> None:
    known = learn(content="x", reasoning="p")
    known.tried = {
        "a": "accepted, and changes nothing",
        "b": "accepted, and changes nothing",
        "c": f"refused: {'x' * 999}",
    }
    known.cannot_switch = True
    text = next(finding.text for finding in list_findings(known) if finding.topic == "switch")
    assert "a, b: accepted, and changes nothing; c: refused: xxx" in text
    assert len(text) < 400


def test_endpoints_that_answer_and_those_that_do_not() -> None:
    known = learn(content="x")
    known.endpoints = [
        FoundEndpoint("openai_chat", "http://h/v1/chat/completions", True),
        FoundEndpoint("anthropic", "http://h/v1/messages", False, "404: Not Found"),
        FoundEndpoint("ollama", "http://h/api/chat", None, "no answer"),
    ]
    assert list_findings(known)[0].text == (
        "http://h/v1/chat/completions (openai_chat): answers; http://h/v1/messages (anthropic): no (404: Not Found); "
        "http://h/api/chat (ollama): not known (no answer)"
    )
