"""A rejected request → the smallest repair, each kind once: `heal(error, prompt, done) → Repair | None`. Pure.

What a key may not have is remembered, so that the next call does not run into it again. Not here: trying the same
request again (retry).
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.values.errors import BadRequest, ContextTooLong, NotFound, ProviderError, ReplayRejected
from asides.values.messages import Message, Prompt, Text, ToolCall
from asides.values.notices import Notice
from asides.values.thinking import Thought

RepairKind: TypeAlias = Literal["summary", "parent", "context", "reasoning"]


class Repair(msgspec.Struct, frozen=True):
    """Another prompt to try, and what was changed."""

    kind: RepairKind
    prompt: Prompt
    notice: Notice


# "Your organization must be verified to generate reasoning summaries", param reasoning.summary (openai, 2025-05).
_SUMMARY = re.compile(r"reasoning[._ ]summar", re.IGNORECASE)
_PARENT = re.compile(r"previous[_ ]response", re.IGNORECASE)
_REASONING = re.compile(
    r"encrypted[_ ]content|required (?:following|'?reasoning'?) item|of type '?reasoning'?|Items are not persisted",
    re.IGNORECASE,
)
_ITEM_ID = re.compile(r"\brs_[\w-]+")
_REMEMBERED = 1024


class Memory:
    """Which endpoints, with which keys, give no summaries. Holds no key, only a digest of one."""

    def __init__(self) -> None:
        self._without_summary: OrderedDict[tuple[str, str], None] = OrderedDict()

    def note(self, target: Target, key: Secret | None) -> None:
        """A summary was refused here."""
        self._without_summary[_who(target, key)] = None
        while len(self._without_summary) > _REMEMBERED:
            self._without_summary.popitem(last=False)

    def refuses_summary(self, target: Target, key: Secret | None) -> bool:
        """Whether a summary was refused here before."""
        return _who(target, key) in self._without_summary


MEMORY = Memory()


def _who(target: Target, key: Secret | None) -> tuple[str, str]:
    digest = "" if key is None else hashlib.blake2b(key.reveal().encode(), digest_size=16).hexdigest()
    return target.base_url, digest


def prepare(prompt: Prompt, target: Target, key: Secret | None, memory: Memory) -> tuple[Prompt, tuple[Notice, ...]]:
    """The prompt without what is known to be refused here."""
    if not _asks_summary(prompt) or not memory.refuses_summary(target, key):
        return prompt, ()
    return _without_summary(prompt), (_SUMMARY_NOTICE,)


def heal(error: ProviderError, prompt: Prompt, done: Collection[RepairKind]) -> Repair | None:
    """The repair for what a provider said of this prompt, unless it was tried; None where there is none."""
    told = f"{error.code or ''} {error} {error.body.decode('utf-8', 'replace')}"
    if isinstance(error, BadRequest) and _SUMMARY.search(told) and _asks_summary(prompt) and "summary" not in done:
        return Repair("summary", _without_summary(prompt), _SUMMARY_NOTICE)
    stateless = _stateless(prompt)
    if stateless is not None:
        if isinstance(error, (BadRequest, NotFound)) and _PARENT.search(told) and "parent" not in done:
            detail = "the provider does not have the turn to go on from; everything was sent instead"
            return Repair("parent", stateless, Notice("parent_rejected", detail, "previous_response_id"))
        if isinstance(error, ContextTooLong) and "context" not in done:
            detail = "with what the provider had stored it did not fit; what is known here was sent instead"
            return Repair("context", stateless, Notice("parent_dropped", detail, "previous_response_id"))
    rejected = isinstance(error, ReplayRejected) or (
        isinstance(error, (BadRequest, NotFound)) and _REASONING.search(told)
    )
    if rejected and "reasoning" not in done and (strip_thinking := _without_thoughts(prompt, told)) is not None:
        detail = "the provider does not take back thoughts of earlier turns; they were left out"
        return Repair("reasoning", strip_thinking, Notice("thoughts_rejected", detail, "messages"))
    return None


_SUMMARY_NOTICE = Notice(
    "summary_refused",
    "this organisation gets no summaries of reasoning; asked without one",
    "summary",
    "auto",
    "nothing",
)


def _asks_summary(prompt: Prompt) -> bool:
    thinking = prompt.thinking
    return thinking.show != "none" and (thinking.wanted or thinking.summary is not None)


def _without_summary(prompt: Prompt) -> Prompt:
    return msgspec.structs.replace(prompt, thinking=msgspec.structs.replace(prompt.thinking, show="none", summary=None))


def _stateless(prompt: Prompt) -> Prompt | None:
    """The prompt with all of its history; None where it goes on from nothing, or where there is no history to send."""
    state = prompt.state
    known_here = any(message.role == "assistant" for message in prompt.messages)
    if not known_here or not (state.continues or state.resume):
        return None
    cleared = msgspec.structs.replace(state, previous_response_id=None, conversation=None, resume=False)
    # What this turn is stored as, the next can go on from.
    store = True if state.store is None else state.store
    # Where the parent was, no turn is any more.
    messages = tuple(msgspec.structs.replace(message, stored=None) for message in prompt.messages)
    return msgspec.structs.replace(prompt, state=msgspec.structs.replace(cleared, store=store), messages=messages)


def _without_thoughts(prompt: Prompt, told: str) -> Prompt | None:
    """The prompt without the turns' thoughts that were named, or without any where none was; None where it has none."""
    named = set(_ITEM_ID.findall(told))
    turns = [number for number, message in enumerate(prompt.messages) if _thoughts(message) or _is_sealed(message)]
    chosen = [number for number in turns if named & _ids(prompt.messages[number])] or turns
    if not chosen:
        return None
    messages = tuple(
        _thoughtless(message) if number in chosen else message for number, message in enumerate(prompt.messages)
    )
    return msgspec.structs.replace(prompt, messages=messages)


def _thoughts(message: Message) -> list[Thought]:
    return [part for part in message.parts if isinstance(part, Thought)] if message.role == "assistant" else []


def _is_sealed(message: Message) -> bool:
    """Whether its words or calls carry what a thought left on them."""
    said = [part for part in message.parts if isinstance(part, (Text, ToolCall))]
    return message.role == "assistant" and any(seal.value for part in said for seal in part.seals)


def _ids(message: Message) -> set[str]:
    entries = [seal.entry for thought in _thoughts(message) for seal in thought.seals if seal.entry is not None]
    return {found for entry in entries for found in _ITEM_ID.findall(entry)}


def _thoughtless(message: Message) -> Message:
    """A turn without its thoughts; the ids of what followed them mean nothing any more."""
    kept = tuple(
        msgspec.structs.replace(part, seals=()) if isinstance(part, (Text, ToolCall)) else part
        for part in message.parts
        if not isinstance(part, Thought)
    )
    return msgspec.structs.replace(message, parts=kept)
