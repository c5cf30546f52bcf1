"""What of the past goes back, and whether the model allows what is asked: `plan(prompt, target) → Plan`. Pure.

Not here: how the planned prompt is spelled (dialects), and what a provider's rules are (rows).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from asides.errors import InvalidThinking
from asides.messages import Message, Part, Prompt, Sampling, Text, ToolCall, ToolResult
from asides.notices import Notice
from asides.providers.provider import ModelRule, ReplayRule, Target
from asides.thinking import EFFORTS, Effort, Origin, Seal, Thinking, Thought

OnConflict: TypeAlias = Literal["raise", "adjust"]

# Room for an answer beside a thinking budget, when max_tokens was left to us.
ANSWER_ROOM = 4096


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
    messages = _mend_calls(_replay(prompt, target, decisions), notices)
    checked = _Check(prompt, target, on_conflict, notices).run()
    return Plan(msgspec.structs.replace(checked, messages=messages), tuple(decisions), tuple(notices))


# --- the history --------------------------------------------------------------------------------------------------


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
        case "all":
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
        elif isinstance(part, (Text, ToolCall)) and part.seals:
            own = tuple(seal for seal in part.seals if _seal_is_own(seal, target))
            if len(own) != len(part.seals):
                decisions.append(Decision(number, place, "drop", "seal", "it was made by another model or endpoint"))
            kept.append(msgspec.structs.replace(part, seals=own))
        else:
            kept.append(part)
    return kept


def _why_dropped(thought: Thought, goes: bool, rule: ReplayRule, target: Target) -> str:
    if not thought.complete:
        return "the reply broke off inside it"
    if thought.origin is not None and not _same_host(thought.origin, target):
        return "another provider or endpoint made it"
    if any(not _seal_is_own(seal, target) for seal in thought.seals):
        return "its seals were made by another model"
    return "" if goes else f"replay rule: {rule.when}"


def _same_host(origin: Origin, target: Target) -> bool:
    return origin.provider == target.origin.provider and _address(origin.endpoint) == _address(target.base_url)


def _seal_is_own(seal: Seal, target: Target) -> bool:
    # A seal of unknown origin came from outside with the history; its owner answers for it (requirements, H6).
    return seal.origin is None or (_same_host(seal.origin, target) and seal.origin.model == target.model)


def _address(url: str) -> tuple[str, str, int | None, str]:
    """An endpoint without the differences that mean nothing: case, a closing slash, the default port."""
    parts = urlsplit(url)
    port = parts.port if parts.port != {"https": 443, "http": 80}.get(parts.scheme) else None
    return parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/")


def _mend_calls(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Every call answered and every result asked for, since providers refuse a history where one is missing."""
    mended: list[Message] = []
    waiting: dict[str, ToolCall] = {}

    def answer_waiting() -> None:
        if waiting:
            notices.append(
                Notice("dangling_tool_call", f"{len(waiting)} tool call(s) had no result; a note was sent instead")
            )
            mended.extend(
                Message("tool", (ToolResult(call.id, "The call was not run.", call.name, True),))
                for call in waiting.values()
            )
            waiting.clear()

    for message in messages:
        if not any(isinstance(part, ToolResult) for part in message.parts):
            answer_waiting()
            waiting = {call.id: call for call in message.tool_calls} if message.role == "assistant" else {}
            mended.append(message)
            continue
        kept: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and waiting.pop(part.call_id, None) is None:
                notices.append(Notice("orphan_tool_result", "a tool result without its call was left out"))
            else:
                kept.append(part)
        if kept:
            mended.append(
                message if len(kept) == len(message.parts) else msgspec.structs.replace(message, parts=tuple(kept))
            )
    answer_waiting()
    return tuple(mended)


# --- the request --------------------------------------------------------------------------------------------------


class _Check:
    """One prompt against one model's rule. Each contradiction raises, or is adjusted and noted."""

    def __init__(self, prompt: Prompt, target: Target, on_conflict: OnConflict, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.target = target
        self.rule: ModelRule = target.rule
        self.adjusts = on_conflict == "adjust"
        self.notices = notices
        self.who = f"{target.provider.name}:{target.model}"

    def run(self) -> Prompt:
        thinking = self._amount(self.prompt.thinking)
        thinking, max_tokens = self._budget(thinking)
        on = thinking.mode != "off" and (thinking.wanted or self.rule.thinking == "always" or self.rule.default == "on")
        changes: dict[str, Any] = {"thinking": thinking, "max_tokens": max_tokens, "system": self.prompt.system or None}
        if on:
            changes |= self._sampling(thinking) | self._forced_tool()
        if thinking.wanted and self.prompt.tools and not self.rule.tools_while_thinking:
            changes["thinking"] = self._tools_alone(thinking)
        return msgspec.structs.replace(self.prompt, **changes)

    def _conflict(self, code: str, message: str, *, setting: str, asked: object, sent: object, advice: str) -> None:
        if not self.adjusts:
            raise InvalidThinking(f"{self.who}: {message}; {advice}, or pass on_conflict='adjust'.", setting=setting)
        self.notices.append(Notice(code, message, setting, str(asked), str(sent)))

    def _amount(self, thinking: Thinking) -> Thinking:
        rule = self.rule
        if not thinking.asked:
            return thinking
        if thinking.mode == "off":
            # It outdoes an amount that stands beside it (requirements, I4).
            thinking = msgspec.structs.replace(thinking, effort=None, budget=None)
        if rule.thinking == "unknown":
            self.notices.append(
                Notice("unknown_model", f"what {self.who} can do is not known; sent as asked", "thinking")
            )
            return thinking
        if rule.thinking == "never" and thinking.wanted:
            self._conflict(
                "thinking_unsupported",
                "this model does not think",
                setting="thinking",
                asked="on",
                sent="nothing",
                advice="choose another model or leave thinking unset",
            )
            return msgspec.structs.replace(thinking, mode=None, effort=None, budget=None)
        if rule.thinking == "never":
            return msgspec.structs.replace(thinking, mode=None)
        if rule.thinking == "always" and thinking.mode == "off":
            least: Effort | None = rule.efforts[0] if rule.efforts else None
            self._conflict(
                "thinking_cannot_stop",
                "this model cannot stop thinking",
                setting="thinking",
                asked="off",
                sent=least or "nothing",
                advice=f"ask for {least or 'another model'}",
            )
            return msgspec.structs.replace(thinking, mode=None, effort=least)
        return self._effort(thinking)

    def _effort(self, thinking: Thinking) -> Thinking:
        asked, takes = thinking.effort, self.rule.efforts
        if asked is None or takes is None or asked in takes:
            return thinking
        if not takes:
            self.notices.append(Notice("effort_mapped", "this model has no efforts", "thinking", asked, "on"))
            return msgspec.structs.replace(thinking, effort=None, mode="on")
        sent = dict(self.rule.effort_map).get(asked) or _nearest(asked, takes)
        self.notices.append(Notice("effort_mapped", f"the nearest effort of {self.who}", "thinking", asked, sent))
        return msgspec.structs.replace(thinking, effort=sent)

    def _budget(self, thinking: Thinking) -> tuple[Thinking, int | None]:
        budget, limit = thinking.budget, self.prompt.max_tokens
        if budget is None:
            return thinking, self._default_limit(limit)
        least, most = self.rule.budget or (1, None)
        if budget < least or (most is not None and budget > most):
            legal = least if budget < least or most is None else most
            self._conflict(
                "budget_adjusted",
                f"a thinking budget of {budget} tokens is outside {least} to {most or 'any'}",
                setting="thinking",
                asked=budget,
                sent=legal,
                advice=f"ask for {legal}",
            )
            budget = legal
        if limit is None:
            if self.rule.budget is not None or self.target.quirks.budget_in is not None:
                limit = budget + ANSWER_ROOM
                self.notices.append(
                    Notice("max_tokens_chosen", "room for the budget and an answer", "max_tokens", None, str(limit))
                )
        elif budget >= limit:
            room = max(least, limit - ANSWER_ROOM, limit // 2)
            fits = room if room < limit else None
            self._conflict(
                "budget_adjusted",
                f"a thinking budget of {budget} tokens leaves nothing of max_tokens={limit} for the answer",
                setting="thinking",
                asked=budget,
                sent=fits or budget,
                advice="raise max_tokens or lower the budget",
            )
            if fits is None:
                limit = budget + ANSWER_ROOM
                self.notices.append(
                    Notice(
                        "max_tokens_chosen",
                        "room for the budget and an answer",
                        "max_tokens",
                        str(self.prompt.max_tokens),
                        str(limit),
                    )
                )
            else:
                budget = fits
        return msgspec.structs.replace(thinking, budget=budget), limit

    def _default_limit(self, limit: int | None) -> int | None:
        chosen = self.rule.default_max_tokens
        if limit is not None or chosen is None:
            return limit
        self.notices.append(
            Notice("max_tokens_chosen", "this model is not asked without a limit", "max_tokens", None, str(chosen))
        )
        return chosen

    def _sampling(self, thinking: Thinking) -> dict[str, Any]:
        given = set(self.prompt.sampling.given()) | ({"stop"} if self.prompt.stop else set())
        refused = [name for name in self.rule.forbids if name in given]
        if not refused:
            return {}
        for name in refused:
            # Both asked for: a contradiction. Thinking that is merely the model's habit: the setting has
            # no effect there.
            message = f"{name} is not accepted while this model thinks"
            if thinking.wanted:
                self._conflict(
                    "setting_dropped",
                    message,
                    setting=name,
                    asked="set",
                    sent="nothing",
                    advice=f"leave {name} or thinking out",
                )
            else:
                self.notices.append(Notice("setting_dropped", message, name, "set", "nothing"))
        kept = {name: value for name, value in self.prompt.sampling.given().items() if name not in refused}
        changes: dict[str, Any] = {"sampling": Sampling(**kept)}
        if "stop" in refused:
            changes["stop"] = ()
        return changes

    def _tools_alone(self, thinking: Thinking) -> Thinking:
        self._conflict(
            "thinking_dropped",
            "this model takes no tools while it is asked to think here",
            setting="thinking",
            asked=thinking.effort or "on",
            sent="nothing",
            advice="leave thinking or the tools out, or use another endpoint",
        )
        return msgspec.structs.replace(thinking, mode=None, effort=None, budget=None)

    def _forced_tool(self) -> dict[str, Any]:
        choice = self.prompt.tool_choice
        if self.rule.forced_tools or choice in (None, "auto", "none"):
            return {}
        self._conflict(
            "tool_choice_adjusted",
            "this model cannot be forced to call a tool while it thinks",
            setting="tool_choice",
            asked=choice,
            sent="auto",
            advice="use tool_choice='auto' or turn thinking off",
        )
        return {"tool_choice": "auto"}


def _nearest(asked: Effort, takes: tuple[Effort, ...]) -> Effort:
    """The supported effort that is closest; of two, the lesser, which costs less than was asked rather than more."""
    place = EFFORTS.index(asked)
    return min(takes, key=lambda effort: (abs(EFFORTS.index(effort) - place), EFFORTS.index(effort)))
