"""How much to think, in the words of one host: `spell_thinking(thinking, target) → (fields, notices)`.

Not here: whether the model allows it, and which effort is nearest (plan); how earlier thinking goes back (messages).
"""

from __future__ import annotations

from typing import Any

from asides.providers.provider import AskBy, Target
from asides.values.notices import Notice
from asides.values.thinking import Effort, Thinking, nearest_effort

# A budget for a host that takes only efforts: the effort whose usual spending is nearest. Above the last row the host's
# highest effort is meant, as far as it is known.
_EFFORT_FOR_BUDGET: tuple[tuple[int, Effort], ...] = ((2_048, "low"), (8_192, "medium"), (24_576, "high"))

# What "on" means to a host that has to be told an effort.
_ORDINARY_EFFORT: Effort = "medium"


def spell_thinking(thinking: Thinking, target: Target) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The fields that ask this target for this thinking: one representation, and none at all when nothing was asked."""
    spelling = _Spelling(thinking, target)
    spelling.run()
    return spelling.fields, tuple(spelling.notices)


class _Spelling:
    """One wish, while it is put into one host's words."""

    def __init__(self, thinking: Thinking, target: Target) -> None:
        self.thinking = thinking
        self.rule = target.rule
        self.budget_in = target.facts.budget_in
        self.toggle_on = target.quirks.toggle_on
        self.ask_by: AskBy = target.facts.ask_by
        self.fields: dict[str, Any] = {}
        self.notices: list[Notice] = []

    def run(self) -> None:
        if self.ask_by == "reasoning_object":
            self._object()  # which also says what is shown
        elif self.thinking.mode == "off":
            self._off()
        elif self._is_wanted():
            self._on()

    def _is_wanted(self) -> bool:
        # "auto" alone is the host's own habit, which is what it does when nothing is said.
        thinking = self.thinking
        return thinking.mode == "on" or thinking.effort is not None or thinking.budget is not None

    def _object(self) -> None:
        thinking = self.thinking
        told: dict[str, Any] = {}
        if thinking.mode == "off":
            told = {} if self._cannot_stop() else {"enabled": False}
        else:
            told |= self._amount_in_object() if self._is_wanted() else {}
            if thinking.summary is not None:
                told["summary"] = thinking.summary
            if thinking.show == "none":
                told["exclude"] = True
        if told:
            self.fields["reasoning"] = told

    def _amount_in_object(self) -> dict[str, Any]:
        """A budget or an effort, never both, since such a host refuses that; a number says more than a word."""
        budget, effort = self.thinking.budget, self.thinking.effort
        if budget is not None and self._takes_budgets(or_unknown=True):
            return {"max_tokens": budget}
        effort = self._effort_instead(effort, budget)
        return {"enabled": True} if effort is None else {"effort": effort}

    def _cannot_stop(self) -> bool:
        """Whether "off" is not worth saying: to models that never think, and to those that always do, which is told."""
        if self.rule.thinking == "always":
            self._note_off()
        return self.rule.thinking in ("always", "never")

    def _off(self) -> None:
        if self._cannot_stop():
            return
        match self.ask_by:
            case "reasoning_effort" | "prompt_mode":
                if self.rule.off_as_effort:
                    self.fields["reasoning_effort"] = "none"
                else:
                    self._note_off()
            case "thinking_toggle" | "thinking_toggle_and_effort":
                self.fields["thinking"] = {"type": "disabled"}
            case "enable_thinking":
                self.fields["enable_thinking"] = False
            case "template" | "template_and_effort":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: False}
            case _:  # cannot be asked, or only in another dialect
                self._note_off()

    def _on(self) -> None:
        match self.ask_by:
            case "reasoning_effort":
                self._by_effort()
            case "thinking_toggle":
                self.fields["thinking"] = {"type": self.toggle_on}
                self._budget_or_not("thinking.budget_tokens" if self._takes_budgets(or_unknown=True) else None)
                self._effort_not_sent()
            case "thinking_toggle_and_effort":
                self.fields["thinking"] = {"type": self.toggle_on}
                self._effort_beside("thinking.budget_tokens" if self._takes_budgets() else None)
            case "enable_thinking":
                self.fields["enable_thinking"] = True
                self._budget_or_not("thinking_budget")
                self._effort_not_sent()
            case "template":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: True}
                self._budget_or_not(None)
                self._effort_not_sent()
            case "template_and_effort":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: True}
                self._effort_beside(None)
            case "prompt_mode":
                self._by_prompt_mode()
            case _:  # cannot be asked, or only in another dialect
                self._budget_or_not(None)
                self._effort_not_sent()
                if self.thinking.effort is None and self.thinking.budget is None:
                    self._note("on_not_sent", "this host cannot be asked to think", "on")

    def _takes_budgets(self, *, or_unknown: bool = False) -> bool:
        # Where nothing is known of the model, the ordinary form of the dialect is sent (contract §3).
        return self.rule.budget is not None or (or_unknown and self.rule.thinking == "unknown")

    # --- the amount -------------------------------------------------------------------------------------------------

    def _by_effort(self) -> None:
        if not self._effort_beside(None):
            self._ordinary_effort()

    def _by_prompt_mode(self) -> None:
        if self.rule.thinking != "always":
            self._by_effort()
            return
        self.fields["prompt_mode"] = "reasoning"
        self._budget_or_not(None)
        self._effort_not_sent()

    def _effort_beside(self, budget_field: str | None) -> bool:
        """Say the amount in a field for budgets or in `reasoning_effort`; False when there is none to say."""
        budget, effort = self.thinking.budget, self.thinking.effort
        said = budget is not None and self._budget(budget_field, budget)
        if not said:
            effort = self._effort_instead(effort, budget)
        if effort is not None:
            self.fields["reasoning_effort"] = effort
        return said or effort is not None

    def _effort_instead(self, effort: Effort | None, budget: int | None) -> Effort | None:
        """The effort to name where a budget cannot be: the one that was asked for, or one that is like the budget."""
        if budget is None:
            return effort
        if effort is None:
            return self._effort_for(budget)
        self._note("budget_not_sent", "this host takes an effort, not a budget", str(budget), effort)
        return effort

    def _budget_or_not(self, field: str | None) -> None:
        budget = self.thinking.budget
        if budget is not None and not self._budget(field, budget):
            self._note("budget_not_sent", "this host takes no thinking budget", str(budget), self._on_or_nothing())

    def _budget(self, field: str | None, budget: int) -> bool:
        path = self.budget_in or field
        if path is None:
            return False
        place: dict[str, Any] = self.fields
        *parents, leaf = path.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[leaf] = budget
        return True

    def _effort_not_sent(self) -> None:
        effort = self.thinking.effort
        if effort is not None:
            self._note("effort_not_sent", "this host takes no effort", effort, self._on_or_nothing())

    def _on_or_nothing(self) -> str:
        return "on" if self.fields else "nothing"

    def _effort_for(self, budget: int) -> Effort | None:
        takes = self.rule.efforts
        if takes == ():
            self._note("budget_not_sent", "this model takes neither a budget nor an effort", str(budget), "on")
            return None
        # An effort above "high" is named only to models that are known to have one.
        highest: Effort = "high" if takes is None else "xhigh" if "xhigh" in takes else "max"
        fitting: list[Effort] = [effort for most, effort in _EFFORT_FOR_BUDGET if budget <= most]
        wanted = fitting[0] if fitting else highest
        # What the provider says of an effort that it does not have counts before what is nearest.
        mapped = dict(self.rule.effort_map).get(wanted)
        sent = wanted if takes and wanted in takes else mapped or nearest_effort(wanted, takes or (wanted,))
        self._note("budget_mapped", "this host takes an effort, not a budget", str(budget), sent)
        return sent

    def _ordinary_effort(self) -> None:
        """Thinking is wanted, no amount was named, and an effort is the only way to say so."""
        if self.rule.thinking == "always" or self.rule.default == "on":
            return
        if self.rule.efforts == () and self.rule.default is None:
            self._note("on_not_sent", "this model takes no effort; what it does is its own habit", "on")
            return
        sent = nearest_effort(_ORDINARY_EFFORT, self.rule.efforts or (_ORDINARY_EFFORT,))
        self._note("effort_chosen", "this host has to be told an effort", "on", sent)
        self.fields["reasoning_effort"] = sent

    # --- what could not be said -------------------------------------------------------------------------------------

    def _note_off(self) -> None:
        self._note("off_not_sent", "there is no way to tell this model to stop thinking", "off")

    def _note(self, code: str, detail: str, asked: str, sent: str = "nothing") -> None:
        self.notices.append(Notice(code, detail, "thinking", asked, sent))
