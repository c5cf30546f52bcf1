"""Rules of Cohere's v2 chat: known fields, thinking, calls paired with results, plans only next to calls, no blanks.

Written from the documented rules and from reported errors, not copied from a server.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.dialects.flat_messages import find_pairing_faults
from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest
from asides.providers.provider import Target

# An empty item of text is accepted (recorded).
_CONTENT_TYPES = ("thinking",)
# cohere-python v2/client.py, 2026-08.
_FIELDS = frozenset({
    "citation_options", "documents", "frequency_penalty", "k", "logprobs", "max_tokens", "messages", "model", "p",
    "presence_penalty", "priority", "raw_prompting", "response_format", "return_prompt", "safety_mode", "seed",
    "stop_sequences", "stream", "strict_tools", "temperature", "thinking", "tool_choice", "tools",
})  # fmt: skip
_UNKNOWN_FIELD = Rule(
    kind="unknown_param",
    text="unknown field: parameter '{name}' is not a valid field. For proper usage, please refer to "
    "https://docs.cohere.com/reference/chat",
    status=422,
    since="2025-06-07",
    source="agno-agi/agno#3503",
)
_NO_THINKING = Rule(
    kind="thinking_unsupported_model",
    text="invalid request: model '{model}' does not support thinking",
    since="2025-08-21",
    source="docs.cohere.com/v2/docs/reasoning: only reasoning models; unsure: the words",
)
_BUDGET = Rule(
    kind="budget_out_of_range",
    text="invalid request: thinking.token_budget must be a positive integer",
    since="2025-08-21",
    source="docs.oracle.com CohereThinkingV2: must be set to a positive integer; unsure: the words",
)
_TOOL_CHOICE = Rule(
    kind=None,
    text="invalid request: tool_choice can only be set when tools are specified.",
    since="2025-02",
    source="docs.cohere.com/reference/chat: tool_choice; unsure: the words",
)
_RESULT_MISSING = Rule(
    kind="tool_result_missing",
    text="invalid request: all tool calls must have tool results; missing for {ids}.",
    since="2024-09",
    source="docs.cohere.com/v2/docs/tool-use-overview; unsure: the words",
)
_RESULT_ORPHANED = Rule(
    kind="tool_result_orphaned",
    text="invalid request: tool_call_id {ids} in messages[{place}] was not found in the preceding tool calls.",
    since="2024-09",
    source="docs.cohere.com/v2/docs/tool-use-overview; unsure: the words",
)
_RESULT_TWICE = Rule(
    kind=None,
    text="invalid request: tool_call_id {ids} in messages[{place}] is not unique.",
    since="2024-09",
    source="unsure: the words",
)
_EMPTY_TURN = Rule(
    kind="empty_content",
    text="invalid request: messages[{place}]: an assistant message has content or tool_calls.",
    since="2024-09",
    source="docs.cohere.com/reference/chat; unsure: the words",
)
_PLAN_ALONE = Rule(
    kind=None,
    text="invalid request: messages[{place}]: tool_plan is only allowed together with tool_calls.",
    since="2024-09",
    source="docs.cohere.com/reference/chat; unsure: the words",
)
_EMPTY_ITEM = Rule(
    kind="empty_content",
    text="invalid request: messages[{place}]: a content item of type {type} is empty.",
    since="2024-09",
    source="docs.cohere.com/reference/chat; unsure: the words",
)
_BLANK = Rule(
    kind="empty_content",
    text="invalid request: message must be at least 1 token long or tool results must be specified.",
    since="2024-09",
    source="errors of the live service in public reports; unsure: the date",
)
_LAST_ROLE = Rule(
    kind="prefill_unsupported",
    text="invalid request: the last message must be of the role 'user' or 'tool'.",
    since="2024-09",
    source="docs.cohere.com/reference/chat; unsure: the words",
)
_PAIRS = {"unanswered": _RESULT_MISSING, "unasked": _RESULT_ORPHANED, "twice": _RESULT_TWICE}
RULES = (
    _UNKNOWN_FIELD,
    _NO_THINKING,
    _BUDGET,
    _TOOL_CHOICE,
    _RESULT_MISSING,
    _RESULT_ORPHANED,
    _RESULT_TWICE,
    _EMPTY_TURN,
    _PLAN_ALONE,
    _EMPTY_ITEM,
    _BLANK,
    _LAST_ROLE,
)
"""Every rule, with its words, its date and its source."""


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks: its settings, then its messages."""
    yield from _check_settings(request.body, target)
    yield from _check_messages(request.body.get("messages") or [])


def _check_settings(body: Wire, target: Target) -> Iterator[BrokenRule]:
    yield from (_UNKNOWN_FIELD.broken(name, name=name) for name in body if name not in _FIELDS)
    thinking = body.get("thinking") or {}
    kind, budget = thinking.get("type"), thinking.get("token_budget")
    if budget is not None and (not isinstance(budget, int) or budget < 1):
        yield _BUDGET.broken("thinking.token_budget")
    if kind == "enabled" and target.rule.thinking == "never":
        yield _NO_THINKING.broken("thinking", model=body.get("model"))
    if body.get("tool_choice") is not None and not body.get("tools"):
        yield _TOOL_CHOICE.broken("tool_choice")


def _check_messages(messages: list[Wire]) -> Iterator[BrokenRule]:
    for place, message in enumerate(messages):
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        path = f"messages[{place}]"
        if role == "assistant":
            if not content and not calls:
                yield _EMPTY_TURN.broken(path, place=place)
            if message.get("tool_plan") is not None and not calls:
                yield _PLAN_ALONE.broken(f"{path}.tool_plan", place=place)
            for number, item in enumerate(content if isinstance(content, list) else ()):
                kind = item.get("type")
                if kind in _CONTENT_TYPES and not item.get(kind):
                    yield _EMPTY_ITEM.broken(f"{path}.content[{number}]", place=place, type=kind)
        elif role == "user" and _is_blank(content):
            yield _BLANK.broken(path)
    for fault in find_pairing_faults(messages):
        yield _PAIRS[fault.kind].broken(f"messages[{fault.place}]", place=fault.place, ids=", ".join(fault.ids))
    if messages and messages[-1].get("role") not in ("user", "tool"):
        yield _LAST_ROLE.broken(f"messages[{len(messages) - 1}]")


def _is_blank(content: object) -> bool:
    return not content or (isinstance(content, str) and not content.strip())
