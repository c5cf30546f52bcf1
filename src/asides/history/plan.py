"""Decide which parts of the history go back to the model, and why: `plan(prompt, target) → Plan`. Pure.

Not here: the check of the request itself (check), its wire form (dialects), and the rules (providers).
"""

from __future__ import annotations

import msgspec

from asides.dialects import find_facts
from asides.dialects.dialect import Dialect, HttpRequest
from asides.history.check import OnConflict, check_request
from asides.history.fit_thoughts import add_stand_ins, drop_open_thoughts, fit_thoughts
from asides.history.pair import (
    add_missing_results,
    drop_blank_messages,
    drop_orphan_results,
    is_paired,
    make_ids_unique,
)
from asides.history.replay import Decision, is_same_host, replay
from asides.providers.provider import Target
from asides.providers.quirks import fits_glob
from asides.values.errors import Unsupported
from asides.values.message_facts import (
    CHANGES_EFFORT,
    HAS_CALLS,
    HAS_MEDIA,
    HAS_RESULTS,
    HAS_THOUGHTS,
    IS_BLANK,
    IS_BOUND,
)
from asides.values.messages import Message, Prompt, ProviderState, find_traits
from asides.values.notices import Notice
from asides.values.parts import File, Image
from asides.values.thinking import Effort

__all__ = ["Decision", "OnConflict", "Plan", "plan"]

_NO_STATE = ProviderState()


class Plan(msgspec.Struct, frozen=True):
    """A prompt that its target accepts, with the decisions and notices that led to it."""

    prompt: Prompt
    decisions: tuple[Decision, ...] = ()
    notices: tuple[Notice, ...] = ()
    effort: Effort | None = None
    """The effort in force for the answer. It may be set by a message of the prompt, not by its settings."""
    prefix: str = ""
    """The digest of everything that is sent, where the model binds its seals to that."""


def plan(prompt: Prompt, target: Target, *, on_conflict: OnConflict = "raise") -> Plan:
    """Decide which parts of the history go back, and check the request against the model's rules. Nothing is sent."""
    decisions, notices = list[Decision](), list[Notice]()
    traits = find_traits(prompt.messages)  # most steps look for something that most histories do not have
    messages = replay(prompt, target, traits, decisions) if traits & IS_BOUND else prompt.messages
    state = prompt.state
    if traits & (HAS_CALLS | HAS_RESULTS):
        paired = _pair_calls(messages, notices, state)
        if paired is not messages:
            traits |= find_traits(paired)  # without its results, a message may be blank
        messages = paired
    if state != _NO_STATE:
        messages, state = _resume(messages, state, target, decisions)
        messages = make_ids_unique(messages)
    if traits & IS_BLANK:
        messages = drop_blank_messages(messages, notices)
    if traits & HAS_MEDIA and (target.facts.refuses_files or not target.facts.pictures):
        from asides.history.fit_media import replace_refused

        messages = replace_refused(messages, target, on_conflict, notices)
    sendable = msgspec.structs.replace(prompt, messages=messages, state=state)
    if traits & HAS_THOUGHTS:
        joins, leads = find_facts(target.dialect).joins_turns, target.rule.begins_with_thinking
        if joins or leads:
            sendable = fit_thoughts(sendable, notices, joins=joins, leads=leads)
    if target.quirks.message_rules or (traits & HAS_CALLS and not prompt.tools):
        from asides.history.fit_messages import fit_messages

        sendable = fit_messages(
            sendable,
            find_facts(target.dialect),
            target.quirks.message_rules,
            notices,
            calls_need_tools=any(fits_glob(target.model.lower(), glob) for glob in target.quirks.calls_need_tools),
        )
    checked = check_request(sendable, target, on_conflict, notices)
    if traits & HAS_THOUGHTS and not target.quirks.thoughts_while_off and target.thinks(checked.thinking) is False:
        checked = drop_open_thoughts(checked, notices)
    lost = target.quirks.missing_thinking
    if lost and traits & HAS_CALLS and find_facts(target.dialect).thinks_in_blocks and target.thinks(checked.thinking):
        checked = add_stand_ins(checked, lost, notices)
    effort = checked.thinking.effort
    if target.rule.effort_updates is not None or traits & CHANGES_EFFORT:
        from asides.history.effort_changes import place_changes

        checked, effort = place_changes(checked, target, on_conflict, notices)
    planned = Plan(checked, tuple(decisions), tuple(notices), effort)
    return _bind_seals(planned, prompt.messages) if target.rule.prefix_bound else planned


def _bind_seals(planned: Plan, history: tuple[Message, ...]) -> Plan:
    """Drop the thoughts whose seals are bound to another past, and report the prefix of the reply."""
    from asides.history.prefix import WHY_DROPPED, bind_prefix

    bound, prefix, broken = bind_prefix(planned.prompt)
    decisions = planned.decisions
    if broken:
        numbers = {number for number, message in enumerate(history) if message.prefix in broken}
        decisions = tuple(
            msgspec.structs.replace(decision, action="drop", why=WHY_DROPPED)
            if decision.message in numbers and decision.what == "thought"
            else decision
            for decision in decisions
        )
    return msgspec.structs.replace(planned, prompt=bound, decisions=decisions, prefix=prefix)


# --- conversations that the provider stores, calls and results --------------------------------------------------------


def _resume(
    messages: tuple[Message, ...], state: ProviderState, target: Target, decisions: list[Decision]
) -> tuple[tuple[Message, ...], ProviderState]:
    """Send only the messages after the turn that the provider continues from; send all if there is no such turn.

    If the named turn is not in the history, the last assistant turn counts as that turn: the messages after it are
    complete, tool results included.
    """
    turns = [number for number, message in enumerate(messages) if message.role == "assistant"]
    if turns and not target.quirks.stores:
        # Nothing is stored there, and the history is known here.
        return messages, msgspec.structs.replace(
            state, previous_response_id=None, conversation=None, resume=False, store=False
        )
    stored_at = {number: stored for number in turns if (stored := messages[number].stored) is not None}
    start: int | None = None
    if state.previous_response_id is not None:
        named = [number for number, stored in stored_at.items() if stored.id == state.previous_response_id]
        start = named[-1] if named else (turns[-1] if turns else None)
    elif state.conversation is not None:
        start = turns[-1] if turns else None
    elif state.resume:
        stored_here = [
            number
            for number, stored in stored_at.items()
            if stored.origin is None or is_same_host(stored.origin, target)
        ]
        if stored_here:
            start = stored_here[-1]
            state = msgspec.structs.replace(state, previous_response_id=stored_at[start].id)
    if start is None:
        return messages, state
    why = "the provider has stored it"
    decisions += [Decision(number, 0, "drop", "message", why) for number in range(start + 1)]
    return messages[start + 1 :], state


def _pair_calls(messages: tuple[Message, ...], notices: list[Notice], state: ProviderState) -> tuple[Message, ...]:
    """Give every call a result and every result its call, since providers refuse a history where one is missing."""
    if state == _NO_STATE:  # otherwise a result may belong to a call that the provider has stored, under its own id
        messages = make_ids_unique(messages)
    if is_paired(messages):
        return messages
    with_calls, orphans = drop_orphan_results(messages, continues=state.continues)
    notices += [Notice("orphan_tool_result", "a tool result without its call was left out")] * orphans
    paired = add_missing_results(with_calls)
    if dangling := len(paired) - len(with_calls):
        detail = f"{dangling} tool call(s) had no result; an error was sent instead"
        notices.append(Notice("dangling_tool_call", detail))
    return paired


# --- encoding ---------------------------------------------------------------------------------------------------------


def encode_plan(
    planned: Plan, target: Target, dialect: Dialect, *, on_conflict: OnConflict = "raise"
) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt.

    A picture or file that the dialect cannot carry raises `Unsupported` in the latest user message. An earlier one was
    fine when it was sent, perhaps to another model, and must not end the conversation: a note replaces it.
    """
    prompt = planned.prompt
    try:
        encoded = dialect.encode(prompt, target)
        return _drop_refused_fields(encoded, prompt, target) if target.quirks.refused_fields else encoded
    except Unsupported:
        from asides.history.fit_media import replace_media

        def is_unfit(part: Image | File) -> bool:
            small = part if part.data is None else msgspec.structs.replace(part, data=b"0")
            try:
                dialect.encode(Prompt((Message("user", (small,)),)), target)
            except Unsupported:
                return True
            return False

        last_user = max((place for place, message in enumerate(prompt.messages) if message.role == "user"), default=-1)
        fit = tuple(
            message if place == last_user and on_conflict == "raise" else replace_media(message, is_unfit)
            for place, message in enumerate(prompt.messages)
        )
        if fit == prompt.messages:
            raise
        request, notices = _drop_refused_fields(
            dialect.encode(msgspec.structs.replace(prompt, messages=fit), target), prompt, target
        )
        detail = f"{target.provider.name}:{target.model} takes no such files; a note replaces them"
        return request, (*notices, Notice("files_dropped", detail, "messages"))


def _drop_refused_fields(
    encoded: tuple[HttpRequest, tuple[Notice, ...]], prompt: Prompt, target: Target
) -> tuple[HttpRequest, tuple[Notice, ...]]:
    from asides.dialects.refused_fields import drop_fields

    request, notices = drop_fields(encoded[0], target.quirks.refused_fields, prompt.extra)
    return request, (*encoded[1], *notices)
