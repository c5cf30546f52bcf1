"""What of the past goes back, and whether the model allows what is asked: `plan(prompt, target) → Plan`. Pure.

This file is the past; the request is checked in `check`. Not here: how the planned prompt is spelled (dialects), and
what a provider's rules are (rows).
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects import plain_row
from asides.dialects.peculiar import sealed_elsewhere, takes_refusals_as_words
from asides.history.check import Check, OnConflict
from asides.history.pair import add_missing_results, asked_for
from asides.history.pictures import without_pictures
from asides.providers.provider import ReplayRule, Target
from asides.values.messages import (
    Message,
    Part,
    Prompt,
    ProviderState,
    Refusal,
    ServerTool,
    Text,
    ToolResult,
    UnknownPart,
)
from asides.values.notices import Notice
from asides.values.thinking import Origin, Seal, Thought

__all__ = ["Decision", "OnConflict", "Plan", "plan"]


class Decision(msgspec.Struct, frozen=True):
    """What becomes of one part of the history, and why."""

    message: int
    part: int
    action: Literal["keep", "drop", "convert"]
    what: str
    """The kind of part: "thought", "seal", "tool_call" …"""
    why: str
    since: str = ""
    source: str = ""


class Plan(msgspec.Struct, frozen=True):
    """A prompt that its target accepts, and what was done to make it so."""

    prompt: Prompt
    decisions: tuple[Decision, ...] = ()
    notices: tuple[Notice, ...] = ()


def plan(prompt: Prompt, target: Target, *, on_conflict: OnConflict = "raise") -> Plan:
    """Settle what of the history goes back and check the request against the model's rules, before a byte is sent."""
    decisions: list[Decision] = []
    notices: list[Notice] = []
    messages = _paired(_replay(prompt, target, decisions), notices, continues=prompt.state.continues)
    messages, state = _resume(messages, prompt.state, target, decisions)
    messages = _without_blanks(messages, notices)
    messages = without_pictures(messages, target, on_conflict, notices)
    sendable = msgspec.structs.replace(prompt, messages=messages, state=state)
    checked = Check(sendable, target, on_conflict, notices).run()
    return Plan(checked, tuple(decisions), tuple(notices))


# --- the history --------------------------------------------------------------------------------------------------


def _without_blanks(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """The messages without those of a person who said nothing, which some hosts refuse. The last one is the question,
    and whoever asks it means it.
    """
    kept = tuple(
        message
        for place, message in enumerate(messages)
        if place == len(messages) - 1
        or message.role != "user"
        or any(not isinstance(part, Text) or part.text.strip() for part in message.parts)
    )
    if len(kept) < len(messages):
        notices.append(Notice("blank_message_dropped", "messages without a word were left out", "messages"))
    return kept


def _replay(prompt: Prompt, target: Target, decisions: list[Decision]) -> tuple[Message, ...]:
    rule = target.provider.replay_rule(target.family or target.model)
    if prompt.thinking.replay == "never":
        rule = ReplayRule(when="never", source="Thinking(replay='never')")
    last_user = max((number for number, message in enumerate(prompt.messages) if message.role == "user"), default=-1)
    planned: list[Message] = []
    for number, message in enumerate(prompt.messages):
        if message.role != "assistant":
            planned.append(message)
            continue
        goes = _turn_goes(rule, message, number, last_user)
        parts = tuple(_replay_parts(message, number, goes, rule, target, decisions))
        if parts or not message.parts:
            planned.append(message if parts == message.parts else msgspec.structs.replace(message, parts=parts))
    return tuple(planned)


def _turn_goes(rule: ReplayRule, message: Message, number: int, last_user: int) -> bool:
    match rule.when:
        case "never":
            return False
        case "all" | "sealed":
            return True
        case "tool_turns":
            return bool(message.tool_calls)
        case "since_last_user":
            return number > last_user


def _replay_parts(
    message: Message, number: int, goes: bool, rule: ReplayRule, target: Target, decisions: list[Decision]
) -> list[Part]:
    kept: list[Part] = []
    for place, part in enumerate(message.parts):
        if isinstance(part, Thought):
            why = _why_dropped(part, goes, rule, target)
            decisions.append(
                Decision(
                    number,
                    place,
                    "drop" if why else "keep",
                    "thought",
                    why or f"replay rule: {rule.when}",
                    rule.since,
                    rule.source,
                )
            )
            if not why:
                kept.append(part)
        elif isinstance(part, Refusal) and takes_refusals_as_words(target.dialect):
            why = "hosts that speak this dialect take no refusal back; its words are the answer that was given"
            decisions.append(Decision(number, place, "convert", "refusal", why))
            kept.append(Text(part.text))
        elif isinstance(part, (ServerTool, UnknownPart)) and not _is_from(part.origin, target):
            decisions.append(Decision(number, place, "drop", "part", "another provider or endpoint made it"))
        elif not isinstance(part, (ToolResult, Refusal)) and part.seals:
            own = tuple(seal for seal in part.seals if _seal_is_own(seal, target))
            if len(own) != len(part.seals):
                decisions.append(Decision(number, place, "drop", "seal", "it was made by another model or endpoint"))
            kept.append(msgspec.structs.replace(part, seals=own))
        else:
            kept.append(part)
    return kept


def _why_dropped(thought: Thought, goes: bool, rule: ReplayRule, target: Target) -> str:
    if thought.withheld:
        return "its words were not kept when it was saved, and it cannot go back without them"
    if not thought.complete:
        return "the reply broke off inside it, or what stood before it was changed"
    if thought.origin is not None and not _same_host(thought.origin, target):
        return "another provider or endpoint made it"
    if any(not _seal_is_own(seal, target) for seal in thought.seals):
        return "its seals were made by another model"
    if thought.origin is None and sealed_elsewhere(thought, target.dialect):
        return "its seals were made in another dialect"
    if rule.when == "sealed" and not any(seal.value for seal in thought.seals):
        return "replay rule: sealed"
    return "" if goes else f"replay rule: {rule.when}"


def _is_from(origin: Origin | None, target: Target) -> bool:
    # What has no origin was written by the caller, who means it.
    return origin is None or _same_host(origin, target)


def _same_host(origin: Origin, target: Target) -> bool:
    # Recorded bytes need not be named: by a provider, by an address that depends on its account, or by a model. What is
    # not known is no other (requirements, H6).
    unknown = not origin.endpoint or "$" in origin.endpoint
    if origin.provider != target.origin.provider:
        return unknown and origin.provider == plain_row(target.dialect).name
    return unknown or _address(origin.endpoint) == _address(target.base_url)


def _seal_is_own(seal: Seal, target: Target) -> bool:
    # A seal of unknown origin came from outside with the history; its owner answers for it (requirements, H6).
    return seal.origin is None or (_same_host(seal.origin, target) and seal.origin.model in ("", target.model))


def _address(url: str) -> tuple[str, str, int | None, str]:
    """An endpoint without the differences that mean nothing: case, a closing slash, the default port."""
    parts = urlsplit(url)
    port = parts.port if parts.port != {"https": 443, "http": 80}.get(parts.scheme) else None
    return parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/")


def _resume(
    messages: tuple[Message, ...], state: ProviderState, target: Target, decisions: list[Decision]
) -> tuple[tuple[Message, ...], ProviderState]:
    """What is new behind the turn that the provider goes on from; all of it where there is no such turn.

    A turn that is named but not in the history is taken for the last one of the model's: what follows that is complete
    in itself, results of tools included.
    """
    spoken = [number for number, message in enumerate(messages) if message.role == "assistant"]
    kept = {number: stored for number in spoken if (stored := messages[number].stored) is not None}
    start: int | None = None
    if state.previous_response_id is not None:
        named = [number for number, stored in kept.items() if stored.id == state.previous_response_id]
        start = named[-1] if named else (spoken[-1] if spoken else None)
    elif state.conversation is not None:
        start = spoken[-1] if spoken else None
    elif state.resume:
        own = [number for number, at in kept.items() if at.origin is None or _same_host(at.origin, target)]
        if own:
            start = own[-1]
            state = msgspec.structs.replace(state, previous_response_id=kept[start].id)
    if start is None:
        return messages, state
    why = "the provider has stored it"
    decisions += [Decision(number, 0, "drop", "message", why) for number in range(start + 1)]
    return messages[start + 1 :], state


def _paired(messages: tuple[Message, ...], notices: list[Notice], *, continues: bool) -> tuple[Message, ...]:
    """Every call answered and every result asked for, since providers refuse a history where one is missing."""
    wanted, orphans = asked_for(messages, continues=continues)
    notices += [Notice("orphan_tool_result", "a tool result without its call was left out")] * orphans
    paired, dangling = add_missing_results(wanted)
    if dangling:
        told = f"{dangling} tool call(s) had no result; a note was sent instead"
        notices.append(Notice("dangling_tool_call", told))
    return paired
