"""Bodies of refusals in the forms that servers document and people report, and the wrappers around them. Written here.

`ORDINARY` are errors that have no kind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asides.dialects import find_dialect
from asides.providers.refusals import explain
from asides.values.errors import ProviderError
from asides.values.rejections import RejectionKind
from tests.decoding import target


def claude(message: str) -> dict[str, Any]:
    """Anthropic's error object around a message."""
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"}


def openai(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error object around a message."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def classify(
    body: bytes | str = b"",
    *,
    message: str = "",
    code: str | None = None,
    param: str | None = None,
    status: int | None = None,
) -> RejectionKind | None:
    """The kind of a refusal with this body, or with an error object of these fields."""
    if param is not None:
        body = encode({"error": {"message": message, "param": param, "code": code}})
    return explain(body.encode() if isinstance(body, str) else body, message=message, code=code, status=status)[0]


def google(message: str) -> dict[str, Any]:
    """Google's error object around a message."""
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


_BOUND = (
    "messages.7.content.2: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_MUST_LEAD = (
    "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks). To avoid this requirement, disable `thinking`."
)
_SUPPORTED = "Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'."

REFUSALS: list[tuple[RejectionKind, int, Any]] = [
    # --- replayed state -------------------------------------------------------------------------------------------
    ("thinking_signature_invalid", 400, claude("messages.9.content.3: Invalid `signature` in `thinking` block")),
    ("thinking_signature_invalid", 400, claude("messages.1.content.0: Invalid `data` in `redacted_thinking` block")),
    ("thinking_signature_invalid", 429, claude("messages.***.content.***: Invalid signature in thinking block")),
    ("thinking_signature_invalid", 502, {"error": "messages[3].content[0]: invalid signature in thinking block"}),
    ("thinking_signature_invalid", 400, {"message": "invalid thinking signature"}),
    (
        "thinking_signature_invalid",
        429,
        {
            "error": {
                "message": "All 1 attempts failed. Last error: HTTP 400: "
                + json.dumps(
                    google(json.dumps(claude("messages.3.content.0: Invalid `signature` in `thinking` block")))
                ),
                "type": "overloaded_error",
            },
            "type": "error",
        },
    ),
    (
        "thinking_signature_invalid",
        400,
        claude("messages.1.content.0: Invalid `signature` in `thinking` block: signature is malformed"),
    ),
    ("thinking_prefix_mismatch", 400, claude(_BOUND)),
    ("thinking_prefix_mismatch", 400, {"message": f"The model returned the following errors: {_BOUND}"}),
    ("binding_control_unavailable", 400, claude("thinking.adaptive.block_binding: Extra inputs are not permitted")),
    ("binding_control_unavailable", 400, openai("Unknown parameter: 'thinking.block_binding'.")),
    (
        "compaction_signature_mismatch",
        400,
        claude("messages.2.content.1: `compaction` block `content` does not match its `signature`"),
    ),
    ("thinking_signature_missing", 400, claude("messages.3.content.0.thinking.signature: Field required")),
    (
        "thinking_signature_missing",
        400,
        {"detail": [{"loc": ["body", "messages", 1, "content", 0, "thinking", "signature"], "msg": "Field required"}]},
    ),
    ("thinking_text_missing", 400, claude("messages.3.content.0.thinking.thinking: Field required")),
    ("thinking_text_missing", 400, claude("messages.11.content.0.thinking: each thinking block must contain thinking")),
    (
        "thinking_text_missing",
        400,
        {"message": "messages.2.content.0.thinking: each thinking block must contain non-whitespace thinking"},
    ),
    (
        "thinking_block_modified",
        400,
        claude("messages.1.content.4: `thinking` blocks in the latest assistant message cannot be modified."),
    ),
    (
        "thinking_block_modified",
        400,
        claude("`thinking` or `redacted_thinking` blocks must remain exactly as received."),
    ),
    ("thinking_must_lead", 400, claude(_MUST_LEAD)),
    ("thinking_must_lead", 400, claude("messages.3.content.0.type: Expected thinking, but found text.")),
    (
        "thinking_order",
        400,
        claude(
            "messages.7.content.0: If an assistant message contains any thinking blocks, the first block must be "
            "`thinking` or `redacted_thinking`. Found `tool_use`."
        ),
    ),
    ("thinking_final_block", 400, claude("messages.3: The final block in an assistant message cannot be `thinking`.")),
    (
        "thinking_present_while_disabled",
        400,
        claude(
            "messages.5.content.0: When thinking is disabled, an `assistant` message in the final position cannot "
            "contain `thinking`. To use thinking blocks, enable `thinking` in your request."
        ),
    ),
    (
        "reasoning_item_orphaned",
        400,
        openai("Item 'rs_68af' of type 'reasoning' was provided without its required following item.", "input"),
    ),
    (
        "reasoning_item_missing",
        400,
        openai(
            "Item 'msg_68af' of type 'message' was provided without its required 'reasoning' item: 'rs_68ae'.", "input"
        ),
    ),
    (
        "item_not_persisted",
        404,
        openai("Item with id 'rs_68af' not found. Items are not persisted when `store` is set to false.", "input"),
    ),
    ("item_not_persisted", 400, openai("Item with id 'msg_1f' not found.", "input")),
    (
        "encrypted_reasoning_invalid",
        400,
        openai("The encrypted content gAAA...x9== could not be verified.", code="invalid_encrypted_content"),
    ),
    (
        "encrypted_reasoning_invalid",
        400,
        openai(f"The encrypted content {'gAAAAABo' * 900} could not be verified."),
    ),
    (
        "encrypted_reasoning_invalid",
        400,
        {"code": "invalid-argument", "error": "Could not decrypt the provided encrypted_content."},
    ),
    (
        "encrypted_reasoning_wrong_account",
        400,
        openai(
            "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content organization_id did "
            "not match the target organization.",
            code="invalid_encrypted_content",
        ),
    ),
    ("encrypted_reasoning_unsupported", 400, openai("Encrypted content is not supported with this model.", "include")),
    (
        "encrypted_reasoning_unsupported",
        400,
        openai("Invalid value: 'reasoning.encrypted_content'. Supported values are: 'file_search_call.results'."),
    ),
    (
        "previous_response_missing",
        404,
        openai("Previous response with id 'resp_1' not found.", code="previous_response_not_found"),
    ),
    (
        "previous_response_forbidden",
        400,
        openai("Previous response cannot be used for this organization due to Zero Data Retention."),
    ),
    ("previous_response_forbidden", 400, {"detail": "Unsupported parameter: previous_response_id"}),
    ("reasoning_item_id_invalid", 400, openai("Invalid 'input[4].id': 'x1'. Expected an ID that begins with 'rs'.")),
    (
        "reasoning_item_id_invalid",
        400,
        openai("Invalid 'input[2].id': string too long. Expected a string with maximum length 64, but got 90 instead."),
    ),
    (
        "reasoning_item_duplicate",
        400,
        openai("Duplicate item found with id rs_1. Remove duplicate items from your input and try again."),
    ),
    (
        "reasoning_content_nonempty",
        400,
        openai(
            "Invalid 'input[8].content': array too long. Expected an array with maximum length 0, but got an array "
            "with length 2 instead."
        ),
    ),
    (
        "thought_signature_missing",
        400,
        google(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly. Additional data, function call `default_api:look` , position 4."
        ),
    ),
    (
        "thought_signature_missing",
        400,
        google("function call `f` in the 3. content block is missing a `thought_signature`."),
    ),
    (
        "thought_signature_missing",
        400,
        openai("Gemini models require OpenRouter reasoning details to be preserved in each request."),
    ),
    ("thought_signature_invalid", 400, google("Corrupted thought signature.")),
    ("thought_signature_invalid", 400, google("Invalid thought signature.")),
    ("thought_signature_invalid", 400, google("Thought signature is not valid.")),
    (
        "reasoning_content_required",
        400,
        openai("The `reasoning_content` in the thinking mode must be passed back to the API."),
    ),
    (
        "reasoning_content_required",
        400,
        openai("Missing `reasoning_content` field in the assistant message at message index 7."),
    ),
    (
        "reasoning_content_required",
        400,
        openai("thinking is enabled but reasoning_content is missing in assistant tool call message at index 3"),
    ),
    (
        "reasoning_content_required",
        400,
        {
            "error": {
                "code": "400",
                "message": "Param Incorrect",
                "param": "The reasoning_content in the thinking mode must be passed back to the API.",
                "type": "",
            }
        },
    ),
    (
        "reasoning_content_required",
        400,
        claude("The `content[].thinking` in the thinking mode must be passed back to the API."),
    ),
    (
        "reasoning_field_rejected",
        400,
        openai(
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property "
            "'reasoning' is unsupported, did you mean 'role'?)]"
        ),
    ),
    (
        "reasoning_field_rejected",
        400,
        {
            "message": "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is "
            "unsupported",
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        },
    ),
    (
        "reasoning_field_rejected",
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 4, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                    "input": "I should add them.",
                }
            ]
        },
    ),
    ("reasoning_field_rejected", 400, {"message": "User messages cannot contain reasoning content."}),
    ("reasoning_field_rejected", 400, openai("Unknown parameter: reasoning_content")),
    (
        "tool_result_missing",
        400,
        claude(
            "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    (
        "tool_result_missing",
        400,
        openai(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
            "messages",
        ),
    ),
    (
        "tool_result_missing",
        400,
        {"message": "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1"},
    ),
    ("tool_result_missing", 400, {"message": "Not the same number of function calls and responses", "code": "3230"}),
    (
        "tool_result_orphaned",
        400,
        openai("Invalid parameter: messages with role 'tool' must be a response to a preceeding message."),
    ),
    (
        "tool_result_orphaned",
        400,
        {
            "message": "The number of toolResult blocks at messages.4.content exceeds the number of toolUse blocks of "
            "previous turn."
        },
    ),
    ("tool_result_orphaned", 400, openai("Invalid request: tool_call_id  is not found")),
    (
        "tool_turn_order",
        400,
        google("Please ensure that function call turn comes immediately after a user turn."),
    ),
    ("tool_turn_order", 400, {"object": "error", "message": "Unexpected role 'user' after role 'tool'"}),
    ("tool_turn_order", 400, {"object": "error", "message": "Unexpected role RoleEnum.tool"}),
    (
        "tool_turn_order",
        400,
        {
            "message": "messages.4.content: Conversation blocks and tool result blocks cannot be provided in the same "
            "turn."
        },
    ),
    ("tool_arguments_invalid", 400, claude("invalid params, invalid function arguments json string (2013)")),
    ("tool_arguments_invalid", 400, claude("messages.1.content.1.tool_use.input: Input should be a valid dictionary")),
    (
        "tool_arguments_invalid",
        400,
        {
            "message": "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a json "
            "object for the field and try again."
        },
    ),
    ("empty_content", 400, openai("invalid params, chat content is empty (2013)")),
    ("empty_content", 400, {"error": {"code": "1213", "message": "The prompt parameter was not received normally."}}),
    ("empty_content", 400, claude("messages: text content blocks must be non-empty")),
    (
        "empty_content",
        400,
        claude("messages.3: all messages must have non-empty content except for the optional final assistant message"),
    ),
    (
        "empty_content",
        400,
        {"message": "The content field in the Message object at messages.6 is empty. Add a ContentBlock object."},
    ),
    (
        "empty_content",
        400,
        openai("Invalid request: message at position 2 with role 'assistant' must not be empty"),
    ),
    ("empty_content", 400, openai("Invalid assistant message: content or tool_calls must be set")),
    (
        "empty_content",
        400,
        {
            "error": {
                "code": "400",
                "message": "Param Incorrect",
                "param": "messages[32] assistant must provide content or tool_calls",
            }
        },
    ),
    (
        "role_alternation",
        400,
        openai(
            "deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2] in "
            "your input). You should interleave the user/assistant messages in the message sequence."
        ),
    ),
    (
        "role_alternation",
        400,
        {"message": "A conversation must alternate between user and assistant roles."},
    ),
    ("role_alternation", 400, openai("Error rendering prompt with jinja template: No user query found in messages.")),
    ("role_alternation", 400, google("Please ensure that multiturn requests alternate between user and model.")),
    ("system_position", 400, claude('messages: Unexpected role "system". The Messages API accepts a top-level one.')),
    ("system_position", 500, openai("System message must be at the beginning.")),
    ("system_position", 400, openai("System role not supported")),
    # --- settings -------------------------------------------------------------------------------------------------
    (
        "thinking_mode_unsupported",
        400,
        claude('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
    ),
    (
        "thinking_mode_unsupported",
        400,
        {"message": "Validation: `thinking.type` must be `enabled` or `disabled`", "type": "Bad Request", "code": 400},
    ),
    (
        "thinking_mode_unsupported",
        422,
        {
            "detail": [
                {
                    "type": "literal_error",
                    "loc": ["body", "thinking", "type"],
                    "msg": "Input should be 'enabled' or 'disabled'",
                    "input": "adaptive",
                }
            ]
        },
    ),
    ("thinking_mode_unsupported", 400, openai("Unsupported thinking type for the current model: auto")),
    ("thinking_mode_unsupported", 400, {"message": "Reasoning prompt mode is not enabled for this model"}),
    ("adaptive_unsupported", 400, claude("adaptive thinking is not supported on this model")),
    (
        "adaptive_unsupported",
        400,
        openai("Adaptive thinking is not available via the OpenAI compatibility endpoint."),
    ),
    (
        "adaptive_unsupported",
        400,
        {
            "message": "The model returned the following errors: thinking: Input tag 'adaptive' found using 'type' "
            "does not match any of the expected tags: 'disabled', 'enabled'"
        },
    ),
    ("between_tools_unsupported", 400, claude('"thinking.type.between_tools" is not supported for this model.')),
    (
        "thinking_cannot_disable",
        400,
        claude(
            '"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not '
            'specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.'
        ),
    ),
    (
        "thinking_cannot_disable",
        400,
        openai("Reasoning is mandatory for this endpoint and cannot be disabled."),
    ),
    ("thinking_cannot_disable", 400, google("Budget 0 is invalid. This model only works in thinking mode.")),
    ("thinking_cannot_disable", 400, openai("Unsupported thinking type for the current model: disabled")),
    ("thinking_unsupported_model", 400, {"error": '"gemma3:4b" does not support thinking'}),
    ("thinking_unsupported_model", 400, google("Thinking is not enabled for models/gemini-2.0-flash")),
    ("thinking_unsupported_model", 400, claude("'claude-3-5-haiku-20241022' does not support thinking.")),
    ("effort_unsupported_param", 400, claude("This model does not support the effort parameter.")),
    (
        "effort_unsupported_param",
        400,
        openai("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort"),
    ),
    ("effort_unsupported_param", 400, openai("Unrecognized request argument supplied: reasoning_effort")),
    ("effort_unsupported_param", 400, openai("property 'reasoning_effort' is unsupported")),
    ("effort_unsupported_param", 400, google("Thinking level is not supported for this model.")),
    (
        "effort_unsupported_param",
        400,
        {"code": "invalid-argument", "error": "Model grok-4 does not support parameter reasoningEffort."},
    ),
    (
        "effort_unsupported_value",
        400,
        openai(
            f"Unsupported value: 'minimal' is not supported with the 'gpt-5.2' model. {_SUPPORTED}",
            "reasoning.effort",
            "unsupported_value",
        ),
    ),
    (
        "effort_unsupported_value",
        400,
        openai(f"Unsupported value: 'minimal' is not supported with the 'gpt-5.2' model. {_SUPPORTED}", "***.effort"),
    ),
    (
        "effort_unsupported_value",
        400,
        openai("Unsupported value: 'reasoning_effort' does not support 'max' with this model."),
    ),
    (
        "effort_unsupported_value",
        400,
        claude("This model does not support effort level 'max'. Supported levels: high, low, medium."),
    ),
    (
        "effort_unsupported_value",
        400,
        claude('"output_config.effort" value "xhigh" is not supported for this model'),
    ),
    (
        "effort_unsupported_value",
        400,
        openai('reasoning_effort "medium" is not supported by model claude-x; supported values: [high]'),
    ),
    (
        "effort_unsupported_param",
        400,
        openai('reasoning_effort "high" was provided, but model gpt-4o does not support reasoning effort'),
    ),
    ("effort_unsupported_value", 400, openai("Invalid reasoning effort: 'ultra'. Must be one of: low, high.")),
    ("effort_unsupported_value", 400, google("thinking_level MINIMAL is not supported by this model.")),
    (
        "effort_thinking_conflict",
        400,
        claude("output_config.effort 'max' is not supported when thinking is disabled on this model."),
    ),
    (
        "effort_thinking_conflict",
        400,
        claude(
            "messages.3: output_config.effort 'low' differs from the 'high' in effect before it; effort cannot change "
            "when thinking is disabled on this model. Use effort 'high', or enable thinking."
        ),
    ),
    (
        "effort_tools_endpoint",
        400,
        openai(
            "Function tools with reasoning_effort are not supported for gpt-5.5 in /v1/chat/completions. Please use "
            "/v1/responses instead.",
            "reasoning_effort",
        ),
    ),
    ("reasoning_params_conflict", 400, openai("cannot specify both 'thinking' and 'reasoning_effort'")),
    (
        "reasoning_params_conflict",
        400,
        openai("Invalid combination of reasoning_effort and thinking type: medium + disabled"),
    ),
    (
        "reasoning_params_conflict",
        400,
        [{"code": "custom", "message": 'Only one of "reasoning" and "reasoning_effort" may be provided', "path": []}],
    ),
    ("reasoning_params_conflict", 400, openai("reasoning_format and include_reasoning cannot both be specified")),
    (
        "budget_exceeds_max_tokens",
        400,
        claude("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation."),
    ),
    ("budget_exceeds_max_tokens", 400, openai("thinking.budget_tokens must be less than max_tokens")),
    ("budget_too_small", 400, claude("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")),
    ("budget_too_small", 400, claude("thinking.budget_tokens: must be at least 1024")),
    (
        "budget_out_of_range",
        400,
        google("thinking_budget is out of range; supported values are integers from 128 to 32768."),
    ),
    ("budget_out_of_range", 400, google("The thinking budget (52428) is invalid.")),
    (
        "budget_out_of_range",
        400,
        openai("The thinking_budget parameter must be a positive integer and not greater than 38912"),
    ),
    (
        "sampling_with_thinking",
        400,
        claude("`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation."),
    ),
    ("sampling_with_thinking", 400, claude("`top_k` must be unset when thinking is enabled or in adaptive mode")),
    ("sampling_with_thinking", 400, openai("invalid temperature: only 1 is allowed for this model")),
    ("sampling_unsupported", 400, claude("`top_p` is deprecated for this model.")),
    (
        "sampling_unsupported",
        400,
        openai("Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"),
    ),
    (
        "sampling_unsupported",
        400,
        {"code": "invalid-argument", "error": "Model grok-4 does not support parameter frequencyPenalty."},
    ),
    (
        "tool_choice_with_thinking",
        400,
        openai("tool_choice 'specified' is incompatible with thinking enabled"),
    ),
    ("tool_choice_with_thinking", 400, claude("Thinking may not be enabled when tool_choice forces tool use.")),
    (
        "tool_choice_unsupported",
        400,
        claude('tool_choice: type "tool" and "any" are not supported for this model.'),
    ),
    (
        "tool_choice_unsupported",
        400,
        {"message": "This model doesn't support the toolConfig.toolChoice.tool field. Remove it and try again."},
    ),
    (
        "prefill_unsupported",
        400,
        claude("This model does not support assistant message prefill. The conversation must end with a user message."),
    ),
    ("prefill_unsupported", 400, {"message": "Expected last role User or Tool for serving but got assistant"}),
    (
        "system_position",
        400,
        {"message": "Expected last role User or Tool (or Assistant with prefix True) for serving but got system"},
    ),
    ("prefill_with_thinking", 400, openai("Assistant response prefill is incompatible with enable_thinking.")),
    (
        "context_edit_needs_thinking",
        400,
        claude("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive"),
    ),
    (
        "summary_not_allowed",
        400,
        openai("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
    ),
    (
        "summary_not_allowed",
        400,
        openai("Unsupported parameter: 'reasoning.summary' is not supported with the 'gpt-5.3-codex-spark' model."),
    ),
    ("stream_required", 400, openai("parameter.enable_thinking must be set to false for non-streaming calls")),
    ("stream_required", 400, openai("This model only support stream mode, please enable the stream parameter.")),
    ("stream_required", 400, {"detail": "Stream must be set to true"}),
    ("unknown_param", 400, claude("thinking.display: Extra inputs are not permitted")),
    ("unknown_param", 400, openai("property 'enable_thinking' is unsupported")),
    ("unknown_param", 400, openai("`reasoning_format` is not supported with this model", "reasoning_format")),
    ("unknown_param", 400, openai("Unknown parameter: 'reasoning'.", "reasoning", "unknown_parameter")),
    ("unknown_param", 400, google('Invalid JSON payload received. Unknown name "thinkingLevel": Cannot find field.')),
    ("context_length", 400, claude("prompt is too long: 210000 tokens > 200000 maximum")),
    (
        "context_length",
        400,
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            "messages",
            "context_length_exceeded",
        ),
    ),
    ("context_length", 400, google("The input token count (1200000) exceeds the maximum number of tokens allowed.")),
    ("context_length", 400, {"message": "Input is too long for requested model."}),
    ("context_length", 400, openai("the request exceeds the available context size, try increasing it")),
    ("context_length", 400, openai("Invalid request: Your request exceeded model token limit: 262144")),
    (
        "context_length",
        400,
        {"code": "x", "error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."},
    ),
    ("context_length", 400, openai("prompt token count of 130000 exceeds the limit of 128000", None, "x")),
    (
        "context_length",
        400,
        openai("The input (516368 tokens) is longer than the model's context length (262144 tokens)."),
    ),
    ("context_length", 400, openai("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.")),
    ("context_length", 400, openai("Prompt has 5,958 tokens, but the configured context size is 2,560 tokens")),
    ("context_length", 400, openai("Please reduce the length of the messages or completion.")),
    ("context_length", 400, {"error": "prompt too long; exceeded max context length by 100918 tokens"}),
    ("context_length", 400, claude("invalid params, context window exceeds limit (2013)")),
    (
        "context_length",
        400,
        openai(
            "Prompt contains 145000 tokens and 0 draft tokens, too large for model with 128000 maximum context length"
        ),
    ),
    ("opaque_provider_error", 400, "400 Bad Request\n"),
    ("opaque_provider_error", 400, openai("Provider returned error")),
    ("opaque_provider_error", 502, {"error": {"message": "Upstream request failed", "type": "upstream_error"}}),
]

_QUOTED = "The `reasoning_content` in the thinking mode must be passed back to the API."

ORDINARY: list[tuple[int, Any]] = [
    (
        401,
        openai(
            "Incorrect API key provided: sk-abc. You can find your API key in your account.", code="invalid_api_key"
        ),
    ),
    (401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    (403, {"message": "The security token included in the request is invalid."}),
    (
        403,
        {"message": "The request signature we calculated does not match the signature you provided. Check your key."},
    ),
    (400, google("API key not valid. Please pass a valid API key.")),
    (403, openai("Your organization must be verified to use the model `gpt-5`.", code="model_not_found")),
    (
        429,
        openai(
            "Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, "
            "Requested 5000. Please try again in 8s.",
            code="rate_limit_exceeded",
        ),
    ),
    (
        429,
        openai(
            "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 45000. The input or output "
            "tokens must be reduced in order to run successfully.",
            code="rate_limit_exceeded",
        ),
    ),
    (
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"
        ),
    ),
    (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed the limit."}}),
    (
        429,
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {"raw": "qwen/qwen3:free is temporarily rate-limited upstream. Please retry shortly."},
            }
        },
    ),
    (429, {"message": "Too many tokens, please wait before trying again."}),
    (400, {"message": "Throttling error: Too many tokens, please wait before trying again."}),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    (
        503,
        {
            "error": {
                "code": 503,
                "message": "The model is overloaded. Please try again later.",
                "status": "UNAVAILABLE",
            }
        },
    ),
    (500, openai("The server had an error while processing your request.", code="server_error")),
    (500, ""),
    (502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"),
    (400, "<html><head><title>400 Bad Request</title></head><body>nginx</body></html>"),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found")),
    (404, google("models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.")),
    (404, {"error": "model 'qwen9' not found"}),
    (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-9"}}),
    (402, openai("Insufficient Balance", code="invalid_request_error")),
    (400, openai("We could not parse the JSON body of your request.")),
    (400, {"message": "Expecting value: line 1 column 1 (char 0)"}),
    (400, openai("Invalid JSON: Expecting ',' delimiter: line 1 column 40 (char 39)")),
    (400, openai("Invalid type for 'messages[0].content': expected a string, but got an integer instead.")),
    (400, claude("messages: Field required")),
    (400, claude("max_tokens: Field required")),
    (400, claude("max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-x")),
    (400, openai("max_tokens is too large: 99999. This model supports at most 16384 completion tokens.")),
    (400, google("maxOutputTokens value of 16384 but the supported range is from 1 (inclusive) to 8193 (exclusive)")),
    (400, openai("Invalid schema for response_format 'x': In context=(), 'required' is required to be supplied.")),
    (400, openai("Invalid schema for function 'shell': 'additionalProperties' is required to be supplied.")),
    (400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.")),
    (400, openai("Your request was rejected as a result of our safety system.", code="content_policy_violation")),
    (400, openai("Invalid image url.")),
    (400, openai("Invalid request", code="invalid_api_key")),
    (400, openai("This model does not support the image_url parameter.")),
    (400, openai("this model does not support images")),
    (400, openai("Failed to parse tool call arguments as JSON", code="tool_use_failed")),
    (400, openai('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')),
    (400, openai("Temperature should be in [0.0, 2.0)")),
    (413, claude("Request exceeds the maximum allowed number of bytes.")),
    (400, claude("Your credit balance is too low to access the Anthropic API.")),
    (200, {"error": {"message": "Overloaded", "type": "overloaded_error"}}),
    # What a request said, echoed: in fields that are no words of the server, and quoted in its words.
    (400, {"detail": [{"loc": ["body", "messages", 0], "msg": "Input should be a valid string", "input": _QUOTED}]}),
    (400, {"error": {"message": "Invalid request content", "type": "bad", "request": {"messages": [_QUOTED]}}}),
    (400, {"error": {"message": "Content policy", "prompt": _QUOTED, "input": {"text": _QUOTED}}}),
    (400, openai(f"Failed to parse input near '{_QUOTED}': not a valid document")),
    (400, openai(f'Your prompt was flagged: "{_QUOTED}" is not allowed here')),
    (400, claude('messages.3.content.0.text: invalid value "I was thinking of a block, and its signature is invalid"')),
    (400, claude("messages.1.content.0.text.cache_control: A maximum of 4 blocks with cache_control may be provided.")),
]

# Sentences of other servers, each in OpenAI's envelope.
_SENTENCES: list[tuple[RejectionKind, str]] = [
    ("reasoning_params_conflict", "DeepSeek thinking options type cannot be disabled when reasoning_effort is set"),
    (
        "reasoning_field_rejected",
        (
            "The reasoning_content is an intermediate result for display purposes only and will not be included "
            "in the context for inference. Please remove the reasoning_content from your message to reduce "
            "network traffic."
        ),
    ),
    (
        "prefill_unsupported",
        (
            "The last message of deepseek-reasoner must be a user message, or an assistant message with prefix "
            "mode on (refer to https://api-docs.deepseek.com/guides/chat_prefix_completion)."
        ),
    ),
    (
        "role_alternation",
        (
            "The first message (except the system message) of deepseek-reasoner must be a user message, but an "
            "assistant message detected."
        ),
    ),
    (
        "role_alternation",
        "After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).",
    ),
    (
        "reasoning_params_conflict",
        (
            "Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is "
            "enabled. Learn more: https://cloud.google.com"
        ),
    ),
    (
        "effort_unsupported_value",
        (
            "[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be "
            "'low', 'medium' or 'high'\", 'input': 'xhigh', 'ctx': {'expected': \"'low', "
            "'medium' or 'high'\"}}]"
        ),
    ),
    (
        "effort_unsupported_value",
        (
            "1 validation error for ChatCompletionRequest\nreasoning_effort\n  Input should be 'low', 'medium' "
            "or 'high' [type=literal_error, input_value='none', input_type=str]"
        ),
    ),
    (
        "unknown_param",
        (
            "Malformed input request: #: extraneous key [reasoning_config] is not permitted, please reformat "
            "your input and try again."
        ),
    ),
    ("effort_unsupported_param", "Malformed input request: #: extraneous key [reasoning_effort] is not permitted"),
    ("reasoning_field_rejected", "Unknown parameter: 'messages[2].reasoning'."),
    ("reasoning_field_rejected", "Unknown parameter: 'input[2].reasoning_content'."),
    ("reasoning_field_rejected", "unknown variant `thinking`, expected `text` or `image_url`"),
    (
        "reasoning_field_rejected",
        (
            "Invalid value: 'thinking'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "
            "'audio', and 'file'."
        ),
    ),
    ("system_position", "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    (
        "unknown_param",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    ("unknown_param", "Value error, current model does not support parameter `enable_thinking`."),
    ("reasoning_field_rejected", "Extra inputs are not permitted, field: 'messages[2].reasoning_content', value: 'x'"),
    ("context_length", "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    ("role_alternation", "Cannot have 2 or more assistant messages at the end of the list."),
    ("tool_arguments_invalid", "Can only get item pairs from a mapping."),
    ("effort_unsupported_value", 'invalid think value: "xx" (must be "high", "medium", "low", true, or false)'),
    (
        "binding_control_unavailable",
        "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header.",
    ),
    (
        "summary_not_allowed",
        (
            "Unsupported value: 'reasoning.summary' does not support 'concise' with this model. Supported values "
            "are: 'detailed'."
        ),
    ),
    ("thinking_cannot_disable", "Reasoning is mandatory for this endpoint and cannot be disabled."),
    ("thinking_unsupported_model", "thinking is not supported for this model"),
    ("sampling_unsupported", "Model grok-4 does not support parameter stop."),
    (
        "empty_content",
        (
            "Invalid 'input[3].content': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead."
        ),
    ),
    ("reasoning_content_required", "The thinking block must be passed back to the API."),
    ("thinking_text_missing", "messages.1.content.0: the `thinking` block is empty"),
    (
        "effort_thinking_conflict",
        '"thinking.type" value "disabled" is not supported with "output_config.effort" value "max" for this model',
    ),
    ("sampling_unsupported", '"temperature" must be 1.0 for this model'),
    ("sampling_unsupported", '"top_p" must be >= 0.99 for this model'),
    ("budget_too_small", '"thinking.budget_tokens" must be greater than or equal to 1024'),
    ("thinking_mode_unsupported", '"thinking.type" must be one of: "enabled", "disabled", "adaptive"'),
    ("effort_unsupported_value", '"output_config.effort" must be one of: "low", "medium"'),
]
REFUSALS.extend((kind, 400, openai(sentence)) for kind, sentence in _SENTENCES)

_OTHER_SENTENCES = [
    "Json mode response is not supported when enable_thinking is true",
    "This model does not support enable_search.",
    "Range of max_tokens should be [1, 8192]",
    "model does not support tools",
    "No endpoints found that support tool use.",
    "invalid request signature",
    "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings",
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    "The model's response was blocked",
    "Invalid value for 'tool_choice': no tools were given",
    "messages: at least one message is required",
    "Internal error encountered.",
    "Invalid file data",
    "The requested model is not supported in this region",
    "This token has no access to model claude-opus-5",
    "tools.0.custom.input_schema: JSON schema is invalid.",
    "tools: Tool names must be unique.",
    "Invalid base64 image data",
    "unsupported country, region, or territory",
]
ORDINARY.extend((400, openai(sentence)) for sentence in _OTHER_SENTENCES)


def encode(body: Any) -> bytes:
    """Encode a body as a server sends it: text as it is, everything else as JSON."""
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()


# --- wrappers -----------------------------------------------------------------------------------------------------


def _text_of(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda body: [body],
    "string": lambda body: json.dumps(_text_of(body)),
    "google": lambda body: {"error": {"code": 400, "message": _text_of(body), "status": "INVALID_ARGUMENT"}},
    "router": lambda body: {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": _text_of(body), "provider_name": "Example"},
        },
        "user_id": "user_1",
    },
    "upstream": lambda body: {"type": "error", "error": {"type": "request_fail", "upstream_error": body}},
    "upstream_response": lambda body: {"error": {"message": "Bad Request", "upstreamResponse": body}},
    "litellm": lambda body: {
        "error": {
            "message": f"litellm.BadRequestError: ExampleException - {_text_of(body)}. Received Model Group=main\n"
            "Available Model Group Fallbacks=None",
            "type": None,
            "param": None,
            "code": "400",
        }
    },
    "litellm_bytes": lambda body: f"litellm.BadRequestError: ExampleException - {_text_of(body).encode()!r}",
    "sdk": lambda body: f"Error code: 400 - {body!r}",
    "bedrock": lambda body: {"message": f"The model returned the following errors: {_text_of(body)}"},
    "boto": lambda body: (
        "An error occurred (ValidationException) when calling the ConverseStream operation: The model returned the "
        f"following errors: {_text_of(body)}"
    ),
    "event": lambda body: f"event: error\ndata: {_text_of(body)}\n\n",
    "data": lambda body: f"data:{_text_of(body)}",
    "failed_response": lambda body: {
        "type": "response.failed",
        "response": {
            "id": "resp_1",
            "status": "failed",
            "error": {"code": "x", "message": _text_of(body)},
            "output": [],
        },
    },
    "exception": lambda body: {"validationException": {"message": _text_of(body)}},
    "detail": lambda body: {"detail": _text_of(body)},
}


# --- the collection -----------------------------------------------------------------------------------------------

FOLDER = Path(os.environ.get("ASIDES_REFERENCE") or Path(__file__).parents[3] / "shared" / "reference")


def _load_known() -> list[dict[str, Any]]:
    path = FOLDER / "rejections.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


KNOWN = _load_known()
"""Bodies that others collected, read in place where the collection is."""
ALL: list[tuple[RejectionKind, int, Any, str]] = [
    *((kind, status, body, "openai_chat") for kind, status, body in REFUSALS),
    *((entry["kind"], entry["status"], entry["body"], entry["dialect"].replace("-", "_")) for entry in KNOWN),
]
"""The kind, the status, the body and the dialect of each."""
SPEAKING = [(kind, status, body) for kind, status, body, _dialect in ALL if kind != "opaque_provider_error"]
"""Without those that say nothing: around them there is nothing to find."""

DIALECTS = ("anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses")


def read_error(dialect: str, status: int, body: bytes) -> ProviderError:
    """Read the error of a response as a call in this dialect does."""
    return find_dialect(dialect).error(status, {}, body, target())
