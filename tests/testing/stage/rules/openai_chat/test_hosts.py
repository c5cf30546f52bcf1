"""The stage as each host of chat completions refuses what breaks a rule, and accepts the nearest legal request."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from asides.testing import OpenStage, Say
from asides.testing.stage.rules.openai_chat import RULES
from tests.testing.stage.rules.chat_requests import NAMED, SAID, SO, TOOL, USER, Wire, called, result, send

LOOP = [USER, called("a"), result("a")]
LOOP_WITH = [USER, called("a", reasoning_content="mull"), result("a")]
PLAIN = [USER]


class Case(NamedTuple):
    """A request that breaks a rule, and what makes it legal."""

    kind: str | None
    model: str
    broken: Wire
    legal: Wire
    words: str
    at: str = ""
    date: str | None = None
    status: int = 400

    def __str__(self) -> str:
        return f"{self.at or self.model}: {self.words[:40]}"


def messages(*sent: Wire, **fields: Any) -> Wire:
    return {"messages": list(sent), **fields}


def asking(**fields: Any) -> Wire:
    return {"messages": PLAIN, **fields}


def with_tools(**fields: Any) -> Wire:
    return {"messages": PLAIN, "tools": [TOOL], **fields}


ON, OFF = {"type": "enabled"}, {"type": "disabled"}
FORCED = with_tools(tool_choice="required")
THOUGHT = {**SAID, "reasoning_content": "mull"}

OPENAI = [
    Case(
        "effort_tools_endpoint",
        "gpt-5.4",
        with_tools(reasoning_effort="high"),
        with_tools(),
        "Please use /v1/responses instead.",
    ),
    Case(
        "effort_tools_endpoint",
        "gpt-5.6-terra",
        with_tools(reasoning_effort="low"),
        with_tools(reasoning_effort="none"),
        "use /v1/responses or set reasoning_effort to 'none'.",
    ),
    # The newer model has an effort of its own, so the field must be there.
    Case(
        "effort_tools_endpoint", "gpt-5.6", with_tools(), with_tools(reasoning_effort="none"), "for gpt-5.6 in /v1/chat"
    ),
    Case("effort_tools_endpoint", "gpt-6-astra", with_tools(), asking(), "for gpt-6-astra in /v1/chat"),
    Case(
        "effort_unsupported_value",
        "gpt-5.1",
        asking(reasoning_effort="minimal"),
        asking(reasoning_effort="none"),
        "does not support 'minimal' with this model. Supported values are: 'none', 'low', 'medium', and 'high'.",
    ),
    Case(
        "effort_unsupported_value",
        "gpt-6.1-sol",
        asking(reasoning_effort="max"),
        asking(reasoning_effort="xhigh"),
        "Supported values are: 'low', 'medium', 'high', and 'xhigh'.",
    ),
    Case(
        "effort_unsupported_param",
        "gpt-4o",
        asking(reasoning_effort="low"),
        asking(),
        "Unrecognized request argument supplied: reasoning_effort",
    ),
    Case(
        "sampling_unsupported",
        "gpt-5",
        asking(temperature=0.2),
        asking(temperature=1),
        "'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    ),
    Case(
        "sampling_unsupported",
        "o3-mini",
        asking(temperature=0.2),
        asking(),
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    Case(
        "sampling_unsupported",
        "gpt-5.2",
        asking(top_p=0.5, reasoning_effort="low"),
        asking(top_p=0.5),
        "Unsupported parameter: 'top_p'",
    ),
    Case("unknown_param", "gpt-5", asking(thinking=ON), asking(), "Unknown parameter: 'thinking'."),
    Case(
        "unknown_param",
        "gpt-5",
        asking(reasoning={"effort": "low"}),
        asking(reasoning_effort="low"),
        "Unknown parameter: 'reasoning'.",
        at="as-azure",
    ),
    Case("unknown_param", "o3", asking(max_tokens=9), asking(max_completion_tokens=9), "Use 'max_completion_tokens'"),
    Case(
        "tool_result_missing",
        "gpt-5",
        messages(USER, called("a"), SO),
        messages(USER, called("a"), result("a"), SO),
        "did not have response messages: a",
    ),
    Case(
        "tool_result_orphaned",
        "gpt-5",
        messages(USER, result("a")),
        messages(USER, called("a"), result("a")),
        "must be a response to a preceeding message with 'tool_calls'",
    ),
    Case(
        "empty_content",
        "gpt-5",
        messages(USER, {"role": "assistant", "content": None}, SO),
        messages(USER, {"role": "assistant", "content": ""}, SO),
        "expected a string, got null",
    ),
    Case(
        "context_length",
        "gpt-4o",
        messages({"role": "user", "content": "a " * 128_001}),
        messages({"role": "user", "content": "a " * 128_000}),
        "Your messages resulted in 128001 tokens.",
    ),
]

RETURNED = [
    Case(
        "reasoning_content_required",
        "deepseek-v4-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "must be passed back to the API.",
    ),
    # The name means what it meant on the day.
    Case(
        "reasoning_content_required",
        "deepseek-reasoner",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "field in the assistant message at message index 1.",
        date="2026-02-01",
    ),
    Case(
        "reasoning_content_required",
        "deepseek-reasoner",
        messages(*LOOP, SAID, SO),
        messages(*LOOP_WITH, SAID, SO),
        "must be passed back",
    ),
    Case(
        "reasoning_field_rejected",
        "deepseek-reasoner",
        messages(USER, THOUGHT, SO),
        messages(USER, SAID, SO),
        "must not be included",
        date="2025-10-01",
    ),
    Case(
        "role_alternation",
        "deepseek-reasoner",
        messages(USER, SO),
        messages(USER, SAID, SO),
        "does not support successive user or assistant messages (messages[0] and messages[1]",
        date="2025-03-01",
    ),
    Case(
        "reasoning_content_required",
        "kimi-k2.6",
        messages(*LOOP),
        messages(*LOOP, thinking=OFF),
        "is missing in assistant tool call message at index 1",
    ),
    Case(
        "reasoning_content_required",
        "mimo-v2.5-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "The reasoning_content in the thinking mode must be passed back",
    ),
    Case(
        "reasoning_field_rejected",
        "openai/gpt-oss-120b",
        messages(USER, THOUGHT, SO),
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        "property 'reasoning_content' is unsupported",
        at="as-groq",
    ),
    Case(
        "reasoning_field_rejected",
        "llama-3.3-70b-versatile",
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        messages(USER, SAID, SO),
        "reasoning is not supported with this model",
        at="as-groq",
    ),
    Case(
        "reasoning_field_rejected",
        "gpt-oss-120b",
        messages(USER, THOUGHT, SO),
        messages(USER, {**SAID, "reasoning": "mull"}, SO),
        "messages.1.assistant.reasoning_content: property",
        at="as-cerebras",
    ),
    Case(
        "reasoning_field_rejected",
        "magistral-medium-latest",
        messages(USER, THOUGHT, SO),
        messages(USER, SAID, SO),
        "Extra inputs are not permitted",
        status=422,
    ),
]

FORCED_BUT_OFF = with_tools(tool_choice="required", thinking=OFF)
SETTINGS = [
    Case("tool_choice_with_thinking", "deepseek-v4-pro", FORCED, FORCED_BUT_OFF, "does not support this tool_choice"),
    Case(
        "tool_choice_with_thinking",
        "kimi-k2.6",
        with_tools(tool_choice=NAMED),
        with_tools(tool_choice=NAMED, thinking=OFF),
        "tool_choice 'specified' is incompatible with thinking enabled",
    ),
    Case("tool_choice_with_thinking", "kimi-k3", with_tools(tool_choice=NAMED), FORCED, "tool_choice 'specified'"),
    Case(
        "sampling_with_thinking",
        "kimi-k2.5",
        asking(temperature=0.6),
        asking(temperature=0.6, thinking=OFF),
        "invalid temperature: only 1 is allowed for this model",
    ),
    Case(
        "sampling_with_thinking",
        "kimi-k2.5",
        asking(temperature=1, thinking=OFF),
        asking(temperature=1),
        "invalid temperature: only 0.6 is allowed for this model",
    ),
    Case(
        "effort_unsupported_value",
        "kimi-k2.6",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
    ),
    Case("unknown_param", "kimi-k2.6", asking(thinking=True), asking(thinking=ON), "bool is not acceptable"),
    Case("thinking_cannot_disable", "kimi-k3", asking(thinking=OFF), asking(), "only type=enabled"),
    Case("empty_content", "kimi-k2.6", messages(USER, {**SAID, "content": " "}, SO), messages(USER, SAID, SO), "empty"),
    Case(
        "thinking_cannot_disable",
        "glm-5.3",
        asking(thinking=OFF),
        asking(reasoning_effort="low"),
        "please use low, high, or max",
    ),
    Case(
        "thinking_cannot_disable",
        "glm-5.3",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="max"),
        "cannot be disabled",
        date="2026-09-14",
    ),
    Case(
        "stream_required",
        "qwen3-32b",
        asking(),
        asking(enable_thinking=False),
        "must be set to false for non-streaming calls",
    ),
    Case("stream_required", "qwq-plus", asking(), asking(stream=True), "only support stream mode"),
    Case(
        "budget_out_of_range",
        "qwen-plus",
        asking(enable_thinking=True, thinking_budget=0),
        asking(enable_thinking=True, thinking_budget=100),
        "must be a positive integer and not greater than",
    ),
    Case(
        "thinking_cannot_disable",
        "qwen3.8-max-preview",
        asking(enable_thinking=False),
        asking(),
        "restricted to True",
    ),
    Case(
        "tool_choice_with_thinking",
        "qwen3.8-max-preview",
        FORCED,
        with_tools(tool_choice="auto"),
        "required or object in thinking mode",
    ),
    Case(
        "thinking_mode_unsupported", "MiniMax-M3", asking(thinking=ON), asking(thinking={"type": "adaptive"}), "allow"
    ),
    Case(
        "system_position",
        "MiniMax-M2.7",
        messages(USER, {"role": "system", "content": "x"}, SO),
        messages({"role": "system", "content": "x"}, USER),
        "chat content has invalid message role: system",
    ),
    Case(
        "tool_result_orphaned",
        "MiniMax-M2",
        messages(USER, result("a")),
        messages(*LOOP),
        "invalid params, tool result's tool id(a) not found",
    ),
    Case(
        "effort_unsupported_value",
        "qwen/qwen3-32b",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="default"),
        "`reasoning_effort` must be one of `none` or `default`",
        at="as-groq",
    ),
    Case(
        "unknown_param",
        "qwen/qwen3-32b",
        asking(reasoning={"effort": "high"}),
        asking(),
        "property 'reasoning' is unsupported",
        at="as-groq",
    ),
    Case(
        "reasoning_params_conflict",
        "qwen/qwen3-32b",
        asking(reasoning_format="parsed", include_reasoning=True),
        asking(reasoning_format="parsed"),
        "both `reasoning_format` and",
        at="as-groq",
    ),
    Case("unknown_param", "qwen-3.8-27b", asking(enable_thinking=True), asking(), "enable_thinking", at="as-cerebras"),
    Case(
        "thinking_mode_unsupported",
        "mistral-small-latest",
        asking(prompt_mode="reasoning"),
        asking(reasoning_effort="high"),
        "Reasoning prompt mode is not enabled for this model",
    ),
    Case(
        "unknown_param",
        "mistral-small-latest",
        asking(thinking=ON),
        asking(),
        "Extra inputs are not permitted",
        status=422,
    ),
    Case(
        "effort_unsupported_param",
        "grok-4-latest",
        asking(reasoning_effort="low"),
        asking(),
        "Model grok-4-latest does not support parameter reasoningEffort.",
    ),
    Case(
        "effort_unsupported_value",
        "grok-4.5",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "'low', 'medium', and 'high'",
    ),
    Case(
        "sampling_unsupported",
        "grok-4-1-fast-reasoning",
        asking(presence_penalty=1),
        asking(),
        "does not support parameter presencePenalty.",
    ),
    Case(
        "sampling_unsupported",
        "grok-3-mini",
        asking(presence_penalty=1),
        asking(),
        "Argument not supported on this model: presencePenalty",
        date="2025-04-24",
    ),
    Case(
        "empty_content",
        "grok-4.5",
        messages(USER, {**SAID, "content": ""}, SO),
        messages(USER, SAID, SO),
        "at least one content element",
    ),
]

GATEWAYS = [
    Case(
        "reasoning_params_conflict",
        "openai/gpt-5",
        asking(reasoning={"effort": "low"}, reasoning_effort="low"),
        asking(reasoning={"effort": "low"}),
        'Only one of "reasoning" and "reasoning_effort"',
    ),
    Case(
        "reasoning_params_conflict",
        "anthropic/claude-sonnet-4.5",
        asking(reasoning={"effort": "low", "max_tokens": 2000}),
        asking(reasoning={"max_tokens": 2000}),
        'Only one of "reasoning.effort" and "reasoning.max_tokens"',
    ),
    Case(
        "thinking_cannot_disable",
        "google/gemini-3.7-flash",
        asking(reasoning={"enabled": False}),
        asking(reasoning={"effort": "low"}),
        "Reasoning is mandatory for this endpoint",
    ),
    Case(
        "budget_exceeds_max_tokens",
        "anthropic/claude-sonnet-4.5",
        asking(reasoning={"max_tokens": 2000}, max_tokens=2000),
        asking(reasoning={"max_tokens": 2000}, max_tokens=2001),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    Case(
        "reasoning_content_required",
        "deepseek/deepseek-v4-pro",
        messages(*LOOP),
        messages(USER, called("a", reasoning_details=[]), result("a")),
        "must be passed back to the API.",
    ),
    Case(
        "tool_result_orphaned",
        "anthropic/claude-sonnet-4.5",
        messages(USER, result("a")),
        messages(*LOOP),
        "unexpected `tool_use_id` found in `tool_result` blocks: a",
    ),
    Case(
        "tool_choice_with_thinking",
        "moonshotai/kimi-k2.6",
        FORCED,
        with_tools(tool_choice="required", reasoning={"enabled": False}),
        "tool_choice 'required' is incompatible",
    ),
    Case(
        "reasoning_params_conflict",
        "gemini-3-pro-preview",
        asking(reasoning_effort="low", extra_body={"google": {"thinking_config": {"thinking_level": "low"}}}),
        asking(reasoning_effort="low"),
        "Expected one of either `reasoning_effort` or custom `thinking_config`",
    ),
    Case(
        "thinking_cannot_disable",
        "gemini-2.5-pro",
        asking(reasoning_effort="none"),
        asking(reasoning_effort="low"),
        "only works in thinking mode",
    ),
    Case(
        "thought_signature_missing",
        "gemini-3-pro-preview",
        messages(*LOOP),
        messages(*LOOP, SO),
        "Function call is missing a thought_signature in functionCall parts.",
    ),
    Case(
        "tool_result_missing",
        "claude-sonnet-4.5",
        messages(USER, called("a"), SO),
        messages(*LOOP),
        "`tool_use` ids were found without `tool_result` blocks immediately after: a",
        at="as-copilot",
    ),
    Case(
        "opaque_provider_error",
        "claude-sonnet-4.5",
        messages(USER, {**SAID, "reasoning_opaque": "x"}, SO),
        messages(USER, SAID, SO),
        "400 Bad Request",
        at="as-copilot",
    ),
    Case(
        "effort_tools_endpoint",
        "gpt-5.6-terra",
        with_tools(reasoning_effort="low"),
        with_tools(reasoning_effort="none"),
        "use /v1/responses or set",
        at="as-copilot",
    ),
    Case(
        "reasoning_content_required",
        "deepseek/deepseek-v4-pro",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "must be passed back",
        at="as-litellm",
    ),
    Case(
        "reasoning_content_required",
        "kimi-k2.6",
        messages(*LOOP),
        messages(*LOOP_WITH),
        "reasoning_content is missing",
        at="as-new-api",
    ),
]

ENGINES = [
    Case(
        "system_position",
        "Qwen/Qwen3.5-27B",
        messages(USER, {"role": "system", "content": "x"}, SO),
        messages({"role": "system", "content": "x"}, USER),
        "System message must be at the beginning.",
        at="as-vllm",
    ),
    Case(
        "role_alternation",
        "google/gemma-3-27b",
        messages(USER, SO),
        messages(USER, SAID, SO),
        "Conversation roles must alternate",
        at="as-vllm",
    ),
    Case(
        "effort_unsupported_value",
        "Qwen/Qwen3.8-27B",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="xhigh"),
        "Unexpected reasoning effort high. Supported types are xhigh (default), medium, and low",
        at="as-vllm",
    ),
    Case(
        "prefill_with_thinking",
        "any",
        messages(USER, {**SAID, "content": "<think>a</think>b"}, continue_final_message=True),
        messages(USER, SAID, continue_final_message=True),
        "continue_final_message is set but",
        at="as-vllm",
    ),
    Case(
        "prefill_with_thinking",
        "any",
        messages(USER, SAID),
        messages(USER, SAID, chat_template_kwargs={"enable_thinking": False}),
        "Assistant response prefill is incompatible with enable_thinking.",
        at="as-llama-cpp",
    ),
    Case(
        "effort_unsupported_value",
        "qwen3",
        asking(reasoning_effort="high"),
        asking(reasoning_effort="none"),
        'think value "high" is not supported for this model',
        at="as-ollama",
        date="2025-12-22",
    ),
    Case(
        "reasoning_params_conflict",
        "glm-5.2",
        asking(thinking=ON, reasoning_effort="high"),
        asking(reasoning_effort="high"),
        "cannot specify both 'thinking' and 'reasoning_effort'",
        at="as-fireworks",
    ),
]
CASES = [*OPENAI, *RETURNED, *SETTINGS, *GATEWAYS, *ENGINES]


def path_of(case: Case) -> str:
    return f"/{case.at}/v1/chat/completions" if case.at else "/v1/chat/completions"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_request_is_refused_and_the_nearest_legal_one_is_not(stage: OpenStage, case: Case) -> None:
    opened = stage(Say(text="42"), date=case.date)
    answer = send(opened, path_of(case), {"model": case.model, **case.broken})
    (refusal,) = opened.refusals
    assert (answer.status, refusal.kind) == (case.status, case.kind)
    assert case.words in refusal.text
    assert answer.body == refusal.body
    legal = send(opened, path_of(case), {"model": case.model, **case.legal})
    assert legal.status == 200, legal.body


# --- bodies -----------------------------------------------------------------------------------------------------------

TOLD = "The `reasoning_content` in the thinking mode must be passed back to the API."


def body_of(stage: OpenStage, model: str, sent: Wire, at: str = "") -> Any:
    path = f"/{at}/v1/chat/completions" if at else "/v1/chat/completions"
    return send(stage(Say(text="42")), path, {"model": model, **sent}).json


def test_the_field_and_the_code_are_named(stage: OpenStage) -> None:
    assert body_of(stage, "gpt-5.1", asking(reasoning_effort="max")) == {
        "error": {
            "message": "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values "
            "are: 'none', 'low', 'medium', and 'high'.",
            "type": "invalid_request_error",
            "param": "reasoning_effort",
            "code": "unsupported_value",
        }
    }


def test_the_words_may_stand_where_others_name_the_field(stage: OpenStage) -> None:
    assert body_of(stage, "mimo-v2.5", messages(*LOOP)) == {
        "error": {
            "code": "400",
            "message": "Param Incorrect",
            "param": "The reasoning_content in the thinking mode must be passed back to the API.",
            "type": "",
        }
    }


def test_an_error_may_be_a_sentence(stage: OpenStage) -> None:
    assert body_of(stage, "grok-4-latest", asking(reasoning_effort="low")) == {
        "code": "Client specified an invalid argument",
        "error": "Model grok-4-latest does not support parameter reasoningEffort.",
    }


def test_an_error_may_be_a_list(stage: OpenStage) -> None:
    (entry,) = body_of(stage, "gemini-3-pro-preview", messages(*LOOP))
    assert (entry["error"]["code"], entry["error"]["status"]) == (400, "INVALID_ARGUMENT")
    (issue,) = body_of(stage, "openai/gpt-5", asking(reasoning={}, reasoning_effort="low"))
    assert issue == {
        "code": "custom",
        "message": 'Only one of "reasoning" and "reasoning_effort" may be provided',
        "path": [],
    }


def test_a_list_says_where_something_is_wrong(stage: OpenStage) -> None:
    assert body_of(stage, "magistral-medium-latest", messages(USER, THOUGHT, SO)) == {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
                "msg": "Extra inputs are not permitted",
                "input": "mull",
            }
        ]
    }


def test_a_gateway_quotes_the_body_of_its_upstream(stage: OpenStage) -> None:
    body = body_of(stage, "deepseek/deepseek-v4-pro", messages(*LOOP))
    error = body["error"]
    assert (error["message"], error["code"]) == ("Provider returned error", 400)
    assert error["metadata"]["provider_name"] == "DeepSeek"
    assert json.loads(error["metadata"]["raw"])["error"]["message"] == TOLD


def test_an_upstream_may_refuse_after_the_stream_was_opened(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    sent = {"model": "minimax/minimax-m2.5", **messages(USER, result("a"), stream=True)}
    answer = send(opened, "/v1/chat/completions", sent)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    chunk = json.loads(answer.payloads[0])
    assert chunk["choices"][0]["finish_reason"] == "error"
    assert (
        chunk["error"]["message"]
        == "Minimax midstream error: invalid params, tool result's tool id(a) not found (2013)"
    )
    assert opened.refusals[-1].kind == "tool_result_orphaned"
    whole = send(opened, "/v1/chat/completions", {**sent, "stream": False})
    assert (whole.status, whole.json["error"]["message"]) == (400, "Provider returned error")


def test_a_proxy_quotes_it_in_a_sentence(stage: OpenStage) -> None:
    body = body_of(stage, "deepseek-v4-pro", messages(*LOOP), at="as-litellm")
    message = body["error"]["message"]
    assert message.startswith(
        'litellm.BadRequestError: DeepSeekException - {"error":{"message":"The `reasoning_content`'
    )
    assert message.endswith("Received Model Group=deepseek-v4-pro\nAvailable Model Group Fallbacks=None")
    assert body["error"]["code"] == "400"


def test_a_server_may_say_nothing(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    sent = {"model": "any", **messages(USER, {**SAID, "reasoning_opaque": "x"}, SO)}
    assert send(opened, "/as-copilot/v1/chat/completions", sent).body == b"400 Bad Request\n"


def test_the_other_bodies(stage: OpenStage) -> None:
    flat = body_of(stage, "any", messages(USER, THOUGHT, SO), at="as-cerebras")
    assert (flat["param"], flat["code"]) == ("validation_error", "wrong_api_format")
    typed = body_of(stage, "MiniMax-M2", messages(USER, result("a")))
    assert typed["error"]["message"] == "invalid params, tool result's tool id(a) not found (2013)"
    assert body_of(stage, "glm-5.3", asking(thinking=OFF))["error"]["code"] == "1210"
    numbered = body_of(stage, "google/gemma-3-27b", messages(USER, SO), at="as-vllm")
    assert (numbered["error"]["type"], numbered["error"]["code"]) == ("BadRequestError", 400)
    relayed = body_of(stage, "kimi-k2.6", messages(*LOOP), at="as-new-api")
    assert relayed["error"]["type"] == "<nil>"
    assert "(request id: " in relayed["error"]["message"]
    copilot = body_of(stage, "any", messages(USER, called("a"), SO), at="as-copilot")
    assert copilot["code"] == "invalid_request_body"
    qwen = body_of(stage, "qwq-plus", asking())
    assert qwen["error"]["code"] == "invalid_parameter_error"
    assert qwen["id"] == f"chatcmpl-{qwen['request_id']}"
    fireworks = body_of(stage, "any", asking(thinking=ON, reasoning_effort="low"), at="as-fireworks")
    assert fireworks["object"] == "error"
    order = body_of(stage, "magistral-medium-latest", messages(USER, SAID))
    assert (order["code"], order["type"]) == ("3230", "invalid_request_message_order")


# --- which host -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "model", "status"),
    [
        ("/v1/chat/completions", "deepseek-v4-pro", 400),
        ("/as-xai/v1/chat/completions", "deepseek-v4-pro", 200),
        ("/as-deepseek/v1/chat/completions", "grok-4.5", 200),
        ("/as-deepseek/v1/chat/completions", "deepseek-v4-pro", 400),
        ("/api/v1/chat/completions", "deepseek-v4-pro", 200),
        ("/api/v1/chat/completions", "deepseek/deepseek-v4-pro", 400),
        ("/openai/deployments/mine/chat/completions", "deepseek-v4-pro", 200),
    ],
)
def test_the_path_comes_before_the_name(stage: OpenStage, path: str, model: str, status: int) -> None:
    assert send(stage(Say(text="42")), path, {"model": model, **messages(*LOOP)}).status == status


@pytest.mark.parametrize(
    ("at", "field"), [("", "reasoning_content"), ("as-groq", "reasoning"), ("as-vllm", "reasoning")]
)
def test_thinking_comes_in_the_field_of_the_host_and_goes_back_in_it(stage: OpenStage, at: str, field: str) -> None:
    opened = stage(Say(thinking="mull", text="42"))
    path = f"/{at}/v1/chat/completions" if at else "/v1/chat/completions"
    asked = {"model": "openai/gpt-oss-120b" if at else "any", "messages": PLAIN}
    turn = send(opened, path, asked).json["choices"][0]["message"]
    assert turn[field] == "mull"
    assert send(opened, path, {**asked, "messages": [USER, turn, SO]}).status == 200


def test_an_unknown_name_has_only_the_rules_of_all(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    odd = asking(thinking=ON, reasoning_effort="max", reasoning={"effort": "low"}, temperature=0.1, top_k=3)
    assert send(opened, "/v1/chat/completions", {"model": "any", **odd}).status == 200
    assert send(opened, "/v1/chat/completions", {"model": "any", **messages(USER, result("a"))}).status == 400


def test_a_lenient_stage_tells_and_answers(stage: OpenStage) -> None:
    opened = stage(Say(text="42"), rules="lenient")
    assert send(opened, "/v1/chat/completions", {"model": "gpt-5", **asking(temperature=0)}).status == 200
    assert [refusal.kind for refusal in opened.refusals] == ["sampling_unsupported"]


def test_every_rule_has_a_date_and_a_source() -> None:
    assert len(RULES) > 60
    assert [rule.text for rule in RULES if not rule.since.startswith("20") or len(rule.source) < 8] == []
