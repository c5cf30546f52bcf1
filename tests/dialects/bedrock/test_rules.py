"""For each kind of rejection, a request that Bedrock refuses, and the nearest one that it accepts. Written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest

from asides.dialects.bedrock import rules
from asides.dialects.rulebook import BrokenRule, WireRequest
from asides_stage.stage.rules.hosts import find_target

Wire = dict[str, Any]

SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "global.anthropic.claude-opus-5-5"
HI: Wire = {"role": "user", "content": [{"text": "hi"}]}
CALL: Wire = {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}
RESULT: Wire = {"toolResult": {"toolUseId": "t", "content": [{"text": "42"}]}}
TOOLS: Wire = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
UNSIGNED: Wire = {"reasoningContent": {"reasoningText": {"text": "plan"}}}
FORGED: Wire = {"reasoningContent": {"reasoningText": {"text": "plan", "signature": "eA=="}}}
WRAPPED = "The model returned the following errors: "


def find_broken(model: str, **body: Any) -> list[BrokenRule]:
    return list(rules.check(WireRequest({"messages": [HI], **body}), find_target("bedrock", "", model)))


def model_turn(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def user_turn(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks)}


def native(**fields: Any) -> Wire:
    return {"additionalModelRequestFields": fields}


class Case(NamedTuple):
    """A request that is refused, and the nearest that is not."""

    kind: str | None
    words: str
    model: str
    broken: Wire
    legal: Wire
    legal_model: str | None = None


ENABLED = {"type": "enabled", "budget_tokens": 2000}
CASES = {
    "the model speaks first": Case(
        "role_alternation",
        "A conversation must start with a user message.",
        "us.amazon.nova-2-lite-v1:0",
        {"messages": [model_turn({"text": "a"}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "a user twice": Case(
        "role_alternation",
        "A conversation must alternate between user and assistant roles.",
        "mistral.mistral-large-2407-v1:0",
        {"messages": [HI, HI]},
        {"messages": [user_turn({"text": "hi"}, {"text": "hi"})]},
    ),
    "a blank text": Case(
        "empty_content",
        "The text field in the ContentBlock object at messages.1.content.0 is blank. Add text to the text field",
        SONNET,
        {"messages": [HI, model_turn({"text": " "}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "no content": Case(
        "empty_content",
        "The content field in the Message object at messages.1 is empty.",
        SONNET,
        {"messages": [HI, model_turn(), HI]},
        {"messages": [HI]},
    ),
    "an error without words": Case(
        "empty_content",
        "The content field at messages.2.content.0.toolResult cannot be empty when status value is error.",
        SONNET,
        {
            "messages": [
                HI,
                model_turn(CALL),
                user_turn({"toolResult": {"toolUseId": "t", "content": [], "status": "error"}}),
            ],
            "toolConfig": TOOLS,
        },
        {
            "messages": [HI, model_turn(CALL), user_turn({"toolResult": {"toolUseId": "t", "content": []}})],
            "toolConfig": TOOLS,
        },
    ),
    "a result is missing": Case(
        "tool_result_missing",
        "Expected toolResult blocks at messages.2.content for the following Ids: t",
        SONNET,
        {"messages": [HI, model_turn(CALL), HI], "toolConfig": TOOLS},
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
    ),
    "a result without a call": Case(
        "tool_result_orphaned",
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
        SONNET,
        {"messages": [HI, model_turn({"text": "a"}), user_turn(RESULT)], "toolConfig": TOOLS},
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
    ),
    "a result at the beginning": Case(
        "tool_result_orphaned",
        "The number of toolResult blocks at messages.0.content exceeds the number",
        SONNET,
        {"messages": [user_turn(RESULT)], "toolConfig": TOOLS},
        {"messages": [HI], "toolConfig": TOOLS},
    ),
    "words beside results": Case(
        "tool_turn_order",
        "messages.2.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
        "meta.llama3-3-70b-instruct-v1:0",
        {"messages": [HI, model_turn(CALL), user_turn(RESULT, {"text": "so"})], "toolConfig": TOOLS},
        {"messages": [HI, model_turn(CALL), user_turn(RESULT, {"text": "so"})], "toolConfig": TOOLS},
        SONNET,
    ),
    "calls without tools": Case(
        None,
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        SONNET,
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)]},
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
    ),
    "a history with tools at a model without": Case(
        None,
        "This model doesn't support tool use.",
        "us.deepseek.r1-v1:0",
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
        SONNET,
    ),
    "tools at a model without": Case(
        None,
        "This model doesn't support tool use.",
        "us.deepseek.r1-v1:0",
        {"messages": [HI], "toolConfig": TOOLS},
        {"messages": [HI]},
    ),
    "thinking without text": Case(
        "thinking_text_missing",
        "Value at 'messages.2.member.content.1.member.reasoningContent.reasoningText.text' failed to satisfy",
        SONNET,
        {"messages": [HI, model_turn({"reasoningContent": {"reasoningText": {"signature": "x"}}}, {"text": "a"}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "thinking without a signature": Case(
        "thinking_signature_missing",
        f"{WRAPPED}messages.1.content.0.thinking.signature: Field required",
        SONNET,
        {"messages": [HI, model_turn(UNSIGNED, {"text": "a"}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "no thinking in a tool loop": Case(
        "thinking_must_lead",
        f"{WRAPPED}messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
        SONNET,
        {
            "messages": [HI, model_turn(CALL), user_turn(RESULT)],
            "toolConfig": TOOLS,
            **native(thinking=ENABLED),
        },
        {"messages": [HI, model_turn(CALL), user_turn(RESULT)], "toolConfig": TOOLS},
    ),
    "reasoning for Nova": Case(
        "reasoning_field_rejected",
        "User messages cannot contain reasoning content. Please remove the reasoning content and try again.",
        "us.amazon.nova-pro-v1:0",
        {"messages": [HI, model_turn(UNSIGNED, {"text": "a"}), HI]},
        {"messages": [HI, model_turn(UNSIGNED, {"text": "a"}), HI]},
        "us.amazon.nova-2-lite-v1:0",
    ),
    "reasoning for DeepSeek R1": Case(
        "reasoning_field_rejected",
        "User messages cannot contain reasoning content.",
        "us.deepseek.r1-v1:0",
        {"messages": [HI, model_turn(UNSIGNED, {"text": "a"}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "reasoning for Claude 3": Case(
        "reasoning_field_rejected",
        "User messages cannot contain reasoning content.",
        "anthropic.claude-3-haiku-20240307-v1:0",
        {"messages": [HI, model_turn(FORGED, {"text": "a"}), HI]},
        {"messages": [HI, model_turn({"text": "a"}), HI]},
    ),
    "a signature for gpt-oss": Case(
        "reasoning_field_rejected",
        "This model doesn't support the reasoningContent.reasoningText.signature field.",
        "openai.gpt-oss-120b-1:0",
        {"messages": [HI, model_turn(FORGED, {"text": "a"}), HI]},
        {"messages": [HI, model_turn(UNSIGNED, {"text": "a"}), HI]},
    ),
    "a budget on Opus 5.5": Case(
        "thinking_mode_unsupported",
        f'{WRAPPED}"thinking.type.enabled" is not supported for this model.',
        OPUS,
        native(thinking=ENABLED),
        native(thinking={"type": "adaptive"}),
    ),
    "off on Opus 5.5": Case(
        "thinking_cannot_disable",
        f'{WRAPPED}"thinking.type.disabled" is not supported for this model.',
        OPUS,
        native(thinking={"type": "disabled"}),
        {"outputConfig": {"effort": "low"}},
    ),
    "a small budget": Case(
        "budget_too_small",
        f"{WRAPPED}thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        SONNET,
        native(thinking={"type": "enabled", "budget_tokens": 100}),
        native(thinking=ENABLED),
    ),
    "a budget as large as the limit": Case(
        "budget_exceeds_max_tokens",
        f"{WRAPPED}`max_tokens` must be greater than `thinking.budget_tokens`.",
        SONNET,
        {**native(thinking=ENABLED), "inferenceConfig": {"maxTokens": 2000}},
        {**native(thinking=ENABLED), "inferenceConfig": {"maxTokens": 2001}},
    ),
    "temperature on Opus 5.5": Case(
        "sampling_unsupported",
        f"{WRAPPED}`temperature` is deprecated for this model.",
        OPUS,
        {"inferenceConfig": {"temperature": 0.5}},
        {"inferenceConfig": {"maxTokens": 50}},
    ),
    "temperature while thinking": Case(
        "sampling_with_thinking",
        f"{WRAPPED}`temperature` may only be set to 1 when thinking is enabled",
        SONNET,
        {**native(thinking=ENABLED), "inferenceConfig": {"temperature": 0.5}},
        {"inferenceConfig": {"temperature": 0.5}},
    ),
    "a forced tool while thinking": Case(
        "tool_choice_with_thinking",
        f"{WRAPPED}Thinking may not be enabled when tool_choice forces tool use.",
        SONNET,
        {**native(thinking=ENABLED), "toolConfig": {**TOOLS, "toolChoice": {"any": {}}}},
        {"toolConfig": {**TOOLS, "toolChoice": {"any": {}}}},
    ),
    "effort on Sonnet 4.5": Case(
        "effort_unsupported_param",
        f"{WRAPPED}This model does not support the effort parameter.",
        SONNET,
        native(output_config={"effort": "low"}),
        native(),
    ),
    "an unknown native field": Case(
        "unknown_param",
        f"{WRAPPED}reasoning_effort: Extra inputs are not permitted",
        OPUS,
        native(reasoning_effort="low"),
        native(output_config={"effort": "low"}),
    ),
    "a begun answer": Case(
        "prefill_unsupported",
        f"{WRAPPED}This model does not support assistant message prefill.",
        OPUS,
        {"messages": [HI, model_turn({"text": "Once"})]},
        {"messages": [HI, model_turn({"text": "Once"})]},
        SONNET,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(name: str) -> None:
    case = CASES[name]
    first = find_broken(case.model, **case.broken)[0]
    assert first.kind == case.kind
    assert first.text.startswith(case.words)
    assert find_broken(case.legal_model or case.model, **case.legal) == []


def test_reasoning_has_one_of_two_fields() -> None:
    found = find_broken(SONNET, messages=[HI, model_turn({"reasoningContent": {"text": "plan"}}, {"text": "a"}), HI])
    words = 'Unknown parameter in messages[1].content[0].reasoningContent: "text", must be one of'
    assert found[0].text.startswith(words)


def test_the_older_name_of_the_settings_for_thinking() -> None:
    assert find_broken(SONNET, **native(reasoning_config=ENABLED)) == []
    assert find_broken(OPUS, **native(reasoning_config=ENABLED))[0].kind == "thinking_mode_unsupported"


@pytest.mark.parametrize("odd", [None, 7, "x", [], [7], {"role": 7}, [{"role": "user", "content": [7, None]}]])
def test_a_field_of_any_type_is_read(odd: Any) -> None:
    for name in ("messages", "toolConfig", "inferenceConfig", "additionalModelRequestFields", "system"):
        find_broken(SONNET, **{name: odd})


def test_words_beside_calls_are_refused_where_calls_stand_alone() -> None:
    target = find_target("bedrock", "", "meta.llama3-3-70b-instruct-v1:0")
    quirks = msgspec.structs.replace(target.quirks, calls_alone=("meta.*",))
    alone = msgspec.structs.replace(target, provider=msgspec.structs.replace(target.provider, quirks=quirks))
    for blocks, refused in (([{"text": "a"}, CALL], True), ([UNSIGNED, CALL], True), ([CALL], False)):
        wire = WireRequest({"messages": [HI, model_turn(*blocks), user_turn(RESULT)], "toolConfig": TOOLS})
        words = [broken.text for broken in rules.check(wire, alone)]
        assert (rules.CALLS_MIXED.broken("", message="messages.1").text in words) == refused
        assert not list(rules.check(wire, target))
