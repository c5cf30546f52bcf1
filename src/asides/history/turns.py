"""The one view of a history: its turns, which result belongs to which call, and unique call ids. Pure.

A turn is a user message and everything up to the next one. Tool results belong to the turn of their calls, also where
a user message brings them. Every function takes time linear in the messages it looks at; those about the current turn
look only at the end of the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_

import msgspec

from asides.values.messages import Message, Role
from asides.values.parts import Commentary, Part, ServerTool, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.traits import find_results, has_thoughts, list_calls

CANCELLED = "The call was cancelled before it gave a result."
"""The error result of a call without a result. One text, so that a repaired history is the same everywhere."""

# All hosts accept ids of up to 40 characters.
_MAX_STEM = 32


# --- turns ------------------------------------------------------------------------------------------------------------


def begins_turn(message: Message) -> bool:
    """Whether this is a user message without tool results."""
    return message.role == "user" and not find_results(message)


def split_turns(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Split the messages into turns. Messages before the first user message are one turn."""
    groups: list[list[Message]] = []
    for message in messages:
        if begins_turn(message) or not groups:
            groups.append([message])
        else:
            groups[-1].append(message)
    return tuple(map(tuple, groups))


def split_units(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Group the messages that can only be dropped together: a message with tool calls and its results; others alone."""
    groups: list[list[Message]] = []
    for message in messages:
        if find_results(message) and groups and groups[-1][0].tool_calls:
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(map(tuple, groups))


def find_model_runs(messages: Sequence[Message]) -> Iterator[range]:
    """Find the runs of assistant messages, which several dialects send as one message."""
    start: int | None = None
    for place, message in enumerate(messages):
        if message.role == "assistant":
            start = place if start is None else start
        elif start is not None:
            yield range(start, place)
            start = None
    if start is not None:
        yield range(start, len(messages))


def count_system_head(messages: Sequence[Message]) -> int:
    """Count the system messages at the start."""
    return next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))


def find_last(messages: Sequence[Message], role: Role) -> int:
    """Find the last message of a role; -1 if there is none."""
    return next((place for place in range(len(messages) - 1, -1, -1) if messages[place].role == role), -1)


def find_question(messages: Sequence[Message]) -> int:
    """Find the last user message that holds more than tool results; -1 if there is none."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user" and not has_only_results(messages[place]):
            return place
    return -1


# --- the turn under way -----------------------------------------------------------------------------------------------


def has_only_results(message: Message) -> bool:
    """Whether the message has parts, and all of them are tool results."""
    return len(message.parts) > 0 and all(isinstance(part, ToolResult) for part in message.parts)


def _interrupts(message: Message) -> bool:
    """Whether the message has content besides tool results: a loop of calls ends there."""
    return message.role != "assistant" and any(not isinstance(part, ToolResult) for part in message.parts)


def _find_loop_start(messages: Sequence[Message], end: int) -> int:
    """The start of the model's messages and their results before `end`."""
    while end and not _interrupts(messages[end - 1]):
        end -= 1
    return end


def find_open_turn(messages: Sequence[Message]) -> int:
    """The start of a loop of calls that waits for the model; the number of messages if there is none."""
    if not messages or not any(isinstance(part, ToolResult) for part in messages[-1].parts):
        return len(messages)
    return _find_loop_start(messages, len(messages))


def has_open_thoughts(messages: Sequence[Message]) -> bool:
    """Whether an unfinished turn has thoughts that are sent back."""
    return any(map(has_thoughts, messages[find_open_turn(messages) :]))


def lacks_thinking(messages: Sequence[Message]) -> bool:
    """Whether the current turn calls tools and does not begin with thinking. Turns of other models may lack it.

    Results that the last user message brings beside its text belong to the current turn: they are one message there.
    """
    end = find_last(messages, "assistant") + 1
    if not any(map(find_results, messages[end:])):
        end = len(messages)
    turn = messages[_find_loop_start(messages, end) : end]
    said = [message for message in turn if message.role == "assistant" and message.parts]
    return any(message.tool_calls for message in said) and not isinstance(said[0].parts[0], Thought)


def find_last_run(messages: Sequence[Message]) -> range:
    """The assistant messages followed only by results; empty if other content follows."""
    end = len(messages)
    while end and messages[end - 1].role != "assistant" and not _interrupts(messages[end - 1]):
        end -= 1
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    return range(start, end)


def ends_with_assistant(messages: Sequence[Message]) -> bool:
    """Whether the conversation ends with an assistant message that the model should continue. A turn that the model
    itself paused does not count.
    """
    if not messages or messages[-1].role != "assistant":
        return False
    parts = messages[-1].parts
    return any(isinstance(part, (Text, Commentary)) for part in parts) and not any(
        isinstance(part, ServerTool) for part in parts
    )


# --- calls and results ------------------------------------------------------------------------------------------------


def is_paired(messages: Sequence[Message], *, joins: bool = False) -> bool:
    """Whether the results of all calls follow them, in messages of their own and with the names of their tools, and
    there are no others. Then nothing is dropped, added or renamed.

    `joins`: messages of the model in a row are one turn, whose results follow the last of them.
    """
    waiting: dict[str, str] = {}
    is_model_turn = False
    for message in messages:
        results = find_results(message)
        goes_on = joins and is_model_turn and message.role == "assistant"
        is_model_turn = message.role == "assistant"
        if not results:
            if waiting and not goes_on:
                return False
            if message.role == "assistant":
                calls = {call.id: call.name for call in message.tool_calls}
                waiting = {**waiting, **calls} if goes_on else calls
            continue
        for result in results:
            name = waiting.pop(result.call_id, None)
            if name is None or (result.name and result.name != name):
                return False
        if len(results) < len(message.parts):
            return False
    return not waiting


def make_missing_result(call: ToolCall) -> ToolResult:
    """The error result for a call without a result."""
    return ToolResult(call.id, CANCELLED, call.name, is_error=True)


def add_missing_results(
    messages: Sequence[Message], *, after: Sequence[Message] = (), joins: bool = False
) -> tuple[Message, ...]:
    """Give each call without a result an error result: one message each, after the other results of its turn.

    `joins`: messages of the model in a row are one turn.

    `after` are the messages before these. Its last calls get their results too; it is not returned.
    """
    complete, waiting = _pair(messages, after, joins=joins)
    return (*complete, *_make_results(waiting.values()))


def add_skipped_results(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Like `add_missing_results`, but leaves trailing calls open."""
    return tuple(_pair(messages, after)[0])


def _pair(
    messages: Sequence[Message], after: Sequence[Message], *, joins: bool = False
) -> tuple[list[Message], dict[str, ToolCall]]:
    """Return the messages with the results that were skipped, and the calls at the end without a result, by id."""
    complete: list[Message] = []
    waiting = _find_open_calls(after)
    is_model_turn = False
    for message in messages:
        goes_on = joins and is_model_turn and message.role == "assistant"
        is_model_turn = message.role == "assistant"
        for result in find_results(message):
            waiting.pop(result.call_id, None)
        if goes_on:
            waiting |= _index_calls(message)
        elif not has_only_results(message):
            complete += _make_results(waiting.values())
            waiting = _index_calls(message)
        complete.append(message)
    return complete, waiting


def _find_open_calls(messages: Sequence[Message]) -> dict[str, ToolCall]:
    """The calls at the end of the messages that have no result, by id."""
    answered: set[str] = set()
    for message in reversed(messages):
        if not has_only_results(message):
            return {id_: call for id_, call in _index_calls(message).items() if id_ not in answered}
        answered.update(result.call_id for result in find_results(message))
    return {}


def _index_calls(message: Message) -> dict[str, ToolCall]:
    return {call.id: call for call in message.tool_calls} if message.role == "assistant" else {}


def _make_results(calls: Iterable[ToolCall]) -> list[Message]:
    return [Message("tool", (make_missing_result(call),)) for call in calls]


def drop_orphan_results(
    messages: Sequence[Message], *, continues: bool = False, joins: bool = False
) -> tuple[tuple[Message, ...], int]:
    """Drop results without a call in their turn, and name the others as their calls do. Returns the messages and the
    number of dropped results.

    Where a conversation `continues` at its provider, the first results belong to calls that the provider stores.
    `joins`: messages of the model in a row are one turn.
    """
    remaining: list[Message] = []
    waiting: dict[str, str] = {}
    has_calls = not continues
    orphans = 0
    is_model_turn = False
    for message in messages:
        has_calls = has_calls or message.role == "assistant"
        goes_on = joins and is_model_turn and message.role == "assistant"
        is_model_turn = message.role == "assistant"
        if not find_results(message):
            calls = {call.id: call.name for call in message.tool_calls} if message.role == "assistant" else {}
            waiting = {**waiting, **calls} if goes_on else calls
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
                    # In an edited history, the id now belongs to another call.
                    part = msgspec.structs.replace(part, name=name)
            parts.append(part)
        if parts:
            whole = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
            remaining.append(message if whole else msgspec.structs.replace(message, parts=tuple(parts)))
    return tuple(remaining), orphans


# --- unique ids -------------------------------------------------------------------------------------------------------


def move_late_results(messages: Sequence[Message], *, across_turns: bool = True) -> tuple[Message, ...]:
    """Move results that come after another message to the other results of their calls.

    `across_turns`: also after a message of the user. False: only those that come after another message of the model,
    which is one turn with the message that calls.
    """
    waiting: dict[str, int] = {}
    moved: dict[int, list[ToolResult]] = {}
    caller, is_late = -1, False
    for place, message in enumerate(messages):
        if calls := _index_calls(message):
            waiting |= dict.fromkeys(calls, place)
            caller, is_late = place, False
            continue
        if not across_turns and message.role != "assistant" and not find_results(message):
            waiting.clear()
        for result in find_results(message):
            called_at = waiting.pop(result.call_id, None)
            if called_at is not None and (is_late or called_at != caller):
                moved.setdefault(called_at, []).append(result)
        is_late = is_late or message.role != "tool"
    if not moved:
        return messages if isinstance(messages, tuple) else tuple(messages)
    gone = {id(result) for results in moved.values() for result in results}
    found: list[Message] = []
    late: list[Message] = []
    for place, message in enumerate(messages):
        if message.role != "tool":
            found += late
            late = []
        parts = tuple(part for part in message.parts if id(part) not in gone)
        if parts or not message.parts:
            found.append(message if len(parts) == len(message.parts) else msgspec.structs.replace(message, parts=parts))
        late += [Message("tool", (result,)) for result in moved.get(place, ())]
    return (*found, *late)


class CallIds:
    """The call ids of a conversation. Some servers send no ids or count from the start with every reply, and other
    providers refuse two calls with one id.

    It grows with the messages: none is read twice, however long the run.
    """

    __slots__ = ("_counts", "_taken")

    def __init__(self, messages: Iterable[Message] = (), taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        # By stem: the lowest number that may be free. Ids stay taken, so one id in thousands of replies costs each of
        # them one step.
        self._counts: dict[str, int] = {}
        self.add(messages)

    def add(self, messages: Iterable[Message]) -> None:
        """Add the calls of these messages."""
        self._taken.update(call.id for call in list_calls(messages))

    def take(self, call_id: str) -> str:
        """Return the id, or a new one if it is taken. The returned one is taken from then on."""
        unique = self._find_free(call_id)
        self._taken.add(unique)
        return unique

    def make_unique(self, reply: Reply) -> Reply:
        """Give each tool call of the reply an id that no other call has. They are taken once `add` gets the message."""
        own: set[str] = set()
        changed: dict[int, Part] = {}
        for place, part in enumerate(reply.parts):
            if isinstance(part, ToolCall):
                unique = self._find_free(part.id, own)
                own.add(unique)
                if unique != part.id:
                    changed[place] = msgspec.structs.replace(part, id=unique)
        if not changed:
            return reply
        parts = tuple(changed.get(place, part) for place, part in enumerate(reply.parts))
        return msgspec.structs.replace(reply, parts=parts)

    def _find_free(self, call_id: str, own: Iterable[str] = ()) -> str:
        taken = self._taken
        if call_id not in taken and call_id not in own:
            return call_id
        stem = call_id[:_MAX_STEM]
        count = self._counts.get(stem, 2)
        while (unique := f"{stem}_{count}") in taken:
            count += 1
        self._counts[stem] = count
        while unique in taken or unique in own:
            count += 1
            unique = f"{stem}_{count}"
        return unique


UNNAMED = "unnamed_tool"
"""The name for a call without one: hosts refuse an empty name."""


def name_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call without a name one."""
    named = [
        msgspec.structs.replace(message, parts=tuple(map(_name_call, message.parts)))
        if any(not call.name.strip() for call in message.tool_calls)
        else message
        for message in messages
    ]
    return tuple(named)


def _name_call(part: Part) -> Part:
    if isinstance(part, ToolCall) and not part.name.strip():
        return msgspec.structs.replace(part, name=UNNAMED)
    return part


def make_ids_unique(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call an id that no earlier call has, and its result the same. Added messages never change the earlier
    ids.
    """
    given = [call.id for call in list_calls(message for message in messages if message.role == "assistant")]
    if len(set(given)) == len(given):
        return tuple(messages)
    ids = CallIds()
    unique: list[Message] = []
    waiting: dict[str, list[str]] = {}  # by id: the new ids of the calls that have no result yet, in order
    for message in messages:
        if message.role == "assistant":
            waiting = {}
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                new = ids.take(part.id)
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
