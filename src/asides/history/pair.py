"""Keep a history sendable: pair tool calls with results, and turn a reply into the message to store (`finish_turn`).

The same functions serve histories that are sent and histories that are stored. Not here: which thoughts go back to a
model (replay).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_

import msgspec

from asides.providers.find import find_provider
from asides.providers.provider import Provider, settle
from asides.values.errors import UnknownProvider
from asides.values.message_facts import HAS_OTHERS, IS_BLANK
from asides.values.messages import Message, read_facts
from asides.values.notices import Notice
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought

CANCELLED = "The call was cancelled before it gave a result."
"""The error result of a call without a result. One text, so that a repaired history is the same everywhere."""


# The seal that a call or a text gets when its item ends, in the dialect that has items.
_ITEM = "item"
# The states of a provider's tool that is still running. A history cannot hold such a tool.
_RUNNING = frozenset({"in_progress", "searching", "interpreting", "generating", "calling", "queued"})

# Hosts take ids of 40 characters at least.
_LONGEST_STEM = 32


# --- calls and results ----------------------------------------------------------------------------------------------


def is_paired(messages: Sequence[Message]) -> bool:
    """Whether the results of all calls follow them, in messages of their own and with the names of their tools, and
    there are no others. Then nothing is dropped, added or renamed.
    """
    waiting: dict[str, str] = {}
    for message, facts in zip(messages, read_facts(messages), strict=True):
        if not facts.results:
            if waiting:
                return False
            if facts.calls and message.role == "assistant":
                waiting = {call.id: call.name for call in facts.calls}
            continue
        for result in facts.results:
            name = waiting.pop(result.call_id, None)
            if name is None or (result.name and result.name != name):
                return False
        if facts.traits & HAS_OTHERS:
            return False
    return not waiting


def add_missing_results(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Give each call without a result an error result: one message each, after the other results of its turn.

    `after` are the messages before these. Its last calls get their results too; it is not returned.
    """
    complete, waiting = _pair(messages, after)
    return (*complete, *_make_results(waiting.values()))


def add_skipped_results(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> tuple[Message, ...]:
    """`add_missing_results`, but the calls at the end stay without a result: it may still come."""
    return tuple(_pair(messages, after)[0])


def _pair(messages: Sequence[Message], after: Sequence[Message]) -> tuple[list[Message], dict[str, ToolCall]]:
    """Return the messages with the results that were skipped, and the calls at the end without a result, by id."""
    complete: list[Message] = []
    waiting = _find_open_calls(after)
    for message in messages:
        for result in find_results(message):
            waiting.pop(result.call_id, None)
        if not _has_only_results(message):
            complete += _make_results(waiting.values())
            waiting = _index_calls(message)
        complete.append(message)
    return complete, waiting


def _find_open_calls(messages: Sequence[Message]) -> dict[str, ToolCall]:
    """The calls at the end of the messages that have no result, by id."""
    answered: set[str] = set()
    for message in reversed(messages):
        if not _has_only_results(message):
            return {id_: call for id_, call in _index_calls(message).items() if id_ not in answered}
        answered.update(result.call_id for result in find_results(message))
    return {}


def _index_calls(message: Message) -> dict[str, ToolCall]:
    return {call.id: call for call in message.tool_calls} if message.role == "assistant" else {}


def _has_only_results(message: Message) -> bool:
    return len(message.parts) > 0 and len(find_results(message)) == len(message.parts)


def _make_results(calls: Iterable[ToolCall]) -> list[Message]:
    """Build an error result for each call."""
    return [Message("tool", (ToolResult(call.id, CANCELLED, call.name, is_error=True),)) for call in calls]


def drop_orphan_results(messages: Sequence[Message], *, continues: bool = False) -> tuple[tuple[Message, ...], int]:
    """Drop results without a call in their turn, and name the others as their calls do. Returns the messages and the
    number of dropped results.

    Where a conversation `continues` at its provider, the first results belong to calls that the provider stores.
    """
    remaining: list[Message] = []
    waiting: dict[str, str] = {}
    has_calls = not continues
    orphans = 0
    for message in messages:
        has_calls = has_calls or message.role == "assistant"
        if not find_results(message):
            waiting = {call.id: call.name for call in message.tool_calls} if message.role == "assistant" else {}
            remaining.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and part.call_id not in waiting and has_calls:
                orphans += 1
                continue
            if isinstance(part, ToolResult):
                name = waiting.pop(part.call_id, "")
                if name and part.name and part.name != name:
                    # In a history that somebody changed, the id belongs to another call now.
                    part = msgspec.structs.replace(part, name=name)
            parts.append(part)
        if parts:
            whole = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
            remaining.append(message if whole else msgspec.structs.replace(message, parts=tuple(parts)))
    return tuple(remaining), orphans


def make_ids_unique(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call an id that no earlier call has, and its result the same. Some servers count from the start with
    every reply, and other providers refuse two calls with one id. Added messages never change the earlier ids.
    """
    pairs = zip(messages, read_facts(messages), strict=True)
    ids = [call.id for message, facts in pairs if facts.calls and message.role == "assistant" for call in facts.calls]
    if len(set(ids)) == len(ids):
        return tuple(messages)
    given: set[str] = set()
    counts: dict[str, int] = {}
    unique: list[Message] = []
    waiting: dict[str, list[str]] = {}  # by id: the new ids of the calls that have no result yet, in order
    for message in messages:
        if message.role == "assistant":
            waiting = {}
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                new = part.id if part.id not in given else _make_id(part.id, given, counts)
                given.add(new)
                waiting.setdefault(part.id, []).append(new)
                parts.append(part if new == part.id else msgspec.structs.replace(part, id=new))
            elif isinstance(part, ToolResult) and (new_ids := waiting.get(part.call_id)):
                # The last id stays: a second result for it is still an orphan.
                new = new_ids.pop(0) if len(new_ids) > 1 else new_ids[0]
                parts.append(part if new == part.call_id else msgspec.structs.replace(part, call_id=new))
            else:
                parts.append(part)
        changed = any(new is not old for new, old in zip(parts, message.parts, strict=True))
        unique.append(msgspec.structs.replace(message, parts=tuple(parts)) if changed else message)
    return tuple(unique)


def _make_id(old: str, taken: set[str], counts: dict[str, int]) -> str:
    """Make an id that is not taken. `counts` has for each stem a number below which all are taken, as ids stay taken:
    one id in thousands of replies costs each of them one step.
    """
    stem = old[:_LONGEST_STEM]
    count = counts.get(stem, 2)
    while (new := f"{stem}_{count}") in taken:
        count += 1
    counts[stem] = count
    return new


def find_results(message: Message) -> tuple[ToolResult, ...]:
    """The tool results in a message."""
    return tuple([part for part in message.parts if isinstance(part, ToolResult)])


def begins_turn(message: Message) -> bool:
    """Whether this is a user message without tool results. A message with results belongs to the turn of its calls."""
    return message.role == "user" and not find_results(message)


def drop_blank_messages(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Drop empty user messages, which some hosts refuse. The last one stays, since it is the question."""
    blank = [bool(facts.traits & IS_BLANK) for facts in read_facts(messages[:-1])]
    filled = (*(message for message, drop in zip(messages, blank, strict=False) if not drop), *messages[-1:])
    if len(filled) < len(messages):
        notices.append(Notice("blank_message_dropped", "empty messages were left out", "messages"))
    return filled


# --- the message of a reply -----------------------------------------------------------------------------------------


def finish_turn(reply: Reply | None, *, rows: Sequence[Provider] = ()) -> Message | None:
    """Build the assistant message of a reply for the history; None when the reply has nothing to store.

    A complete reply stays as it is. If the reply broke off, its message leaves out blank text, calls with incomplete
    arguments and provider tools that were still running, and is not marked as stored. A thought stays; it is not
    replayable when the parts after it are lost. `rows` are providers of the caller and win over the built-in ones.
    """
    message = None if reply is None else reply.to_message()
    if reply is None or message is None or not message.parts:
        return None
    if reply.complete:
        return message
    parts = _mark_last_thoughts([_mark_lost_details(part, rows) for part in _drop_unfinished(message.parts)])
    if not parts:
        return None
    return Message("assistant", parts, prefix=reply.prefix, learned=reply.learned)


def _drop_unfinished(parts: tuple[Part, ...]) -> list[Part]:
    """Drop the parts that are not finished and of no use when cut."""
    end = len(parts)
    while end and isinstance(parts[end - 1], ToolCall):
        end -= 1
    finished = [part for place, part in enumerate(parts) if _is_finished(part, parts[place + 1 :], at_end=place >= end)]
    while finished and isinstance(finished[-1], (ServerTool, UnknownPart)) and finished[-1] is parts[-1]:
        finished.pop()
    return finished


def _is_finished(part: Part, following: tuple[Part, ...], *, at_end: bool) -> bool:
    """`at_end`: nothing but calls follows."""
    match part:
        case Text():
            # A blank item that ended stays: without it providers refuse the thought before it.
            return bool(part.text.strip()) or any(seal.value or seal.kind == _ITEM for seal in part.seals)
        case ToolCall():
            return _has_all_arguments(part, at_end)
        case ServerTool():
            return part.status not in _RUNNING and not _lacks_result(part, following)
        case Refusal():
            return bool(part.text.strip())
        case _:
            return True


def _has_all_arguments(call: ToolCall, at_end: bool) -> bool:
    if any(seal.kind == _ITEM for seal in call.seals):
        return True  # the seal came with the item's end
    if call.custom:
        return not at_end
    # A JSON object ends with its bracket, so arguments that parse are complete. Empty arguments may be arguments that
    # have not begun, and not every server finishes a call before it begins the next.
    return call.raw_arguments is None and (bool(call.arguments) or not at_end)


def _lacks_result(tool: ServerTool, following: tuple[Part, ...]) -> bool:
    """Whether this is a call of a provider's tool without its result, which is a separate block in some dialects."""
    if not tool.name.endswith("_tool_use"):
        return False
    return not any(isinstance(part, ServerTool) and part.id == tool.id for part in following)


def _mark_lost_details(part: Part, rows: Sequence[Provider]) -> Part:
    """Mark a thought as not replayable if its host requires all of its details. They arrive in pieces, and only the end
    of the reply shows that they are complete.
    """
    if not isinstance(part, Thought) or part.origin is None:
        return part
    try:
        row = find_provider(part.origin.provider, rows)
    except UnknownProvider:
        return part
    replay_as = settle(row.rule(part.origin.model), row.quirks).replay_as
    return _mark_unreplayable(part) if replay_as == "details" else part


def _mark_last_thoughts(parts: list[Part]) -> tuple[Part, ...]:
    """Mark thoughts at the end as not replayable: providers refuse a thought that nothing follows."""
    end = len(parts)
    while end and isinstance(parts[end - 1], Thought):
        end -= 1
    last = [_mark_unreplayable(part) for part in parts[end:] if isinstance(part, Thought)]
    return (*parts[:end], *last)


def _mark_unreplayable(thought: Thought) -> Thought:
    return msgspec.structs.replace(thought, replayable=False) if thought.can_replay else thought
