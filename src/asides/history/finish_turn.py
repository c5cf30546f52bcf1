"""What a reply leaves behind in a history, also one that broke off: `sealed(reply)`, and `answered(messages)`.

Not here: which thoughts are whole (folding knows), and what of them goes back (plan).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.history import pair as pairs
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.values.errors import UnknownProvider
from asides.values.messages import Message, Part, Refusal, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought

# What the end of an item leaves with a call, in the dialect that has items.
_ITEM = "item"
# How far a tool is that the provider had begun to run; a history cannot say that it is still running.
_UNDER_WAY = frozenset({"in_progress", "searching", "interpreting", "generating", "calling", "queued"})


def finish_turn(reply: Reply | None, *, rows: Sequence[Provider] = ()) -> Message | None:
    """The assistant message that a reply leaves behind; None when nothing of it is worth keeping.

    A whole reply stays as it is. Of one that broke off: whole thoughts can go back, unless what followed them is gone;
    a cut one can be shown and not be sent; calls whose arguments were cut, tools of the provider's that were still
    running, and blank text are left out. It is nowhere stored, whatever the provider had promised. `rows` are the
    caller's own and win over ours.
    """
    message = None if reply is None else reply.to_message()
    if reply is None or message is None or not message.parts:
        return None
    if reply.complete:
        return message
    parts = _with_ends([_with_state(part, rows) for part in _said(message.parts)])
    return Message("assistant", parts) if parts else None


def add_missing_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with an error for a result of each call that has none, behind the turn that called."""
    return pairs.add_missing_results(messages)[0]


def _said(parts: tuple[Part, ...]) -> list[Part]:
    """The parts that were said to their end, or that lose nothing by being cut."""
    end = len(parts)
    while end and isinstance(parts[end - 1], ToolCall):
        end -= 1
    kept = [part for place, part in enumerate(parts) if _is_said(part, parts[place + 1 :], last_calls=place >= end)]
    while kept and isinstance(kept[-1], (ServerTool, UnknownPart)) and kept[-1] is parts[-1]:
        kept.pop()
    return kept


def _is_said(part: Part, behind: tuple[Part, ...], *, last_calls: bool) -> bool:
    match part:
        case Text():
            # A blank item that had come to its end stays: the thought before it is not taken back without it.
            return bool(part.text.strip()) or any(seal.value or seal.kind == _ITEM for seal in part.seals)
        case ToolCall():
            return _has_arguments(part, last_calls)
        case ServerTool():
            return part.status not in _UNDER_WAY and not _lacks_result(part, behind)
        case Refusal():
            return bool(part.text.strip())
        case _:
            return True


def _has_arguments(call: ToolCall, last_calls: bool) -> bool:
    if any(seal.kind == _ITEM for seal in call.seals):
        return True  # it came with the item's end
    if call.custom:
        return not last_calls
    # A JSON object ends with its bracket, so one that reads is whole. None at all may be none yet, and not every server
    # finishes a call before it begins the next.
    return call.raw_arguments is None and (bool(call.arguments) or not last_calls)


def _lacks_result(tool: ServerTool, behind: tuple[Part, ...]) -> bool:
    """Whether a tool was called over there and its result, a block of its own in some dialects, never came."""
    if not tool.name.endswith("_tool_use"):
        return False
    return not any(isinstance(part, ServerTool) and part.id == tool.id for part in behind)


def _with_state(part: Part, rows: Sequence[Provider]) -> Part:
    """A part; a thought whose host wants all the details back that it came in cannot go back, since they come in pieces
    and only the end of a reply says that there are no more.
    """
    if not isinstance(part, Thought) or part.origin is None:
        return part
    try:
        row = find_provider(part.origin.provider, rows)
    except UnknownProvider:
        return part
    wanted = row.rule(part.origin.model).replay_as or row.quirks.replay_as
    return msgspec.structs.replace(part, complete=False) if wanted == "details" else part


def _with_ends(parts: list[Part]) -> tuple[Part, ...]:
    """The parts; a thought that nothing follows any more is one that cannot go back."""
    end = len(parts)
    while end and isinstance(parts[end - 1], Thought):
        end -= 1
    last = [msgspec.structs.replace(part, complete=False) for part in parts[end:] if isinstance(part, Thought)]
    return (*parts[:end], *last)
