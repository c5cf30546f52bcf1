"""How much to think, as a thinkingConfig: `spell_thinking(prompt, target) → (fields, notices)`.

Not here: whether the model allows it, and which effort is nearest (plan); how signatures go back (spell_contents).
"""

from __future__ import annotations

from typing import Any

from asides.providers.provider import Target
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.thinking import Effort, nearest_effort

# What an effort is worth in tokens, as Google's own OpenAI endpoint has it; the least for the word that is less.
_BUDGETS: dict[Effort, int] = {
    "minimal": 512,
    "low": 1_024,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}
# A budget for a model that takes levels: the level whose usual spending is nearest.
_LEVEL_FOR_BUDGET: tuple[tuple[int, Effort], ...] = ((512, "minimal"), (2_048, "low"), (8_192, "medium"))
_LEVELS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")
_LEFT_TO_THE_MODEL = -1


def spell_thinking(prompt: Prompt, target: Target) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The thinkingConfig that asks for this thinking; empty when nothing was asked, or the model has none."""
    thinking, rule = prompt.thinking, target.rule
    if not thinking.asked or rule.thinking == "never":
        return {}, ()
    notices: list[Notice] = []
    match target.facts.ask_by:
        case "thinking_budget":
            config = _budget(prompt, target, notices)
        case "nothing":
            config = {}
        case _:
            config = _level(prompt, target, notices)
    if thinking.mode != "off":
        # Thoughts are shown on demand only, and only as summaries.
        config["includeThoughts"] = thinking.show != "none"
    return config, tuple(notices)


def _budget(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    thinking = prompt.thinking
    if thinking.mode == "off":
        return {"thinkingBudget": 0}
    if thinking.budget is not None:
        return {"thinkingBudget": thinking.budget}
    if thinking.effort is None:
        return {"thinkingBudget": _LEFT_TO_THE_MODEL}
    least, most = target.rule.budget or (1, None)
    tokens = _BUDGETS[thinking.effort]
    if prompt.max_tokens is not None:
        # The limit counts thinking too: half of it at most, so that an answer finds room.
        tokens = min(tokens, prompt.max_tokens // 2)
    tokens = max(tokens, least) if most is None else min(max(tokens, least), most)
    notices.append(_note("effort_mapped", "this model takes a budget in tokens", thinking.effort, str(tokens)))
    return {"thinkingBudget": tokens}


def _level(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    thinking = prompt.thinking
    takes = target.rule.efforts
    if takes == ():
        if thinking.effort or thinking.budget or thinking.mode == "off":
            asked = thinking.effort or str(thinking.budget or "off")
            notices.append(_note("effort_not_sent", "the level of this model cannot be set", asked, "nothing"))
        return {}
    if thinking.mode == "off":
        least = (takes or _LEVELS)[0]
        notices.append(_note("off_not_sent", "levels have no word for not thinking; the least was sent", "off", least))
        return {"thinkingLevel": least.upper()}
    if thinking.budget is not None:
        fitting: list[Effort] = [level for most, level in _LEVEL_FOR_BUDGET if thinking.budget <= most]
        wanted = fitting[0] if fitting else _LEVELS[-1]
        sent = nearest_effort(wanted, takes or _LEVELS)
        notices.append(_note("budget_mapped", "this model takes a level, not a budget", str(thinking.budget), sent))
        return {"thinkingLevel": sent.upper()}
    if thinking.effort is None:
        return {}
    sent = nearest_effort(thinking.effort, takes or _LEVELS)
    if sent != thinking.effort:
        notices.append(_note("effort_mapped", "the nearest level", thinking.effort, sent))
    return {"thinkingLevel": sent.upper()}


def _note(code: str, detail: str, asked: str, sent: str) -> Notice:
    return Notice(code, detail, "thinking", asked, sent)
