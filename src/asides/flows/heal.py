"""Repair a rejected request with the smallest change: `heal(error, prompt, done) → Repair | None`. Each kind once.

Refused summaries are remembered, so that later calls do not ask for one. Not here: trying the same request again
(retry).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.values.errors import BadRequest, ContextTooLong, NotFound, ProviderError, ReplayRejected
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Thought

RepairKind: TypeAlias = Literal["summary", "parent", "context", "reasoning"]


class Repair(msgspec.Struct, frozen=True):
    """Another prompt to try, and a notice of the change."""

    kind: RepairKind
    prompt: Prompt
    notice: Notice


# Patterns are text: `re` compiles and keeps one when it is first used, which is rarely.
# "Your organization must be verified to generate reasoning summaries", param reasoning.summary (openai, 2025-05).
_SUMMARY = r"(?i)reasoning[._ ]summar"
_PARENT = r"(?i)previous[_ ]response"
_REASONING = (
    r"(?i)encrypted[_ ]content|required (?:following|'?reasoning'?) item|of type '?reasoning'?|Items are not persisted"
    r"|redacted_thinking|thinking.{0,40}blocks? .{0,60}cannot be modified"
)
_ITEM_ID = r"\brs_[\w-]+"
_MOST_REMEMBERED = 1024
_SUMMARY_NOTICE = Notice(
    "summary_refused",
    "this organisation gets no summaries of reasoning; asked without one",
    "summary",
    "auto",
    "nothing",
)


def heal(error: ProviderError, prompt: Prompt, done: Collection[RepairKind]) -> Repair | None:
    """Find the repair of a prompt that a provider rejected; None when none is left to try."""
    text = f"{error.code or ''} {error} {error.body.decode('utf-8', 'replace')}"
    if isinstance(error, BadRequest) and re.search(_SUMMARY, text) and _asks_summary(prompt) and "summary" not in done:
        return Repair("summary", _drop_summary(prompt), _SUMMARY_NOTICE)
    whole = _send_whole_history(prompt)
    if whole is not None:
        if isinstance(error, (BadRequest, NotFound)) and re.search(_PARENT, text) and "parent" not in done:
            detail = "the provider does not have the turn to continue from; everything was sent instead"
            return Repair("parent", whole, Notice("parent_rejected", detail, "previous_response_id"))
        if isinstance(error, ContextTooLong) and "context" not in done:
            detail = "the stored conversation did not fit into the context; the history known here was sent instead"
            return Repair("context", whole, Notice("parent_dropped", detail, "previous_response_id"))
    rejected = isinstance(error, ReplayRejected) or (
        isinstance(error, (BadRequest, NotFound)) and re.search(_REASONING, text)
    )
    if rejected and "reasoning" not in done and (stripped := _drop_thoughts(prompt, text)) is not None:
        detail = "the provider rejects thoughts of earlier turns; they were left out"
        return Repair("reasoning", stripped, Notice("thoughts_rejected", detail, "messages"))
    return None


# --- summaries -----------------------------------------------------------------------------------------------------

REFUSED_SUMMARIES: OrderedDict[tuple[str, str], None] = OrderedDict()
"""The addresses and keys that get no summaries of reasoning. It holds digests of keys, never a key."""


def remember_refusal(target: Target, key: Secret | None) -> None:
    """Remember that a summary was refused here."""
    REFUSED_SUMMARIES[_identify(target, key)] = None
    while len(REFUSED_SUMMARIES) > _MOST_REMEMBERED:
        REFUSED_SUMMARIES.popitem(last=False)


def drop_refused_summary(prompt: Prompt, target: Target, key: Secret | None) -> tuple[Prompt, tuple[Notice, ...]]:
    """Drop the request for a summary, if this address and key were refused one before."""
    if not _asks_summary(prompt) or _identify(target, key) not in REFUSED_SUMMARIES:
        return prompt, ()
    return _drop_summary(prompt), (_SUMMARY_NOTICE,)


def _identify(target: Target, key: Secret | None) -> tuple[str, str]:
    return target.base_url, "" if key is None else key.account


def _asks_summary(prompt: Prompt) -> bool:
    thinking = prompt.thinking
    return thinking.show != "none" and (thinking.wanted or thinking.summary is not None)


def _drop_summary(prompt: Prompt) -> Prompt:
    return msgspec.structs.replace(prompt, thinking=msgspec.structs.replace(prompt.thinking, show="none", summary=None))


# --- stored parents and thoughts -------------------------------------------------------------------------------------


def _send_whole_history(prompt: Prompt) -> Prompt | None:
    """The prompt with its whole history instead of a stored parent; None where it has no parent or no history."""
    state = prompt.state
    has_history = any(message.role == "assistant" for message in prompt.messages)
    if not has_history or not (state.continues or state.resume):
        return None
    cleared = msgspec.structs.replace(state, previous_response_id=None, conversation=None, resume=False)
    # The next turn can continue from this one once it is stored.
    store = True if state.store is None else state.store
    # Earlier turns are not stored where the parent was.
    messages = tuple(msgspec.structs.replace(message, stored=None) for message in prompt.messages)
    return msgspec.structs.replace(prompt, state=msgspec.structs.replace(cleared, store=store), messages=messages)


def _drop_thoughts(prompt: Prompt, error_text: str) -> Prompt | None:
    """Drop the thoughts that the error names, or else all thoughts; None when the prompt has none."""
    named = set(re.findall(_ITEM_ID, error_text))
    turns = [number for number, message in enumerate(prompt.messages) if _find_thoughts(message) or _is_sealed(message)]
    chosen = {number for number in turns if named & _find_item_ids(prompt.messages[number])} or set(turns)
    if not chosen:
        return None
    messages = tuple(
        _drop_turn_thoughts(message) if number in chosen else message for number, message in enumerate(prompt.messages)
    )
    return msgspec.structs.replace(prompt, messages=messages)


def _find_thoughts(message: Message) -> list[Thought]:
    return [part for part in message.parts if isinstance(part, Thought)] if message.role == "assistant" else []


def _is_sealed(message: Message) -> bool:
    """Whether the text or the tool calls of a turn carry seals of a thought."""
    parts = [part for part in message.parts if isinstance(part, (Text, ToolCall))]
    return message.role == "assistant" and any(seal.value for part in parts for seal in part.seals)


def _find_item_ids(message: Message) -> set[str]:
    entries = [seal.entry for thought in _find_thoughts(message) for seal in thought.seals if seal.entry is not None]
    return {found for entry in entries for found in re.findall(_ITEM_ID, entry)}


def _drop_turn_thoughts(message: Message) -> Message:
    """Drop the thoughts of a turn, and the seals that belong to them."""
    parts = tuple(
        msgspec.structs.replace(part, seals=()) if isinstance(part, (Text, ToolCall)) else part
        for part in message.parts
        if not isinstance(part, Thought)
    )
    return msgspec.structs.replace(message, parts=parts)
