"""How much to think, in the words of each family of models: fields that Converse passes on to the model.

Not here: whether the model allows it, and what an effort is as a budget (plan).
"""

from __future__ import annotations

from typing import Any

from asides.dialects.anthropic.encode_thinking import spell_thinking as spell_for_messages
from asides.providers.provider import AskBy, Target
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.thinking import Effort

# What "on" means to models that have to be told an effort.
_ORDINARY_EFFORT: Effort = "medium"

# What a model with the highest of its efforts refuses to be told (AWS nova2-userguide, extended-thinking, 2026-08).
_NOT_WITH_HIGH = ("maxTokens", "temperature", "topP")


def spell_thinking(prompt: Prompt, target: Target, inference: dict[str, Any], notices: list[Notice]) -> dict[str, Any]:
    """The fields that ask this target for this thinking; none when nothing was asked. `inference` loses what the model
    does not take beside them.
    """
    thinking, rule = prompt.thinking, target.rule
    if not thinking.asked or rule.thinking == "never":
        return {}
    ask_by: AskBy = target.facts.ask_by
    if ask_by == "thinking_toggle":
        fields, betas = spell_for_messages(prompt, target)
        return {**fields, "anthropic_beta": betas} if betas else fields
    if thinking.mode == "off":
        # Unsaid means off for those that are known to be off; those that cannot be were dealt with before.
        if rule.default != "off":
            detail = "how to keep this model from thinking is not known here"
            notices.append(Notice("off_not_sent", detail, "thinking", "off", "nothing"))
        return {}
    if thinking.mode == "auto" and thinking.effort is None and thinking.budget is None:
        return {}
    effort = thinking.effort
    if thinking.budget is not None:
        sent = effort or ("nothing" if ask_by == "nothing" else _ORDINARY_EFFORT)
        detail = "this model takes no thinking budget here"
        notices.append(Notice("budget_not_sent", detail, "thinking", str(thinking.budget), sent))
    if effort is None and ask_by != "nothing":
        effort = _ORDINARY_EFFORT if rule.efforts is None or _ORDINARY_EFFORT in rule.efforts else rule.efforts[-1]
        if thinking.budget is None:
            notices.append(Notice("effort_chosen", "this model has to be told an effort", "thinking", "on", effort))
    match ask_by:
        case "reasoning_effort":
            return {"reasoning_effort": effort}
        case "reasoning_object":
            return {"reasoning": {"effort": effort}}
        case "reasoning_config":
            return {"reasoning_config": effort}
        case "max_reasoning_effort":
            if effort == "high":
                _drop(inference, notices)
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
        case _:
            notices.append(Notice("on_not_sent", "how to ask this model to think is not known here", "thinking", "on"))
            return {}


def _drop(inference: dict[str, Any], notices: list[Notice]) -> None:
    for name in _NOT_WITH_HIGH:
        if inference.pop(name, None) is not None:
            detail = f"{name} is not accepted with the highest effort"
            notices.append(Notice("setting_dropped", detail, name, "set", "nothing"))
