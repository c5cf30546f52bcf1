"""Rules about tools in every format: arguments are JSON objects, each call has its result, and ids are unique."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from asides.dialects.turn_encoder import make_call_id
from asides.history.diagnosis.draft import Piece, Turn
from asides.history.diagnosis.findings import FACTS
from asides.history.diagnosis.shape import Shape
from asides.history.diagnosis.shape_anthropic import BLOCK_DIALECTS
from asides.providers.provider import Target
from asides.values.messages import Message, Prompt
from asides.values.parts import ToolCall, is_too_deep, read_arguments
from asides.wire.partial_json import partial

_LONGEST_ID = 64


# --- arguments --------------------------------------------------------------------------------------------------------


def fix_arguments(shape: Shape, turns: Sequence[Turn]) -> None:
    """Make the arguments of each call a JSON object, as text where the format wants text."""
    for call in _list_calls(turns):
        given = shape.read_arguments(call)
        if _is_object(given, as_text=shape.takes_text_arguments()):
            continue
        arguments = _read_object(given)
        shape.draft.report(
            "tool_arguments_invalid",
            call.node,
            f"the arguments of {call.name} are not a JSON object",
            "they are written as an object" if arguments else "they are an empty object",
        )
        shape.set_arguments(call, arguments)


def _list_calls(turns: Sequence[Turn]) -> Iterator[Piece]:
    return (call for turn in turns if turn.role == "assistant" for call in turn.list_pieces("call"))


def _is_object(given: Any, *, as_text: bool) -> bool:
    if not as_text:
        return isinstance(given, dict)
    if not isinstance(given, str):
        return False
    try:
        encoded = given.encode()
        return not is_too_deep(encoded) and isinstance(msgspec.json.decode(encoded), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def _read_object(given: Any) -> dict[str, Any]:
    """The arguments as an object. Of text that was cut, what is certain."""
    if isinstance(given, dict):
        return given
    if not isinstance(given, str):
        return {}
    found = read_arguments(given)
    if found is None and not is_too_deep(given.encode("utf-8", "replace")):
        found = partial(given)
    return found if isinstance(found, dict) else {}


# --- pairs ------------------------------------------------------------------------------------------------------------


class _Pairs:
    """Which result belongs to which call. `late` has results that come too late, `orphans` those without a call."""

    def __init__(self, shape: Shape, turns: Sequence[Turn]) -> None:
        self.pairs: list[tuple[Piece, Piece]] = []
        self.open: list[tuple[int, list[Piece]]] = []
        """For each turn with calls that have no result behind them, its place and those calls."""
        self.late: dict[int, Piece] = {}
        """By the id of the call's object."""
        claimed: set[int] = set()
        for place, turn in enumerate(turns):
            calls = turn.list_pieces("call") if turn.role == "assistant" else []
            zone = _find_zone(shape, turns, place) if calls else ()
            waiting = _group((place, result) for each in zone for result in each.list_pieces("result"))
            missing: list[Piece] = []
            for call in calls:
                found = waiting.get(call.call_id)
                if not found:
                    missing.append(call)
                    continue
                result = found.popleft()[1]
                claimed.add(id(result))
                self.pairs.append((call, result))
            if missing:
                self.open.append((place, missing))
        free = [
            (place, result)
            for place, turn in enumerate(turns)
            for result in turn.list_pieces("result")
            if id(result) not in claimed
        ]
        by_id = _group(free)
        for place, missing in self.open:
            for call in missing:
                later = by_id.get(call.call_id, deque())
                while later and later[0][0] <= place:
                    later.popleft()  # no later call can have it either
                if later:
                    self.late[id(call)] = later.popleft()[1]
        late = {id(result) for result in self.late.values()}
        self.orphans = [(place, result) for place, result in free if id(result) not in late]


def _group(results: Iterable[tuple[int, Piece]]) -> dict[str, deque[tuple[int, Piece]]]:
    """The results of each id, in order."""
    groups: dict[str, deque[tuple[int, Piece]]] = {}
    for place, result in results:
        groups.setdefault(result.call_id, deque()).append((place, result))
    return groups


def _find_zone(shape: Shape, turns: Sequence[Turn], place: int) -> Sequence[Turn]:
    """The turns in which the results of the turn at this place must be."""
    if shape.results_in_user_turns:
        following = turns[place + 1 : place + 2]
        return following if following and following[0].role == "user" else ()
    return turns[place + 1 : shape.find_zone(turns, place)]


def fix_pairs(shape: Shape, turns: Sequence[Turn], *, continues: bool) -> None:
    """Give each call its result, behind it, and drop results without a call.

    Where a conversation `continues` at its provider, the first results belong to calls that the provider stores.
    """
    draft = shape.draft
    pairs = _Pairs(shape, turns)
    first = next((place for place, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    for place, result in pairs.orphans:
        if continues and place < first:
            continue
        detail = "a tool result has no call before it, or its call has a result already"
        draft.report("tool_result_orphaned", result.node, detail, "it is left out")
        draft.remove_piece(result)
    for place, missing in pairs.open:
        nodes: list[dict[str, Any]] = []
        for call in missing:
            late = pairs.late.get(id(call))
            if late is None:
                detail = f"the call of {call.name} has no result"
                draft.report("tool_result_missing", call.node, detail, "an error result follows it")
                nodes.append(shape.make_result(call))
                continue
            detail = "a tool result does not follow its call directly"
            draft.report("tool_turn_order", late.node, detail, "it follows its call")
            draft.remove_piece(late)
            nodes.append(late.node)
        shape.place_results(turns, place, nodes)


def put_results_first(shape: Shape, turns: Sequence[Turn]) -> None:
    """Put the results of a user's message before its other parts, where they share a message."""
    for turn in turns:
        if not shape.results_in_user_turns or turn.role != "user":
            continue
        kinds = [piece.kind == "result" for piece in turn.pieces]
        if any(kinds) and kinds != sorted(kinds, reverse=True):
            holder = next(piece.holder for piece in turn.pieces if piece.kind == "result")
            late = next(piece for piece, after in zip(turn.pieces[1:], kinds, strict=False) if not after
                        and piece.kind == "result")  # fmt: skip
            if holder is None:
                continue
            detail = "tool results come before the other parts of a message"
            shape.draft.report("tool_turn_order", late.node, detail, "the results are first")
            results = {id(piece.node) for piece in turn.pieces if piece.kind == "result"}
            holder.sort(key=lambda node: id(node) not in results)
            shape.draft.touch(turn.nodes[0])


# --- ids --------------------------------------------------------------------------------------------------------------


def fix_ids(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Give calls ids that the target accepts, each its own, and their results the same."""
    results = {id(call): result for call, result in _Pairs(shape, turns).pairs}
    given: set[str] = set()
    counts: dict[str, int] = {}
    alone = target.dialect in (*BLOCK_DIALECTS, "openai_responses")
    for turn in turns:
        calls = turn.list_pieces("call") if turn.role == "assistant" else []
        if not alone:
            given = set()
        for call in calls:
            old = call.call_id
            new = _make_accepted(old, target)
            detail = "the id of a call is too long, or has characters that are not accepted"
            if new in given:
                detail = "two calls have one id"
                count = counts.get(new, 2)
                while (numbered := _make_accepted(f"{new[:48]}_{count}", target)) in given:
                    count += 1
                counts[new] = count + 1
                new = numbered
            given.add(new)
            if new == old:
                continue
            shape.draft.report(
                None, call.node, detail, "the call and its result get another id", fact=FACTS["tool_ids"]
            )
            shape.set_call_id(call, new)
            if (result := results.get(id(call))) is not None:
                shape.set_call_id(result, new)


def _make_accepted(call_id: str, target: Target) -> str:
    """The id, or one that is derived from it, so that the call and its result have the same."""
    if target.dialect in BLOCK_DIALECTS:
        return make_call_id(call_id)
    if target.dialect == "openai_chat" and target.quirks.tool_call_ids != "any":
        from asides.dialects.openai_chat.encode_messages import encode_messages

        message = Message("assistant", (ToolCall(call_id, "tool"),))
        return str(encode_messages(Prompt((message,)), target, [])[0]["tool_calls"][0]["id"])
    if target.dialect in ("openai_chat", "openai_responses") and len(call_id) > _LONGEST_ID:
        return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"
    return call_id
