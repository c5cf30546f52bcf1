"""Rules of a strict reader of Ollama's chat: each result follows its call; no empty answers.

The real server passes messages to a template and checks little. These rules check what a template needs to tell results
apart. A result need not name its tool or its call: those without an id belong to the calls in their order. This dialect
has no seals.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from asides.testing.stage.rules import HistoryRules, RequestRules, Wire, find_pairing_faults, list_call_ids

_ROLES = ("system", "user", "assistant", "tool")


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del secret, today
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
            if message.get("tool_name") and expected is not None and message["tool_name"] != expected:
                yield f"messages[{place}]: the tool_name is not the one that was called"
    # Older clients send no ids; their results are matched by order.
    if all(call.get("id") for message in messages for call in message.get("tool_calls") or ()):
        for fault in find_pairing_faults(_add_ids(messages)):
            ids = ", ".join(fault.ids)
            yield f"messages[{fault.place}]: tool calls and results do not pair ({fault.kind}: {ids})"


def _add_ids(messages: list[Wire]) -> list[Wire]:
    """Return the messages with an id for each result: without one it belongs to the first call that has no result.

    After a turn without calls it is a note: some clients send results and leave out the calls, which the real server
    takes.
    """
    asked: list[str] = []
    waiting: list[str] = []
    numbered: list[Wire] = []
    for message in messages:
        if message.get("role") == "assistant":
            asked = list_call_ids(message)
            waiting = list(asked)
        elif message.get("role") == "tool":
            call_id = message.get("tool_call_id") or next(iter(waiting), "")
            if call_id in waiting:
                waiting.remove(call_id)
            message = {**message, "tool_call_id": call_id} if call_id or asked else {"role": "system"}
        numbered.append(message)
    return numbered
