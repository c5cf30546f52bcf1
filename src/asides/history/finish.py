"""The message of a reply for the history: `finish_turn`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.providers.find import find_provider
from asides.providers.provider import Provider, merge_facts
from asides.values.errors import UnknownProvider
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Refusal, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought

# The seal that a call or a text gets when its item ends, in the dialect that has items.
_ITEM = "item"
# The states of a provider's tool that is still running. A history cannot hold such a tool.
_RUNNING = frozenset({"in_progress", "searching", "interpreting", "generating", "calling", "queued"})


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
    """Drop unfinished parts that are useless when cut."""
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
        case Text() | Commentary():
            # A finished blank item stays: without it providers refuse the thought before it.
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
    replay_as = merge_facts(row.rule(part.origin.model), row.quirks).replay_as
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
