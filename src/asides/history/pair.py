"""Calls and their results: every call answered, every result asked for. One rule, for what is sent and what is kept.

Not here: what else of a history goes back (plan).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from asides.values.messages import Message, Part, ToolCall, ToolResult

CANCELLED = "The call was cancelled before it gave a result."
"""What a call is answered with that nobody answered. One wording, so that a history reads the same whoever mends it."""


def add_missing_results(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """The messages with a result for each call, and how many had to be made up. Those stand with the other results of
    their turn, in front of whatever a person says next. What is answered already stays as it is.
    """
    mended: list[Message] = []
    waiting: dict[str, ToolCall] = {}
    made_up = 0
    for message in messages:
        results = results_in(message)
        for result in results:
            waiting.pop(result.call_id, None)
        if len(results) < len(message.parts) or not results:
            made_up += len(waiting)
            mended += made_up_results(waiting.values())
            waiting = {call.id: call for call in message.tool_calls} if message.role == "assistant" else {}
        mended.append(message)
    mended += made_up_results(waiting.values())
    return tuple(mended), made_up + len(waiting)


def made_up_results(calls: Iterable[ToolCall]) -> list[Message]:
    """A message for each of these calls, which says that it has no result."""
    return [Message("tool", (ToolResult(call.id, CANCELLED, call.name, is_error=True),)) for call in calls]


def asked_for(messages: Sequence[Message], *, continues: bool = False) -> tuple[tuple[Message, ...], int]:
    """The messages without results that no call of their turn asked for, and how many those were.

    Where a conversation `continues` at its provider, the first results answer calls that the provider has.
    """
    kept: list[Message] = []
    waiting: set[str] = set()
    spoken = not continues
    orphans = 0
    for message in messages:
        spoken = spoken or message.role == "assistant"
        if not results_in(message):
            waiting = {call.id for call in message.tool_calls} if message.role == "assistant" else set()
            kept.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and part.call_id not in waiting and spoken:
                orphans += 1
                continue
            if isinstance(part, ToolResult):
                waiting.discard(part.call_id)
            parts.append(part)
        if parts:
            whole = len(parts) == len(message.parts)
            kept.append(message if whole else msgspec.structs.replace(message, parts=tuple(parts)))
    return tuple(kept), orphans


def results_in(message: Message) -> tuple[ToolResult, ...]:
    """The results that a message brings."""
    return tuple(part for part in message.parts if isinstance(part, ToolResult))
