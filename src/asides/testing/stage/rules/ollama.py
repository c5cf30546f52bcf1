"""Rules of a strict reader of Ollama's chat: each result follows its call and names the tool; no empty answers.

The real server passes messages to a template and checks little. These rules check what a template needs to tell results
apart. This dialect has no seals.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.testing.stage.rules import HistoryRules, RequestRules, Wire, find_pairing_faults

_ROLES = ("system", "user", "assistant", "tool")


def request_rules(secret: bytes) -> RequestRules:
    """Build the rules for one stage."""
    del secret
    return HistoryRules(_check)


def _check(messages: list[Wire]) -> Iterator[str]:
    tool_names: dict[str, str] = {}
    for place, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            yield f"invalid role: {message.get('role')}"
        calls = message.get("tool_calls") or ()
        if any(not isinstance((call.get("function") or {}).get("arguments"), dict) for call in calls):
            yield f"messages[{place}]: the arguments of a tool call are an object"
        if message.get("role") == "assistant":
            tool_names = {str(call.get("id")): str(call["function"].get("name")) for call in calls}
            if not calls and not any(message.get(field) for field in ("content", "thinking", "images")):
                yield f"messages[{place}]: an assistant message says nothing"
        if message.get("role") == "tool":
            expected = tool_names.get(str(message.get("tool_call_id")))
            if not message.get("tool_name"):
                yield f"messages[{place}]: a tool result has no tool_name"
            elif expected is not None and message["tool_name"] != expected:
                yield f"messages[{place}]: the tool_name is not the one that was called"
    # Older clients send no ids; their results are matched by order.
    if all(call.get("id") for message in messages for call in message.get("tool_calls") or ()):
        for fault in find_pairing_faults(messages):
            ids = ", ".join(fault.ids)
            yield f"messages[{fault.place}]: tool calls and results do not pair ({fault.kind}: {ids})"
