"""Rules of gateways of chat completions, and of Google's own: their spellings, and what their upstreams refuse.

Written from the documented rules and from reported errors. Not here: signed details (issued_details), and the bodies
around an upstream's error (error_bodies).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from asides.testing.stage.rules import find_turn_start
from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule, write_issues, write_nothing

# --- OpenRouter's own -------------------------------------------------------------------------------------------------

_ONE_SPELLING = HostRule(
    kind="reasoning_params_conflict",
    write=write_issues,
    text='Only one of "reasoning" and "reasoning_effort" may be provided',
    since="2025-02-26",
    source="danny-avila/LibreChat#6076",
)
_EFFORT_OR_BUDGET = HostRule(
    kind="reasoning_params_conflict",
    text='Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified',
    since="2026-05-02",
    source="omeryasirkucuk/amx#66",
)
_MANDATORY = HostRule(
    kind="thinking_cannot_disable",
    text="Reasoning is mandatory for this endpoint and cannot be disabled.",
    since="2026-02-15",
    source="musistudio/claude-code-router#1215; elie222/rakazo#114; /api/v1/models reasoning.mandatory, 2026-07-25",
)
_CONTEXT = HostRule(
    kind="context_length",
    text="This endpoint's maximum context length is {limit} tokens. However, you requested about {count} tokens "
    '({count} of text input). Please reduce the length of either one, or use the "middle-out" transform to compress '
    "your prompt automatically.",
    since="2025-07-31",
    source="refly-ai/refly#1177",
)
_MANDATORY_MODELS = re.compile(
    r"openai/(?:o\d|gpt-5(?:-(?!chat)|$)|gpt-oss)|deepseek/deepseek-r1|minimax/minimax-m2|google/gemini-(?:2\.5-pro|[3-9])"
    r"|anthropic/claude-(?:fable|mythos|opus-5\.5|sonnet-5\.5)|moonshotai/kimi-k(?:2-thinking|[3-9])|z-ai/glm-5\.3"
)
_CONTEXT_LIMIT = 1_048_576


def check_openrouter_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking is asked for once, and not switched off where that cannot be."""
    reasoning = asked.body.get("reasoning")
    if asked.effort is not None and (reasoning is not None or asked.body.get("include_reasoning") is not None):
        yield _ONE_SPELLING.fault()
    if asked.get("reasoning.effort") is not None and asked.get("reasoning.max_tokens") is not None:
        yield _EFFORT_OR_BUDGET.fault()
    off = asked.get("reasoning.enabled") is False or "none" in (asked.get("reasoning.effort"), asked.effort)
    if off and asked.today >= date(2026, 2, 15) and _MANDATORY_MODELS.match(asked.model.lower()):
        yield _MANDATORY.fault()
    if sum(len(str(message.get("content"))) for message in asked.messages) > 2 * _CONTEXT_LIMIT:
        count = sum(len(str(message.get("content")).split()) for message in asked.messages)
        if count > _CONTEXT_LIMIT:
            yield _CONTEXT.fault(limit=_CONTEXT_LIMIT, count=count)


# --- LiteLLM's own, and Claude behind it ------------------------------------------------------------------------------

_ONE_LEVEL = HostRule(
    kind="reasoning_params_conflict",
    text="litellm.UnsupportedParamsError: Cannot specify both 'thinking' and 'thinking_level'. Received Model "
    "Group={model}",
    since="2026-04-22",
    source="a public file that quotes the proxy; unsure: the middle of the sentence",
)
_MUST_LEAD = HostRule(
    kind="thinking_must_lead",
    text="messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set "
    "of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid "
    "this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking",
    since="2025-09-10",
    source="openai/openai-agents-python#1704",
)


def check_litellm_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking is asked for once."""
    if "thinking" in asked.body and "thinking_level" in asked.body:
        yield _ONE_LEVEL.fault(model=asked.model)


def check_claude_loop(asked: ChatRequest) -> Iterator[Fault]:
    """Check that the calls of the open turn bring their thinking, while it is enabled."""
    start = find_turn_start(asked.messages)
    for place, message in asked.assistants():
        if asked.switch == "enabled" and place > start and message.get("tool_calls"):
            if not message.get("thinking_blocks"):
                yield _MUST_LEAD.fault(place=place)
            return


# --- what its upstreams refuse ----------------------------------------------------------------------------------------

_BUDGET_TOO_LARGE = HostRule(
    kind="budget_exceeds_max_tokens",
    text="`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
    since="2025-08",
    source="openrouter.ai docs reasoning-tokens: max_tokens must be strictly higher; the words are Anthropic's",
)
_THINKING_WHILE_OFF = HostRule(
    kind="thinking_present_while_disabled",
    text="messages.{place}.content.0: When thinking is disabled, an `assistant` message in the final position cannot "
    "contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
    since="2025-07-22",
    source="tailcallhq/forgecode#1195",
)
_REASONING_BACK = HostRule(
    kind="reasoning_content_required",
    text="The `reasoning_content` in the thinking mode must be passed back to the API.",
    code="invalid_request_error",
    since="2026-08-20",
    source="endolith/open-interpreter#215",
)
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


def check_claude_upstream(asked: ChatRequest) -> Iterator[Fault]:
    """Check the budget, and thinking in a final message while it is off."""
    budget, most = asked.get("reasoning.max_tokens"), asked.body.get("max_tokens")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        yield _BUDGET_TOO_LARGE.fault()
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    last = asked.messages[-1] if asked.messages else {}
    if off and last.get("role") == "assistant" and last.get("reasoning_details"):
        yield _THINKING_WHILE_OFF.fault(place=len(asked.messages) - 1)


def check_deepseek_upstream(asked: ChatRequest) -> Iterator[Fault]:
    """Check that turns with calls bring their thinking, in any field that the gateway reads. An empty list counts."""
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    if off or not re.match(r"deepseek-(?:v[4-9]|flash)", asked.name):
        return
    for place, message in asked.assistants():
        if message.get("tool_calls") and all(message.get(name) is None for name in _THOUGHT_FIELDS):
            yield _REASONING_BACK.fault(place=place)


_KIMI_TOOL_CHOICE = HostRule(
    kind="tool_choice_with_thinking",
    text="tool_choice '{choice}' is incompatible with thinking enabled",
    since="2026-04-25",
    source="AstrBotDevs/AstrBot#7805: through a gateway",
)


def check_kimi_upstream(asked: ChatRequest) -> Iterator[Fault]:
    """Check that no tool is forced while the model thinks."""
    off = asked.get("reasoning.enabled") is False or asked.get("reasoning.effort") == "none"
    refused = ("specified",) if re.match(r"kimi-k[3-9]", asked.name) else ("specified", "required")
    if not off and asked.forced_tool in refused and re.match(r"kimi-k(?:2\.[5-9]|[3-9])", asked.name):
        yield _KIMI_TOOL_CHOICE.fault(choice=asked.forced_tool)


# --- Google's chat completions ----------------------------------------------------------------------------------------

_ONE_CONFIG = HostRule(
    kind="reasoning_params_conflict",
    text="Expected one of either `reasoning_effort` or custom `thinking_config`; found both.",
    since="2025-06",
    source="ai.google.dev/gemini-api/docs/openai: they cannot be used at the same time; unsure: the words",
)
_ONLY_THINKING = HostRule(
    kind="thinking_cannot_disable",
    text="Budget 0 is invalid. This model only works in thinking mode.",
    since="2026-08-10",
    source="HKUDS/DeepTutor#809: `none` is for the 2.5 models that are not Pro; the words of the native endpoint",
)
SIGNATURE_MISSING = HostRule(
    kind="thought_signature_missing",
    text="Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "default_api:{name} , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    since="2025-11-18",
    source="niki914/zafiro#100: the body is a list",
)
SIGNATURE_CORRUPTED = HostRule(
    kind="thought_signature_invalid",
    text="Corrupted thought signature.",
    since="2025-11-20",
    source="google-gemini/gemini-cli#13467; massgen/MassGen#665",
)


def check_google_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking is asked for once, and not switched off where that cannot be."""
    config = asked.get("extra_body.google.thinking_config") or asked.get("google.thinking_config")
    if asked.effort is not None and config is not None:
        yield _ONE_CONFIG.fault()
    if asked.effort == "none" and re.match(r"gemini-(?:2\.5-pro|[3-9])", asked.name):
        yield _ONLY_THINKING.fault()


# --- Copilot ----------------------------------------------------------------------------------------------------------

_OPAQUE = HostRule(
    kind="opaque_provider_error",
    write=write_nothing,
    text="400 Bad Request",
    since="2026-03-19",
    source="github/copilot-cli#2153",
)


def check_opaque(asked: ChatRequest) -> Iterator[Fault]:
    """Check that no state comes back that this server did not give, which it refuses without a word."""
    for _, message in asked.assistants():
        if message.get("reasoning_opaque"):
            yield _OPAQUE.fault()
