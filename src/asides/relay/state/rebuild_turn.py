"""Rebuild a turn of the model from what the caller sent and from its state: thoughts in their places, seals on the
parts that they belong to, and the provider's ids of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from asides.relay.state.turn_state import (
    PartState,
    TurnState,
    digest_call,
    digest_text,
    digest_thought,
    is_opaque,
    restore_seals,
)
from asides.relay.state.vault_records import Turn
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall
from asides.values.thinking import Origin, Seal, Thought

_NO_TEXT = digest_text(())
_MOST_PIECES = 24
"""In how many pieces a thought may come back with other parts between them."""


def merge_states(states: Sequence[TurnState]) -> TurnState:
    """One state of several envelopes of a turn. Of two that have the same part, the later one counts."""
    parts = {(part.what, part.block): part for state in states for part in state.parts}
    last = states[-1]
    ref = next((state.ref for state in states if state.ref), "")
    more = any(state.more for state in states)
    return msgspec.structs.replace(last, parts=tuple(parts.values()), ref=ref, more=more)


def fits_turn(turn: Turn, state: TurnState) -> bool:
    """Whether a record is that of this turn as the caller sent it: the same text, or none beside its calls; and the
    same calls, or some of them.
    """
    states = [part for part in state.parts if part.what == "call"]
    if states and not turn.calls:
        return False
    paired = _pair_calls(turn.parts, states)
    if paired is None or any(part.digest != digest for part, digest in zip(paired.values(), turn.calls, strict=True)):
        return False
    return turn.text == state.text or (turn.text == _NO_TEXT and bool(turn.calls))


def _pair_calls(parts: Iterable[Part], states: Sequence[PartState]) -> dict[int, PartState] | None:
    """The state of each call of the caller, by its place among the parts; None if their number is another."""
    calls = [(place, part) for place, part in enumerate(parts) if isinstance(part, ToolCall)]
    by_id = {state.id: state for state in states}
    if all(call.id in by_id for _, call in calls):
        return {place: by_id[call.id] for place, call in calls}
    if len(calls) != len(states):
        return None
    # The caller has ids of its own.
    return {place: state for (place, _), state in zip(calls, states, strict=True)}


# --- from a record ----------------------------------------------------------------------------------------------------


def rebuild_from_record(
    parts: Sequence[Part], state: TurnState, *, keeps_ids: bool
) -> tuple[tuple[Part, ...], dict[str, str]]:
    """The parts of a turn in the order of its record. Returns also the provider's ids of calls, by the caller's.

    `keeps_ids`: calls keep the ids that the caller knows.
    """
    paired = _pair_calls(parts, [part for part in state.parts if part.what == "call"]) or {}
    calls = {
        states.block: (place, part) for place, states in paired.items() if isinstance(part := parts[place], ToolCall)
    }
    texts = _split_text(parts, [part for part in state.parts if part.what == "text"])
    thoughts = _Thoughts(parts)
    said = [part for part in parts if isinstance(part, Commentary)]
    rebuilt: list[Part] = []
    own_ids: dict[str, str] = {}
    for each in state.parts:
        if each.what == "thought":
            thought = thoughts.restore(each, state.origin)
            rebuilt += [] if thought is None else [thought]
        elif each.what == "text" and each.block in texts:
            rebuilt.append(msgspec.structs.replace(texts[each.block], seals=restore_seals(each.seals, state.origin)))
        elif isinstance(each.whole, Commentary) and not said:
            rebuilt.append(each.whole)
        elif each.what == "call" and each.block in calls:
            call = msgspec.structs.replace(calls[each.block][1], seals=restore_seals(each.seals, state.origin))
            if each.own_id and not keeps_ids and call.id == each.id:
                own_ids[call.id] = each.own_id
                call = msgspec.structs.replace(call, id=each.own_id)
            rebuilt.append(call)
    # Parts that no record knows: pictures, tools of a provider. They come before the first call.
    others = [part for part in parts if not isinstance(part, (Text, Commentary, Thought, ToolCall))]
    first = next((place for place, part in enumerate(rebuilt) if isinstance(part, ToolCall)), len(rebuilt))
    rebuilt[first:first] = others
    # What the model said on the way, where the caller sent it, comes before its answer and its calls.
    first = next((place for place, part in enumerate(rebuilt) if isinstance(part, (Text, ToolCall))), len(rebuilt))
    rebuilt[first:first] = said
    return tuple(rebuilt), own_ids


def _split_text(parts: Sequence[Part], states: Sequence[PartState]) -> dict[int, Text]:
    """The texts of the caller, by the blocks that they came from. Callers join them."""
    given = [part for part in parts if isinstance(part, Text)]
    if not given or not states:
        return {}
    if [len(text.text) for text in given] == [state.size for state in states]:
        return {state.block: text for state, text in zip(states, given, strict=True)}
    joined = "".join(text.text for text in given)
    cache = next((text.cache for text in reversed(given) if text.cache), False)
    if len(joined) != sum(state.size for state in states):
        return {states[0].block: Text(joined, cache=cache)}  # blanks were stripped
    texts: dict[int, Text] = {}
    start = 0
    for state in states:
        texts[state.block] = Text(joined[start : start + state.size])
        start += state.size
    texts[states[-1].block] = msgspec.structs.replace(texts[states[-1].block], cache=cache)
    return texts


class _Thoughts:
    """The thoughts that the caller sent, to take their texts from. A stream may come back in its pieces."""

    def __init__(self, parts: Sequence[Part]) -> None:
        texts: list[str] = []
        run: list[str] = []
        for part in (*parts, None):
            if isinstance(part, Thought):
                texts.append(part.text)
                run.append(part.text)
            elif run:
                texts.append("".join(run))
                run = []
        if len(whole := [part.text for part in parts if isinstance(part, Thought)]) <= _MOST_PIECES:
            # One that went on after a call came back in pieces with the call between them.
            texts += [
                "".join(whole[start:end]) for start in range(len(whole)) for end in range(start + 2, len(whole) + 1)
            ]
        self._by_digest = {digest_thought(text): text for text in texts if text}

    def add_joined(self, thoughts: Sequence[Thought]) -> None:
        """Add the text that these pieces have together."""
        text = "".join(thought.text for thought in thoughts)
        self._by_digest[digest_thought(text)] = text

    def restore(self, state: PartState, origin: Origin | None) -> Thought | None:
        """The thought; None if its provider requires its text, which is lost."""
        text = state.text
        if text is None:
            text = self._by_digest.get(state.digest)
        if text is None and state.needs_text:
            return None
        seals = restore_seals(state.seals, origin)
        if not text and not any(seal.value for seal in seals):
            return None
        return Thought(text or "", state.kind if text else "hidden", state.source, origin, seals, state.via)


# --- from envelopes ---------------------------------------------------------------------------------------------------


def rebuild_from_envelopes(parts: Sequence[Part], states: Mapping[int, TurnState]) -> tuple[tuple[Part, ...], bool]:
    """The parts of a turn with the state of its envelopes. `parts` are without envelopes; `states` are by the places of
    the parts that carried them. Returns also whether all of the state fits.
    """
    calls: dict[str, tuple[PartState, Origin | None]] = {}
    for each_state in states.values():
        calls |= {part.id: (part, each_state.origin) for part in each_state.parts if part.what == "call"}
    complete = _find_complete_thoughts(states.values())
    sealed = _SealedTexts(states.values())
    whole = {each.block: each.whole for state in states.values() for each in state.parts if each.whole is not None}
    rebuilt: list[Part] = []
    seen: set[int] = set()
    is_whole = True
    thoughts = _Thoughts(parts)
    waiting: list[Thought] = []
    """The thoughts since the last envelope: pieces of one, where a stream came back as it was."""
    for place, part in enumerate(parts):
        state = states.get(place)
        waiting += [part] if isinstance(part, Thought) else []
        if state is not None:
            thoughts.add_joined(waiting)
            waiting = []
            new = sorted({each.block for each in state.parts if each.what == "thought"} - seen)
            restored = [thoughts.restore(complete[block], state.origin) for block in new]
            is_whole = is_whole and None not in restored
            if isinstance(part, (Text, ToolCall)):
                for block, thought in zip(new, restored, strict=True):
                    if thought is not None:
                        rebuilt.insert(_find_place(rebuilt, complete[block].size), thought)
            else:
                rebuilt += [thought for thought in restored if thought is not None]
            seen.update(new)
            arrived = [each.block for each in state.parts if each.block in whole and each.block not in seen]
            rebuilt += [whole[block] for block in arrived]
            seen.update(arrived)
            if not isinstance(part, Text):
                rebuilt += [Text("", seals) for seals in sealed.list_empty(state)]
        if isinstance(part, ToolCall) and part.id in calls:
            call_state, origin = calls[part.id]
            if digest_call(part) == call_state.digest:
                custom = part.custom or call_state.custom
                part = msgspec.structs.replace(part, seals=restore_seals(call_state.seals, origin), custom=custom)
            else:
                is_whole = False
        elif isinstance(part, Text):
            found = sealed.find(part, state)
            is_whole = is_whole and found is not None
            part = msgspec.structs.replace(part, seals=(*part.seals, *found)) if found else part
        rebuilt.append(part)
    return drop_lost(rebuilt), is_whole


def _find_place(parts: Sequence[Part], before: int) -> int:
    """The place of a thought that a later part carried: behind the last call, since that would have carried it, and
    behind as much of the answer as was said before it; thoughts before it stay there.
    """
    place = next((number for number in range(len(parts), 0, -1) if isinstance(parts[number - 1], ToolCall)), 0)
    said = sum(len(part.text) for part in parts[:place] if isinstance(part, Text))
    while place < len(parts):
        part = parts[place]
        if isinstance(part, Text):
            if said >= before:
                break
            said += len(part.text)
        place += 1
    return place


class _SealedTexts:
    """The seals of texts. Where a state names its text, no other text gets them."""

    def __init__(self, states: Iterable[TurnState]) -> None:
        self._by_digest: dict[bytes, tuple[Seal, ...]] = {}
        for state in states:
            for part in state.parts:
                if part.what == "text" and part.digest and len(part.seals) >= len(self._by_digest.get(part.digest, ())):
                    self._by_digest[part.digest] = restore_seals(part.seals, state.origin)

    def list_empty(self, state: TurnState) -> list[tuple[Seal, ...]]:
        """The seals of texts that are nothing but a place for them."""
        empty = [part for part in state.parts if part.what == "text" and part.digest == _NO_TEXT and not part.size]
        return [restore_seals(part.seals, state.origin) for part in empty if part.seals]

    def find(self, text: Text, state: TurnState | None) -> tuple[Seal, ...] | None:
        """The seals of a text; None if the seals it carried belong to another text."""
        carried = [part for part in state.parts if part.what == "text"] if state is not None else []
        unnamed = [seal for part in carried if not part.digest for seal in part.seals]
        found = self._by_digest.get(digest_text((text.text,))) if self._by_digest else ()
        if found is None and any(part.digest for part in carried):
            return None
        return (*restore_seals(unnamed, None if state is None else state.origin), *(found or ()))


def _find_complete_thoughts(states: Iterable[TurnState]) -> dict[int, PartState]:
    """The state of each thought, by its block. A thought whose last seal came late is in two envelopes of a turn, and
    which of them the caller has first depends on its dialect: the one with more seals counts.
    """
    found: dict[int, PartState] = {}
    for part in (part for state in states for part in state.parts if part.what == "thought"):
        before = found.get(part.block)
        if before is None or len(part.seals) >= len(before.seals):
            found[part.block] = part
    return found


def drop_lost(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Drop what the caller sent of thoughts that were restored. Any other thought that has lost its seal can be shown,
    not sent.
    """
    texts = [part.text for part in parts if isinstance(part, Thought) and not is_bare(part)]
    # Callers have a thought in pieces, or several joined.
    restored = "".join(texts), "\n\n".join(texts)
    return tuple(
        msgspec.structs.replace(part, replayable=False) if is_bare(part) else part
        for part in parts
        if not is_bare(part)
        or (isinstance(part, Thought) and part.text.strip() and not any(part.text in text for text in restored))
    )


def is_bare(part: Part) -> bool:
    """Whether it is a thought that nothing says who made."""
    return isinstance(part, Thought) and part.origin is None and not any(map(is_opaque, part.seals))


def withhold_bare(message: Message) -> Message:
    """The message with the thoughts that nothing says who made marked: they can be shown, not sent."""
    if not any(map(is_bare, message.parts)):
        return message
    parts = [msgspec.structs.replace(part, replayable=False) if is_bare(part) else part for part in message.parts]
    return msgspec.structs.replace(message, parts=tuple(parts))
