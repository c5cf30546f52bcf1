"""Decide which parts of the history go back to the model, and why: `plan(prompt, target) → Plan`. Pure.

Not here: the check of the request itself (check), its wire form (dialects), and the rules (providers).
"""

from __future__ import annotations

from operator import is_
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_facts, is_made_elsewhere, plain_row
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
from asides.history.redact import withhold_broken_turns
from asides.providers.provider import ReplayRule, Target
from asides.values.errors import Unsupported
from asides.values.learned import digest_refused
from asides.values.message_facts import (
    CHANGES_EFFORT,
    HAS_CALLS,
    HAS_MEDIA,
    HAS_RESULTS,
    HAS_THOUGHTS,
    HAS_WITHHELD,
    IS_BLANK,
    IS_BOUND,
    Context,
    MessageFacts,
    find_context,
)
from asides.values.messages import Message, Prompt, ProviderState, find_traits, read_facts
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolResult, UnknownPart
from asides.values.thinking import Effort, Origin, Seal, Thought

__all__ = ["Decision", "OnConflict", "Plan", "plan"]

_NO_STATE = ProviderState()
_MOST_HOSTS = 64


class Decision(msgspec.Struct, frozen=True):
    """The decision about one part of the history, and its reason."""

    message: int
    part: int
    action: Literal["keep", "drop", "convert"]
    what: str
    """The kind of part: "thought", "seal", "tool_call" …"""
    why: str
    since: str = ""
    source: str = ""


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
    messages = _replay(prompt, target, traits, decisions) if traits & IS_BOUND else prompt.messages
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

        sendable = fit_messages(sendable, find_facts(target.dialect), target.quirks.message_rules, notices)
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


# --- which parts go back ----------------------------------------------------------------------------------------------


def _replay(prompt: Prompt, target: Target, traits: int, decisions: list[Decision]) -> tuple[Message, ...]:
    messages = prompt.messages
    if traits & HAS_WITHHELD and any(message.role == "assistant" for message in messages):
        # A store redacts each message by itself, and earlier versions saved half of a turn's thoughts.
        messages = withhold_broken_turns(messages, rows=(target.provider,))
    replayer = _Replayer(target, never=prompt.thinking.replay == "never")
    # Thoughts after this message go back, by the rule.
    since, by_calls = len(messages), False
    match replayer.rule.when:
        case "never":
            pass
        case "all" | "sealed":
            since = -1
        case "tool_turns":
            by_calls = True
        case "since_last_user":
            places = range(len(messages) - 1, -1, -1)
            since = next((place for place in places if messages[place].role == "user"), -1)
    planned = list(messages)
    dropped: set[int] = set()
    for number, facts in enumerate(read_facts(messages)):
        if not facts.traits & IS_BOUND or messages[number].role != "assistant":
            continue
        replays = number > since or (by_calls and bool(facts.calls))
        form = facts.planned
        if form.context is not replayer.contexts[replays] or form.number != number:
            form = replayer.plan_message(messages[number], facts, number, replays)
        decisions += form.decisions
        if form.message is None:
            continue
        if form.message:
            planned[number] = form.message[0]
        else:
            dropped.add(number)
    if dropped:
        planned = [message for number, message in enumerate(planned) if number not in dropped]
    return tuple(planned)


class _PlannedMessage(msgspec.Struct, frozen=True, gc=False):
    """What goes back of a message, and the decisions about its parts."""

    context: Context
    number: int
    """The place of the message, which the decisions name."""
    decisions: tuple[Decision, ...]
    message: tuple[Message, ...] | None
    """The message that goes back; none if nothing does. None: the message itself, to which a form must not refer."""


class _Replayer:
    """Plans the messages of a history for one target and its replay rule. A message that was planned stays planned."""

    def __init__(self, target: Target, *, never: bool) -> None:
        self._target = target
        self.rule = target.provider.replay_rule(target.family or target.model)
        if never:
            self.rule = ReplayRule(when="never", source="Thinking(replay='never')")
        # The second one is for turns whose thoughts the rule sends back.
        self.contexts = tuple(find_context(target, "plan", never, replays) for replays in (False, True))
        self._hosts = self.contexts[0].known
        self._facts = find_facts(target.dialect)

    def plan_message(self, message: Message, facts: MessageFacts, number: int, replays: bool) -> _PlannedMessage:
        """Find the plan that the message had before its latest one, or make it."""
        form: _PlannedMessage = facts.planned_before
        if form.context is not self.contexts[replays] or form.number != number:
            decisions: list[Decision] = []
            parts = tuple(self._replay_parts(message, number, replays, decisions))
            whole = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
            changed = (msgspec.structs.replace(message, parts=parts),) if parts else ()
            form = _PlannedMessage(self.contexts[replays], number, tuple(decisions), None if whole else changed)
        facts.planned, facts.planned_before = form, facts.planned
        return form

    def _replay_parts(self, message: Message, number: int, replays: bool, decisions: list[Decision]) -> list[Part]:
        parts: list[Part] = []
        rule = self.rule
        for place, part in enumerate(message.parts):
            if isinstance(part, Thought):
                why = self._find_drop_reason(part, replays)
                action: Literal["keep", "drop"] = "drop" if why else "keep"
                reason = why or f"replay rule: {rule.when}"
                decisions.append(Decision(number, place, action, "thought", reason, rule.since, rule.source))
                if not why:
                    parts.append(part)
            elif isinstance(part, Refusal) and self._facts.refusals_as_text:
                why = "hosts of this dialect take no refusal back; its text is sent as the answer"
                decisions.append(Decision(number, place, "convert", "refusal", why))
                parts.append(Text(part.text))
            elif isinstance(part, (ServerTool, UnknownPart)) and not self._is_own(part.origin):
                decisions.append(Decision(number, place, "drop", "part", "another provider or endpoint made it"))
            elif isinstance(part, (ServerTool, UnknownPart)) and self._was_refused(part):
                decisions.append(Decision(number, place, "drop", "part", "it was refused here before"))
            elif not isinstance(part, (ToolResult, Refusal)) and part.seals:
                own = tuple(seal for seal in part.seals if self._is_own_seal(seal) and not self._was_refused(seal))
                if len(own) != len(part.seals):
                    why = "it was made by another model, endpoint or account, or was refused here before"
                    decisions.append(Decision(number, place, "drop", "seal", why))
                    part = msgspec.structs.replace(part, seals=own)
                parts.append(part)
            else:
                parts.append(part)
        return parts

    def _find_drop_reason(self, thought: Thought, replays: bool) -> str:
        rule, target = self.rule, self._target
        if thought.withheld:
            return "its text was not saved, or that of a thought beside it, and it cannot go back without"
        if not thought.can_replay:
            return "the reply broke off inside it, or the messages before it were changed"
        if target.refused and any(map(self._was_refused, thought.seals or (thought,))):
            return "it was refused here before"
        if thought.origin is not None:
            if not self._is_own(thought.origin):
                return "another provider or endpoint made it"
            if self._is_other_account(thought.origin):
                return "another account made it"
            if thought.origin.model not in ("", target.model) and not rule.other_models:
                return "another model made it"
        if any(not self._is_own_seal(seal) for seal in thought.seals):
            return "its seals were made by another model or account"
        if is_made_elsewhere(thought, target.dialect):
            return "it was made in another dialect, or did not come as a block"
        if rule.when == "sealed" and not any(seal.value for seal in thought.seals):
            return "replay rule: sealed"
        return "" if replays else f"replay rule: {rule.when}"

    def _is_own(self, origin: Origin | None) -> bool:
        # A part without an origin was written by the caller, who answers for it.
        if origin is None:
            return True
        # Most parts of a history come from few hosts.
        host = origin.provider, origin.endpoint
        if (is_own := self._hosts.get(host)) is None:
            if len(self._hosts) >= _MOST_HOSTS:
                self._hosts.clear()
            is_own = self._hosts[host] = is_same_host(origin, self._target)
        return is_own

    def _is_own_seal(self, seal: Seal) -> bool:
        # A seal without an origin came with an imported history; the caller answers for it (requirements, H6).
        origin = seal.origin
        if origin is None:
            return True
        is_own_model = origin.model in ("", self._target.model)
        return is_own_model and self._is_own(origin) and not self._is_other_account(origin)

    def _is_other_account(self, origin: Origin) -> bool:
        """Whether it is known to come from another account, where that counts."""
        target = self._target
        is_bound = target.rule.account_bound or target.quirks.seals_per_account
        return is_bound and bool(origin.account and target.account) and origin.account != target.account

    def _was_refused(self, token: Seal | Thought | ServerTool | UnknownPart) -> bool:
        refused = self._target.refused
        return bool(refused) and digest_token(token) in refused


def digest_token(token: Seal | Thought | ServerTool | UnknownPart) -> str:
    """The digest under which a refused seal is remembered, or a thought or another part that has none."""
    if isinstance(token, Seal):
        return digest_refused(token.value or token.entry or "")
    return digest_refused(token.text if isinstance(token, Thought) else token.json)


def is_same_host(origin: Origin, target: Target) -> bool:
    """Whether this target's host made something with this origin."""
    # Recorded bytes may name no provider, no model, or an address that depends on an account. An unknown origin counts
    # as the same host (requirements, H6).
    unknown = not origin.endpoint or "$" in origin.endpoint
    if origin.provider != target.origin.provider:
        return unknown and origin.provider == plain_row(target.dialect).name
    return unknown or _normalise_address(origin.endpoint) == _normalise_address(target.base_url)


def _normalise_address(url: str) -> tuple[str, str, int | None, str]:
    """The parts of an address without meaningless differences: case, a closing slash, the default port."""
    parts = urlsplit(url)
    port = parts.port if parts.port != {"https": 443, "http": 80}.get(parts.scheme) else None
    return parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/")


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
        return _drop_untaken(encoded, prompt, target) if target.quirks.untaken else encoded
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
        request, notices = _drop_untaken(
            dialect.encode(msgspec.structs.replace(prompt, messages=fit), target), prompt, target
        )
        detail = f"{target.provider.name}:{target.model} takes no such files; a note replaces them"
        return request, (*notices, Notice("files_dropped", detail, "messages"))


def _drop_untaken(
    encoded: tuple[HttpRequest, tuple[Notice, ...]], prompt: Prompt, target: Target
) -> tuple[HttpRequest, tuple[Notice, ...]]:
    from asides.dialects.untaken_fields import drop_fields

    request, notices = drop_fields(encoded[0], target.quirks.untaken, prompt.extra)
    return request, (*encoded[1], *notices)
