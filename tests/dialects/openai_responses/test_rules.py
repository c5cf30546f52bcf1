"""For each rule of Responses, a request that breaks it, and the nearest one that does not. Written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from asides.dialects.openai_chat.rules.state import UNDECRYPTED
from asides.dialects.openai_responses import rules
from asides.dialects.openai_responses.rules import state
from asides.dialects.rulebook import BrokenRule, Rule, WireRequest
from asides.providers.find import find_provider, find_rule
from asides.providers.provider import Target

Wire = dict[str, Any]

GPT, THINKER, PLAIN = "openai-responses:gpt-5.1", "openai-responses:o3", "openai-responses:gpt-4o"
XAI, XAI_FIXED, DEEPSEEK = "xai:grok-4.3", "xai:grok-4", "deepseek:deepseek-v4"
OTHERS = "openai-compatible:m"
HI: Wire = {"role": "user", "content": "hi"}
THOUGHT: Wire = {"type": "reasoning", "id": "rs_1", "summary": []}
SAID: Wire = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
CALL: Wire = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT: Wire = {"type": "function_call_output", "call_id": "c1", "output": "42"}
CLOSED: Wire = {"type": "object", "properties": {"at": {}}, "required": ["at"], "additionalProperties": False}


def find_target(named: str) -> Target:
    name, _, model = named.partition(":")
    row = find_provider(name).with_dialect("openai_responses")
    assert row is not None
    rule = find_rule(row, model, foreign=True)
    return Target(row, model, "http://127.0.0.1:9/v1", rule, chosen_dialect="openai_responses")


def find_broken(named: str, body: Wire) -> list[BrokenRule]:
    request = WireRequest({"model": named.partition(":")[2], "input": [HI], **body})
    return list(rules.check(request, find_target(named)))


def items(*sent: Wire) -> Wire:
    return {"input": list(sent)}


def strict(**changes: Any) -> Wire:
    tool = {"type": "function", "name": "look", "strict": True, "parameters": {**CLOSED, **changes}}
    return {"tools": [tool]}


class Case(NamedTuple):
    """A request that breaks a rule, and the nearest that breaks none."""

    kind: str | None
    words: str
    path: str
    broken: Wire
    legal: Wire
    at: str = GPT
    legal_at: str | None = None


CASES = {
    # --- settings -------------------------------------------------------------------------------------------------
    "an unknown field": Case(
        "unknown_param",
        "Unknown parameter: 'thinking'.",
        "thinking",
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "enabled"}},
        legal_at=OTHERS,
    ),
    "an unknown field of reasoning": Case(
        "unknown_param",
        "Unknown parameter: 'reasoning.enabled'.",
        "reasoning.enabled",
        {"reasoning": {"enabled": True}},
        {"reasoning": {"effort": "low"}},
    ),
    "the effort of chat": Case(
        "effort_unsupported_param",
        "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to",
        "reasoning_effort",
        {"reasoning_effort": "low"},
        {"reasoning": {"effort": "low"}},
    ),
    "an effort at a model without": Case(
        "effort_unsupported_param",
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "reasoning.effort",
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "low"}},
        PLAIN,
        GPT,
    ),
    "a summary at a model that does not think": Case(
        "effort_unsupported_param",
        "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
        "reasoning.summary",
        {"reasoning": {"summary": "auto"}},
        {"reasoning": {"summary": "auto"}},
        PLAIN,
        GPT,
    ),
    "an effort that the model lacks": Case(
        "effort_unsupported_value",
        "Unsupported value: 'max' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low',",
        "reasoning.effort",
        {"reasoning": {"effort": "max"}},
        {"reasoning": {"effort": "none"}},
    ),
    "xAI: an effort that the model lacks": Case(
        "effort_unsupported_value",
        "Model grok-4.3 does not support reasoning effort 'max'. Supported values are:",
        "reasoning_effort",
        {"reasoning": {"effort": "max"}},
        {"reasoning": {"effort": "low"}},
        XAI,
    ),
    "xAI: an effort at a model without": Case(
        "effort_unsupported_param",
        "Model grok-4 does not support parameter reasoningEffort.",
        "reasoning_effort",
        {"reasoning": {"effort": "low"}},
        {},
        XAI_FIXED,
    ),
    "encrypted reasoning of a model that does not think": Case(
        "encrypted_reasoning_unsupported",
        "Encrypted content is not supported with this model.",
        "include",
        {"include": ["reasoning.encrypted_content"]},
        {"include": ["file_search_call.results"]},
        PLAIN,
    ),
    "sampling while thinking": Case(
        "sampling_unsupported",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "temperature",
        {"temperature": 0.5},
        {"temperature": 1},
        THINKER,
    ),
    "sampling at an effort": Case(
        "sampling_unsupported",
        "Unsupported parameter: 'top_p' is not supported with this model.",
        "top_p",
        {"top_p": 0.5, "reasoning": {"effort": "low"}},
        {"top_p": 0.5, "reasoning": {"effort": "none"}},
    ),
    "a temperature above the highest": Case(
        None,
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
        "temperature",
        {"temperature": 2.5},
        {"temperature": 2},
        PLAIN,
    ),
    "a top_p below the lowest": Case(
        None,
        "Invalid 'top_p': decimal below minimum value. Expected a value >= 0, but got -0.1 instead.",
        "top_p",
        {"top_p": -0.1},
        {"top_p": 0},
        PLAIN,
    ),
    "a strict tool that takes more": Case(
        None,
        "Invalid schema for function 'look': In context=(), 'additionalProperties' is required to be supplied",
        "tools[0].parameters",
        strict(additionalProperties=True),
        strict(),
    ),
    "a strict tool with a field that may be missing": Case(
        None,
        "Invalid schema for function 'look': In context=(), 'required' is required to be supplied",
        "tools[0].parameters",
        strict(required=[]),
        strict(),
    ),
    "two earlier turns": Case(
        None,
        "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
        "conversation",
        {"previous_response_id": "resp_1", "conversation": "conv_1"},
        {"conversation": "conv_1"},
    ),
    "an input that is too long": Case(
        "context_length",
        "Your input exceeds the context window of this model.",
        "input",
        {"input": "a " * 128_001},
        {"input": "a " * 127_999},
        PLAIN,
    ),
    # --- items ----------------------------------------------------------------------------------------------------
    "an id of another kind": Case(
        "reasoning_item_id_invalid",
        "Invalid 'input[1].id': 'abc'. Expected an ID that begins with 'rs'.",
        "input[1].id",
        items(HI, {**THOUGHT, "id": "abc"}, SAID),
        items(HI, THOUGHT, SAID),
    ),
    "an id that is too long": Case(
        "reasoning_item_id_invalid",
        "Invalid 'input[1].id': string too long. Expected a string with maximum length 64, but got a string with",
        "input[1].id",
        items(HI, {**SAID, "id": f"msg_{'x' * 61}"}),
        items(HI, {**SAID, "id": f"msg_{'x' * 60}"}),
    ),
    "an item that is there twice": Case(
        "reasoning_item_duplicate",
        "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
        "input[3].id",
        items(HI, SAID, HI, SAID),
        items(HI, SAID, HI, {**SAID, "id": "msg_2"}),
    ),
    "reasoning without a summary": Case(
        None,
        "Missing required parameter: 'input[1].summary'.",
        "input[1].summary",
        items(HI, {"type": "reasoning", "id": "rs_1"}, SAID),
        items(HI, THOUGHT, SAID),
    ),
    "reasoning with raw text": Case(
        "reasoning_content_nonempty",
        "Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got an array with",
        "input[1].content",
        items(HI, {**THOUGHT, "content": [{"type": "reasoning_text", "text": "hm"}]}, SAID),
        items(HI, {**THOUGHT, "content": []}, SAID),
    ),
    "reasoning that nothing follows": Case(
        "reasoning_item_orphaned",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "input[1]",
        items(HI, THOUGHT, HI),
        items(HI, THOUGHT, SAID, HI),
    ),
    "a call without an output": Case(
        "tool_result_missing",
        "No tool output found for function call c1.",
        "input[1]",
        items(HI, CALL, HI),
        items(HI, CALL, OUTPUT, HI),
    ),
    "an output without a call": Case(
        "tool_result_orphaned",
        "No tool call found for function call output with call_id c1.",
        "input[1]",
        items(HI, OUTPUT),
        {**items(OUTPUT), "previous_response_id": "resp_1"},
    ),
    "DeepSeek: a call without the text of its thinking": Case(
        "reasoning_content_required",
        "The `reasoning_text` in the thinking mode must be passed back to the API.",
        "input[1]",
        items(HI, CALL, OUTPUT),
        items(HI, {**THOUGHT, "content": [{"type": "reasoning_text", "text": "hm"}]}, CALL, OUTPUT),
        DEEPSEEK,
    ),
    "DeepSeek: the same while it does not think": Case(
        "reasoning_content_required",
        "The `reasoning_text` in the thinking mode must be passed back to the API.",
        "input[1]",
        items(HI, CALL, OUTPUT),
        {**items(HI, CALL, OUTPUT), "reasoning": {"effort": "none"}},
        DEEPSEEK,
    ),
    "xAI: a message without content": Case(
        "empty_content",
        "Invalid request content: Each message must have at least one content element.",
        "input[1]",
        items(HI, {"role": "assistant", "content": ""}),
        items(HI, {"role": "assistant", "content": "a"}),
        XAI,
    ),
    "xAI: state without a summary": Case(
        "encrypted_reasoning_invalid",
        "Could not decode the compaction blob.",
        "input[1]",
        items(HI, {"type": "reasoning", "encrypted_content": "gAAA"}, SAID),
        items(HI, {"type": "reasoning", "encrypted_content": "gAAA", "summary": []}, SAID),
        XAI,
    ),
}
BY_HOLDER = {UNDECRYPTED, *(value for value in vars(state).values() if isinstance(value, Rule))}
"""Rules that only the server that holds the state can check."""


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = CASES[name]
    (broken,) = find_broken(case.at, case.broken)
    assert (broken.kind, broken.text.startswith(case.words), broken.path) == (case.kind, True, case.path)
    assert find_broken(case.legal_at or case.at, case.legal) == []


def test_every_rule_has_a_case() -> None:
    found = {broken.rule for case in CASES.values() for broken in find_broken(case.at, case.broken)}
    assert {*rules.RULES} - BY_HOLDER <= found


@pytest.mark.parametrize(
    "sent",
    [
        # An id alone is a reference to an item of any kind.
        (HI, {"id": "anything"}),
        # The provider's own tools that the client runs.
        (HI, {"type": "shell_call", "id": "sh_1", "call_id": "c1"}, OUTPUT),
        (HI, {**CALL, "type": "custom_tool_call", "id": "ctc_1"}, {**OUTPUT, "type": "custom_tool_call_output"}),
    ],
)
def test_items_that_are_accepted(sent: tuple[Wire, ...]) -> None:
    assert find_broken(GPT, items(*sent)) == []


def test_a_text_is_an_input_without_items() -> None:
    assert find_broken(GPT, {"input": "hi"}) == []
