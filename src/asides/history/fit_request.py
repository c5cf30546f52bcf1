"""Fit thinking and sampling settings to a model's rule. Returns findings and never raises.

Not here: raising or reporting a contradiction (check), and the wire form of a setting (dialects).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from asides.providers.provider import ModelRule, Sampled
from asides.values.messages import Message, Sampling
from asides.values.notices import Notice
from asides.values.parts import ServerTool, Text, ToolResult
from asides.values.thinking import EFFORTS, Effort, Thinking, Thought

# Tokens for the answer beside a thinking budget.
ANSWER_ROOM = 4096

# The budget in tokens for each effort, to convert one into the other.
BUDGETS: dict[Effort, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}


# 400 with these (platform.claude.com whats-new-sonnet-5-5, 2026-11-15).
_NOT_BETWEEN_TOOLS = ("xhigh", "max")


class Contradiction(msgspec.Struct, frozen=True):
    """A setting that the model does not allow, and its replacement."""

    code: str
    message: str
    setting: str
    asked: str
    sent: str
    advice: str


Finding: TypeAlias = Contradiction | Notice


def fit_thinking(thinking: Thinking, rule: ModelRule, limit: int | None) -> tuple[Thinking, list[Finding]]:
    """Express the amount of thinking in a form that the model takes: a budget, or an effort."""
    found: list[Finding] = []
    forms = rule.forms
    if thinking.mode == "off" and "between_tools" in forms and "disabled" not in forms:
        detail = "this model's off is to think only between calls of tools"
        found.append(Notice("form_adjusted", detail, "thinking", "off", "between_tools"))
        return msgspec.structs.replace(thinking, mode="between_tools"), found
    if not forms or not thinking.wanted:
        return thinking, found
    if thinking.mode == "between_tools" and "between_tools" not in forms:
        message = "this model cannot be asked to think only between calls of tools"
        advice = "use thinking='auto'"
        found.append(Contradiction("form_adjusted", message, "thinking", "between_tools", "auto", advice))
        thinking = msgspec.structs.replace(thinking, mode="auto")
    if thinking.mode == "between_tools" and thinking.effort in _NOT_BETWEEN_TOOLS:
        message = f"the effort {thinking.effort} is not accepted while this model thinks only between calls of tools"
        found.append(Contradiction("effort_mapped", message, "thinking", thinking.effort, "high", "ask for high"))
        thinking = msgspec.structs.replace(thinking, effort="high")
    if thinking.budget is not None and "enabled" not in forms:
        nearest = _find_effort(thinking.budget, rule.efforts or EFFORTS)
        sent = thinking.effort or nearest
        message = "this model takes an effort, not a budget"
        found.append(
            Contradiction("budget_mapped", message, "thinking", str(thinking.budget), sent, f"use thinking={nearest!r}")
        )
        return msgspec.structs.replace(thinking, budget=None, effort=sent), found
    if thinking.budget is None and "adaptive" not in forms and rule.budget is not None:
        asked = thinking.effort
        chosen = _fit_budget(BUDGETS[asked or "medium"], rule, limit)
        code = "budget_chosen" if asked is None else "effort_mapped"
        found.append(Notice(code, "this model thinks with a budget", "thinking", asked or "on", str(chosen)))
        effort = asked if asked in (rule.efforts or ()) else None
        return msgspec.structs.replace(thinking, mode=None, effort=effort, budget=chosen), found
    return thinking, found


def _fit_budget(budget: int, rule: ModelRule, limit: int | None) -> int:
    """Limit a budget so that it leaves room for an answer, but not below the model's minimum."""
    least, _ = rule.budget or (1, None)
    most = budget
    for ceiling in (limit, rule.max_output):
        if ceiling is not None:
            most = min(most, ceiling - min(ANSWER_ROOM, ceiling // 2))
    return max(least, most)


def _find_effort(budget: int, takes: Sequence[Effort]) -> Effort:
    enough: list[Effort] = [effort for effort in takes if BUDGETS[effort] >= budget]
    return enough[0] if enough else takes[-1]


def fit_sampling(sampling: Sampling, rule: ModelRule, *, thinks: bool) -> tuple[Sampling, list[Contradiction]]:
    """The sampling settings that the model accepts, and a finding for each change."""
    found: list[Contradiction] = []
    accepted = sampling.to_dict()
    for name in _list_refused(rule, thinks=thinks):
        value = accepted.get(name)
        if value is None or (name == "temperature" and thinks and value == rule.temperature):
            continue
        del accepted[name]
        if name in rule.refuses:
            message, advice = f"{name} is not accepted by this model", f"leave {name} out"
        else:
            message, advice = f"{name} is not accepted while this model thinks", f"leave {name} or thinking out"
        found.append(Contradiction("setting_dropped", message, name, "set", "nothing", advice))
    top_p = sampling.top_p
    if thinks and rule.top_p is not None and top_p is not None and "top_p" in accepted:
        least, most = rule.top_p
        if not least <= top_p <= most:
            accepted["top_p"] = sent = min(max(top_p, least), most)
            message = f"top_p is {least:g} to {most:g} while this model thinks"
            advice = "change it or leave it out"
            found.append(Contradiction("setting_adjusted", message, "top_p", f"{top_p:g}", f"{sent:g}", advice))
    return Sampling(**accepted), found


def _list_refused(rule: ModelRule, *, thinks: bool) -> list[Sampled]:
    names = dict.fromkeys((*rule.refuses, *(rule.forbids if thinks else ())))
    return [name for name in names if name != "stop"]


def ends_with_assistant(messages: Sequence[Message]) -> bool:
    """Whether the conversation ends with an assistant message that the model should continue. A turn that the model
    itself paused does not count.
    """
    if not messages or messages[-1].role != "assistant":
        return False
    parts = messages[-1].parts
    return any(isinstance(part, Text) for part in parts) and not any(isinstance(part, ServerTool) for part in parts)


def find_open_turn(messages: Sequence[Message]) -> int:
    """The place where a turn under way begins, which calls tools; the number of messages if there is none."""
    count = len(messages)
    if not messages or not any(isinstance(part, ToolResult) for part in messages[-1].parts):
        return count
    start = count
    while start and not _begins_turn(messages[start - 1]):
        start -= 1
    return start


def _begins_turn(message: Message) -> bool:
    return message.role != "assistant" and any(not isinstance(part, ToolResult) for part in message.parts)


def has_open_thoughts(messages: Sequence[Message]) -> bool:
    """Whether a turn under way has thoughts that go back."""
    turn = messages[find_open_turn(messages) :]
    return any(isinstance(part, Thought) for message in turn for part in message.parts)


def lacks_thinking(messages: Sequence[Message]) -> bool:
    """Whether the current turn calls tools and does not begin with thinking. Turns of other models may lack it.

    Results that the last user message brings beside its text belong to the current turn: they are one message there.
    """
    end = len(messages)
    # From the end: a history may be long, and its current turn is not.
    while end and messages[end - 1].role != "assistant":
        end -= 1
    if not any(isinstance(part, ToolResult) for message in messages[end:] for part in message.parts):
        end = len(messages)
    first: Message | None = None
    calls_tools = False
    for place in range(end - 1, -1, -1):
        message = messages[place]
        if message.role == "assistant":
            if message.parts:
                first = message
                calls_tools = calls_tools or bool(message.tool_calls)
        elif any(not isinstance(part, ToolResult) for part in message.parts):
            break
    return calls_tools and first is not None and not isinstance(first.parts[0], Thought)
