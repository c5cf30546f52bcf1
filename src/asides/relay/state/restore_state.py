"""The way back: `restore` puts the reasoning state of earlier turns back into the prompt of a caller.

Envelopes come first, then the records of the vault, all in one read. What does not fit what the caller sent is left out
and reported. Envelopes never stay in the prompt. Seals that are not envelopes are the caller's own and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from operator import is_
from typing import Any

import msgspec

from asides.dialects import find_facts
from asides.history.replay import is_same_host
from asides.providers.provider import Target
from asides.relay.state.clean_history import clean_document
from asides.relay.state.envelope import FAILURES, Failure, is_envelope, may_hold_envelope, open_envelope
from asides.relay.state.rebuild_turn import (
    drop_lost,
    fits_turn,
    merge_states,
    rebuild_from_envelopes,
    rebuild_from_record,
    withhold_bare,
)
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.state.thinking_origins import name_seal_tokens, name_tokens
from asides.relay.state.turn_state import (
    HAS_STORE,
    RestoredTurn,
    StateMode,
    StateSource,
    TurnState,
    is_stand_in,
    place_turns,
)
from asides.relay.state.vault_records import FoundStates, HistoryChain, Turn, find_turns, list_levels
from asides.relay.steps import ReadRecords, StoredRecord, UnconfirmedRecord
from asides.values.messages import Message, Prompt, StoredResponse
from asides.values.notices import Notice
from asides.values.parts import Part, ServerTool, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from asides.values.traits import IS_BOUND, find_traits

STORE_FAILED = "relay_store_failed"


class RestoredPrompt(msgspec.Struct, frozen=True):
    """A prompt with the state that was found, and without envelopes."""

    prompt: Prompt
    notices: tuple[Notice, ...] = ()
    had_envelopes: bool = False
    """Whether the caller's request must not go to a provider as it is."""
    from_envelopes: int = 0
    """How many turns got their state back from envelopes."""
    from_vault: int = 0
    missing: int = 0
    """How many turns had an envelope whose state was not found."""
    has_more: bool = False
    """Whether the prompt holds state that the caller did not send."""
    turns: tuple[RestoredTurn, ...] = ()
    """The turns whose state was looked for, in their order."""
    origins: dict[str, Origin] = {}
    """Origins of the seals that the caller sent back, where the store knows them (`name_tokens`)."""
    unconfirmed: tuple[UnconfirmedRecord, ...] = ()
    """Unconfirmed records of these turns. A caller that sends a turn back has received it."""

    @property
    def is_changed(self) -> bool:
        """Whether a provider must get another request than the caller sent."""
        return self.had_envelopes or self.has_more


class _TurnAtWork:
    """A turn while its state is looked for."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.parts = turn.parts
        self.states: dict[int, TurnState] = {}
        """The states in envelopes, by the places of the parts that carried them."""
        self.failures: list[Failure] = []
        self.has_envelopes = False
        self.has_own_seals = False
        """Whether the caller itself gives seals of a provider back."""
        self.levels: tuple[frozenset[str], ...] = ()
        self.origin_keys: frozenset[str] = frozenset()
        """The keys of its record, where that only has to say who made the seals which the caller gave back."""

    @property
    def reference(self) -> str:
        return next((state.ref for state in self.states.values() if state.ref), "") if self.states else ""

    @property
    def needs_vault(self) -> bool:
        if self.reference or self.failures:
            return True
        if self.states:
            # A text may have been hidden from the caller.
            return any(state.more for state in self.states.values()) or not self.is_whole
        return not self.has_own_seals

    @property
    def is_whole(self) -> bool:
        return rebuild_from_envelopes(self.parts, self.states)[1]


def restore(
    prompt: Prompt,
    keys: TenantKeys,
    mode: StateMode,
    *,
    targets: Sequence[Target] = (),
    knows: Callable[[Part], bool] | None = None,
    traits: int | None = None,
    chain: HistoryChain | None = None,
) -> Generator[ReadRecords, Any, RestoredPrompt]:
    """Put state back. Asks for at most one read.

    `targets` are the models that the prompt may go to. Nothing is read if none of them takes thinking back, and the ids
    of calls become those of the provider only if it is asked again. `knows`: whether it is known who made a part that
    the caller itself gave back; None: it does not matter. `traits`: those of the messages, if they are known. `chain`:
    has the digests of the whole history afterwards.
    """
    traits = find_traits(prompt.messages) if traits is None else traits
    is_bare = not traits & IS_BOUND  # no part can hold an envelope
    prompt, had_odd = _clean_odd_places(prompt, is_bare=is_bare)
    work = [_TurnAtWork(turn) for turn in find_turns(prompt.messages, chain)]
    for each in () if is_bare else work:
        _open_envelopes(each, keys)
        if mode == "off" and each.has_envelopes:
            each.states, each.failures = {}, ["off"]
    notices: list[Notice] = []
    records: tuple[StoredRecord, ...] = ()
    if not has_nothing_to_restore(mode, targets):
        wanted = _list_wanted(work, keys, knows)
        if wanted:
            found = yield ReadRecords(keys.tenant, wanted)
            if found is None:
                detail = "the store of the relay failed; reasoning state that only it has is missing"
                notices.append(Notice(STORE_FAILED, detail))
            records = tuple(found or ())
    if is_bare and not records:
        turns = place_turns((each.turn.start, "", 0) for each in work if each.levels)
        return RestoredPrompt(prompt, tuple(notices), had_odd, turns=turns)
    states = FoundStates(records, keys)
    restored = _put_back(prompt, work, states, targets, notices)
    if origins := _find_origins(work, states):
        restored = msgspec.structs.replace(restored, origins=origins)
    return msgspec.structs.replace(restored, had_envelopes=True) if had_odd else restored


def _find_origins(work: Sequence[_TurnAtWork], states: FoundStates) -> dict[str, Origin]:
    """Origins of the seals that the caller sent back with its turns. A record with other seals is of another turn."""
    origins: dict[str, Origin] = {}
    for each in work:
        if not each.origin_keys:
            continue
        given = {token for part in each.parts for token in name_tokens(part)}
        for state in (state for key in each.origin_keys for state in states.by_key.get(key, ())):
            if state.origin is not None:
                made = {token for part in state.parts for token in name_seal_tokens(part.seals)}
                origins |= dict.fromkeys(given & made, state.origin)
    return origins


def has_nothing_to_restore(mode: StateMode, targets: Sequence[Target]) -> bool:
    """Whether the store has nothing for these targets: a prompt without thoughts and envelopes stays as it is."""
    return mode not in HAS_STORE or (bool(targets) and all(map(takes_nothing_back, targets)))


def _list_wanted(
    work: Sequence[_TurnAtWork],
    keys: TenantKeys,
    knows: Callable[[Part], bool] | None = None,
) -> tuple[str, ...]:
    wanted: list[str] = []
    for each in work:
        if each.needs_vault:
            each.levels = list_levels(each.turn, keys, each.reference)
            for level in each.levels:
                # A set of texts has another order in each process.
                wanted += sorted(level) if len(level) > 1 else level
        elif knows is not None and not each.states and not all(map(knows, each.parts)):
            each.origin_keys = frozenset().union(*list_levels(each.turn, keys))
            wanted += sorted(each.origin_keys)
    return tuple(dict.fromkeys(wanted))


def takes_nothing_back(target: Target) -> bool:
    """Whether no thinking of earlier turns is sent to a target."""
    rule = target.provider.replay_rule(target.family or target.model)
    return rule.when == "never" and not target.rule.prefix_bound


# --- envelopes --------------------------------------------------------------------------------------------------------


def _open_envelopes(work: _TurnAtWork, keys: TenantKeys) -> None:
    """Open the envelopes of a turn, and remove them from its parts."""
    parts: list[Part] = []
    for place, part in enumerate(work.turn.parts):
        own = [seal for seal in part.seals if not _holds_envelope(seal)]
        work.has_own_seals = work.has_own_seals or any(seal.value and not is_stand_in(seal) for seal in own)
        if len(own) < len(part.seals):
            work.has_envelopes = True
            seals = part.seals
            # The entry of a part beside an envelope was made here too: it is the item that we wrote.
            part = msgspec.structs.replace(part, seals=tuple(own))
            for seal in seals:
                if _holds_envelope(seal):
                    _open_one(work, place, seal, keys)
        parts.append(part)
    work.parts = tuple(parts)


def _open_one(work: _TurnAtWork, place: int, seal: Seal, keys: TenantKeys) -> None:
    opened = open_envelope(seal.value, keys)
    if opened.state is None:
        work.failures.append(opened.failure or "malformed")
        return
    before = work.states.get(place)
    work.states[place] = opened.state if before is None else merge_states((before, opened.state))


def _holds_envelope(seal: Seal) -> bool:
    return is_envelope(seal.value) or (seal.entry is not None and _clean_json(seal.entry) != seal.entry)


# --- other places -----------------------------------------------------------------------------------------------------


def _clean_odd_places(prompt: Prompt, *, is_bare: bool) -> tuple[Prompt, bool]:
    """Remove envelopes from opaque fields where we put none: parts that no dialect knows, and fields of the request."""
    messages = prompt.messages if is_bare else tuple(map(_clean_unknown_parts, prompt.messages))
    extra = clean_document(prompt.extra) if prompt.extra else None
    is_same = (is_bare or all(map(is_, messages, prompt.messages))) and (extra is None or not extra.envelopes)
    if is_same:
        return prompt, False
    fields: dict[str, Any] = {} if extra is None else {"extra": extra.document}
    return msgspec.structs.replace(prompt, messages=messages, **fields), True


def _clean_unknown_parts(message: Message) -> Message:
    if not any(isinstance(part, (UnknownPart, ServerTool)) for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, (UnknownPart, ServerTool)) and (cleaned := _clean_json(part.json)) != part.json:
            parts += [] if cleaned is None else [msgspec.structs.replace(part, json=cleaned)]
        else:
            parts.append(part)
    same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
    return message if same else msgspec.structs.replace(message, parts=tuple(parts))


def _clean_json(text: str) -> str | None:
    """The JSON without envelopes in opaque fields; None if nothing is left."""
    if not may_hold_envelope(text.encode("utf-8", "replace")):
        return text
    try:
        cleaned = clean_document([msgspec.json.decode(text)])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    if not cleaned.envelopes:
        return text
    return msgspec.json.encode(cleaned.document[0]).decode() if cleaned.document else None


# --- putting back -----------------------------------------------------------------------------------------------------


def _put_back(
    prompt: Prompt,
    work: Sequence[_TurnAtWork],
    states: FoundStates,
    targets: Sequence[Target],
    notices: list[Notice],
) -> RestoredPrompt:
    messages = list(prompt.messages)
    own_ids: dict[str, str] = {}
    counts = [0, 0, 0]
    looked: list[tuple[int, StateSource, int]] = []
    unconfirmed: list[UnconfirmedRecord] = []
    has_more = False
    refuses_bare = bool(targets) and all(map(_refuses_bare, targets))
    for each in reversed(work):  # the places before a turn stay right while it shrinks to one message
        state, source = _find_state(each, states, targets, notices)
        turn = each.turn
        if state is None and not each.has_envelopes:
            if each.levels:
                looked.append((turn.start, source, 0))
            if refuses_bare:
                messages[turn.start : turn.end] = map(withhold_bare, messages[turn.start : turn.end])
            continue
        if state is None:
            parts, facts = drop_lost(each.parts), TurnState()
            counts[2] += 1
        elif source == "vault":
            keeps_ids = bool(targets) and not all(_is_maker(state, target) for target in targets)
            parts, ids = rebuild_from_record(each.parts, state, keeps_ids=keeps_ids)
            own_ids |= ids
            facts = state
            counts[1] += 1
            unconfirmed += states.list_unconfirmed(state, turn)
            has_more = has_more or bool(ids) or _list_state(parts) != _list_state(each.parts)
        else:
            parts, is_whole = rebuild_from_envelopes(each.parts, each.states)
            if not is_whole:
                notices.append(_tell("relay_state_changed", "a part of a turn was changed; its state was left out"))
            facts = state
            counts[0] += 1
        if source != "vault":
            notices += [_tell("relay_state_unreadable", FAILURES[failure]) for failure in each.failures]
        built = _build_message(messages[turn.start], parts, facts)
        messages[turn.start : turn.end] = built
        looked.append((turn.start, source, turn.end - turn.start - len(built)))
    if own_ids:
        messages = [_rename_results(message, own_ids) for message in messages]
    had_envelopes = any(each.has_envelopes for each in work)
    if messages != list(prompt.messages):
        prompt = msgspec.structs.replace(prompt, messages=tuple(messages))
    return RestoredPrompt(
        prompt,
        _unique(notices),
        had_envelopes,
        from_envelopes=counts[0],
        from_vault=counts[1],
        missing=counts[2],
        has_more=has_more,
        turns=place_turns(reversed(looked)),
        unconfirmed=tuple(unconfirmed),
    )


def _find_state(
    work: _TurnAtWork, states: FoundStates, targets: Sequence[Target], notices: list[Notice]
) -> tuple[TurnState | None, StateSource]:
    """The state of a turn, and where it comes from. If two models gave like turns, that of the model which is asked."""
    if not (states.by_key or work.states or work.reference):
        return None, ""
    is_ambiguous = False
    was_edited = False
    for level in work.levels:
        found = [state for key in level for state in states.by_key.get(key, ())]
        fit = [state for state in found if fits_turn(work.turn, state)]
        was_edited = was_edited or (bool(found) and not fit)
        if not _are_equal(fit):
            fit = _select_made_here(fit, targets)
        # There may be thousands: a model that says the same every day.
        if fit and _are_equal(fit):
            return fit[0], "vault"
        is_ambiguous = is_ambiguous or bool(fit)
    carried = [state for state in work.states.values() if not state.ref]
    if carried:
        return merge_states(carried), "envelope"
    if is_ambiguous:
        detail = "two turns in the vault match one turn of the history; neither reasoning state was used"
        notices.append(_tell("relay_state_ambiguous", detail))
    elif was_edited:
        notices.append(_tell("relay_state_changed", "a turn was changed; its reasoning state was left out"))
    elif work.reference:
        detail = "the reasoning state of a turn is no longer in the vault"
        notices.append(_tell("relay_state_unreadable", detail))
    return None, ""


def _are_equal(states: Sequence[TurnState]) -> bool:
    return all(state == states[0] for state in states)


def _select_made_here(states: list[TurnState], targets: Sequence[Target]) -> list[TurnState]:
    """The states that the targets' hosts made; of these, the ones of the targets' models, if any. All, if there is no
    target.
    """
    if not targets:
        return states
    of_hosts = [state for state in states if any(_is_maker(state, target) for target in targets)]
    models = {target.origin.model for target in targets}
    return [state for state in of_hosts if state.origin is not None and state.origin.model in models] or of_hosts


def _list_state(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """The thoughts and the opaque tokens of a turn, in their order."""
    thoughts = [("thought", part.text) for part in parts if isinstance(part, Thought)]
    return thoughts + [(seal.kind, seal.value) for part in parts for seal in part.seals if seal.value]


def _tell(code: str, detail: str) -> Notice:
    return Notice(code, detail, "messages")


def _unique(notices: Sequence[Notice]) -> tuple[Notice, ...]:
    return tuple(dict.fromkeys(notices))


def _refuses_bare(target: Target) -> bool:
    """Whether the target seals all of its own thoughts, and refuses one without."""
    is_sealed = target.provider.replay_rule(target.family or target.model).when == "sealed"
    return is_sealed or find_facts(target.dialect).thinks_in_blocks


def _is_maker(state: TurnState, target: Target) -> bool:
    return state.origin is not None and is_same_host(state.origin, target)


def _build_message(first: Message, parts: tuple[Part, ...], facts: TurnState) -> list[Message]:
    if not parts:
        return []  # nothing but an envelope was there
    stored = StoredResponse(facts.stored, facts.origin) if facts.stored else first.stored
    return [
        msgspec.structs.replace(
            first,
            parts=parts,
            stored=stored,
            prefix=facts.prefix or first.prefix,
            learned=facts.learned or first.learned,
            effort=facts.effort or first.effort,
        )
    ]


def _rename_results(message: Message, own_ids: dict[str, str]) -> Message:
    if not any(isinstance(part, ToolResult) and part.call_id in own_ids for part in message.parts):
        return message
    parts = tuple(
        msgspec.structs.replace(part, call_id=own_ids[part.call_id])
        if isinstance(part, ToolResult) and part.call_id in own_ids
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)
