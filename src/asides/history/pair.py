"""Tool calls and their results: every call gets a result, every result has its call.

One rule for histories that are sent and histories that are stored. Not here: what else goes back to a model (plan).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from asides.values.messages import Message, Part, ToolCall, ToolResult

CANCELLED = "The call was cancelled before it gave a result."
"""The result of a call that has none. One wording, so that a history reads the same whoever repaired it."""


def add_missing_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call without a result an error for one: a message each, after the other results of its turn."""
    complete: list[Message] = []
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        results = results_in(message)
        for result in results:
            waiting.pop(result.call_id, None)
        if len(results) < len(message.parts) or not results:
            complete += _make_results(waiting.values())
            waiting = {call.id: call for call in message.tool_calls} if message.role == "assistant" else {}
        complete.append(message)
    complete += _make_results(waiting.values())
    return tuple(complete)


def _make_results(calls: Iterable[ToolCall]) -> list[Message]:
    """A tool message for each call, which says that the call has no result."""
    return [Message("tool", (ToolResult(call.id, CANCELLED, call.name, is_error=True),)) for call in calls]


def drop_orphan_results(messages: Sequence[Message], *, continues: bool = False) -> tuple[tuple[Message, ...], int]:
    """Drop results without a call in their turn, and count them.

    Where a conversation `continues` at its provider, the first results belong to calls that the provider stores.
    """
    kept: list[Message] = []
    waiting: set[str] = set()
    has_calls = not continues
    orphans = 0
    for message in messages:
        has_calls = has_calls or message.role == "assistant"
        if not results_in(message):
            waiting = {call.id for call in message.tool_calls} if message.role == "assistant" else set()
            kept.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and part.call_id not in waiting and has_calls:
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
    """The tool results in a message."""
    return tuple(part for part in message.parts if isinstance(part, ToolResult))
