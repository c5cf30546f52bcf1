"""Rules of gateways of chat completions, and of Google's own: their spellings, and what their upstreams refuse.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from asides.dialects.flat_messages import find_turn_start
from asides.dialects.openai_chat.rules.chat_request import ChatRequest
from asides.dialects.rulebook import BrokenRule, Rule

# --- OpenRouter's own -------------------------------------------------------------------------------------------------

ONE_SPELLING = Rule(
    kind="reasoning_params_conflict",
    text='Only one of "reasoning" and "reasoning_effort" may be provided',
    since="2025-02-26",
    source="danny-avila/LibreChat#6076",
)
EFFORT_OR_BUDGET = Rule(
    kind="reasoning_params_conflict",
    text='Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified',
    since="2026-05-02",
    source="omeryasirkucuk/amx#66",
)
MANDATORY = Rule(
    kind="thinking_cannot_disable",
    text="Reasoning is mandatory for this endpoint and cannot be disabled.",
    since="2026-02-15",
    source="musistudio/claude-code-router#1215; elie222/rakazo#114; /api/v1/models reasoning.mandatory, 2026-07-25",
)
CONTEXT = Rule(
    kind="context_length",
    text="This endpoint's maximum context length is {limit} tokens. However, you requested about {count} tokens "
    '({count} of text input). Please reduce the length of either one, or use the "middle-out" transform to compress '
    "your prompt automatically.",
    since="2025-07-31",
    source="refly-ai/refly#1177",
)
_CONTEXT_LIMIT = 1_048_576


def check_one_reasoning_spelling(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking is asked for once, and not switched off where that cannot be."""
    reasoning = asked.body.get("reasoning")
    if asked.effort is not None and (reasoning is not None or asked.body.get("include_reasoning") is not None):
        yield ONE_SPELLING.broken("reasoning_effort")
    if asked.get("reasoning.effort") is not None and asked.get("reasoning.max_tokens") is not None:
        yield EFFORT_OR_BUDGET.broken("reasoning")
    off = asked.get("reasoning.enabled") is False or "none" in (asked.get("reasoning.effort"), asked.effort)
    if off and asked.rule.thinking == "always" and asked.today >= date(2026, 2, 15):
        yield MANDATORY.broken("reasoning")
    if sum(len(str(message.get("content"))) for message in asked.messages) > 2 * _CONTEXT_LIMIT:
        count = sum(len(str(message.get("content")).split()) for message in asked.messages)
        if count > _CONTEXT_LIMIT:
            yield CONTEXT.broken("messages", limit=_CONTEXT_LIMIT, count=count)


# --- LiteLLM's own, and Claude behind it ------------------------------------------------------------------------------

ONE_LEVEL = Rule(
    kind="reasoning_params_conflict",
    text="litellm.UnsupportedParamsError: Cannot specify both 'thinking' and 'thinking_level'. Received Model "
    "Group={model}",
    since="2026-04-22",
    source="a public file that quotes the proxy; unsure: the middle of the sentence",
)
_MUST_LEAD = Rule(
    kind="thinking_must_lead",
    text="messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set "
    "of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid "
    "this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking",
    since="2025-09-10",
    source="openai/openai-agents-python#1704",
)


def check_one_thinking_level(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking is asked for once."""
    if "thinking" in asked.body and "thinking_level" in asked.body:
        yield ONE_LEVEL.broken("thinking_level", model=asked.model)


def check_thinking_blocks(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that the calls of the open turn bring their thinking, while it is enabled."""
    start = find_turn_start(asked.messages)
    for place, message in asked.assistants():
        if asked.switch == "enabled" and place > start and message.get("tool_calls"):
            if not message.get("thinking_blocks"):
                yield _MUST_LEAD.broken(f"messages[{place}]", place=place)
            return


# --- what its upstreams refuse ----------------------------------------------------------------------------------------

_BUDGET_TOO_LARGE = Rule(
    kind="budget_exceeds_max_tokens",
    text="`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
    since="2025-08",
    source="openrouter.ai docs reasoning-tokens: max_tokens must be strictly higher; the words are Anthropic's",
)
_THINKING_WHILE_OFF = Rule(
    kind="thinking_present_while_disabled",
    text="messages.{place}.content.0: When thinking is disabled, an `assistant` message in the final position cannot "
    "contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
    since="2025-07-22",
    source="tailcallhq/forgecode#1195",
)
_REASONING_BACK = Rule(
    kind="reasoning_content_required",
    text="The `reasoning_content` in the thinking mode must be passed back to the API.",
    code="invalid_request_error",
    since="2026-08-20",
    source="endolith/open-interpreter#215",
)
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


def check_signed_upstream(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the budget, and thinking in a final message while it is off."""
    budget, most = asked.get("reasoning.max_tokens"), asked.body.get("max_tokens")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        yield _BUDGET_TOO_LARGE.broken("max_tokens")
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    last = asked.messages[-1] if asked.messages else {}
    if off and last.get("role") == "assistant" and last.get("reasoning_details"):
        yield _THINKING_WHILE_OFF.broken(f"messages[{len(asked.messages) - 1}]", place=len(asked.messages) - 1)


def check_tool_turns_upstream(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that turns with calls bring their thinking, in any field that the gateway reads. An empty list counts."""
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    if off:
        return
    for place, message in asked.assistants():
        if message.get("tool_calls") and all(message.get(name) is None for name in _THOUGHT_FIELDS):
            yield _REASONING_BACK.broken(f"messages[{place}]", place=place)


_TOOL_CHOICE = Rule(
    kind="tool_choice_with_thinking",
    text="tool_choice '{choice}' is incompatible with thinking enabled",
    since="2026-04-25",
    source="AstrBotDevs/AstrBot#7805: through a gateway",
)


def check_forced_tools_upstream(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no tool is forced while the model thinks."""
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    if not off and asked.forced_tool not in (None, asked.rule.forced_tools):
        yield _TOOL_CHOICE.broken("tool_choice", choice=asked.forced_tool)


# --- Google's chat completions ----------------------------------------------------------------------------------------

_ONE_CONFIG = Rule(
    kind="reasoning_params_conflict",
    text="Expected one of either `reasoning_effort` or custom `thinking_config`; found both.",
    since="2025-06",
    source="ai.google.dev/gemini-api/docs/openai: they cannot be used at the same time; unsure: the words",
)
_ONLY_THINKING = Rule(
    kind="thinking_cannot_disable",
    text="Budget 0 is invalid. This model only works in thinking mode.",
    since="2026-08-10",
    source="HKUDS/DeepTutor#809: `none` is for the 2.5 models that are not Pro; the words of the native endpoint",
)
SIGNATURE_MISSING = Rule(
    kind="thought_signature_missing",
    text="Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "default_api:{name} , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    since="2025-11-18",
    source="niki914/zafiro#100: the body is a list",
)
SIGNATURE_CORRUPTED = Rule(
    kind="thought_signature_invalid",
    text="Corrupted thought signature.",
    since="2025-11-20",
    source="google-gemini/gemini-cli#13467; massgen/MassGen#665",
)


def check_effort_or_config(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking is asked for once, and not switched off where that cannot be."""
    config = asked.get("extra_body.google.thinking_config") or asked.get("google.thinking_config")
    if asked.effort is not None and config is not None:
        yield _ONE_CONFIG.broken("reasoning_effort")
    if asked.effort == "none" and asked.rule.thinking == "always":
        yield _ONLY_THINKING.broken("reasoning_effort")


def check_call_signatures(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that the first call of each step of the current turn has a signature."""
    start = find_turn_start(asked.messages)
    for place, message in asked.assistants():
        calls = message.get("tool_calls")
        if asked.rule.signed_calls and place > start and calls and not calls[0].get("extra_content"):
            name = (calls[0].get("function") or {}).get("name")
            yield SIGNATURE_MISSING.broken(f"messages[{place}].tool_calls[0]", name=name, position=place + 1)


# --- Copilot ----------------------------------------------------------------------------------------------------------

OPAQUE = Rule(
    kind="opaque_provider_error",
    text="400 Bad Request",
    since="2026-03-19",
    source="github/copilot-cli#2153",
)


def check_opaque(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no state comes back that this server did not give, which it refuses without a word."""
    for place, message in asked.assistants():
        if message.get("reasoning_opaque"):
            yield OPAQUE.broken(f"messages[{place}].reasoning_opaque")
