"""For each kind of rejection, a request that Claude's servers refuse, and the nearest one that they accept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from asides.dialects.anthropic import rules
from asides.dialects.rulebook import BrokenRule, WireRequest
from asides_stage.stage.rules.hosts import find_target

Wire = dict[str, Any]

HI: Wire = {"role": "user", "content": "hi"}
GO: Wire = {"role": "user", "content": "go"}
TOOLS: list[Wire] = [{"name": "look", "input_schema": {"type": "object"}}]
ENABLED: Wire = {"type": "enabled", "budget_tokens": 2000}
ADAPTIVE: Wire = {"type": "adaptive"}
DISABLED: Wire = {"type": "disabled"}
CALL: Wire = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT: Wire = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
LOOP: list[Wire] = [GO, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}]
BINDING_BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
UPDATES_BETA = {"anthropic-beta": "thinking-display-updates-2026-08-18"}


def assistant(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def find_broken(body: Wire, headers: Mapping[str, str] = MappingProxyType({})) -> list[BrokenRule]:
    given = {
        name: value for name, value in ({"max_tokens": 4000, "messages": [HI]} | body).items() if value is not None
    }
    request = WireRequest(given, headers, "/v1/messages", date(2026, 11, 15))
    return list(rules.check(request, find_target("anthropic", "/v1/messages", str(body.get("model")))))


class Case(NamedTuple):
    """A setting that is refused, and the nearest that is not."""

    kind: str | None
    words: str
    broken: Wire
    legal: Wire
    headers: Mapping[str, str] = MappingProxyType({})
    """Of the legal request."""


SETTINGS = {
    "a budget on 4.7": Case(
        "thinking_mode_unsupported",
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"',
        {"model": "claude-opus-4-7", "thinking": ENABLED},
        {"model": "claude-opus-4-7", "thinking": ADAPTIVE},
    ),
    "a budget on 4.6 is deprecated, and works": Case(
        "thinking_mode_unsupported",
        "does not match any of the expected tags",
        {"model": "claude-opus-4-6", "thinking": {"type": "on"}},
        {"model": "claude-opus-4-6", "thinking": ENABLED},
    ),
    "adaptive on 4.5": Case(
        "adaptive_unsupported",
        "adaptive thinking is not supported on this model",
        {"model": "claude-haiku-4-5-20251001", "thinking": ADAPTIVE},
        {"model": "claude-haiku-4-5-20251001", "thinking": ENABLED},
    ),
    "between_tools on Opus 5.5": Case(
        "between_tools_unsupported",
        '"thinking.type.between_tools" is not supported for this model.',
        {"model": "claude-opus-5-5", "thinking": {"type": "between_tools"}},
        {"model": "claude-sonnet-5-5", "thinking": {"type": "between_tools"}},
    ),
    "off on Fable 5.1": Case(
        "thinking_cannot_disable",
        '"thinking.type.disabled" is not supported for this model.',
        {"model": "claude-fable-5-1", "thinking": DISABLED},
        {"model": "claude-fable-5-1"},
    ),
    "off on Sonnet 5.5": Case(
        "thinking_cannot_disable",
        'send "thinking": {"type": "between_tools"} instead of {"type": "disabled"}',
        {"model": "claude-sonnet-5-5", "thinking": DISABLED},
        {"model": "claude-haiku-5-5", "thinking": DISABLED},
    ),
    "thinking before 3.7": Case(
        "thinking_unsupported_model",
        "'claude-3-5-haiku-latest' does not support thinking.",
        {"model": "claude-3-5-haiku-latest", "thinking": ENABLED},
        {"model": "claude-3-7-sonnet-latest", "thinking": ENABLED},
    ),
    "effort on 4.5": Case(
        "effort_unsupported_param",
        "This model does not support the effort parameter.",
        {"model": "claude-sonnet-4-5", "output_config": {"effort": "low"}},
        {"model": "claude-opus-4-5", "output_config": {"effort": "low"}},
    ),
    "xhigh on 4.6": Case(
        "effort_unsupported_value",
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
        {"model": "claude-opus-4-6", "output_config": {"effort": "xhigh"}},
        {"model": "claude-opus-4-6", "output_config": {"effort": "max"}},
    ),
    "an unknown effort": Case(
        "effort_unsupported_value",
        "output_config.effort: Input should be",
        {"model": "claude-opus-5-5", "output_config": {"effort": "minimal"}},
        {"model": "claude-opus-5-5", "output_config": {"effort": "xhigh"}},
    ),
    "much effort without thinking on Opus 5": Case(
        "effort_thinking_conflict",
        "output_config.effort 'xhigh' is not supported when thinking is disabled on this model.",
        {"model": "claude-opus-5", "thinking": DISABLED, "output_config": {"effort": "xhigh"}},
        {"model": "claude-opus-5", "thinking": DISABLED, "output_config": {"effort": "high"}},
    ),
    "much effort between tools": Case(
        "effort_thinking_conflict",
        "output_config.effort 'max' is not supported when thinking is disabled",
        {"model": "claude-sonnet-5-5", "thinking": {"type": "between_tools"}, "output_config": {"effort": "max"}},
        {"model": "claude-sonnet-5-5", "thinking": ADAPTIVE, "output_config": {"effort": "max"}},
    ),
    "another effort later on, between tools": Case(
        "effort_thinking_conflict",
        "messages.1: output_config.effort 'low' differs from the 'high' in effect before it",
        {
            "model": "claude-sonnet-5-5",
            "thinking": {"type": "between_tools"},
            "messages": [HI, {"role": "system", "content": [], "output_config": {"effort": "low"}}],
        },
        {
            "model": "claude-sonnet-5-5",
            "thinking": ADAPTIVE,
            "messages": [HI, {"role": "system", "content": [], "output_config": {"effort": "low"}}],
        },
    ),
    "a small budget": Case(
        "budget_too_small",
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled", "budget_tokens": 1023}},
        {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    "no budget": Case(
        None,
        "thinking.enabled.budget_tokens: Field required",
        {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled"}},
        {"model": "claude-opus-4-6", "thinking": {"type": "adaptive"}},
    ),
    "a budget as large as the limit": Case(
        "budget_exceeds_max_tokens",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        {"model": "claude-sonnet-4-5", "max_tokens": 2000, "thinking": ENABLED},
        {"model": "claude-sonnet-4-5", "max_tokens": 2001, "thinking": ENABLED},
    ),
    "a small trigger": Case(
        "budget_out_of_range",
        "context_management.edits.0.compact_20260112: trigger.value must be at least 50000",
        {
            "model": "claude-opus-5-5",
            "context_management": {"edits": [{"type": "compact_20260112", "trigger": {"value": 49_999}}]},
        },
        {
            "model": "claude-opus-5-5",
            "context_management": {"edits": [{"type": "compact_20260112", "trigger": {"value": 50_000}}]},
        },
    ),
    "temperature on 4.8": Case(
        "sampling_unsupported",
        "`temperature` is deprecated for this model.",
        {"model": "claude-opus-4-8", "temperature": 1},
        {"model": "claude-opus-4-8"},
    ),
    "two samplings on 4.5": Case(
        "sampling_unsupported",
        "`temperature` and `top_p` cannot both be specified for this model.",
        {"model": "claude-haiku-4-5", "temperature": 1, "top_p": 0.99},
        {"model": "claude-sonnet-4", "temperature": 1, "top_p": 0.99},
    ),
    "temperature while thinking": Case(
        "sampling_with_thinking",
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        {"model": "claude-opus-4-6", "thinking": ADAPTIVE, "temperature": 0.5},
        {"model": "claude-opus-4-6", "thinking": DISABLED, "temperature": 0.5},
    ),
    "top_k while thinking": Case(
        "sampling_with_thinking",
        "`top_k` must be unset when thinking is enabled.",
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "top_k": 4},
        {"model": "claude-sonnet-4-5", "top_k": 4},
    ),
    "top_p while thinking": Case(
        "sampling_with_thinking",
        "`top_p` must be greater than or equal to 0.95",
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "top_p": 0.9},
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "top_p": 0.95},
    ),
    "a forced tool with a budget": Case(
        "tool_choice_with_thinking",
        "Thinking may not be enabled when tool_choice forces tool use.",
        {"model": "claude-opus-4-6", "thinking": ENABLED, "tools": TOOLS, "tool_choice": {"type": "any"}},
        {"model": "claude-opus-4-6", "thinking": ADAPTIVE, "tools": TOOLS, "tool_choice": {"type": "any"}},
    ),
    "a forced tool on Opus 5.5": Case(
        "tool_choice_unsupported",
        'tool_choice: type "tool" and "any" are not supported for this model.',
        {"model": "claude-opus-5-5", "tools": TOOLS, "tool_choice": {"type": "tool", "name": "look"}},
        {"model": "claude-haiku-5-5", "tools": TOOLS, "tool_choice": {"type": "tool", "name": "look"}},
    ),
    "a begun answer on Sonnet 4.6": Case(
        "prefill_unsupported",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        {"model": "claude-sonnet-4-6", "messages": [HI, assistant(text("Once"))]},
        {"model": "claude-sonnet-4-5", "messages": [HI, assistant(text("Once"))]},
    ),
    "a context edit without thinking": Case(
        "context_edit_needs_thinking",
        "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
        {"model": "claude-opus-4-6", "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
        {
            "model": "claude-opus-4-6",
            "thinking": ADAPTIVE,
            "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
        },
    ),
    "a binding control without its beta": Case(
        "binding_control_unavailable",
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
        {"model": "claude-opus-5-5", "thinking": {**ADAPTIVE, "block_binding": {}}},
        {"model": "claude-opus-5-5", "thinking": {**ADAPTIVE, "block_binding": {}}},
        BINDING_BETA,
    ),
    "updates without their beta": Case(
        "unknown_param",
        "thinking.adaptive.display: Extra inputs are not permitted",
        {"model": "claude-opus-5-5", "thinking": {**ADAPTIVE, "display": "updates"}},
        {"model": "claude-opus-5-5", "thinking": {**ADAPTIVE, "display": "updates"}},
        UPDATES_BETA,
    ),
    "a budget in adaptive thinking": Case(
        "unknown_param",
        "thinking.adaptive.budget_tokens: Extra inputs are not permitted",
        {"model": "claude-opus-5-5", "thinking": {**ADAPTIVE, "budget_tokens": 2000}},
        {"model": "claude-opus-5-5", "thinking": ADAPTIVE},
    ),
    "an unknown field": Case(
        "unknown_param",
        "reasoning_effort: Extra inputs are not permitted",
        {"model": "claude-opus-5-5", "reasoning_effort": "low"},
        {"model": "claude-opus-5-5", "output_config": {"effort": "low"}},
    ),
    "a foreign field in a block": Case(
        "unknown_param",
        "messages.1.content.0.tool_use.text: Extra inputs are not permitted",
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [GO, assistant({**CALL, "text": ""}), LOOP[2]]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": LOOP},
    ),
    "a prompt too long": Case(
        "context_length",
        "prompt is too long: 200001 tokens > 200000 maximum",
        {"model": "claude-sonnet-4-5", "max_tokens": 1, "messages": [{"role": "user", "content": "x " * 200_001}]},
        {"model": "claude-sonnet-4-5", "max_tokens": 1, "messages": [{"role": "user", "content": "x " * 199_999}]},
    ),
    "prompt and limit too long": Case(
        "context_length",
        "input length and `max_tokens` exceed context limit: 199000 + 4000 > 200000",
        {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "x " * 199_000}]},
        {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "x " * 199_000}]},
    ),
    "no limit": Case(
        None,
        "max_tokens: Field required",
        {"model": "claude-sonnet-4-5", "max_tokens": None},
        {"model": "claude-sonnet-4-5"},
    ),
    "a result is missing": Case(
        "tool_result_missing",
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use`",
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [*LOOP[:2], HI]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [*LOOP, assistant(text("42")), HI]},
    ),
    "a result behind words": Case(
        "tool_result_missing",
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1",
        {
            "model": "claude-opus-5-5",
            "tools": TOOLS,
            "messages": [*LOOP[:2], {"role": "user", "content": [text("so"), RESULT]}],
        },
        {
            "model": "claude-opus-5-5",
            "tools": TOOLS,
            "messages": [*LOOP[:2], {"role": "user", "content": [RESULT, text("so")]}],
        },
    ),
    "a result without a call": Case(
        "tool_result_orphaned",
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result` block",
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [LOOP[2]]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": LOOP},
    ),
    "a result twice": Case(
        "tool_result_orphaned",
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t1",
        {
            "model": "claude-opus-5-5",
            "tools": TOOLS,
            "messages": [*LOOP[:2], {"role": "user", "content": [RESULT, RESULT]}],
        },
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": LOOP},
    ),
    "arguments that are no object": Case(
        "tool_arguments_invalid",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [GO, assistant({**CALL, "input": "{}"}), LOOP[2]]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": LOOP},
    ),
    "calls without tools": Case(
        None,
        "Requests which include `tool_use` or `tool_result` blocks must define tools.",
        {"model": "claude-opus-5-5", "messages": [*LOOP, assistant(text("42")), HI]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [*LOOP, assistant(text("42")), HI]},
    ),
    "an id twice": Case(
        None,
        "messages.3.content.0: `tool_use` ids must be unique",
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [*LOOP, *LOOP[1:]]},
        {"model": "claude-opus-5-5", "tools": TOOLS, "messages": LOOP},
    ),
    "an empty message": Case(
        "empty_content",
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
        {"model": "claude-opus-5-5", "messages": [HI, assistant(), GO]},
        {"model": "claude-opus-5-5", "messages": [HI, GO]},
    ),
    "an empty text": Case(
        "empty_content",
        "messages: text content blocks must be non-empty",
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text("")), GO]},
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text("x")), GO]},
    ),
    "a blank text": Case(
        "empty_content",
        "messages: text content blocks must contain non-whitespace text",
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text(" \n")), GO]},
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text(" x")), GO]},
    ),
    "the model speaks first": Case(
        "role_alternation",
        'messages: first message must use the "user" role',
        {"model": "claude-3-5-haiku-latest", "messages": [assistant(text("x")), GO]},
        {"model": "claude-opus-5-5", "messages": [assistant(text("x")), assistant(text("y")), GO]},
    ),
    "no thinking in a tool loop, with a budget": Case(
        "thinking_must_lead",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking`",
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "tools": TOOLS, "messages": LOOP},
        {"model": "claude-sonnet-4-5", "thinking": DISABLED, "tools": TOOLS, "messages": LOOP},
    ),
    "no thinking in a begun answer, with a budget": Case(
        "thinking_must_lead",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "messages": [HI, assistant(text("Once"))]},
        {"model": "claude-sonnet-4-5", "thinking": ENABLED, "messages": [HI, assistant(text("Once")), GO]},
    ),
    "no thinking in a tool loop, adaptive": Case(
        "thinking_must_lead",
        "messages.1.content.0.type: Expected `thinking`",
        {"model": "claude-opus-4-6", "thinking": ENABLED, "tools": TOOLS, "messages": LOOP},
        {"model": "claude-opus-4-6", "thinking": ADAPTIVE, "tools": TOOLS, "messages": LOOP},
    ),
    "thinking without a signature": Case(
        "thinking_signature_missing",
        "messages.1.content.0.thinking.signature: Field required",
        {
            "model": "claude-opus-5-5",
            "messages": [HI, assistant({"type": "thinking", "thinking": "plan"}, text("x")), GO],
        },
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text("x")), GO]},
    ),
    "redacted thinking without its data": Case(
        "thinking_signature_missing",
        "messages.1.content.0.redacted_thinking.data: Field required",
        {"model": "claude-opus-5-5", "messages": [HI, assistant({"type": "redacted_thinking"}, text("x")), GO]},
        {"model": "claude-opus-5-5", "messages": [HI, assistant(text("x")), GO]},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = SETTINGS[name]
    first = find_broken(case.broken)[0]
    assert first.kind == case.kind
    assert case.words in first.text
    assert find_broken(case.legal, case.headers) == []


def test_every_broken_rule_is_reported_with_its_place() -> None:
    turn = assistant({"type": "thinking", "thinking": "plan"}, CALL)
    found = find_broken({"model": "claude-opus-4-6", "temperature": 1, "top_p": 0.5, "messages": [GO, turn, HI]})
    assert [(broken.kind, broken.path) for broken in found] == [
        ("sampling_unsupported", "top_p"),
        ("thinking_signature_missing", "messages[1].content[0]"),
        ("tool_result_missing", "messages[1]"),
        (None, "tools"),
    ]


def test_neighbouring_messages_of_one_role_are_one_turn() -> None:
    other = {**CALL, "id": "t2"}
    results = {"role": "user", "content": [RESULT, {**RESULT, "tool_use_id": "t2"}]}
    history = [GO, assistant(CALL), assistant(other), results]
    assert find_broken({"model": "claude-sonnet-4-5", "tools": TOOLS, "messages": history}) == []


def test_results_of_calls_that_code_made_need_its_container() -> None:
    call = {**CALL, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}}
    body: Wire = {"model": "claude-opus-5-5", "tools": TOOLS, "messages": [GO, assistant(call), LOOP[2]]}
    assert [broken.path for broken in find_broken(body)] == ["container"]
    assert find_broken({**body, "container": "container_1"}) == []


def test_limits_of_strict_tools_and_their_schemas() -> None:
    strict = [{**TOOLS[0], "name": f"look{number}", "strict": True} for number in range(21)]
    assert [broken.path for broken in find_broken({"model": "claude-opus-5-5", "tools": strict})] == ["tools"]
    either = {f"p{number}": {"type": ["string", "null"]} for number in range(17)}
    union = {"name": "look", "strict": True, "input_schema": {"type": "object", "properties": either}}
    assert "17 parameters" in find_broken({"model": "claude-opus-5-5", "tools": [union]})[0].text
    untyped = [{"name": "look", "input_schema": {}}]
    found = find_broken({"model": "claude-opus-5-5", "tools": untyped})
    assert [broken.text for broken in found] == ["tools.0.custom.input_schema.type: Field required"]


@pytest.mark.parametrize("odd", [None, 7, "x", [], [7], {"role": 7}, [{"role": "user", "content": [7, None]}]])
def test_a_field_of_any_type_is_read(odd: Any) -> None:
    for name in ("messages", "thinking", "tools", "tool_choice", "output_config", "context_management", "system"):
        find_broken({"model": "claude-opus-4-5", name: odd})
