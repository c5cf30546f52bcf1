"""Plan a request: which parts of the history go back to the model, in which form, and why. Pure.

`plan(prompt, target)` runs `PASSES` in order. Each takes a `Draft` and returns the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TypeAlias

import msgspec

from asides.dialects import find_facts
from asides.dialects.dialect import Dialect, HttpRequest
from asides.history.check import OnConflict, check_request
from asides.history.effort_changes import place_changes
from asides.history.fit import (
    add_called_tools,
    apply_rules,
    drop_blank_messages,
    drop_unpaired_server_tools,
    replace_media,
    replace_refused,
    tell_calls,
)
from asides.history.redact import drop_model_source
from asides.history.replay import (
    OTHER_PREFIX,
    REFUSAL_AS_TEXT,
    Decision,
    add_stand_ins,
    bind_prefix,
    drop_open_thoughts,
    fit_thoughts,
    is_same_host,
    replay,
)
from asides.history.turns import (
    add_missing_results,
    drop_orphan_results,
    find_question,
    is_paired,
    make_ids_unique,
    move_late_results,
    name_calls,
)
from asides.providers.provider import Target
from asides.providers.quirks import fits_glob
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.parts import File, Image
from asides.values.thinking import Effort
from asides.values.traits import (
    CHANGES_EFFORT,
    HAS_CALLS,
    HAS_MEDIA,
    HAS_RESULTS,
    HAS_THOUGHTS,
    IS_BLANK,
    IS_BOUND,
    find_traits,
)

__all__ = ["PASSES", "Decision", "Draft", "Finding", "OnConflict", "Pass", "Plan", "encode_plan", "plan"]

Finding: TypeAlias = Decision | Notice
"""What a pass reports: a decision about one part of the history, or a notice about the request."""

_NO_STATE = ProviderState()


class Draft(msgspec.Struct, frozen=True):
    """A request between two passes."""

    prompt: Prompt
    target: Target
    on_conflict: OnConflict
    given: tuple[Message, ...]
    """The caller's messages; decisions refer to their indexes."""
    traits: int
    """Traits that the messages may have. Most passes apply only to histories with a certain trait."""
    findings: tuple[Finding, ...] = ()
    """The findings so far."""
    effort: Effort | None = None
    prefix: str = ""

    def change(self, prompt: Prompt, found: Sequence[Finding] = ()) -> Draft:
        """The draft with this prompt and more findings; the draft itself if neither changes."""
        if prompt is self.prompt and not found:
            return self
        return msgspec.structs.replace(self, prompt=prompt, findings=(*self.findings, *found))

    def change_messages(self, messages: tuple[Message, ...], found: Sequence[Finding] = ()) -> Draft:
        """Like `change`, with these messages."""
        prompt, before = self.prompt, self.prompt.messages
        if messages is not before and not (len(messages) == len(before) and all(map(is_, messages, before))):
            prompt = msgspec.structs.replace(prompt, messages=messages)
        return self.change(prompt, found)


class Pass(msgspec.Struct, frozen=True):
    """One step of the plan."""

    name: str
    reason: str
    """Why requests need it, in one line. `explain` prints it if the pass changed something."""
    run: Callable[[Draft], Draft]


class Plan(msgspec.Struct, frozen=True):
    """A prompt that its target accepts, with the decisions and notices that led to it."""

    prompt: Prompt
    decisions: tuple[Decision, ...] = ()
    notices: tuple[Notice, ...] = ()
    effort: Effort | None = None
    """The effort in force for the answer. It may be set by a message of the prompt, not by its settings."""
    prefix: str = ""
    """The digest of everything that is sent, where the model binds its seals to that."""
    passes: tuple[Pass, ...] = ()
    """The passes that changed the prompt."""


def plan(prompt: Prompt, target: Target, *, on_conflict: OnConflict = "raise") -> Plan:
    """Decide which parts of the history go back, and check the request against the model's rules. Nothing is sent."""
    draft = Draft(prompt, target, on_conflict, prompt.messages, find_traits(prompt.messages))
    passes: list[Pass] = []
    for each in PASSES:
        after = each.run(draft)
        if after.prompt is not draft.prompt:
            passes.append(each)
        draft = after
    decisions, notices = list[Decision](), list[Notice]()
    for finding in draft.findings:
        if isinstance(finding, Decision):
            decisions.append(finding)
        else:
            notices.append(finding)
    return Plan(draft.prompt, tuple(decisions), tuple(notices), draft.effort, draft.prefix, tuple(passes))


# --- the history ------------------------------------------------------------------------------------------------------


def _replay(draft: Draft) -> Draft:
    if draft.prompt.thinking.replay == "never":
        draft = draft.change_messages(tuple(map(drop_model_source, draft.prompt.messages)))
    if not draft.traits & IS_BOUND:
        return draft
    decisions: list[Decision] = []
    messages = replay(draft.prompt, draft.target, draft.traits, decisions)
    found: list[Finding] = list(decisions)
    if any(decision.why == REFUSAL_AS_TEXT for decision in decisions):
        found.append(Notice("refusal_as_text", REFUSAL_AS_TEXT, "messages"))
    return draft.change_messages(messages, found)


def _make_ids_unique(draft: Draft) -> Draft:
    # A result may belong to a call that the provider has stored, under its own id: see _resume.
    if not draft.traits & HAS_CALLS:
        return draft
    draft = draft.change_messages(name_calls(draft.prompt.messages))
    if draft.prompt.state != _NO_STATE:
        return draft
    return draft.change_messages(make_ids_unique(draft.prompt.messages))


def _pair_calls(draft: Draft) -> Draft:
    messages = draft.prompt.messages
    facts = find_facts(draft.target.dialect)
    joins = facts.joins_turns or facts.pairs_by_turn
    if not draft.traits & (HAS_CALLS | HAS_RESULTS) or is_paired(messages, joins=joins):
        return draft
    moved = messages if joins else move_late_results(messages, across_turns=False)
    with_calls, orphans = drop_orphan_results(moved, continues=draft.prompt.state.continues, joins=joins)
    notices = [Notice("orphan_tool_result", "a tool result without its call was left out")] * orphans
    if moved is not messages:
        notices.append(Notice("results_moved", "tool results were put behind their calls", "messages"))
    paired = add_missing_results(with_calls, joins=joins)
    if dangling := len(paired) - len(with_calls):
        detail = f"{dangling} tool call(s) had no result; an error was sent instead"
        notices.append(Notice("dangling_tool_call", detail))
    # Without its results, a message may be blank.
    draft = msgspec.structs.replace(draft, traits=draft.traits | find_traits(paired))
    return draft.change_messages(paired, notices)


def _pair_server_tools(draft: Draft) -> Draft:
    if not draft.traits & IS_BOUND or draft.target.dialect != "anthropic":
        return draft
    notices: list[Notice] = []
    return draft.change_messages(drop_unpaired_server_tools(draft.prompt.messages, notices), notices)


def _resume(draft: Draft) -> Draft:
    state = draft.prompt.state
    if state == _NO_STATE:
        return draft
    decisions: list[Decision] = []
    messages, sent = _find_unstored(draft.prompt.messages, state, draft.target, decisions)
    messages = make_ids_unique(messages)
    if messages is draft.prompt.messages and sent == state:
        return draft
    return draft.change(msgspec.structs.replace(draft.prompt, messages=messages, state=sent), decisions)


def _find_unstored(
    messages: tuple[Message, ...], state: ProviderState, target: Target, decisions: list[Decision]
) -> tuple[tuple[Message, ...], ProviderState]:
    """Send only the messages after the turn that the provider continues from; send all if there is no such turn.

    If the named turn is not in the history, the last assistant turn counts as that turn: the messages after it are
    complete, tool results included.
    """
    turns = [number for number, message in enumerate(messages) if message.role == "assistant"]
    if turns and not target.restrictions.stores:
        # The target stores nothing, but the history is known here.
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


def _drop_blanks(draft: Draft) -> Draft:
    if not draft.traits & IS_BLANK:
        return draft
    dialect = draft.target.dialect
    if draft.prompt.is_from(dialect) and find_facts(dialect).blank_texts:
        return draft
    notices: list[Notice] = []
    return draft.change_messages(drop_blank_messages(draft.prompt.messages, notices), notices)


def _replace_media(draft: Draft) -> Draft:
    facts = draft.target.facts
    if not draft.traits & HAS_MEDIA or (facts.pictures and not facts.refuses_files):
        return draft
    notices: list[Notice] = []
    return draft.change_messages(
        replace_refused(draft.prompt.messages, draft.target, draft.on_conflict, notices), notices
    )


def _place_thoughts(draft: Draft) -> Draft:
    joins, leads = find_facts(draft.target.dialect).joins_turns, draft.target.rule.begins_with_thinking
    if not draft.traits & HAS_THOUGHTS or not (joins or leads):
        return draft
    notices: list[Notice] = []
    return draft.change(fit_thoughts(draft.prompt, notices, joins=joins, leads=leads), notices)


def _tell_calls(draft: Draft) -> Draft:
    if draft.target.rule.tools is True or not draft.traits & (HAS_CALLS | HAS_RESULTS):
        return draft
    notices: list[Notice] = []
    return draft.change(tell_calls(draft.prompt, draft.target, notices), notices)


def _add_called_tools(draft: Draft) -> Draft:
    prompt, target = draft.prompt, draft.target
    if not draft.traits & HAS_CALLS or prompt.tools:
        return draft
    facts, field = find_facts(target.dialect), ""
    if facts.tools_field:
        field = facts.tools_field
    elif any(fits_glob(target.model.lower(), glob) for glob in target.restrictions.calls_need_tools):
        field = "tools"
    if not field or field in prompt.extra:
        return draft
    notices: list[Notice] = []
    return draft.change(add_called_tools(prompt, facts, notices), notices)


def _apply_rules(draft: Draft) -> Draft:
    target = draft.target
    rules = (*target.facts.message_rules, *target.restrictions.message_rules)
    if not rules:
        return draft
    notices: list[Notice] = []
    return draft.change(apply_rules(draft.prompt, rules, notices), notices)


# --- settings, and what depends on them -------------------------------------------------------------------------------


def _check_settings(draft: Draft) -> Draft:
    notices: list[Notice] = []
    return draft.change(check_request(draft.prompt, draft.target, draft.on_conflict, notices), notices)


def _drop_open_thoughts(draft: Draft) -> Draft:
    prompt, target = draft.prompt, draft.target
    if not draft.traits & HAS_THOUGHTS or target.thinks(prompt.thinking) is not False:
        return draft
    if not target.refuses_thoughts_while_off:
        return draft
    notices: list[Notice] = []
    return draft.change(drop_open_thoughts(prompt, notices), notices)


def _add_stand_ins(draft: Draft) -> Draft:
    if not draft.traits & HAS_CALLS or not find_facts(draft.target.dialect).thinks_in_blocks:
        return draft
    notices: list[Notice] = []
    return draft.change(add_stand_ins(draft.prompt, draft.target, notices), notices)


def _place_effort(draft: Draft) -> Draft:
    prompt, target = draft.prompt, draft.target
    if target.rule.effort_updates is None and not draft.traits & CHANGES_EFFORT:
        return msgspec.structs.replace(draft, effort=prompt.thinking.effort)
    notices: list[Notice] = []
    prompt, effort = place_changes(prompt, target, draft.on_conflict, notices)
    return msgspec.structs.replace(draft.change(prompt, notices), effort=effort)


def _bind_seals(draft: Draft) -> Draft:
    if not draft.target.rule.prefix_bound:
        return draft
    bound, prefix, broken = bind_prefix(draft.prompt)
    findings = draft.findings
    if broken:
        findings = tuple(
            msgspec.structs.replace(each, action="drop", why=OTHER_PREFIX)
            if isinstance(each, Decision) and each.what == "thought" and draft.given[each.message].prefix in broken
            else each
            for each in findings
        )
    return msgspec.structs.replace(draft, prompt=bound, prefix=prefix, findings=findings)


PASSES: tuple[Pass, ...] = (
    Pass("replay", "thinking and seals go back only to their maker, and by the model's replay rule", _replay),
    Pass("unique_ids", "providers refuse two calls with one id, and one without a name", _make_ids_unique),
    Pass("pair_calls", "providers refuse a call without a result, and a result without a call", _pair_calls),
    Pass("pair_server_tools", "a call of the provider's tools goes back only with its result", _pair_server_tools),
    Pass("resume", "what the provider has stored is not sent again", _resume),
    Pass("drop_blanks", "some hosts refuse empty user messages", _drop_blanks),
    Pass("replace_media", "the model refuses pictures or files of this kind", _replace_media),
    Pass("place_thoughts", "thinking is refused behind that of another reply, or behind text", _place_thoughts),
    Pass("tell_calls", "the model has no tools: they are left out, and calls are sent as text", _tell_calls),
    Pass("add_called_tools", "a history with calls is refused without its tools", _add_called_tools),
    Pass("message_rules", "the host demands another order or form of messages", _apply_rules),
    Pass("check_settings", "the settings have to agree with the model's rule", _check_settings),
    Pass("drop_open_thoughts", "thinking of the current turn is refused while thinking is off", _drop_open_thoughts),
    Pass("stand_ins", "the host refuses turns with calls that have lost their thinking", _add_stand_ins),
    Pass("effort_changes", "a new effort is a message of its own, so that the prompt cache stays warm", _place_effort),
    Pass("bind_seals", "the model accepts its seals only after the messages that they were made for", _bind_seals),
)
"""The steps of a plan, in order."""


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

        def is_unfit(part: Image | File) -> bool:
            small = part if part.data is None else msgspec.structs.replace(part, data=b"0")
            try:
                dialect.encode(Prompt((Message("user", (small,)),)), target)
            except Unsupported:
                return True
            return False

        question = find_question(prompt.messages)
        fit = tuple(
            message if place == question and on_conflict == "raise" else replace_media(message, is_unfit)
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
