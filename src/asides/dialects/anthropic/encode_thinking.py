"""How much to think, in the words of Messages: `spell_thinking(prompt, target) → (fields, betas)`.

Not here: whether the model allows it, and what an effort is as a budget (plan).
"""

from __future__ import annotations

from typing import Any

from asides.providers.provider import ModelRule, Target
from asides.values.messages import Prompt
from asides.values.thinking import Thinking

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""Lets a model with a budget think between calls of tools too."""


def spell_thinking(prompt: Prompt, target: Target) -> tuple[dict[str, Any], list[str]]:
    """The fields that ask this target for this thinking, and the betas they need; none when nothing was asked."""
    thinking, rule = prompt.thinking, target.rule
    if not thinking.asked or rule.thinking == "never":
        return {}, []
    if thinking.mode == "off":
        return _off(rule), []
    fields: dict[str, Any] = {}
    betas: list[str] = []
    if thinking.budget is not None:
        fields["thinking"] = {"type": "enabled", "budget_tokens": thinking.budget}
        if prompt.tools and rule.interleaves == "by_beta":
            betas.append(INTERLEAVED)
    else:
        fields["thinking"] = {"type": _form(thinking, rule)}
    display = "omitted" if thinking.show == "none" else "summarized"
    if rule.display is not None and rule.display != display:
        fields["thinking"]["display"] = display
    if thinking.effort is not None:
        fields["output_config"] = {"effort": thinking.effort}
    return fields, betas


def _off(rule: ModelRule) -> dict[str, Any]:
    if rule.thinking == "always" or (rule.forms and "disabled" not in rule.forms):
        return {}
    # Unsaid means off here, and not every cloud takes the word for these models.
    if rule.default == "off":
        return {}
    return {"thinking": {"type": "disabled"}}


def _form(thinking: Thinking, rule: ModelRule) -> str:
    if thinking.mode == "between_tools":
        return "between_tools"
    # Clones know the older word; without a budget it means on.
    return "adaptive" if not rule.forms or "adaptive" in rule.forms else "enabled"
