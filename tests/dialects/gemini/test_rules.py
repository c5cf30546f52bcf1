"""For each kind of rejection, a request that Gemini refuses, and the nearest one that it accepts. Written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from asides.dialects.gemini import rules
from asides.dialects.rulebook import BrokenRule, WireRequest
from asides_stage.stage.rules.hosts import find_target

Wire = dict[str, Any]

PRO = "gemini-3-pro-preview"
GO: Wire = {"role": "user", "parts": [{"text": "go"}]}
CALL: Wire = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
RESULT: Wire = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "42"}}}]}
VERTEX = "/v1/projects/mine/locations/global/publishers/google/models"


def find_broken(model: str, body: Wire, base: str = "/v1beta/models") -> list[BrokenRule]:
    request = WireRequest({"contents": [GO], **body})
    return list(rules.check(request, find_target("gemini", f"{base}/{model}:generateContent", model)))


def thinking(**config: Any) -> Wire:
    return {"generationConfig": {"thinkingConfig": config}}


class Case(NamedTuple):
    """A request that is refused, and the nearest that is not."""

    kind: str
    words: str
    model: str
    broken: Wire
    legal: Wire
    legal_model: str | None = None
    base: str = "/v1beta/models"


UNSIGNED: Wire = {"contents": [GO, CALL, RESULT]}
PLACEHOLDER: Wire = {
    "contents": [
        GO,
        {"role": "model", "parts": [{**CALL["parts"][0], "thoughtSignature": "skip_thought_signature_validator"}]},
        RESULT,
    ]
}
CASES = {
    "a call without its signature": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work",
        PRO,
        UNSIGNED,
        PLACEHOLDER,
    ),
    "a call without its signature at Vertex": Case(
        "thought_signature_missing",
        "Unable to submit request because function call `look` in the 2. content block is missing a",
        PRO,
        UNSIGNED,
        PLACEHOLDER,
        base=VERTEX,
    ),
    "a call of an earlier turn needs none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-3.1-flash",
        {"contents": [GO, {"role": "model", "parts": [{"text": "a"}]}, GO, CALL, RESULT]},
        {"contents": [GO, CALL, RESULT, {"role": "model", "parts": [{"text": "a"}]}, GO]},
    ),
    "2.5 needs none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-4-argon",
        UNSIGNED,
        UNSIGNED,
        "gemini-2.5-pro",
    ),
    "models that draw need none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-3-flash-preview",
        UNSIGNED,
        UNSIGNED,
        "gemini-3-pro-image-preview",
    ),
    "a signature that is no base64": Case(
        "thought_signature_invalid",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for",
        PRO,
        {"contents": [GO, {"role": "model", "parts": [{"text": "a", "thoughtSignature": "no base64!"}]}, GO]},
        {"contents": [GO, {"role": "model", "parts": [{"text": "a"}]}, GO]},
    ),
    "a call at the beginning": Case(
        "tool_turn_order",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        "gemini-2.5-flash",
        {"contents": [CALL, RESULT]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "a result without a call": Case(
        "tool_turn_order",
        "Please ensure that function response turn comes immediately after a function call turn",
        "gemini-2.5-flash",
        {"contents": [GO, RESULT]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "a result is missing": Case(
        "tool_result_missing",
        "Please ensure that the number of function response parts is equal to the number of function call parts",
        "gemini-2.5-flash",
        {"contents": [GO, CALL, GO]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "no parts": Case(
        "empty_content",
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
        PRO,
        {"contents": [GO, {"role": "model", "parts": []}, GO]},
        {"contents": [GO, GO]},
    ),
    "budget and level": Case(
        "reasoning_params_conflict",
        "You can only set only one of thinking budget and thinking level.",
        PRO,
        thinking(thinkingBudget=1024, thinkingLevel="low"),
        thinking(thinkingLevel="low"),
    ),
    "off on 2.5 Pro": Case(
        "thinking_cannot_disable",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "gemini-2.5-pro",
        thinking(thinkingBudget=0),
        thinking(thinkingBudget=0),
        "gemini-2.5-flash",
    ),
    "off on 3 Pro": Case(
        "thinking_cannot_disable",
        "Budget 0 is invalid.",
        "gemini-3.1-pro-preview",
        thinking(thinkingBudget=0),
        thinking(thinkingLevel="LOW"),
    ),
    "a budget too large": Case(
        "budget_out_of_range",
        "The thinking budget 64000 is invalid. Please choose a value between 128 and 32768.",
        "gemini-2.5-pro",
        thinking(thinkingBudget=64_000),
        thinking(thinkingBudget=-1),
    ),
    "a budget too small": Case(
        "budget_out_of_range",
        "The thinking budget 100 is invalid. Please choose a value between 512 and 24576.",
        "gemini-2.5-flash-lite",
        thinking(thinkingBudget=100),
        thinking(thinkingBudget=512),
    ),
    "a level on 2.5": Case(
        "effort_unsupported_param",
        "Thinking level is not supported for this model.",
        "gemini-2.5-flash",
        thinking(thinkingLevel="low"),
        thinking(thinkingBudget=1000),
    ),
    "minimal on 3.8": Case(
        "effort_unsupported_value",
        "Thinking level MINIMAL is not supported for this model.",
        "gemini-3.8-flash",
        thinking(thinkingLevel="minimal"),
        thinking(thinkingLevel="minimal"),
        "gemini-3-flash-preview",
    ),
    "medium on 3 Pro at Vertex": Case(
        "effort_unsupported_value",
        "Unable to submit request because thinking_level MEDIUM is not supported by this model.",
        PRO,
        thinking(thinkingLevel="MEDIUM"),
        thinking(thinkingLevel="HIGH"),
        base=VERTEX,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = CASES[name]
    first = find_broken(case.model, case.broken, case.base)[0]
    assert first.kind == case.kind
    assert first.text.startswith(case.words)
    assert find_broken(case.legal_model or case.model, case.legal, case.base) == []


def test_a_model_that_does_not_think_takes_no_amount() -> None:
    (found,) = find_broken("gemini-2.0-flash", thinking(thinkingBudget=1000))
    assert found.text == "Thinking is not enabled for models/gemini-2.0-flash"
    assert find_broken("gemini-2.0-flash", thinking(thinkingBudget=0)) == []


def test_every_broken_rule_is_reported_with_its_place() -> None:
    body = {"contents": [GO, CALL, GO], **thinking(thinkingBudget=0)}
    assert [(broken.kind, broken.path) for broken in find_broken(PRO, body)] == [
        ("thinking_cannot_disable", "generationConfig.thinkingConfig.thinkingBudget"),
        ("tool_result_missing", "contents[1]"),
    ]


@pytest.mark.parametrize("odd", [None, 7, "x", [], [7], {"role": 7}, [{"role": "model", "parts": [7, None]}]])
def test_a_field_of_any_type_is_read(odd: Any) -> None:
    for name in ("contents", "generationConfig"):
        find_broken(PRO, {name: odd})
