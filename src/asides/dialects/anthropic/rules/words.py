"""What servers of Messages say when they refuse: the kind, the words, and where and when they were seen."""

from __future__ import annotations

from asides.dialects.rulebook import Rule

_ERRORS = "platform.claude.com api/errors"
_BINDING = (
    "{place}: Invalid `{field}` in `{type}` block. The block is bound to a different conversation. Remove the block, "
    'or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)

# --- thinking that comes back -----------------------------------------------------------------------------------------

SIGNATURE_INVALID = Rule(
    kind="thinking_signature_invalid",
    text="{place}: Invalid `{field}` in `{type}` block",
    since="2025-10-30",
    source="anthropics/claude-code#10627",
)
PREFIX_MISMATCH = Rule(
    kind="thinking_prefix_mismatch",
    text=_BINDING + "{beta}{cause}",
    since="2026-09-02",
    source="platform.claude.com preserved-thinking",
)
BINDING_UNAVAILABLE = Rule(
    kind="binding_control_unavailable",
    text="thinking{type}.block_binding: Extra inputs are not permitted",
    since="2026-09-05",
    source="Wei-Shaw/sub2api#6677",
)
COMPACTION_MISMATCH = Rule(
    kind="compaction_signature_mismatch",
    text="{place}: `compaction` block `content` does not match its `signature`",
    since="2026-09-26",
    source="platform.claude.com preserved-thinking",
    code="compaction_content_mismatch",
)
SIGNATURE_MISSING = Rule(
    kind="thinking_signature_missing",
    text="{place}.{type}.{field}: Field required",
    since="2026-04-03",
    source="justlovemaki/AIClient2API#437",
)
TEXT_MISSING = Rule(
    kind="thinking_text_missing",
    text="{place}.thinking.thinking: Field required",
    since="2026-06-30",
    source="LibreChat-AI/agents#279",
)
BLOCK_MODIFIED = Rule(
    kind="thinking_block_modified",
    text=(
        "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These "
        "blocks must remain as they were in the original response."
    ),
    since="2026-05-28",
    source="anthropics/claude-code#63203; platform.claude.com extended-thinking",
)
MUST_LEAD = Rule(
    kind="thinking_must_lead",
    text=(
        "{place}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a "
        "final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
        "`tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this "
        "requirement, disable `thinking`. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    ),
    since="2025-08-04",
    source="deepset-ai/haystack-core-integrations#2146",
)
ORDER = Rule(
    kind="thinking_order",
    text=(
        "{place}: If an assistant message contains any thinking blocks, the first block must be thinking or "
        "redacted_thinking. Found {found}."
    ),
    since="2026-01-25",
    source="anthropics/claude-code#20705",
)
FINAL_BLOCK = Rule(
    kind="thinking_final_block",
    text="{message}: The final block in an assistant message cannot be `thinking`.",
    since="2025-12-11",
    source="tailcallhq/forgecode#2107",
)
WHILE_DISABLED = Rule(
    kind="thinking_present_while_disabled",
    text=(
        "{place}: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. "
        "To use thinking blocks, enable `thinking` in your request."
    ),
    since="2025-11-07",
    source="tailcallhq/forgecode#1853",
)

# --- turns and tools --------------------------------------------------------------------------------------------------

RESULT_MISSING = Rule(
    kind="tool_result_missing",
    text=(
        "{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message."
    ),
    since="2025-08-25",
    source="anthropics/claude-code#6539",
)
RESULT_ORPHANED = Rule(
    kind="tool_result_orphaned",
    text=(
        "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a "
        "corresponding `tool_use` block in the previous message."
    ),
    since="2025-11-07",
    source="decocms/studio#1803",
)
SERVER_RESULT_MISSING = Rule(
    kind=None,
    text=(
        "messages.{place}: `{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` "
        "block"
    ),
    since="2025-09",
    source="errors of the live service in public reports; unsure: the date",
)
SERVER_RESULT_ORPHANED = Rule(
    kind=None,
    text=(
        "{place}: unexpected `tool_use_id` found in `{type}` blocks: {id}. Each `{type}` block must have a "
        "corresponding `server_tool_use` block before it."
    ),
    since="2026-05-26",
    source="anthropics/claude-code#62577, #64383, #80439",
)
INPUT_INVALID = Rule(
    kind="tool_arguments_invalid",
    text="{place}.tool_use.input: Input should be a valid dictionary",
    since="2024-12-31",
    source="anthropics/anthropic-sdk-typescript#648; anthropics/claude-code#6696",
)
CONTAINER_MISSING = Rule(
    kind="tool_result_missing",
    text="container_id is required when there are pending tool uses generated by code execution with tools.",
    since="2026-07-08",
    source="anthropics/anthropic-sdk-typescript#1114",
)
TOOLS_UNDEFINED = Rule(
    kind=None,
    text="Requests which include `tool_use` or `tool_result` blocks must define tools.",
    since="2024-05-13",
    source="anthropics/anthropic-sdk-python#494",
)
IDS_REPEATED = Rule(
    kind=None,
    text="{place}: `tool_use` ids must be unique",
    since="2025-08",
    source="anthropics/claude-code, reports of 2025",
)
EMPTY_MESSAGE = Rule(
    kind="empty_content",
    text="{message}: all messages must have non-empty content except for the optional final assistant message",
    since="2025-01",
    source="platform.claude.com api/messages",
)
EMPTY_TEXT = Rule(
    kind="empty_content",
    text="messages: text content blocks must be non-empty",
    since="2025-01",
    source="platform.claude.com api/messages",
)
BLANK_TEXT = Rule(
    kind="empty_content",
    text="messages: text content blocks must contain non-whitespace text",
    since="2025-01",
    source="platform.claude.com api/messages",
)
FIRST_ROLE = Rule(
    kind="role_alternation",
    text='messages: first message must use the "user" role',
    since="2024-03",
    source="platform.claude.com api/messages; models before 3.7",
)
CALL_ID = Rule(
    kind=None,
    text="{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    since="2024-04",
    source="errors of the live service in many public reports; unsure: the first day",
)
THOUGHT_OF_USER = Rule(
    kind=None,
    text="{place}: `{type}` blocks may only be in `assistant` messages",
    since="2025-02",
    source="platform.claude.com extended-thinking; unsure: the words",
)
EXTRA_INPUT = Rule(
    kind="unknown_param",
    text="{field}: Extra inputs are not permitted",
    since="2025-07-25",
    source="anthropics/claude-code#4378",
)

# --- settings ---------------------------------------------------------------------------------------------------------

ENABLED_UNSUPPORTED = Rule(
    kind="thinking_mode_unsupported",
    text=(
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    ),
    since="2026-04-27",
    source="zhukunpenglinyutong/jetbrains-cc-gui#1003",
)
TYPE_UNKNOWN = Rule(
    kind="thinking_mode_unsupported",
    text=(
        "thinking: Input tag '{type}' found using 'type' does not match any of the expected tags: 'adaptive', "
        "'between_tools', 'disabled', 'enabled'"
    ),
    since="2026-11",
    source="anthropic-sdk-python 2.8 thinking_config_param; the words are those of the schema",
)
ADAPTIVE_UNSUPPORTED = Rule(
    kind="adaptive_unsupported",
    text="adaptive thinking is not supported on this model",
    since="2026-05-16",
    source="mnfst/llm-gateway#1928; platform.claude.com api/errors",
)
BETWEEN_TOOLS_UNSUPPORTED = Rule(
    kind="between_tools_unsupported",
    text='"thinking.type.between_tools" is not supported for this model.',
    since="2026-09-29",
    source="platform.claude.com whats-new-sonnet-5-5; 12 of 13 models measured",
)
THINKING_UNSUPPORTED = Rule(
    kind="thinking_unsupported_model",
    text="'{model}' does not support thinking.",
    since="2025-02",
    source="platform.claude.com extended-thinking: from 3.7 on",
)
CANNOT_DISABLE = Rule(
    kind="thinking_cannot_disable",
    text=(
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    ),
    since="2026-09-25",
    source=_ERRORS,
)
ONLY_BETWEEN_TOOLS = Rule(
    kind="thinking_cannot_disable",
    text=(
        'To turn thinking off on this model, send "thinking": {{"type": "between_tools"}} instead of {{"type": '
        '"disabled"}}. The model does not think before responding.'
    ),
    since="2026-10-08",
    source="platform.claude.com whats-new-sonnet-5-5",
)
EFFORT_UNSUPPORTED = Rule(
    kind="effort_unsupported_param",
    text="This model does not support the effort parameter.",
    since="2026-03-04",
    source="anthropics/claude-code#30795",
)
EFFORT_LEVEL = Rule(
    kind="effort_unsupported_value",
    text="This model does not support effort level '{effort}'. Supported levels: {levels}.",
    since="2026-07-30",
    source="SkillfulAgents/SuperAgent#1142",
)
EFFORT_UNKNOWN = Rule(
    kind="effort_unsupported_value",
    text="output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    since="2026-11",
    source="anthropic-sdk-python 2.8 output_config_param; the words are those of the schema",
)
EFFORT_WITHOUT_THINKING = Rule(
    kind="effort_thinking_conflict",
    text=(
        "output_config.effort '{effort}' is not supported when thinking is disabled on this model. Use effort 'high' "
        "or below, or enable thinking."
    ),
    since="2026-07-25",
    source="anthropics/claude-code#81084",
)
EFFORT_CHANGED = Rule(
    kind="effort_thinking_conflict",
    text="{message}: output_config.effort '{effort}' differs from the '{before}' in effect before it;",
    since="2026-10",
    source="platform.claude.com whats-new-sonnet-5-5; the end of the sentence is not known",
)
BUDGET_SMALL = Rule(
    kind="budget_too_small",
    text="thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    since="2026-03-26",
    source="tingly-dev/tingly-box#569",
)
BUDGET_MISSING = Rule(
    kind=None,
    text="thinking.enabled.budget_tokens: Field required",
    since="2025-02",
    source="platform.claude.com api/messages",
)
BUDGET_LARGE = Rule(
    kind="budget_exceeds_max_tokens",
    text="`max_tokens` must be greater than `thinking.budget_tokens`.",
    since="2026-09-03",
    source="BerriAI/litellm#39627",
)
TRIGGER_SMALL = Rule(
    kind="budget_out_of_range",
    text="context_management.edits.{number}.compact_20260112: trigger.value must be at least 50000",
    since="2026-09-26",
    source="platform.claude.com compaction",
)
SAMPLING_DEPRECATED = Rule(
    kind="sampling_unsupported",
    text="`{name}` is deprecated for this model.",
    since="2026-06-18",
    source="The-PR-Agent/pr-agent#2456",
)
SAMPLING_BOTH = Rule(
    kind="sampling_unsupported",
    text="`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    since="2026-01-26",
    source="SalesforceAIResearch/MCP-Universe#49",
)
TEMPERATURE = Rule(
    kind="sampling_with_thinking",
    text=(
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our "
        "documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
    ),
    since="2026-08-09",
    source="mnfst/modelparams.dev#214",
)
TOP_K = Rule(
    kind="sampling_with_thinking",
    text=(
        "`top_k` must be unset when thinking is enabled. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
        "#important-considerations-when-using-extended-thinking"
    ),
    since="2025-09-25",
    source="quarkiverse/quarkus-langchain4j#1812",
)
TOP_P = Rule(
    kind="sampling_with_thinking",
    text="`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled",
    since="2026-01-08",
    source="platform.claude.com extended-thinking",
)
FORCED_TOOL = Rule(
    kind="tool_choice_with_thinking",
    text="Thinking may not be enabled when tool_choice forces tool use.",
    since="2026-03-09",
    source="can1357/oh-my-pi#341",
)
FORCED_TOOL_NEVER = Rule(
    kind="tool_choice_unsupported",
    text='tool_choice: type "tool" and "any" are not supported for this model.',
    since="2026-09",
    source=_ERRORS,
)
PREFILL = Rule(
    kind="prefill_unsupported",
    text="This model does not support assistant message prefill. The conversation must end with a user message.",
    since="2026-02-05",
    source="vercel/ai#12296; langchain-ai/deepagents#1585",
)
CLEAR_THINKING = Rule(
    kind="context_edit_needs_thinking",
    text="`clear_thinking_20251015` strategy requires `thinking` to be enabled{or_adaptive}",
    since="2025-11-19",
    source="anthropics/claude-code#11971; from 2026-04-25 on with the words “or adaptive”",
)
PROMPT_LONG = Rule(
    kind="context_length",
    text="prompt is too long: {tokens} tokens > {limit} maximum",
    since="2026-03-09",
    source="daisuke-awaji/moca#254",
)
SUM_LONG = Rule(
    kind="context_length",
    text=(
        "input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {limit}, decrease input length "
        "or `max_tokens` and try again"
    ),
    since="2025-06-11",
    source="continuedev/continue#6080",
)
STRICT_TOOLS = Rule(
    kind=None,
    text=(
        "Too many strict tools ({count}). The maximum number of strict tools supported is 20. Try reducing the number "
        "of tools marked as strict."
    ),
    since="2026-11",
    source="recorded",
)
UNION_TYPES = Rule(
    kind=None,
    text=(
        "Schemas contains too many parameters with union types ({count} parameters with type arrays or anyOf). This "
        "causes exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: 16 "
        "parameters with unions)."
    ),
    since="2026-11",
    source="recorded",
)
SCHEMA_TYPE_MISSING = Rule(
    kind=None,
    text="tools.{number}.custom.input_schema.type: Field required",
    since="2026-11",
    source="recorded",
)
THREADS_UNSUPPORTED = Rule(
    kind=None,
    text="thread: threads are not supported here. Send the full conversation without `thread`.",
    since="2026-11",
    source="anthropic-python 2.8 types/thread_unsupported_request_error: the code; unsure: the words",
    code="thread_unsupported_request",
)
MAX_TOKENS_MISSING = Rule(
    kind=None, text="max_tokens: Field required", since="2024-03", source="platform.claude.com api/messages"
)

# --- hosts of other models --------------------------------------------------------------------------------------------

THINKING_REQUIRED = Rule(
    kind="reasoning_content_required",
    text="The `content[].thinking` in the thinking mode must be passed back to the API.",
    since="2026-08-14",
    source="esengine/DeepSeek-Reasonix#8902: DeepSeek",
)
TYPE_INVALID = Rule(
    kind="thinking_mode_unsupported",
    text='invalid params, invalid thinking.type: "{type}" (allowed: adaptive, disabled) (2013)',
    since="2026-06-24",
    source="HenriGrimm/Minnow#364: MiniMax",
)
RESULT_UNKNOWN = Rule(
    kind="tool_result_orphaned",
    text="invalid params, tool result's tool id({id}) not found (2013)",
    since="2026-02-11",
    source="MiniMax-AI/MiniMax-M2#76: MiniMax",
)
ARGUMENTS_INVALID = Rule(
    kind="tool_arguments_invalid",
    text="invalid params, invalid function arguments json string, tool_call_id: {id} (2013)",
    since="2026-06-19",
    source="earendil-works/pi#5468: MiniMax",
)

RULES = tuple(value for value in globals().values() if isinstance(value, Rule))
