"""What a strict reader of Ollama's chat checks: results behind the calls that asked for them, named, and answers.

The server itself hands messages to a template and checks little: what a template needs to tell results apart is checked
here. Not here: seals, since this dialect has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.testing.stage.rules import SealsNothing, Wire, unpaired

_ROLES = ("system", "user", "assistant", "tool")


class Rules(SealsNothing):
    """The rules for one stage."""

    def problems(self, messages: list[Wire]) -> Iterator[str]:
        """Whatever is wrong with a history, message by message."""
        named: dict[str, str] = {}
        for place, message in enumerate(messages):
            if message.get("role") not in _ROLES:
                yield f"invalid role: {message.get('role')}"
            calls = message.get("tool_calls") or ()
            if any(not isinstance((call.get("function") or {}).get("arguments"), dict) for call in calls):
                yield f"messages[{place}]: the arguments of a tool call are an object"
            if message.get("role") == "assistant":
                named = {str(call.get("id")): str(call["function"].get("name")) for call in calls}
                if not calls and not any(message.get(field) for field in ("content", "thinking", "images")):
                    yield f"messages[{place}]: an assistant message says nothing"
            if message.get("role") == "tool":
                expected = named.get(str(message.get("tool_call_id")))
                if not message.get("tool_name"):
                    yield f"messages[{place}]: a tool result has no tool_name"
                elif expected is not None and message["tool_name"] != expected:
                    yield f"messages[{place}]: the tool_name is not the one that was called"
        # Older clients send no ids, and their results count in their order.
        if all(call.get("id") for message in messages for call in message.get("tool_calls") or ()):
            for fault in unpaired(messages):
                ids = ", ".join(fault.ids)
                yield f"messages[{fault.place}]: tool calls and results do not pair ({fault.kind}: {ids})"
