"""Rules of Cohere's v2 chat: calls paired with results, plans only next to calls, no empty content.

Written from the documented rules and from reported errors, not copied from a server. Nothing is sealed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from asides.testing.stage.rules import HistoryRules, PairingFault, RequestRules, Wire, find_pairing_faults

_CONTENT_TYPES = ("text", "thinking")


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del secret, today
    return HistoryRules(_check)


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
    yield from (f"invalid request: {_describe_fault(fault)}" for fault in find_pairing_faults(messages))
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
    ids = ", ".join(fault.ids)
    match fault.kind:
        case "unanswered":
            return f"all tool calls must have tool results; missing for {ids}."
        case "unasked":
            return f"tool_call_id {ids} in messages[{fault.place}] was not found in the preceding tool calls."
        case "twice":
            return f"tool_call_id {ids} in messages[{fault.place}] is not unique."
