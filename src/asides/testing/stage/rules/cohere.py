"""What Cohere's v2 chat checks: calls and their results in pairs, plans beside calls, and content that says something.

Not a copy of any server: written from the documented rules and from the errors that people report. Nothing is sealed.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.testing.stage.rules import SealsNothing, Unpaired, Wire, unpaired

_CONTENT_TYPES = ("text", "thinking")


class Rules(SealsNothing):
    """The rules for one stage."""

    def problems(self, messages: list[Wire]) -> Iterator[str]:
        """Whatever is wrong with a history, message by message."""
        for place, message in enumerate(messages):
            role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
            if role == "assistant":
                if not content and not calls:
                    yield f"invalid request: messages[{place}]: an assistant message has content or tool_calls."
                if message.get("tool_plan") is not None and not calls:
                    yield f"invalid request: messages[{place}]: tool_plan is only allowed together with tool_calls."
                yield from _item_problems(content, place)
            elif role == "user" and _is_blank(content):
                yield "invalid request: message must be at least 1 token long or tool results must be specified."
        yield from (f"invalid request: {_pair_words(fault)}" for fault in unpaired(messages))
        if messages and messages[-1].get("role") not in ("user", "tool"):
            yield "invalid request: the last message must be of the role 'user' or 'tool'."


def _item_problems(content: object, place: int) -> Iterator[str]:
    for item in content if isinstance(content, list) else ():
        kind = item.get("type")
        if kind in _CONTENT_TYPES and not item.get(kind):
            yield f"invalid request: messages[{place}]: a content item of type {kind} is empty."


def _is_blank(content: object) -> bool:
    return not content or (isinstance(content, str) and not content.strip())


def _pair_words(fault: Unpaired) -> str:
    named = ", ".join(fault.ids)
    match fault.kind:
        case "unanswered":
            return f"all tool calls must have tool results; missing for {named}."
        case "unasked":
            return f"tool_call_id {named} in messages[{fault.place}] was not found in the preceding tool calls."
        case "twice":
            return f"tool_call_id {named} in messages[{fault.place}] is not unique."
