"""Decide which parts of earlier turns go back to a model, by its replay rule and by who made them. Pure.

Not here: everything else that a request needs (plan), and the rules (providers).
"""

from __future__ import annotations

from operator import is_
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_facts, is_made_elsewhere, plain_row
from asides.history.redact import withhold_broken_turns
from asides.providers.provider import ReplayRule, Target
from asides.values.learned import digest_refused
from asides.values.message_facts import (
    HAS_WITHHELD,
    IS_BOUND,
    Context,
    MessageFacts,
    find_context,
)
from asides.values.messages import Message, Prompt, read_facts
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolResult, UnknownPart
from asides.values.thinking import ENVELOPES, Origin, Seal, Thought

_MOST_HOSTS = 64

# Reasons why a part does not go back, which others ask for.
BY_RULE = "replay rule: "
"""The beginning of the reason where the replay rule decides; its `when` follows."""
NOT_SAVED = "its text was not saved, or that of a thought beside it, and it cannot go back without"
NOT_REPLAYABLE = "the reply broke off inside it, or the messages before it were changed"
OTHER_DIALECT = "it was made in another dialect, or did not come as a block"
OTHER_ACCOUNT = "another account made it"
OTHER_HOST = "another provider or endpoint made it"


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


def replay(prompt: Prompt, target: Target, traits: int, decisions: list[Decision]) -> tuple[Message, ...]:
    """Return the messages with the parts that go back, and add a decision for each part that may not."""
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
                reason = why or f"{BY_RULE}{rule.when}"
                decisions.append(Decision(number, place, action, "thought", reason, rule.since, rule.source))
                if not why:
                    parts.append(part)
            elif isinstance(part, Refusal) and self._facts.refusals_as_text:
                why = "hosts of this dialect take no refusal back; its text is sent as the answer"
                decisions.append(Decision(number, place, "convert", "refusal", why))
                parts.append(Text(part.text))
            elif isinstance(part, (ServerTool, UnknownPart)) and not self._is_own(part.origin):
                decisions.append(Decision(number, place, "drop", "part", OTHER_HOST))
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
            return NOT_SAVED
        if not thought.can_replay:
            return NOT_REPLAYABLE
        if target.refused and any(map(self._was_refused, thought.seals or (thought,))):
            return "it was refused here before"
        if thought.origin is not None:
            if not self._is_own(thought.origin):
                return OTHER_HOST
            if self._is_other_account(thought.origin):
                return OTHER_ACCOUNT
            if thought.origin.model not in ("", target.model) and not rule.other_models:
                return "another model made it"
        if any(not self._is_own_seal(seal) for seal in thought.seals):
            return "its seals were made by another model or account"
        if is_made_elsewhere(thought, target.dialect):
            return OTHER_DIALECT
        if rule.when == "sealed" and not any(seal.value for seal in thought.seals):
            return f"{BY_RULE}{rule.when}"
        return "" if replays else f"{BY_RULE}{rule.when}"

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
        origin = seal.origin
        if seal.value.startswith(ENVELOPES) and self._target.base_url == self._target.provider.base_url:
            return False  # it is for the relay that made it, which is no provider's own address
        # A seal without an origin came with an imported history; the caller answers for it (requirements, H6).
        if origin is None:
            return True
        is_own_model = origin.model in ("", self._target.model)
        return is_own_model and self._is_own(origin) and not self._is_other_account(origin)

    def _is_other_account(self, origin: Origin) -> bool:
        """Whether it is known to come from another account, where that counts."""
        own = self._target.account if self._target.facts.account_bound else ""
        return bool(own and origin.account) and origin.account != own

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
