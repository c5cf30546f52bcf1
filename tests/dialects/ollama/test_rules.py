"""For each rule of Ollama, a request that breaks it, and the nearest one that does not. Written by hand."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import pytest

from asides.dialects.ollama import rules
from asides.dialects.rulebook import BrokenRule, WireRequest
from asides.providers.find import find_target

Wire = dict[str, Any]

LEVELS, SWITCH, NEVER = "gpt-oss:20b", "qwen3:8b", "llama3.2"
TODAY, JULY, SPRING, IN_2025 = date(2026, 11, 18), date(2026, 7, 31), date(2026, 4, 30), date(2025, 12, 31)
HI: Wire = {"role": "user", "content": "hi"}
SO: Wire = {"role": "assistant", "content": "so"}


def call(name: str | None, tool: str = "look", arguments: Any = None) -> Wire:
    function = {"name": tool, "arguments": {} if arguments is None else arguments}
    return {"function": function} if name is None else {"id": name, "function": function}


def called(*calls: Wire, **fields: Any) -> Wire:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **fields}


def result(name: str | None, **fields: Any) -> Wire:
    named = {} if name is None else {"tool_call_id": name}
    return {"role": "tool", "content": "fine", **named, **fields}


def messages(*turns: Wire) -> Wire:
    return {"messages": list(turns)}


def find_broken(model: str, body: Wire, today: date = TODAY) -> list[BrokenRule]:
    request = WireRequest({"model": model, "messages": [HI], **body}, today=today)
    return list(rules.check(request, find_target(f"ollama:{model}")))


class Case(NamedTuple):
    """A request that breaks a rule, and the nearest that breaks none."""

    kind: str | None
    words: str
    path: str
    broken: Wire
    legal: Wire
    model: str = SWITCH
    legal_model: str | None = None
    today: date = TODAY
    legal_day: date | None = None


A, B = call("a"), call("b", "feel")
CASES = {
    "thinking at a model that never thinks": Case(
        "thinking_unsupported_model",
        '"llama3.2" does not support thinking',
        "think",
        {"think": True},
        {"think": False},
        NEVER,
    ),
    "thinking at a model that thinks": Case(
        "thinking_unsupported_model",
        '"llama3.2" does not support thinking',
        "think",
        {"think": True},
        {"think": True},
        NEVER,
        SWITCH,
    ),
    "the same in 2025": Case(
        "thinking_unsupported_model",
        "registry.ollama.ai/library/llama3.2 does not support thinking",
        "think",
        {"think": True},
        {},
        NEVER,
        today=IN_2025,
    ),
    "a level that is none": Case(
        "effort_unsupported_value",
        'invalid think value: "minimal" (must be "high", "medium", "low", "max", true, or false)',
        "think",
        {"think": "minimal"},
        {"think": "low"},
        LEVELS,
    ),
    "the highest level before it came": Case(
        "effort_unsupported_value",
        'invalid think value: "max" (must be "high", "medium", "low", true, or false)',
        "think",
        {"think": "max"},
        {"think": "max"},
        LEVELS,
        today=SPRING,
        legal_day=JULY,
    ),
    "a level at a model without levels": Case(
        "effort_unsupported_value",
        'think value "low" is not supported for this model',
        "think",
        {"think": "low"},
        {"think": True},
        today=JULY,
    ),
    "a level since they are lowered": Case(
        "effort_unsupported_value",
        'think value "low" is not supported for this model',
        "think",
        {"think": "low"},
        {"think": "low"},
        today=JULY,
        legal_day=TODAY,
    ),
    "an unknown role": Case(
        None,
        "invalid role: developer",
        "messages[0].role",
        messages({"role": "developer", "content": "Be brief."}, HI),
        messages({"role": "system", "content": "Be brief."}, HI),
    ),
    "arguments as a text": Case(
        "tool_arguments_invalid",
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments",
        "messages[1].tool_calls",
        messages(HI, called(call("a", arguments='{"at":"sky"}')), result("a")),
        messages(HI, called(call("a", arguments={"at": "sky"})), result("a")),
    ),
    "an answer of nothing": Case(
        "empty_content",
        "messages[1]: an assistant message says nothing",
        "messages[1]",
        messages(HI, {"role": "assistant", "content": ""}, HI),
        messages(HI, {"role": "assistant", "content": "", "thinking": "hm"}, HI),
    ),
    "a result of another tool": Case(
        None,
        "messages[2]: the tool_name is not the one that was called",
        "messages[2].tool_name",
        messages(HI, called(A), result("a", tool_name="feel")),
        messages(HI, called(A), result("a", tool_name="look")),
    ),
    "a call without a result": Case(
        "tool_result_missing",
        "messages[1]: tool calls and results do not pair (unanswered: b)",
        "messages[1]",
        messages(HI, called(A, B), result("a"), HI),
        messages(HI, called(A, B), result("b"), result("a"), HI),
    ),
    "a result without a call": Case(
        "tool_result_orphaned",
        "messages[1]: tool calls and results do not pair (unasked: a)",
        "messages[1]",
        messages(HI, result("a")),
        messages(HI, called(A), result("a")),
    ),
    "a result that comes twice": Case(
        None,
        "messages[3]: tool calls and results do not pair (twice: a)",
        "messages[3]",
        messages(HI, called(A), result("a"), result("a")),
        messages(HI, called(A), result("a"), SO, called(call("a2")), result("a2")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = CASES[name]
    (broken,) = find_broken(case.model, case.broken, case.today)
    assert (broken.kind, broken.text.startswith(case.words), broken.path) == (case.kind, True, case.path)
    assert find_broken(case.legal_model or case.model, case.legal, case.legal_day or case.today) == []


def test_every_rule_has_a_case() -> None:
    found = {broken.rule for case in CASES.values() for broken in find_broken(case.model, case.broken, case.today)}
    assert found == set(rules.RULES)


@pytest.mark.parametrize(
    "turns",
    [
        # Without ids, results belong to the calls in their order.
        (HI, called(call(None), call(None)), result(None)),
        (HI, called(A, B), result(None), result(None), SO),
        # A result after a turn without calls is a note.
        (HI, SO, result(None), HI),
        (result(None), HI),
    ],
)
def test_clients_without_ids_are_accepted(turns: tuple[Wire, ...]) -> None:
    assert find_broken(SWITCH, messages(*turns)) == []
