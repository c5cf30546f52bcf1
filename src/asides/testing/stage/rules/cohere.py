"""Rules of Cohere's v2 chat: known fields, thinking, calls paired with results, plans only next to calls, no blanks.

Written from the documented rules and from reported errors, not copied from a server. Nothing is sealed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import (
    HistoryRules,
    PairingFault,
    RequestRules,
    Rule,
    Wire,
    find_pairing_faults,
)

_CONTENT_TYPES = ("text", "thinking")
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
    kind="",
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
    kind="",
    text="invalid request: tool_call_id {ids} in messages[{place}] is not unique.",
    since="2024-09",
    source="unsure: the words",
)
RULES = (
    _UNKNOWN_FIELD,
    _NO_THINKING,
    _BUDGET,
    _TOOL_CHOICE,
    _RESULT_MISSING,
    _RESULT_ORPHANED,
    _RESULT_TWICE,
)
"""Every rule, with its words, its date and its source."""
_NEVER_THINKS = re.compile(r"command-(?:r|a-(?:03|vision|translate)|light|nightly)|c4ai-aya|aya")


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del secret, today
    return _ChatRules(_check)


class _ChatRules(HistoryRules):
    def refuse(self, request: Request) -> str | None:
        """Return the first problem of the settings or of the messages; None if there is none."""
        body: Wire = msgspec.json.decode(request.body)
        return next(_check_settings(body), None) or super().refuse(request)


def _check_settings(body: Wire) -> Iterator[str]:
    yield from (_UNKNOWN_FIELD.refuse(name=name) for name in body if name not in _FIELDS)
    thinking = body.get("thinking") or {}
    kind, budget = thinking.get("type"), thinking.get("token_budget")
    if budget is not None and (not isinstance(budget, int) or budget < 1):
        yield _BUDGET.refuse()
    if kind == "enabled" and _NEVER_THINKS.match(str(body.get("model"))):
        yield _NO_THINKING.refuse(model=body.get("model"))
    if body.get("tool_choice") is not None and not body.get("tools"):
        yield _TOOL_CHOICE.refuse()


def _check(messages: list[Wire]) -> Iterator[str]:
    for place, message in enumerate(messages):
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        if role == "assistant":
            if not content and not calls:
                yield f"invalid request: messages[{place}]: an assistant message has content or tool_calls."
            if message.get("tool_plan") is not None and not calls:
                yield f"invalid request: messages[{place}]: tool_plan is only allowed together with tool_calls."
            yield from _check_items(content, place)
        elif role == "user" and _is_blank(content):
            yield "invalid request: message must be at least 1 token long or tool results must be specified."
    yield from map(_describe_fault, find_pairing_faults(messages))
    if messages and messages[-1].get("role") not in ("user", "tool"):
        yield "invalid request: the last message must be of the role 'user' or 'tool'."


def _check_items(content: object, place: int) -> Iterator[str]:
    for item in content if isinstance(content, list) else ():
        kind = item.get("type")
        if kind in _CONTENT_TYPES and not item.get(kind):
            yield f"invalid request: messages[{place}]: a content item of type {kind} is empty."


def _is_blank(content: object) -> bool:
    return not content or (isinstance(content, str) and not content.strip())


def _describe_fault(fault: PairingFault) -> str:
    rules = {"unanswered": _RESULT_MISSING, "unasked": _RESULT_ORPHANED, "twice": _RESULT_TWICE}
    return rules[fault.kind].refuse(place=fault.place, ids=", ".join(fault.ids))
