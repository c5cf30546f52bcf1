"""Decide which parts of earlier turns go back to a model. Pure.

`replay` decides by the model's replay rule and by the origin of a part. `fit_thoughts`, `drop_open_thoughts` and
`bind_prefix` leave out thoughts that would be refused where they are, though their seals are valid; `add_stand_ins`
replaces lost ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_facts, is_made_elsewhere, plain_row
from asides.dialects.verbatim import find_source
from asides.history.redact import withhold_broken_turns
from asides.history.turns import find_last_run, find_model_runs, find_question
from asides.providers.detail_formats import fits_format
from asides.providers.provider import ReplayRule, Target
from asides.values.learned import digest_refused
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Commentary, Part, Refusal, ServerTool, Text, ToolCall, UnknownPart
from asides.values.thinking import ENVELOPES, SAVED_THOUGHT_FIELDS, Origin, Seal, Thought
from asides.values.traits import HAS_WITHHELD, has_thoughts

# Reasons why a part is not sent back, also used elsewhere.
BY_RULE = "replay rule: "
"""The start of the reason if the replay rule decides; its `when` follows."""
NOT_SAVED = "its text, or that of a thought next to it, was not saved, and it cannot be sent back without"
NOT_REPLAYABLE = "the reply broke off inside it, or the messages before it were changed"
OTHER_DIALECT = "it was made in another dialect, or did not come as a block"
OTHER_ACCOUNT = "another account made it"
NO_ORIGIN = "it is not known which provider made it"
OTHER_HOST = "another provider or endpoint made it"
OTHER_FORMAT = "its reasoning_details are in the format of another maker's models"
OTHER_PREFIX = "the messages, the tools or the system prompt before it have changed, and its seal is bound to them"
REFUSAL_AS_TEXT = "hosts of this dialect take no refusal back; its text is sent as the answer"
NOT_LED = "a turn that does not begin with its thinking goes back without it"
NOT_THINKING = "a request that does not think cannot hold the thoughts of the current turn"

UNKNOWN_HOST = Origin("unknown", "", "")
"""The origin of a thought of unknown provider."""

_DIGEST_SIZE = 12
EMPTY_THOUGHT = "."
"""Stand-in for lost thinking; an empty block would be ignored."""


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
            since = find_question(messages)
    changed: dict[int, Message] = {}
    dropped: set[int] = set()
    for number, message in enumerate(messages):
        if message.role != "assistant":
            continue
        replays = number > since or (by_calls and bool(message.tool_calls))
        parts = replayer.replay_parts(message, number, replays, decisions)
        if len(parts) == len(message.parts) and all(map(is_, parts, message.parts)):
            continue
        if parts:
            changed[number] = msgspec.structs.replace(message, parts=tuple(parts))
        else:
            dropped.add(number)
    if not changed and not dropped:
        return messages
    kept = (number for number in range(len(messages)) if number not in dropped)
    return tuple(changed.get(number, messages[number]) for number in kept)


class _Replayer:
    """Decides about the parts of messages, for one target and its replay rule."""

    def __init__(self, target: Target, *, never: bool) -> None:
        self._target = target
        self.rule = target.provider.replay_rule(target.family or target.model)
        if never:
            self.rule = ReplayRule(when="never", source="Thinking(replay='never')")
        self._hosts: dict[tuple[str, str], bool] = {}
        self._facts = find_facts(target.dialect)

    def replay_parts(self, message: Message, number: int, replays: bool, decisions: list[Decision]) -> list[Part]:
        """Return the parts of a message that go back, and add the decisions about them."""
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
            elif isinstance(part, Refusal) and self._facts.refusals_as_text and not self._takes_refusals(message):
                decisions.append(Decision(number, place, "convert", "refusal", REFUSAL_AS_TEXT))
                is_first = not any(isinstance(each, Text) for each in parts)
                parts.append(Text(part.text if is_first else f"\n\n{part.text}"))
            elif isinstance(part, (ServerTool, UnknownPart)) and not self._is_own(part.origin):
                decisions.append(Decision(number, place, "drop", "part", OTHER_HOST))
            elif isinstance(part, (ServerTool, UnknownPart)) and self._was_refused(part):
                decisions.append(Decision(number, place, "drop", "part", "it was refused here before"))
            elif part.seals:
                own = tuple(seal for seal in part.seals if self._is_own_seal(seal) and not self._was_refused(seal))
                if len(own) != len(part.seals):
                    why = "it was made by another model, endpoint or account, or was refused here before"
                    decisions.append(Decision(number, place, "drop", "seal", why))
                    part = msgspec.structs.replace(part, seals=own)
                parts.append(part)
            else:
                parts.append(part)
        return parts

    def _takes_refusals(self, message: Message) -> bool:
        """Whether the host accepts the refusals of a message: its row says so, or the caller wrote them."""
        quirks = self._target.quirks
        if quirks.returns_refusals:
            return True
        is_accepted = not quirks.message_fields or "refusal" in quirks.message_fields
        return is_accepted and find_source(message, self._target.dialect) is not None

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
                return NO_ORIGIN if thought.origin == UNKNOWN_HOST else OTHER_HOST
            if self._is_other_account(thought.origin):
                return OTHER_ACCOUNT
            if thought.origin.model not in ("", target.model) and not rule.other_models:
                return "another model made it"
        if any(not self._is_own_seal(seal) for seal in thought.seals):
            return "its seals were made by another model or account"
        if thought.origin is None and any(not self._reads(seal) for seal in thought.seals):
            return OTHER_FORMAT
        if is_made_elsewhere(thought, target.dialect):
            return OTHER_DIALECT
        if rule.when == "sealed" and not any(seal.value for seal in thought.seals):
            return f"{BY_RULE}{rule.when}"
        return "" if replays else f"{BY_RULE}{rule.when}"

    def _is_own(self, origin: Origin | None) -> bool:
        # No origin: the caller supplied this part; trust it.
        if origin is None:
            return True
        # Most parts of a history come from few hosts.
        host = origin.provider, origin.endpoint
        if (is_own := self._hosts.get(host)) is None:
            is_own = self._hosts[host] = is_same_host(origin, self._target)
        return is_own

    def _is_own_seal(self, seal: Seal) -> bool:
        origin = seal.origin
        if seal.value.startswith(ENVELOPES) and self._target.base_url == self._target.provider.base_url:
            return False  # only the relay that made it can read it, and this is the address of a provider
        # No origin: the seal came with an imported history; trust it (requirements, H6).
        if origin is None:
            return True
        is_own_model = origin.model in ("", self._target.model)
        return is_own_model and self._is_own(origin) and not self._is_other_account(origin)

    def _reads(self, seal: Seal) -> bool:
        """Whether the target reads the format that an entry of `reasoning_details` names: its only known origin."""
        if seal.entry is None or not seal.kind.startswith("reasoning_details"):
            return True
        try:
            entry = msgspec.json.decode(seal.entry)
        except msgspec.DecodeError:
            return True
        name = entry.get("format") if isinstance(entry, dict) else None
        return not isinstance(name, str) or fits_format(name, self._target.family or self._target.model)

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


# --- thoughts that are refused where they are -------------------------------------------------------------------------


def fit_thoughts(prompt: Prompt, notices: list[Notice], *, joins: bool, leads: bool) -> Prompt:
    """Drop thoughts that would be refused at their position. `joins`: assistant messages in a row are one message.
    `leads`: a message with thoughts begins with one.
    """
    if joins:
        detail = "a turn follows another one directly, which is one message here; its thoughts were left out"
        prompt = _drop_from(prompt, _find_joined(prompt.messages), detail, notices)
    if leads:
        prompt = _drop_from(prompt, _find_without_lead(prompt.messages), NOT_LED, notices)
    return prompt


def drop_open_thoughts(prompt: Prompt, notices: list[Notice]) -> Prompt:
    """Drop the thoughts of the model's last turn, if nothing but results follows it: a request that does not think
    cannot hold them there.
    """
    return _drop_from(prompt, find_last_run(prompt.messages), NOT_THINKING, notices)


def add_stand_ins(prompt: Prompt, target: Target, notices: list[Notice]) -> Prompt:
    """Add a thought to each turn that calls tools and has lost its own, for hosts that want one back."""
    text = learned = target.restrictions.missing_thinking
    if text is None and target.facts.empty_thinking and target.thinks(prompt.thinking) is not False:
        text = EMPTY_THOUGHT
    if not text:
        return prompt
    messages = tuple(
        msgspec.structs.replace(message, parts=(Thought(text, source="block"), *message.parts))
        if message.tool_calls and not has_thoughts(message)
        else message
        for message in prompt.messages
    )
    if all(map(is_, messages, prompt.messages)):
        return prompt
    if learned is not None:
        # Hosts whose row demands it always get it, without a notice.
        notices.append(Notice("thinking_stand_in", "a stand-in was sent for thinking that is gone", "messages"))
    return msgspec.structs.replace(prompt, messages=messages)


def _find_joined(messages: Sequence[Message]) -> Iterator[int]:
    """Find the messages that follow another one with thoughts directly. A provider refuses thoughts among those of
    another reply: "cannot be modified". Thoughts that nothing follows do not count: they cannot go back at all.
    """
    for run in find_model_runs(messages):
        has_first = False
        for number in run:
            if not has_thoughts(messages[number]):
                continue
            if has_first or all(isinstance(part, Thought) or _is_blank(part) for part in messages[number].parts):
                yield number
            else:
                has_first = True


def _find_without_lead(messages: Sequence[Message]) -> Iterator[int]:
    """Find the messages whose run does not begin with a thought: a run is sent as one message."""
    for run in find_model_runs(messages):
        leads: bool | None = None
        for number in run:
            sent = (p for p in messages[number].parts if not isinstance(p, Refusal) and not _is_blank(p))
            if leads is None and (first := next(sent, None)) is not None:
                leads = isinstance(first, Thought)
            if leads is False:
                yield number


def _is_blank(part: object) -> bool:
    return isinstance(part, (Text, Commentary)) and not part.text.strip()


def _drop_from(prompt: Prompt, numbers: Iterable[int], detail: str, notices: list[Notice]) -> Prompt:
    messages = list(prompt.messages)
    for number in numbers:
        parts = tuple(part for part in messages[number].parts if not isinstance(part, Thought))
        if len(parts) < len(messages[number].parts):
            messages[number] = msgspec.structs.replace(messages[number], parts=parts)
    if all(map(is_, messages, prompt.messages)):
        return prompt
    notices.append(Notice("reasoning_not_sent", detail, "messages"))
    return _keep_filled(prompt, messages)


def _keep_filled(prompt: Prompt, messages: Sequence[Message]) -> Prompt:
    """The prompt with these messages, without assistant messages that had only thinking."""
    kept = tuple(message for message in messages if message.parts or message.role != "assistant")
    return msgspec.structs.replace(prompt, messages=kept)


# --- seals that are bound to all that was sent before them ------------------------------------------------------------


def bind_prefix(prompt: Prompt) -> tuple[Prompt, str, frozenset[str]]:
    """Drop the thoughts whose prefix has changed. Returns the prompt, the digest of all that is sent, and the prefixes
    of the messages that lost their thoughts.

    Each reply of such a model carries the digest of what it followed (`Message.prefix`). A thought goes back only after
    exactly the same system prompt, tools and messages. Without a digest, as in an imported history, it goes back: the
    provider decides.

    A message that loses its thoughts changes the prefix of all later ones. So those made after it lose theirs too, but
    not those that were made after the loss.
    """
    front = [prompt.system, [msgspec.structs.replace(tool, cache=False) for tool in prompt.tools]]
    digest = hashlib.blake2b(msgspec.json.encode(front, enc_hook=repr), digest_size=_DIGEST_SIZE).digest()
    bound = list(prompt.messages)
    broken: set[str] = set()
    for place, message in enumerate(bound):
        if message.prefix and message.prefix != digest.hex() and _has_seals(message):
            broken.add(message.prefix)
            bound[place] = message = _drop_bound_thoughts(message)
        digest = _extend_digest(digest, message)
    if broken:
        prompt = _keep_filled(prompt, bound)
    return prompt, digest.hex(), frozenset(broken)


def _extend_digest(digest: bytes, message: Message) -> bytes:
    """The digest of the prefix and this message: its content, without cache breakpoints."""
    said: tuple[object, ...] = (message.role, [_get_said(part) for part in message.parts])
    if message.role == "system" and message.effort is not None:
        said = (*said, message.effort)  # a message that changes the effort
    return hashlib.blake2b(digest + msgspec.json.encode(said, enc_hook=repr), digest_size=_DIGEST_SIZE).digest()


def _get_said(part: Part) -> object:
    if isinstance(part, Thought):
        # Digests are saved, so a thought is written as it was before `seconds` was a field.
        return {"type": "reasoning"} | {name: getattr(part, name) for name in SAVED_THOUGHT_FIELDS}
    return msgspec.structs.replace(part, cache=False) if getattr(part, "cache", False) else part


def _has_seals(message: Message) -> bool:
    return any(part.seals for part in message.parts if isinstance(part, (Thought, Text, Commentary, ToolCall)))


def _drop_bound_thoughts(message: Message) -> Message:
    """The message without its thoughts. The seals of other parts belong to them."""
    parts: Sequence[Part] = [
        msgspec.structs.replace(part, seals=()) if isinstance(part, ToolCall) and part.seals else part
        for part in message.parts
        if not isinstance(part, Thought)
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))
