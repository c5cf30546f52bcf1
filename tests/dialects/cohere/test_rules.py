"""For each rule of Cohere, a request that breaks it, and the nearest one that does not. Written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from asides.dialects.cohere import rules
from asides.dialects.rulebook import BrokenRule, WireRequest
from asides.providers.find import find_target

Wire = dict[str, Any]

THINKER, PLAIN = "command-a-reasoning-08-2025", "command-r-plus"
HI: Wire = {"role": "user", "content": "hi"}
SAID: Wire = {"role": "assistant", "content": [{"type": "text", "text": "a"}]}
TOOLS: list[Wire] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def called(*ids: str, **fields: Any) -> Wire:
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "tool_calls": calls, **fields}


def result(name: str) -> Wire:
    return {"role": "tool", "tool_call_id": name, "content": "fine"}


def answer(*items: Wire, **fields: Any) -> Wire:
    return {"role": "assistant", "content": list(items), **fields}


def find_broken(model: str, body: Wire) -> list[BrokenRule]:
    request = WireRequest({"model": model, "messages": [HI], **body})
    return list(rules.check(request, find_target(f"cohere:{model}")))


class Case(NamedTuple):
    """A request that breaks a rule, and the nearest that breaks none."""

    kind: str | None
    words: str
    path: str
    broken: Wire
    legal: Wire
    model: str = THINKER
    legal_model: str | None = None


def messages(*turns: Wire) -> Wire:
    return {"messages": list(turns)}


THINK: Wire = {"thinking": {"type": "enabled"}}
THOUGHT: Wire = {"type": "thinking", "thinking": "hm"}
CASES = {
    "an unknown field": Case(
        "unknown_param",
        "unknown field: parameter 'reasoning_effort' is not a valid field.",
        "reasoning_effort",
        {"reasoning_effort": "low"},
        {"temperature": 0.5},
    ),
    "thinking at a model that never thinks": Case(
        "thinking_unsupported_model",
        "invalid request: model 'command-r-plus' does not support thinking",
        "thinking",
        THINK,
        {"thinking": {"type": "disabled"}},
        PLAIN,
    ),
    "thinking at a model that thinks": Case(
        "thinking_unsupported_model",
        "invalid request: model 'command-r-plus' does not support thinking",
        "thinking",
        THINK,
        THINK,
        PLAIN,
        THINKER,
    ),
    "a budget of nothing": Case(
        "budget_out_of_range",
        "invalid request: thinking.token_budget must be a positive integer",
        "thinking.token_budget",
        {"thinking": {"type": "enabled", "token_budget": 0}},
        {"thinking": {"type": "enabled", "token_budget": 1}},
    ),
    "a budget that is not an integer": Case(
        "budget_out_of_range",
        "invalid request: thinking.token_budget must be a positive integer",
        "thinking.token_budget",
        {"thinking": {"type": "enabled", "token_budget": "500"}},
        {"thinking": {"type": "enabled", "token_budget": 500}},
    ),
    "a choice without tools": Case(
        None,
        "invalid request: tool_choice can only be set when tools are specified.",
        "tool_choice",
        {"tool_choice": "REQUIRED"},
        {"tool_choice": "REQUIRED", "tools": TOOLS},
    ),
    "a call without a result": Case(
        "tool_result_missing",
        "invalid request: all tool calls must have tool results; missing for b.",
        "messages[1]",
        messages(HI, called("a", "b"), result("a"), HI),
        messages(HI, called("a", "b"), result("a"), result("b"), HI),
    ),
    "a result without a call": Case(
        "tool_result_orphaned",
        "invalid request: tool_call_id a in messages[1] was not found in the preceding tool calls.",
        "messages[1]",
        messages(HI, result("a")),
        messages(HI, called("a"), result("a")),
    ),
    "a result that comes twice": Case(
        None,
        "invalid request: tool_call_id a in messages[3] is not unique.",
        "messages[3]",
        messages(HI, called("a"), result("a"), result("a")),
        messages(HI, called("a", "b"), result("a"), result("b")),
    ),
    "a turn that says nothing": Case(
        "empty_content",
        "invalid request: messages[1]: an assistant message has content or tool_calls.",
        "messages[1]",
        messages(HI, answer(), HI),
        messages(HI, SAID, HI),
    ),
    "a plan without calls": Case(
        None,
        "invalid request: messages[1]: tool_plan is only allowed together with tool_calls.",
        "messages[1].tool_plan",
        messages(HI, {**SAID, "tool_plan": "I will look."}, HI),
        messages(HI, called("a", tool_plan="I will look."), result("a")),
    ),
    "a thought without words": Case(
        "empty_content",
        "invalid request: messages[1]: a content item of type thinking is empty.",
        "messages[1].content[0]",
        messages(HI, answer({"type": "thinking", "thinking": ""}, {"type": "text", "text": "a"}), HI),
        messages(HI, answer(THOUGHT, {"type": "text", "text": ""}), HI),
    ),
    "a blank question": Case(
        "empty_content",
        "invalid request: message must be at least 1 token long or tool results must be specified.",
        "messages[0]",
        messages({"role": "user", "content": " \n"}),
        messages({"role": "user", "content": " ?"}),
    ),
    "an answer at the end": Case(
        "prefill_unsupported",
        "invalid request: the last message must be of the role 'user' or 'tool'.",
        "messages[1]",
        messages(HI, SAID),
        messages(HI, called("a"), result("a")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = CASES[name]
    (broken,) = find_broken(case.model, case.broken)
    assert (broken.kind, broken.text.startswith(case.words), broken.path) == (case.kind, True, case.path)
    assert find_broken(case.legal_model or case.model, case.legal) == []


def test_every_rule_has_a_case() -> None:
    found = {broken.rule for case in CASES.values() for broken in find_broken(case.model, case.broken)}
    assert found == set(rules.RULES)


def test_all_that_is_wrong_is_found_in_the_order_of_the_server() -> None:
    body: Wire = {"top_k": 1, "tool_choice": "NONE", **messages(HI, called("a"))}
    found = [broken.path for broken in find_broken(PLAIN, {**body, **THINK})]
    assert found == ["top_k", "thinking", "tool_choice", "messages[1]", "messages[1]"]
